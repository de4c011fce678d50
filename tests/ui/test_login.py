"""Signing in at a login provider, through a reverse proxy with TLS and a base path, as a team would have it."""

import itertools
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import itsdangerous
import pytest
from get_caddy import proxy
from get_nginx import nginx
from harness.login_provider import Provider, is_up, providing, signed_in, written
from harness.member_requests import FEW, WITH_FEW
from harness.person import on_screen, wait_for_another, wait_for_picture
from harness.served import free_port, until
from harness.short_forms import mark_slow_after
from joserfc.jwk import RSAKey
from playwright.sync_api import expect

from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.people import members
from annotator.ui.access.serving_modes import Access, parse_access
from annotator.ui.access.sessions import Sessions
from annotator.ui.access.tokens import Tokens

pytestmark = pytest.mark.process

BASE = "/annotator"
PROXY = """{
    admin off
    skip_install_trust
    auto_https disable_redirects
    http_port %d
    https_port %d
}
localhost:%d {
    tls internal
    handle /annotator/* {
        reverse_proxy 127.0.0.1:%d
    }
}
"""


@dataclass
class Team:
    """The app behind the proxy, and what stands around it."""

    project: Path
    address: str
    port: int
    process: subprocess.Popen

    @property
    def db(self) -> Database:
        return Database(self.project)

    def client(self) -> httpx.Client:
        """Somebody's browser, without pictures; the certificate is the proxy's own."""
        return httpx.Client(verify=False, follow_redirects=True, timeout=120)


@contextmanager
def caddy(folder: Path, port: int, tls: int, plain: int) -> Iterator[subprocess.Popen]:
    config = folder / "Caddyfile"
    config.write_text(PROXY % (plain, tls, tls, port))
    with proxy(config) as process:
        yield process


PROXIES = {"caddy": caddy, "nginx": lambda folder, port, tls, _: nginx(folder, port, tls)}


@contextmanager
def team(folder: Path, photos: Path, class_file: Path, metadata: str, behind: str = "caddy") -> Iterator[Team]:
    """Serve a new project behind one of PROXIES to whoever this provider vouches for."""
    project = folder / "project"
    set_up_project(project, images_folder=photos, class_file=class_file)
    about = written(folder, metadata)
    port, tls, plain = _ports()
    address = f"https://localhost:{tls}{BASE}"
    options = ["--auth", "oidc", "--oidc", str(about), "--url", f"{address}/", "--behind", "127.0.0.1"]
    command = [sys.executable, "-P", "-m", "annotator", "serve", str(project), "--no-browser", "--port", str(port)]
    with (folder / "serve.log").open("wb") as log, PROXIES[behind](folder, port, tls, plain) as proxying:
        served = subprocess.Popen([*command, *options], stdout=log, stderr=log, start_new_session=True)
        try:

            def answers() -> bool:
                assert served.poll() is None and proxying.poll() is None, (folder / "serve.log").read_text()
                return is_up(f"{address}/_stcore/health")

            until(answers, 90)
            yield Team(project, address, port, served)
        finally:
            served.terminate()
            served.wait(120)


def _ports() -> list[int]:
    held = []
    while len(held) < 3:
        probe = socket.socket()
        probe.bind(("127.0.0.1", 0))
        held.append(probe)
    ports = [probe.getsockname()[1] for probe in held]
    for probe in held:
        probe.close()
    return ports


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with providing() as provider:
        yield provider


@pytest.fixture(scope="module")
def shared(tmp_path_factory, drawn_photos, provider) -> Iterator[Team]:
    """One team for the tests of what a provider may say."""
    folder = tmp_path_factory.mktemp("team")
    (folder / "classes.txt").write_text("fox\nheron\ndeer\n")
    metadata = f"{provider.address}/.well-known/openid-configuration"
    with team(folder, drawn_photos, folder / "classes.txt", metadata) as team_:
        yield team_


@pytest.fixture(autouse=True)
def honest(request) -> None:
    if "shared" in request.fixturenames:
        provider = request.getfixturevalue("provider")
        provider.lies, provider.key, provider.alg = {}, provider.published, "RS256"
        provider.error, provider.user_info = "", {}


