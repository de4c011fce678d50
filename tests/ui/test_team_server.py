"""What members get from the person who starts the server: the taggers that are listed, and no role by a name."""

import pytest
from conftest import CLASSES, draw
from harness.contexts import Contexts
from harness.member_requests import TEAM, browser_cookie, served_to_roles
from harness.person import open_page
from harness.served import serving, until
from harness.tagger_server import served_model
from playwright.sync_api import expect

from annotator.exchange.project_setup import set_up_project
from annotator.settings import get_login_name
from annotator.store.database.database import Database
from annotator.store.people import members
from annotator.store.runs import tagging_state

pytestmark = pytest.mark.process


def test_first_owner_is_never_a_member_who_has_the_login_name_of_the_server(tmp_path):
    draw(tmp_path / "photos" / "a.jpg", CLASSES[:1], seed=1)
    set_up_project(tmp_path / "project", images_folder=tmp_path / "photos", class_text="fox")
    db, name = Database(tmp_path / "project"), get_login_name()
    members.add(db, name, "guest", "test")
    with serving(tmp_path / "project", TEAM) as served:
        until(lambda: "Open this address" in served.log.read_text())
        assert f"signs in {name} 2, an owner" in served.log.read_text()
    assert {one.name: one.role.value for one in members.load_members(db)} == {name: "guest", f"{name} 2": "owner"}


@pytest.mark.slow
def test_settings_page_of_a_team_offers_no_tagger_unless_one_is_listed(browser: Contexts, tmp_path):
    with served_to_roles(tmp_path) as served:
        page = open_page(browser, served, "x", "/progress")
        page.context.add_cookies([browser_cookie(served, "owner")])
        page.goto(f"{served.address}/settings")
        expect(page.get_by_text("No server is allowed.")).to_be_visible(timeout=60_000)
        expect(page.get_by_text("annotator serve PROJECT --tagger-url URL")).to_be_visible()
        expect(page.get_by_label("Server", exact=True)).to_have_count(0)
        expect(page.get_by_role("button", name="Ask about all images")).to_have_count(0)


@pytest.mark.slow
def test_team_asks_a_listed_tagger_with_the_key_that_belongs_to_it(browser: Contexts, tmp_path, monkeypatch):
    monkeypatch.setenv("SEER_KEY", "sk-7")
    with served_model() as (url, seer), served_to_roles(tmp_path, (*TEAM, f"--tagger-url=SEER_KEY={url}")) as served:
        page = open_page(browser, served, "x", "/progress")
        page.context.add_cookies([browser_cookie(served, "owner")])
        page.goto(f"{served.address}/settings")
        model = page.get_by_role("textbox", name="Model", exact=True)
        model.fill("seer")
        model.press("Enter")
        page.get_by_role("button", name="Ask about all images").click()
        db = Database(served.project)
        until(lambda: tagging_state.get_result(db).get("images") == 6, 120)
        assert {headers["Authorization"] for headers in seer.headers} == {"Bearer sk-7"}
        stored = b"".join(path.read_bytes() for path in served.project.rglob("*") if path.is_file())
        assert b"sk-7" not in stored
