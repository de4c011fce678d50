"""The start page of `annotator home`: its process, and visitors that send requests to it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Page

from annotator.store.database.database import Database
from annotator.store.people import members
from annotator.ui.home import hosted_projects
from annotator.ui.home.hosted_projects import HostedProject
from harness.served import until


class Browser:
    """Cookies, and nothing else of a browser."""

    def __init__(self) -> None:
        self.cookies: dict[str, tuple[str, str]] = {}  # name -> path, value

    def get(self, address: str) -> tuple[int, str]:
        """Status and text; redirects are followed."""
        for _ in range(5):
            path = "/" + address.split("/", 3)[3]
            sent = "; ".join(f"{name}={value}" for name, (at, value) in self.cookies.items() if path.startswith(at))
            request = urllib.request.Request(address, headers={"cookie": sent} if sent else {})
            opener = urllib.request.build_opener(_NoRedirect)
            try:
                answer = opener.open(request, timeout=120)
            except urllib.error.HTTPError as error:
                answer = error
            for header in answer.headers.get_all("set-cookie") or []:
                name, value = header.split(";")[0].split("=", 1)
                at = re.search(r"[Pp]ath=([^;]*)", header).group(1)
                self.cookies[name] = (at, value)
            if answer.status in (303, 307) and (to := answer.headers["location"]):
                address = to if to.startswith("http") else "/".join(address.split("/", 3)[:3]) + to
                continue
            return answer.status, answer.read().decode()
        raise AssertionError(f"too many redirects to {address}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: object) -> None:
        return None


@contextmanager
def at_home(*words: object, command: str = "home", **variables: object) -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-P", "-m", "annotator", command, "--no-browser", *map(str, words)]
    with tempfile.TemporaryDirectory() as machine:  # where the folders are remembered
        env = os.environ | {"ANNOTATOR_HOME": machine} | {name: str(value) for name, value in variables.items()}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def served_by(project: Path) -> int | None:
    """The process that listens at the project's port."""
    port = Database(project).get_setting(hosted_projects.PORT_SETTING)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(bytes(1))
        except OSError:
            continue
        if b"annotator.ui.home.project_process" in words and _listens(int(path.parent.name), port):
            return int(path.parent.name)
    return None


def _listens(pid: int, port: int) -> bool:
    try:
        links = {str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:
        return False
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    inodes = {row.split()[9] for row in rows if row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A"}
    return any(f"socket:[{inode}]" in links for inode in inodes)


def made(person: Path, name: str = "summer") -> Database:
    return Database(person / "annotator-projects" / name)


def wait_for_first_image(page: Page) -> None:
    page.locator(".stage img[data-image]").first.wait_for(timeout=120_000)


class Asking(Browser):
    """Somebody whose browser was let in, and who may send what no page would."""

    def __init__(self, link: str) -> None:
        super().__init__()
        self.address = link.partition("/?")[0]
        self.get(link)
        self.take_pass("/start/new")

    def take_pass(self, page: str) -> None:
        """Send the pass of this page from now on."""
        status, text = self.get(f"{self.address}{page}")
        assert status == 200
        self.token = re.search(r"token&quot;: &quot;([^&]+)&quot;", text).group(1)

    def ask(self, what: str, **content: object) -> dict:
        """The answer as JSON; of a refusal the text and the status."""
        status, text = self.post(what, content, {"x-annotator-token": self.token})
        return json.loads(text) | {"status": status}

    def post(self, what: str, content: object, headers: dict[str, str]) -> tuple[int, str]:
        cookies = "; ".join(f"{name}={value}" for name, (_, value) in self.cookies.items())
        address = f"{self.address}/start/api/{what}"
        body = json.dumps(content).encode()
        request = urllib.request.Request(address, body, {"cookie": cookies} | headers, method="POST")
        try:
            answer = urllib.request.urlopen(request, timeout=120)
        except urllib.error.HTTPError as error:
            answer = error
        return answer.status, answer.read().decode()

    def make(self, **content: object) -> dict:
        """The state when the project is made, or what was refused at once."""
        usual = {"text": "fox\nheron", "commas": "split", "labels": "", "mode": "one"}
        begun = self.ask("make", **usual | content)
        if begun["status"] != 200:
            return begun
        return until(lambda: (state := self.ask("state")) and not state["is_at_work"] and state)


def send(asking: Asking, batch: str, name: str, content: bytes, token: str | None = None) -> tuple[int, str]:
    cookies = "; ".join(f"{name}={value}" for name, (_, value) in asking.cookies.items())
    address = f"{asking.address}/start/api/image?name={quote(name)}&batch={batch}"
    headers = {"cookie": cookies, "x-annotator-token": asking.token if token is None else token}
    try:
        answer = urllib.request.urlopen(urllib.request.Request(address, content, headers, method="POST"), timeout=120)
    except urllib.error.HTTPError as error:
        answer = error
    return answer.status, answer.read().decode()


def all_below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


class Member(Asking):
    """A member of a project who asks the start page, straight at its port."""

    def __init__(self, place: HostedProject, name: str, start_page: str):
        self.cookies, self.address, self.token = {}, start_page, ""
        secret = members.create_link(place.db, name, "test")
        assert self.get(f"http://127.0.0.1:{place.port}/{place.name}/?invitation={secret}")[0] == 200
