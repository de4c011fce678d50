"""Who may come in: nobody without the cookie, which a one-time key in the address becomes, and no page but ours."""

import asyncio
import http.client
import os
import re
import shutil
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
import websockets
import websockets.sync.client
from conftest import draw
from harness.person import served_photos, wait_for_picture
from harness.served import APP, Served, free_port, until
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from streamlit.web.server.starlette import starlette_server

from annotator.store.database.database import Database
from annotator.ui.access.access_keys import cookie_name, create_access_link, ensure_own_secret, get_storage_name
from annotator.ui.access.tokens import KEY_SECONDS, Tokens
from annotator.ui.serving import sockets
from annotator.ui.serving.sockets import TimeoutProtocol, set_up_connections

pytestmark = pytest.mark.process

PATHS = (
    "/",
    "/grid",
    "/api/image/1",
    "/api/work",
    "/_stcore/host-config",
    "/static/js/index.js",
    "/media/x",
    "/nothing",
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[Served]:
    """One app for the tests that leave it as it was."""
    with served_photos(tmp_path_factory.mktemp("door"), 4, ("fox", "heron"), size=(96, 72), python=APP) as served:
        yield served


def ask(served: Served, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of one request with exactly these headers (an underscore stands for a hyphen)."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=120)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()


def printed(served: Served) -> str:
    """The path with the key that serve printed."""
    return until(lambda: re.search(rf"{served.address}(/\?key=\S+)", served.log.read_text())).group(1)


def fresh(served: Served) -> str:
    return create_access_link(served.project).removeprefix(served.address)


def connects(served: Served, **headers: str) -> bool:
    """Whether the WebSocket of Streamlit's pages can be opened with these headers."""

    origin = headers.pop("Origin", None)
    address = f"ws://127.0.0.1:{served.port}/_stcore/stream"
    try:
        with websockets.sync.client.connect(address, origin=origin, additional_headers=headers, proxy=None):
            return True
    except websockets.InvalidStatus as error:
        assert error.response.status_code == 403
        return False


def test_server_refuses_requests_without_a_valid_login_cookie(shared):
    value = shared.headers["cookie"].split("=", 1)[1]
    others = Tokens(shared.project / "secret").create_cookie(shared.port + 1)
    for cookie in ("", "x=1", f"{cookie_name(shared.port)}={value[:-3]}", f"{cookie_name(shared.port)}={others}"):
        for path in PATHS:
            for method in ("GET", "POST", "HEAD", "OPTIONS", "DELETE"):
                status, headers, text = ask(shared, path, method, Cookie=cookie, x_annotator_token=shared.token)
                assert status == 403 and "streamlit" not in text.lower(), (cookie, path, method)
                assert "set-cookie" not in headers and headers["cache-control"] == "no-store"
    status, _, text = ask(shared, "/")
    assert "annotator link" in text and "annotator serve" in text
    assert ask(shared, "/_stcore/health")[2] == "ok"  # says that somebody is there, and nothing else
    assert ask(shared, "/", Cookie=shared.headers["cookie"])[0] == 200


def test_websocket_requires_the_cookie_and_the_same_origin(shared):
    cookie = {"Cookie": shared.headers["cookie"]}
    assert connects(shared, Origin=shared.address, **cookie)
    assert not connects(shared, Origin=shared.address)
    for origin in (None, "null", "http://evil.example", f"http://127.0.0.1:{shared.port + 1}", "http://127.0.0.1"):
        assert not connects(shared, **({"Origin": origin} if origin else {}), **cookie), origin
    assert not connects(shared, Origin=f"http://localhost:{shared.port}", **cookie)


def test_server_refuses_unknown_host_and_origin_headers_despite_a_valid_cookie(shared):
    known = {"Cookie": shared.headers["cookie"], "x_annotator_token": shared.token}
    for host in ("evil.example", f"evil.example:{shared.port}", "127.0.0.1.evil.example", "127.0.0.1:80@evil", "[::1]"):
        assert ask(shared, "/", Host=host, **known)[0] == 403, host
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{shared.port + 1}", "https://127.0.0.1"):
        for path in ("/api/work", "/api/image/1", "/_stcore/upload_file/a/b"):
            status, headers, _ = ask(shared, path, "POST", Origin=origin, **known)
            assert status == 403 and "access-control-allow-origin" not in headers
    forwarded = {"Host": "localhost:9000", "Origin": "http://localhost:9000"}  # ssh -L 9000:127.0.0.1:8501
    assert ask(shared, "/", **forwarded, **known)[0] == 200


def test_security_headers_forbid_framing_and_external_resources(shared):
    for path in ("/", "/api/image/1", "/_stcore/health"):
        for cookie in ("", shared.headers["cookie"]):
            headers = ask(shared, path, Cookie=cookie)[1]
            assert headers["x-frame-options"] == "DENY" and headers["referrer-policy"] == "no-referrer"
            policy = headers["content-security-policy"]
            assert "frame-ancestors 'none'" in policy and "default-src 'self'" in policy and "http:" not in policy


def test_one_time_login_key_sets_the_cookie_and_is_removed_from_the_url(shared):
    for path in (printed(shared), fresh(shared)):
        status, headers, _ = ask(shared, path.replace("/?", "/grid?class=2&"))
        assert (status, headers["location"]) == (303, "/grid?class=2")
        assert headers["cache-control"] == "no-store" and headers["referrer-policy"] == "no-referrer"
        cookie = headers["set-cookie"]
        name, rest = cookie.split("=", 1)
        assert name == f"annotator_{shared.port}" and {part.strip().lower() for part in rest.split(";")[1:]} == {
            "httponly",
            "samesite=strict",
            "path=/",
            "max-age=2592000",
        }
        assert ask(shared, "/", Cookie=cookie.split(";")[0])[0] == 200
        status, headers, text = ask(shared, path)
        assert status == 403 and "used already" in text and "set-cookie" not in headers


def test_one_time_login_key_stays_valid_after_refused_signed_in_and_head_requests(shared):
    path = fresh(shared)
    for headers in ({"Cookie": shared.headers["cookie"]}, {"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        answer = ask(shared, path, **headers)
        assert answer[0] == (303 if "Cookie" in headers else 403) and "set-cookie" not in answer[1]
    assert ask(shared, path, "HEAD")[0] == 403
    assert "set-cookie" in ask(shared, path)[1]


def test_login_redirect_never_leads_to_another_host(shared):
    for path in ("//evil.example/", "/\\evil.example/", "///evil.example/%2f"):
        key = fresh(shared).partition("?")[2]
        assert re.match(r"/[^/\\]", ask(shared, f"{path}?{key}")[1]["location"]), path


def test_login_link_from_another_site_is_answered_with_a_redirect_page(shared):
    """A strict cookie does not follow a redirect that began elsewhere."""
    status, headers, text = ask(shared, fresh(shared), Sec_Fetch_Site="cross-site")
    assert status == 200 and "set-cookie" in headers and 'content="0; url=/"' in text and "key=" not in text


def test_login_keys_expire_and_are_valid_for_one_server_run(tmp_path, monkeypatch):
    tokens = Tokens(tmp_path / "secret")
    ten_minutes, lasting = tokens.create_key("run"), tokens.create_key("run", seconds=None)
    assert tokens.read_key(ten_minutes, "run") and not tokens.read_key(ten_minutes, "the next run")
    for other in ("", "x", tokens.create_cookie(1), tokens.mint("Ann"), Tokens(tmp_path / "other").create_key("run")):
        assert tokens.read_key(other, "run") is None
        assert tokens.is_valid_cookie(other, 1) == (other == tokens.create_cookie(1))
    later = time.time() + KEY_SECONDS + 1
    monkeypatch.setattr("annotator.ui.access.tokens.time.time", lambda: later)
    assert tokens.read_key(ten_minutes, "run") is None and tokens.read_key(lasting, "run")
    monkeypatch.setattr("annotator.ui.access.tokens.time.time", lambda: later + 31 * 24 * 3600)
    assert not tokens.is_valid_cookie(Tokens(tmp_path / "secret").create_cookie(1)[:-1], 1)


@pytest.mark.slow
def test_cookies_stay_valid_after_a_server_restart_and_login_keys_do_not(project, annotator, processes):
    served = Served(project, processes)
    used, unused = printed(served), annotator("link", project).stdout.strip().removeprefix(served.address)
    cookie = ask(served, used)[1]["set-cookie"].split(";")[0]
    served.kill()
    assert "not being served" in annotator("link", project, code=1).stderr
    served.start()
    assert ask(served, "/", Cookie=cookie)[0] == 200
    assert ask(served, used)[0] == ask(served, unused)[0] == 403
    assert ask(served, printed(served))[0] == 303


def test_copied_project_gets_a_new_cookie_secret_and_a_renamed_or_restored_one_keeps_it(project, tmp_path):
    def secret(folder: Path, changed: bool, **options: bool) -> str:
        assert ensure_own_secret(Database(folder), **options) == changed
        return (folder / "secret").read_text()

    first = secret(project, False)
    assert secret(project, False) == first
    assert secret(Path(project.rename(tmp_path / "renamed")), False) == first
    shutil.copytree(tmp_path / "renamed", tmp_path / "backup")
    copied = secret(Path(shutil.copytree(tmp_path / "renamed", tmp_path / "copy")), True)
    assert (
        copied != first and secret(tmp_path / "copy", False) == copied and secret(tmp_path / "renamed", False) == first
    )
    shutil.rmtree(tmp_path / "renamed")
    assert secret(Path((tmp_path / "backup").rename(tmp_path / "renamed")), False) == first
    assert secret(tmp_path / "renamed", True, renew=True) not in (first, copied)


def test_browser_storage_name_survives_a_secret_renewal_and_differs_for_a_copy(project, tmp_path):
    def name(folder: Path, **options: bool) -> str:
        ensure_own_secret(Database(folder), **options)
        return get_storage_name(Database(folder))

    first = name(project)
    assert first == Tokens(project / "secret").project, "as browsers of older versions have it"
    assert name(project, renew=True) == name(project, renew=True) == name(project) == first
    copied = name(Path(shutil.copytree(project, tmp_path / "copy")))
    assert copied != first and name(tmp_path / "copy") == copied and name(project) == first


@pytest.mark.slow
def test_copied_project_refuses_cookies_and_tokens_of_the_original(shared, tmp_path, processes):
    shutil.copytree(shared.project, tmp_path / "copy")
    copy = Served(tmp_path / "copy", processes)
    original = Tokens(shared.project / "secret")
    cookie = f"{cookie_name(copy.port)}={original.create_cookie(copy.port)}"
    assert ask(copy, "/", Cookie=cookie)[0] == 403
    assert copy.get("/api/image/1", token=original.mint("Ann"))[0] == 401
    assert copy.get("/api/image/1")[0] == shared.get("/api/image/1")[0] == 200
    until(lambda: "is a copy of another one" in copy.log.read_text())


@pytest.mark.browser
def test_printed_link_opens_the_app_and_a_second_browser_gets_login_instructions(browser, shared):
    first, second = browser.new_context(), browser.new_context()
    page = first.new_page()
    page.goto(shared.address + fresh(shared))
    page.get_by_label("Your name").fill("Ann")
    page.get_by_role("button", name="Start").click()
    wait_for_picture(page)
    assert page.url == shared.address + "/"
    assert cookie_name(shared.port) not in page.evaluate("document.cookie")
    other = second.new_page()
    assert other.goto(shared.address).status == 403
    expect(other.get_by_text("annotator link PROJECT")).to_be_visible()
    # The file through which serve opens a browser: another site to the browser.
    opener = shared.project.parent / "open.html"
    address = shared.address + fresh(shared)
    opener.write_text(f'<meta http-equiv="refresh" content="0; url={address}">')
    other.goto(opener.as_uri())
    expect(other.get_by_label("Your name")).to_be_visible(timeout=60_000)
    assert other.url == shared.address + "/"
    first.close()
    second.close()


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.slow
def test_project_files_are_readable_by_their_owner_only(photos, project, annotator, processes):
    usual = os.umask(0o022)
    try:
        draw(photos / "large.jpg", size=(2000, 1500))
        annotator("init", project, "--images", photos)
        wide = [project, project / "project.db"]
        for path in wide:  # as an older version made them
            path.chmod(rights(path) | 0o055)
        served = Served(project, processes)
        served.post("/api/work", {"holder": "h", "mode": "annotate", "want": 4})
        assert served.get("/api/thumb/25")[0] == 200
        annotator("export", project, project.parent / "labels.csv")
        made = [path for path in project.rglob("*") if not path.name.startswith("serve-")]  # that log is the test's
        assert {path.name for path in made} >= {"project.db", "project.db-wal", "secret", "thumbs"}
        for path in (project, *made):
            assert rights(path) & 0o077 == 0, path
        assert rights(project.parent / "labels.csv") == 0o644  # what people name elsewhere is theirs to share
    finally:
        os.umask(usual)


# -- connections, and what leaves the machine


def exchange(port: int, *pieces: bytes) -> bytes:
    """Everything that is answered until the server ends the connection, each piece sent after the one before."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        for piece in pieces:
            connection.sendall(piece)
        answer = b""
        while more := connection.recv(65536):
            answer += more
        return answer


@pytest.mark.slow
def test_server_drops_an_unfinished_http_request_after_a_timeout(monkeypatch):
    monkeypatch.setattr(sockets, "REQUEST_TIMEOUT_SECONDS", 0.2)

    async def slow(request: Request) -> PlainTextResponse:
        await request.body()
        await asyncio.sleep(0.5)  # longer than a half-sent request is waited for
        return PlainTextResponse("done")

    app = Starlette(routes=[Route("/", slow, methods=["GET", "POST"])])
    server = uvicorn.Server(
        uvicorn.Config(app, port=free_port(), http=TimeoutProtocol, timeout_keep_alive=1, log_level="critical")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started)
        port = server.config.port
        head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n"
        assert exchange(port) == exchange(port, b"GET / HT") == exchange(port, head) == b""
        assert not exchange(port, head, b"\r\nab").endswith(b"done")
        whole = head + b"connection: close\r\n\r\nabcd"
        assert exchange(port, whole).endswith(b"done")
        assert exchange(port, head + b"\r\nabcd", b"GET / HT").endswith(b"done")  # the next one, half sent
    finally:
        server.should_exit = True
        thread.join()


@pytest.mark.slow
def test_app_server_uses_the_request_timeout_protocol():
    set_up_connections()
    assert starlette_server._get_uvicorn_config_kwargs()["http"] is TimeoutProtocol


# Every address that Python is asked to look up or to connect to; the first line shows that the watch works.
WATCHED = """
import socket, sys
def watch(event, details):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.connect", "socket.sendto", "socket.sendmsg"):
        sys.stderr.write(f"ASKED {event} {details[1 if event[7:] in ('connect', 'sendto', 'sendmsg') else 0]}\\n")
        sys.stderr.flush()
sys.addaudithook(watch)
socket.getaddrinfo("127.0.0.1", 1)
from annotator.__main__ import main
main()
"""


@pytest.mark.slow
def test_origin_and_host_headers_trigger_no_network_lookups(project, processes):
    served = Served(project, processes, python=["-P", "-c", WATCHED, "serve"])
    cookie = {"Cookie": served.headers["cookie"]}
    for origin in ("http://evil.example", "http://192.0.2.7:8501", "null", served.address):
        for headers in ({}, cookie):
            connects(served, Origin=origin, **headers)
            for path in ("/", "/_stcore/host-config", "/_stcore/health", "/media/x", "/api/work"):
                ask(served, path, Origin=origin, **headers)
                ask(served, path, Origin=origin, Host="evil.example", **headers)
    asked = re.findall(r"ASKED (\S+) (.*)", served.log.read_text())
    assert asked[0] == ("socket.getaddrinfo", "127.0.0.1")
    assert {place for _, place in asked} <= {"127.0.0.1", f"('127.0.0.1', {served.port})"}, asked