@pytest.mark.slow
@pytest.mark.parametrize("behind", PROXIES)
def test_member_signs_in_receives_a_role_and_labels_even_when_the_provider_goes_down(
    browser, tmp_path, photos, class_file, behind
):
    port = free_port()
    user = '{"sub": "7", "name": "Ann Lee", "email": "ann@example.org", "email_verified": true}'
    command = [str(Path(sys.executable).with_name("oidc-provider-mock")), "--port", str(port), "--user-claims", user]
    with (tmp_path / "provider.log").open("wb") as log:
        provider = subprocess.Popen(command, stdout=log, stderr=log)
    metadata = f"http://127.0.0.1:{port}/.well-known/openid-configuration"
    try:
        until(lambda: is_up(metadata), 60)
        with team(tmp_path, photos, class_file, metadata, behind) as team_:
            page = browser.new_page(viewport={"width": 1200, "height": 800}, ignore_https_errors=True)
            page.goto(f"{team_.address}/grid")
            page.get_by_role("link", name="Sign in").click()
            page.get_by_role("button", name="7").click()
            expect(page.get_by_text("You are known here as Ann Lee, and have no role.")).to_be_visible()
            cookies = {one["name"]: one for one in page.context.cookies() if one["name"].startswith("_streamlit_user")}
            assert cookies
            assert all(one["secure"] and one["httpOnly"] and one["path"] == BASE for one in cookies.values())

            members.set_role(team_.db, "Ann Lee", "annotator", "test")
            until(lambda: page.goto(f"{team_.address}/").status == 200)
            wait_for_picture(page)
            image = on_screen(page)
            page.keyboard.press("1")
            wait_for_another(page, image)
            until(lambda: [one.image_id for one in decisions.load_undoable(team_.db, "Ann Lee", 9, 9)] == [image])

            # The provider goes down in mid-session, which nobody at work notices.
            provider.kill()
            provider.wait()
            page.reload()
            wait_for_picture(page)
            second = on_screen(page)
            page.keyboard.press("2")
            wait_for_another(page, second)
            until(
                lambda: [one.image_id for one in decisions.load_undoable(team_.db, "Ann Lee", 9, 9)] == [image, second]
            )
            outside = browser.new_page(ignore_https_errors=True)
            outside.goto(f"{team_.address}/sign-in")
            expect(outside.get_by_text("The login provider does not answer")).to_be_visible()
    finally:
        provider.kill()
        provider.wait()


@pytest.mark.slow
def test_member_renamed_at_the_provider_keeps_the_membership(shared, provider):
    with shared.client() as client:
        assert signed_in(client, shared.address) == "Ann"
    provider.lies = {"name": "Ann Miller"}
    with shared.client() as client:
        assert signed_in(client, shared.address) == "Ann"
    provider.lies = {"sub": "2"}
    with shared.client() as client:
        assert signed_in(client, shared.address) == "Ann 2", "and another person of her name is another"


def test_login_takes_name_and_verified_email_from_the_userinfo_endpoint(shared, provider):
    members.add(shared.db, "Mia", "none", "test", "mia@example.org")
    said = {"name": "Tess", "email": "mia@example.org", "email_verified": False}
    for sub, said_of, verified, known in [
        ("3", "3", False, "Tess"),
        ("4", "4", True, "Mia"),
        ("5", "6", True, "newcomer"),  # an answer about somebody else is not believed
    ]:
        provider.lies = {"sub": sub, "name": None}
        provider.user_info = {**said, "sub": said_of, "email_verified": verified}
        with shared.client() as client:
            assert signed_in(client, shared.address) == known


@pytest.mark.parametrize(
    ("error", "lies", "words"),
    mark_slow_after(
        2,
        [
            ("access_denied", {}, "cancelled at the login provider"),
            ("invalid_request", {}, "does not accept what this server asks for (invalid_request)"),
            ("<b>call 0900", {}, "does not accept what this server asks for (unknown error)"),
            ("server_error", {}, "has a problem of its own (server_error)"),
            ("", {"nonce": "of another login"}, "did not confirm the login to this server"),
        ],
    ),
)
def test_failed_login_page_shows_the_reason_and_a_retry_link(shared, provider, error, lies, words):
    provider.error, provider.lies = error, lies
    with shared.client() as client:
        answer = client.get(f"{shared.address}/sign-in")
        assert answer.status_code == 403 and "You could not be signed in" in answer.text
        assert words in " ".join(answer.text.split()) and f'href="{BASE}/sign-in"' in answer.text
        provider.error, provider.lies = "", {}
        assert signed_in(client, shared.address) == "Ann"


@pytest.mark.parametrize(
    "lies",
    mark_slow_after(
        2,
        [
            {"aud": "another-app"},
            {"exp": 1},
            {"nonce": "of another login"},
            {"iss": "https://elsewhere.example"},
            {"sub": ""},
            {"sub": None},
        ],
    ),
    ids=lambda lies: next(iter(lies)),
)
def test_login_refuses_a_token_with_wrong_claims(shared, provider, lies):
    before = members.load_members(shared.db)
    provider.lies = lies
    with shared.client() as client:
        assert signed_in(client, shared.address) == ""
    assert members.load_members(shared.db) == before


def test_login_refuses_a_token_signed_with_another_key(shared, provider):
    provider.key = RSAKey.generate_key(2048, {"kid": "1"})
    with shared.client() as client:
        assert signed_in(client, shared.address) == ""


@pytest.mark.parametrize("alg", ["none", "HS256"])
def test_login_refuses_a_token_with_another_signature_algorithm(shared, provider, alg):
    provider.alg = alg  # HS256: whoever takes the public key for a shared secret would believe it
    with shared.client() as client:
        assert signed_in(client, shared.address) == ""
    provider.alg = "RS256"
    with shared.client() as client:
        assert signed_in(client, shared.address) == "Ann", "the same claims, signed"


