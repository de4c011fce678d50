"""What a page of another origin can do in a real Chromium that has access to ours, with another port or another name:
it shows nothing of ours in a frame or as a picture, reads nothing, and changes nothing."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from harness.child_processes import free_port
from harness.contexts import Contexts
from harness.member_requests import browser_cookie
from harness.person import open_page, served_photos, wait_for_picture
from harness.served import PAGES_ALONE, TEAM_PAGES, until
from harness.start_page import answers, at_home
from playwright.sync_api import BrowserContext, Error, Page, Response

from annotator.store.database.database import Database
from annotator.store.people import members
from annotator.ui.access.security_headers import SECURITY_HEADERS
from annotator.ui.access.tokens import Tokens
from annotator.ui.home.markup import CONTENT_SECURITY_POLICY

pytestmark = pytest.mark.browser

# As the token of a page, should another page ever come to know one.
DECISION = """{"decisions": [{"uuid": "forged", "action": "label", "image": 1, "class": 1, "state": 1,
"source": "click"}]}"""
PLACES = (
    "/",
    "/grid",
    "/settings",
    "/static/manifest.json",
    "/_stcore/health",
    "/_stcore/host-config",
    "/_stcore/stream",
    "/media/x",
    "/api/thumb/1?token={token}",
    "/api/image/1?token={token}",
    "/api/map?token={token}",
    "/api/script/{token}/annotate/annotate.js",
    "/sign-in",
)
REFUSED = ("chrome-error:", "about:blank")  # what a frame is at that may not show a page; or "", where nothing came
# Every way in which a page reaches another server; each gives back what it got hold of.
FRAMES = """async (addresses) => {
  for (const address of addresses) for (const kind of ["iframe", "object", "embed"]) {
    const one = document.createElement(kind);
    one[kind === "object" ? "data" : "src"] = address;
    document.body.append(one);
  }
  const box = document.createElement("iframe");
  box.sandbox = "allow-scripts allow-forms allow-same-origin";
  box.src = addresses[0];
  document.body.append(box);
}"""
READS = """async ({addresses, token}) => {
  const got = [];
  for (const address of addresses) {
    for (const credentials of ["include", "omit"]) {
      await fetch(address, {credentials}).then((answer) => got.push(`fetched ${address}`), () => 0);
      const headers = {"x-annotator-token": token};
      await fetch(address, {credentials, headers}).then(() => got.push(`with a header ${address}`), () => 0);
      await fetch(address, {credentials, mode: "no-cors"}).then(async (answer) => {
        if (answer.type !== "opaque" || (await answer.text())) got.push(`read ${address}`);
      }, () => 0);
    }
    for (const kind of ["img", "script", "link", "audio", "video"]) {
      const one = document.createElement(kind);
      if (kind === "link") one.rel = "stylesheet";
      const loaded = new Promise((resolve) => {
        one.onload = one.onloadeddata = () => resolve(true);
        one.onerror = () => resolve(false);
      });
      one[kind === "link" ? "href" : "src"] = address;
      document.body.append(one);
      if (kind === "audio" || kind === "video") one.load();
      if (await loaded) got.push(`${kind} ${address}`);
    }
    await import(address).then(() => got.push(`imported ${address}`), () => 0);
  }
  return got;
}"""
WRITES = """async ({target, token, body}) => {
  const got = [];
  const paths = ["/api/decisions", "/api/work", "/api/classes/add", "/api/upload?name=a.csv", "/api/predictions",
    "/api/rule_out", "/api/rule_out/undo", "/start/api/make", "/_stcore/upload_file/a/b", "/sign-out", "/"];
  for (const path of paths) {
    const address = `${target}${path}${path.includes("?") ? "&" : "?"}token=${token}`;
    const sent = {method: "POST", body, credentials: "include"};
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json"])
      for (const mode of ["cors", "no-cors"])
        for (const referrerPolicy of ["no-referrer", "unsafe-url"])
          await fetch(address, {...sent, mode, referrerPolicy, headers: {"content-type": type}})
            .then((answer) => mode === "cors" && got.push(address), () => 0);
    for (const method of ["PUT", "DELETE", "PATCH"])
      await fetch(address, {...sent, method}).then(() => got.push(`${method} ${address}`), () => 0);
    navigator.sendBeacon(address, body);
    for (const enctype of ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded"]) {
      const frame = document.createElement("iframe");
      frame.name = `f${Math.random()}`;
      const form = document.createElement("form");
      Object.assign(form, {method: "post", action: address, enctype, target: frame.name});
      const field = document.createElement("input");
      Object.assign(field, {name: body.slice(0, -1) + ', "x": "', value: '"}'});
      form.append(field);
      document.body.append(frame, form);
      form.submit();
    }
  }
  for (const path of ["/_stcore/stream", "/"]) {
    const socket = new WebSocket(target.replace("http", "ws") + path, ["streamlit", token]);
    const opened = await new Promise((resolve) => {
      socket.onopen = () => resolve(true);
      socket.onerror = () => resolve(false);
    });
    if (opened) got.push(`socket ${path}`);
  }
  return got;
}"""
POPUP = """async (address) => {
  window.opened = window.open(address, "ours");
  for (let count = 0; count < 40; count++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const type of ["CLOSE_MODAL", "STOP_SCRIPT", "RERUN_SCRIPT", "CLEAR_CACHE", "REQUEST_PAGE_CHANGE"])
      window.opened?.postMessage({stCommVersion: 1, type, pageScriptHash: "", authToken: "x"}, "*");
  }
  return window.opened.closed;  // a page of another opener group is closed, to this one
}"""


class Attacker(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title><body>")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def attacker() -> Iterator[str]:
    """The origin of a page that is not ours: another port of this computer."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Attacker)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def attacked(context: BrowserContext, origin: str, target: str, token: str) -> list[str]:
    """Do all of it from a page of this origin. Returns what gave way."""
    page: Page = context.new_page()
    answered: list[str] = []

    def note(answer: Response) -> None:  # asks Playwright nothing: an answer to a page that closes may never come
        if answer.request.method in ("POST", "PUT", "DELETE", "PATCH") and answer.status < 400:
            answered.append(f"{answer.request.method} {answer.url}: {answer.status}")

    page.on("response", note)
    page.goto(origin)
    addresses = [target + place.format(token=token) for place in PLACES]
    found = page.evaluate(READS, {"addresses": addresses, "token": token})
    found += page.evaluate(WRITES, {"target": target, "token": token, "body": DECISION})
    page.evaluate(FRAMES, addresses)
    page.wait_for_timeout(1000)  # nothing comes that could be waited for
    frames = [frame for frame in page.frames if frame is not page.main_frame]
    found += [f"framed {frame.url}" for frame in frames if frame.url and not frame.url.startswith(REFUSED)]
    assert any(frame.url.startswith(REFUSED[0]) for frame in frames)
    with context.expect_page() as opened:
        closed = page.evaluate(POPUP, f"{target}/")
    popup = opened.value
    found += [] if closed and popup.evaluate("window.opener === null") else ["an opener stayed"]
    # Pages are closed with their context: Playwright may wait forever for one in which something loads.
    for one in (popup, page):
        one.goto("about:blank")
    for path in ("/sign-out", "/auth/logout", "/?key=x", f"/api/work?token={token}", f"/api/decisions?token={token}"):
        page = context.new_page()
        page.goto(origin)
        with contextlib.suppress(Error):  # the navigation may come before evaluate's answer
            page.evaluate(
                "(address) => { window.setTimeout(() => { window.location.href = address; }); }", target + path
            )
        page.wait_for_url(f"{target}/**")
        with contextlib.suppress(Error):  # it may go on by itself; only then does it hold images that others wait for
            page.goto("about:blank")
    return found + answered


