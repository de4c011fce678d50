"""Who may come in: nobody without the cookie, which a one-time key in the address becomes, and no page but ours."""

import asyncio
import http.client
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import websockets
from conftest import draw
from person import wait_for_picture
from playwright.sync_api import expect
from served import Served, until

from annotator.engine.setup import set_up
from annotator.ui.keys import cookie_name, fresh_link
from annotator.ui.tokens import KEY_SECONDS, Tokens

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
    folder = tmp_path_factory.mktemp("door")
    for number in range(4):
        draw(folder / "photos" / f"{number}.jpg", seed=number)
    (folder / "classes.txt").write_text("fox\nheron\n")
    set_up(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
    processes = []
    yield Served(folder / "project", processes)
    for process in processes:
        process.terminate()
        process.wait(30)


def ask(served: Served, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of one request with exactly these headers (an underscore stands for a hyphen)."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()


def printed(served: Served) -> str:
    """The path with the key that serve printed."""
    return until(lambda: re.search(rf"{served.address}(/\?key=\S+)", served.log.read_text())).group(1)


def fresh(served: Served) -> str:
    return fresh_link(served.project).removeprefix(served.address)


def connects(served: Served, **headers: str) -> bool:
    """Whether the WebSocket of Streamlit's pages can be opened with these headers."""

    async def attempt() -> bool:
        origin = headers.pop("Origin", None)
        try:
            async with websockets.connect(
                f"ws://127.0.0.1:{served.port}/_stcore/stream", origin=origin, additional_headers=headers, proxy=None
            ):
                return True
        except websockets.InvalidStatus as error:
            assert error.response.status_code == 403
            return False

    return asyncio.run(attempt())


def test_without_the_cookie_nothing_is_served(shared):
    value = shared.headers["cookie"].split("=", 1)[1]
    others = Tokens(shared.project / "secret").cookie(shared.port + 1)
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


def test_the_websocket_needs_the_cookie_and_our_own_origin(shared):
    cookie = {"Cookie": shared.headers["cookie"]}
    assert connects(shared, Origin=shared.address, **cookie)
    assert not connects(shared, Origin=shared.address)
    for origin in (None, "null", "http://evil.example", f"http://127.0.0.1:{shared.port + 1}", "http://127.0.0.1"):
        assert not connects(shared, **({"Origin": origin} if origin else {}), **cookie), origin
    assert not connects(shared, Origin=f"http://localhost:{shared.port}", **cookie)


def test_a_page_of_another_name_or_origin_gets_nothing_even_with_the_cookie(shared):
    known = {"Cookie": shared.headers["cookie"], "x_annotator_token": shared.token}
    for host in ("evil.example", f"evil.example:{shared.port}", "127.0.0.1.evil.example", "127.0.0.1:80@evil", "[::1]"):
        assert ask(shared, "/", Host=host, **known)[0] == 403, host
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{shared.port + 1}", "https://127.0.0.1"):
        for path in ("/api/work", "/api/image/1", "/_stcore/upload_file/a/b"):
            status, headers, _ = ask(shared, path, "POST", Origin=origin, **known)
            assert status == 403 and "access-control-allow-origin" not in headers
    forwarded = {"Host": "localhost:9000", "Origin": "http://localhost:9000"}  # ssh -L 9000:127.0.0.1:8501
    assert ask(shared, "/", **forwarded, **known)[0] == 200


def test_no_page_of_ours_may_be_framed_or_fetch_from_elsewhere(shared):
    for path in ("/", "/api/image/1", "/_stcore/health"):
        for cookie in ("", shared.headers["cookie"]):
            headers = ask(shared, path, Cookie=cookie)[1]
            assert headers["x-frame-options"] == "DENY" and headers["referrer-policy"] == "no-referrer"
            policy = headers["content-security-policy"]
            assert "frame-ancestors 'none'" in policy and "default-src 'self'" in policy and "http:" not in policy


def test_a_key_opens_once_and_leaves_the_address(shared):
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


def test_a_key_is_not_used_up_by_whoever_is_in_already_or_only_looks(shared):
    path = fresh(shared)
    for headers in ({"Cookie": shared.headers["cookie"]}, {"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        answer = ask(shared, path, **headers)
        assert answer[0] == (303 if "Cookie" in headers else 403) and "set-cookie" not in answer[1]
    assert ask(shared, path, "HEAD")[0] == 403
    assert "set-cookie" in ask(shared, path)[1]


def test_a_key_leads_to_no_other_server(shared):
    for path in ("//evil.example/", "/\\evil.example/", "///evil.example/%2f"):
        key = fresh(shared).partition("?")[2]
        assert re.match(r"/[^/\\]", ask(shared, f"{path}?{key}")[1]["location"]), path


def test_a_link_on_another_site_is_answered_by_a_page_that_goes_on(shared):
    """A strict cookie does not follow a redirect that began elsewhere."""
    status, headers, text = ask(shared, fresh(shared), Sec_Fetch_Site="cross-site")
    assert status == 200 and "set-cookie" in headers and 'content="0; url=/"' in text and "key=" not in text


def test_keys_run_out_and_are_good_for_one_run_of_the_server_only(tmp_path, monkeypatch):
    tokens = Tokens(tmp_path / "secret")
    ten_minutes, lasting = tokens.key("run"), tokens.key("run", seconds=None)
    assert tokens.key_name(ten_minutes, "run") and not tokens.key_name(ten_minutes, "the next run")
    for other in ("", "x", tokens.cookie(1), tokens.mint("Ann"), Tokens(tmp_path / "other").key("run")):
        assert tokens.key_name(other, "run") is None
        assert tokens.admits(other, 1) == (other == tokens.cookie(1))
    later = time.time() + KEY_SECONDS + 1
    monkeypatch.setattr("annotator.ui.tokens.time.time", lambda: later)
    assert tokens.key_name(ten_minutes, "run") is None and tokens.key_name(lasting, "run")
    monkeypatch.setattr("annotator.ui.tokens.time.time", lambda: later + 31 * 24 * 3600)
    assert not tokens.admits(Tokens(tmp_path / "secret").cookie(1)[:-1], 1)


def test_after_a_restart_cookies_hold_and_used_keys_do_not(project, annotator, processes):
    served = Served(project, processes)
    used, unused = printed(served), annotator("link", project).stdout.strip().removeprefix(served.address)
    cookie = ask(served, used)[1]["set-cookie"].split(";")[0]
    served.kill()
    assert "not being served" in annotator("link", project, code=1).stderr
    served.start()
    assert ask(served, "/", Cookie=cookie)[0] == 200
    assert ask(served, used)[0] == ask(served, unused)[0] == 403
    assert ask(served, printed(served))[0] == 303


@pytest.mark.browser
def test_the_printed_address_opens_the_app_and_a_second_browser_is_told_how_to_get_in(browser, shared):
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


def test_nobody_else_on_the_machine_may_read_a_project(photos, project, annotator, processes):
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