def test_login_callback_url_cannot_be_reused_or_used_in_another_browser(shared):
    with shared.client() as client:
        answer = client.get(f"{shared.address}/sign-in")
        back = next(str(step.url) for step in answer.history if "oauth2callback" in str(step.url))
        assert client.get(f"{shared.address}/api/classes").status_code == 403
    with shared.client() as other:
        assert "was used already" in other.get(back).text
        assert "Sign in to label" in other.get(f"{shared.address}/").text
    with shared.client() as victim:  # and not smuggled into somebody else's browser
        victim.get(back.replace("state=", "state=x"))
        assert "Sign in to label" in victim.get(f"{shared.address}/").text


def test_login_cookie_expires_after_a_week_and_forged_cookies_are_refused(shared, monkeypatch):
    members.set_newcomer_role(shared.db, "guest", "test")
    tokens = Tokens(shared.db.paths.secret)
    origin = shared.address.removesuffix(BASE)
    claims = {"iss": "i", "sub": "visitor", "name": "Vera", "origin": origin, "is_logged_in": True}

    def status(text: str) -> int:
        with shared.client() as client:
            client.cookies.set("_streamlit_user", text)
            return client.get(f"{shared.address}/").status_code

    whole = tokens.get_provider_signer("_streamlit_user").dumps(json.dumps(claims))
    assert status(whole) == 200
    elsewhere = tokens.get_provider_signer("_streamlit_user").dumps(
        json.dumps(claims | {"origin": "https://other.example"})
    )
    forged = itsdangerous.URLSafeTimedSerializer("guessed", salt="_streamlit_user").dumps(json.dumps(claims))
    assert [status(text) for text in (whole[:-3] + "abc", elsewhere, forged, "x", "")] == [403] * 5
    week = itertools.repeat(int(time.time()) - 8 * 24 * 3600)
    monkeypatch.setattr(itsdangerous.TimestampSigner, "get_timestamp", lambda self: next(week))
    old = tokens.get_provider_signer("_streamlit_user").dumps(json.dumps(claims))
    monkeypatch.undo()
    assert status(old) == 403


def test_sign_out_invalidates_copied_login_cookies_but_a_new_login_works(shared, provider):
    members.set_newcomer_role(shared.db, "none", "test")
    provider.lies = {"sub": "leaver", "name": "Leah"}
    with shared.client() as client, shared.client() as copy, shared.client() as later:
        assert signed_in(client, shared.address) == "Leah"
        for kept in client.cookies.jar:
            copy.cookies.jar.set_cookie(kept)
        members.set_role(shared.db, "Leah", "guest", "test")
        until(lambda: copy.get(f"{shared.address}/").status_code == 200)
        client.get(f"{shared.address}/sign-out")
        assert [one.get(f"{shared.address}/").status_code for one in (client, copy)] == [403, 403]
        given = dict(copy.cookies.items())
        restarted = Sessions(shared.db, _reached(shared, provider), Tokens(shared.db.paths.secret))
        restarted.refresh()
        assert not restarted.has_login(given) and restarted.find_member(given) is None
        signed_in(later, shared.address)
        assert later.get(f"{shared.address}/").status_code == 200
        later.get(f"{shared.address}/auth/logout")  # Streamlit's own way out
        assert copy.get(f"{shared.address}/").status_code == 403


def _reached(team_: Team, provider: Provider) -> Access:
    about = team_.project.parent / "provider.toml"
    return parse_access("oidc", team_.port, url=team_.address, provider=about)


def test_server_refuses_paths_outside_the_base_path_and_unknown_hosts(shared):
    here = f"http://127.0.0.1:{shared.port}"
    assert httpx.get(f"{here}/api/classes").status_code == 404
    assert httpx.get(f"{here}/annotatorx/").status_code == 404
    assert httpx.get(f"{here}{BASE}/", headers={"host": "evil.example"}).status_code == 403
    assert httpx.get(f"{here}{BASE}").headers["location"] == f"{BASE}/"


@pytest.mark.slow
def test_rate_limit_uses_forwarded_addresses_from_trusted_proxies_only(tmp_path, photos, class_file):
    """Whoever is not signed in is limited by address; made-up addresses would let them ask as much as they like."""
    set_up_project(tmp_path / "project", images_folder=photos, class_file=class_file)

    def statuses(behind: str) -> set[int]:
        port = free_port()
        options = ["--auth", "invitation", "--behind", behind, "--port", str(port), "--no-browser"]
        command = [sys.executable, "-P", "-c", WITH_FEW, "serve", str(tmp_path / "project"), *options]
        with (tmp_path / "serve.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            address = f"http://127.0.0.1:{port}/_stcore/health"
            until(lambda: is_up(address), 90)
            with httpx.Client() as client:
                headers = ({"x-forwarded-for": f"10.0.{number // 250}.{number % 250}"} for number in range(2 * FEW))
                return {client.get(address, headers=one).status_code for one in headers}
        finally:
            process.terminate()
            process.wait(120)

    assert statuses("10.9.9.9") == {200, 429}
    assert statuses("127.0.0.1") == {200}