def state(project: Path) -> list[object]:
    """All that a request of another page may not change; settings are also written by the server and its worker."""
    db = Database(project)
    counts = [db.value(f"SELECT count(*) FROM {name}") for name in ("decision", "class", "image", "member", "import")]
    return [*counts, sorted(path.name for path in project.glob("uploads/*"))]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["this computer", pytest.param("members", marks=pytest.mark.slow)])
def test_page_of_another_origin_cannot_read_or_change_the_project(browser: Contexts, tmp_path, attacker, how):
    python = PAGES_ALONE if how == "this computer" else TEAM_PAGES
    with served_photos(tmp_path, 30, ("fox", "heron"), python=python) as served:
        page = open_page(browser, served, "Ann", "/_stcore/health")
        cookies = page.context.cookies()
        if how == "members":
            members.add(Database(served.project), "Ann", "owner", "test")
            cookies.append(browser_cookie(served, "Ann"))
        # By the name of the attacker, whom browsers hold for the same site, and by the other name of this computer.
        twin = served.address.replace("127.0.0.1", "localhost")
        page.context.add_cookies(
            [
                {"name": one["name"], "value": one["value"], "url": address}
                for one in cookies
                for address in (served.address, twin)
            ]
        )
        # Whoever was added just now is known within a second or two.
        until(lambda: "Open your invitation link" not in page.goto(served.address).text())
        wait_for_picture(page)
        page.goto("about:blank")
        before = state(served.project)
        token = Tokens(served.project / "secret", of_members=how == "members").mint("Ann")
        for target in (served.address, twin):
            assert attacked(page.context, attacker, target, token) == [], target
        assert state(served.project) == before
        page.goto(served.address)
        wait_for_picture(page)  # still signed in


@pytest.mark.slow
def test_start_page_of_several_projects_resists_attacks_from_another_origin(browser: Contexts, tmp_path, attacker):
    assert "frame-ancestors 'none'" in CONTENT_SECURITY_POLICY and SECURITY_HEADERS["x-frame-options"] == "DENY"
    with served_photos(tmp_path / "birds", 2, ("fox",)) as served:
        project = served.project
    port = free_port()
    with at_home("--port", port, project.parent) as process:
        until(lambda: answers(port))
        link = until(lambda: next((line.strip() for line in process.stdout if "?key=" in line), ""))
        context = browser.take()
        page = context.new_page()
        page.goto(link)
        page.get_by_role("link", name="project", exact=True).wait_for()
        before = state(project)
        for name in ("127.0.0.1", "localhost"):
            found = attacked(context, attacker, f"http://{name}:{port}", Tokens(project / "secret").mint("Ann"))
            assert found == [], name
        assert state(project) == before
