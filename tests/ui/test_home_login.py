"""Several projects behind one address with TLS, whose members sign in at a login provider."""

import re
from collections.abc import Iterator

import httpx
import pytest
from conftest import draw
from get_caddy import proxy
from harness.child_processes import free_port
from harness.login_provider import is_up, providing, signed_in, written
from harness.served import until
from harness.start_page import at_home

from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database
from annotator.store.people import members
from annotator.ui.access.serving_modes import parse_access
from annotator.ui.home import hosted_projects
from annotator.ui.home.home_server import build_caddyfile, prepare_projects

pytestmark = pytest.mark.process


@pytest.fixture
def home(tmp_path) -> Iterator[tuple[str, list[hosted_projects.HostedProject]]]:
    """The address of the start page, and two projects below it, whose owners may read the folder of the test."""
    classes, photos = tmp_path / "classes.txt", tmp_path / "photos"
    classes.write_text("fox\n")
    draw(photos / "a.jpg", (), seed=1)
    for name in ("birds", "mammals"):
        set_up_project(tmp_path / "all" / name, images_folder=photos, class_file=classes)
    port, tls, plain = free_port(), free_port(), free_port()
    address, config = f"https://localhost:{tls}", tmp_path / "Caddyfile"
    options = f"{{\n\tadmin off\n\tskip_install_trust\n\thttp_port {plain}\n\thttps_port {tls}\n}}\n"
    with providing() as provider:
        about = written(tmp_path, f"{provider.address}/.well-known/openid-configuration")
        places = prepare_projects([tmp_path / "all"], port)
        config.write_text(options + build_caddyfile(places, parse_access("oidc", port, url=address, provider=about)))
        words = ["--auth", "oidc", "--oidc", about, "--url", address, "--port", port]
        words += ["--roots", tmp_path, tmp_path / "all"]
        with at_home(*words), proxy(config):
            until(lambda: all(is_up(f"{address}/{name}/_stcore/health") for name in ("birds", "mammals")), 90)
            yield address, places


@pytest.mark.slow
def test_one_provider_login_opens_every_project_in_which_the_member_has_a_role(home):
    address, (birds, mammals) = home
    client = httpx.Client(verify=False, follow_redirects=True, timeout=120)
    assert "birds" not in client.get(f"{address}/").text

    assert signed_in(client, f"{address}/birds") == "Ann"
    assert "birds" not in client.get(f"{address}/").text, "known, but without a role"
    members.set_role(birds.db, "Ann", "annotator", "test")
    until(lambda: client.get(f"{address}/birds/").status_code == 200)
    listed = client.get(f"{address}/").text
    assert f'href="{address}/birds/"' in listed and "mammals" not in listed

    assert client.get(f"{address}/mammals/annotator/api/status").status_code in (401, 403)
    assert signed_in(client, f"{address}/mammals") == "Ann", "the provider knows her already"
    members.set_role(mammals.db, "Ann", "reviewer", "test")
    until(lambda: client.get(f"{address}/mammals/").status_code == 200)
    listed = client.get(f"{address}/").text
    assert listed.index("birds") < listed.index("mammals") and "· reviewer" in listed

    cookies = [(one.name, one.path, one.secure) for one in client.cookies.jar]
    assert all(secure for _, _, secure in cookies)
    assert {path for name, path, _ in cookies if name.startswith("_streamlit_user")} == {"/birds", "/mammals"}


@pytest.mark.slow
def test_owner_of_a_new_project_is_the_subject_that_created_it_not_a_namesake(home, tmp_path):
    address, (birds, mammals) = home
    client = httpx.Client(verify=False, follow_redirects=True, timeout=120)
    assert signed_in(client, f"{address}/mammals") == "Ann"
    members.set_role(mammals.db, "Ann", "owner", "test")
    members.add(birds.db, "Ann", "owner", "test", email="eve@example.org")  # an owner there, who chose her name
    until(lambda: client.get(f"{address}/mammals/").status_code == 200)

    page = client.get(f"{address}/start/new").text
    token = re.search(r"token&quot;: &quot;([^&]+)&quot;", page).group(1)

    def ask(what: str, content: dict) -> dict:
        answer = client.post(f"{address}/start/api/{what}", json=content, headers={"x-annotator-token": token})
        assert answer.status_code == 200, answer.text
        return answer.json()

    ask("make", {"name": "rodents", "path": str(tmp_path / "photos"), "text": "fox"})
    state = until(lambda: (now := ask("state", {})) and not now["is_at_work"] and now)
    assert (state["error"], state["link"]) == ("", f"{address}/rodents/")
    [owner] = members.load_members(Database(tmp_path / "all" / "rodents"))
    assert (owner.name, owner.email) == ("Ann", "") and owner.subject == members.find_member(mammals.db, "Ann").subject
