"""Projects kept from the start page: archived, backed up, and renamed or deleted by their owners and nobody else."""

from pathlib import Path

import pytest
from conftest import draw
from harness.axe_findings import findings
from harness.child_processes import free_port
from harness.contexts import Contexts
from harness.served import until
from harness.start_page import Member, answers, at_home
from playwright.sync_api import Page, expect

from annotator.exchange.project_setup import set_up_project
from annotator.store.people import members
from annotator.store.upkeep.restoring import restore
from annotator.ui.home.home_server import prepare_projects

pytestmark = pytest.mark.process


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two projects."""
    draw(tmp_path / "photos" / "a.jpg", (), seed=1)
    (tmp_path / "classes.txt").write_text("fox\n")
    for name in ("birds", "mammals"):
        set_up_project(tmp_path / "all" / name, images_folder=tmp_path / "photos", class_file=tmp_path / "classes.txt")
    return tmp_path / "all"


def opened(browser: Contexts, home) -> Page:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(until(lambda: next((line for line in home.stdout if "?key=" in line), None)).strip())
    return page


@pytest.mark.slow
def test_archived_project_stops_and_is_hidden_until_it_is_restored(folder, browser: Contexts):
    port = free_port()
    birds, _ = prepare_projects([folder], port)
    photos = sorted((folder.parent / "photos").iterdir())
    with at_home("--port", port, folder) as home:
        page = opened(browser, home)
        until(lambda: answers(birds.port))
        page.get_by_role("link", name="back up or delete birds").click()
        page.get_by_role("button", name="Archive", exact=True).press("Enter")
        expect(page.get_by_text("Archived (1)")).to_be_visible()
        expect(page.get_by_text("birds", exact=True)).to_be_hidden()
        assert not answers(birds.port), "it does not run"
    with at_home("--port", port, folder) as home:
        page = opened(browser, home)
        page.get_by_text("Archived (1)").press("Enter")
        assert findings(page) == [] and not answers(birds.port)
        page.get_by_role("button", name="Bring birds back").click()
        expect(page.get_by_role("link", name="birds", exact=True)).to_be_visible()
        expect(page.get_by_text("Archived")).to_have_count(0)
        until(lambda: answers(birds.port))
    assert sorted((folder.parent / "photos").iterdir()) == photos


@pytest.mark.slow
def test_backup_of_a_running_project_can_be_restored(folder, tmp_path, browser: Contexts):
    port = free_port()
    birds, _ = prepare_projects([folder], port)
    with at_home("--port", port, folder) as home:
        page = opened(browser, home)
        until(lambda: answers(birds.port))
        page.get_by_role("link", name="back up or delete birds").click()
        expect(page.get_by_text(f"To {folder}/.backups/birds.")).to_be_visible()
        page.get_by_role("button", name="Back up now").press("Enter")
        expect(page.get_by_role("status")).to_contain_text("Backed up: ")
        expect(page.get_by_role("status")).to_contain_text("1 backup there.")
        assert findings(page) == []
        restore(folder / ".backups" / "birds", tmp_path / "again")
        (folder / ".backups" / "birds" / "notes.txt").write_text("mine")
        page.get_by_role("button", name="Back up now").click()
        expect(page.get_by_role("alert").first).to_contain_text("holds other things (notes.txt)")
    assert set_up_project(tmp_path / "again", images_folder=None).labels_added == 0


@pytest.mark.slow
def test_only_project_owners_can_archive_back_up_rename_or_delete_it(folder):
    port = free_port()
    birds, mammals = prepare_projects([folder], port)
    address = f"http://127.0.0.1:{port}"
    for place, name, role in ((birds, "Ann", "owner"), (birds, "Ben", "reviewer"), (mammals, "Cem", "owner")):
        members.add(place.db, name, role, "test")
    words = ["--auth", "invitation", "--url", address, "--port", port, folder]
    with at_home(*words):
        until(lambda: answers(port) and answers(birds.port) and answers(mammals.port))
        ann, ben, cem = Member(birds, "Ann", address), Member(birds, "Ben", address), Member(mammals, "Cem", address)
        ann.take_pass("/start/project/birds")
        cem.take_pass("/start/project/mammals")
        assert "/start/project/birds" in ann.get(f"{address}/")[1]
        assert "/start/project/" not in ben.get(f"{address}/")[1]
        assert ben.get(f"{address}/start/project/birds")[0] == 403
        foreign, missing = (cem.get(f"{address}/start/project/{name}")[1] for name in ("birds", "no-such"))
        assert foreign == missing.replace("no-such", "birds"), "whether it exists is not told"
        everything = {
            "rename": {"name": "aves"},
            "archive": {"archived": True},
            "backup": {},
            "backup_state": {},
            "trash": {"typed": "birds"},
        }
        ben.take_pass("/")
        for what, content in everything.items():
            assert ben.ask(what, project="birds", **content)["status"] == 403
            assert "There is no project" in cem.ask(what, project="birds", **content)["error"]
        ben.token = ann.token
        assert ben.ask("trash", project="birds", typed="birds")["status"] == 401, "the pass of somebody else"
        assert birds.path.is_dir() and not (folder / ".backups").exists()

        assert ann.ask("archive", project="birds", archived=True)["status"] == 200
        assert "Archived (1)" in ben.get(f"{address}/")[1] and "data-project" not in ben.get(f"{address}/")[1]
        assert answers(birds.port), "members sign in there"
        assert ann.ask("archive", project="birds", archived=False)["status"] == 200

        renamed = ann.ask("rename", project="birds", name="aves")
        assert renamed["status"] == 200 and renamed["link"].startswith(f"{address}/aves/?invitation=")
        until(lambda: answers(birds.port))
        straight = renamed["link"].replace(str(port), str(birds.port))
        assert ann.get(straight)[0] == 200
        assert f'href="{address}/aves/"' in ann.get(f"{address}/")[1]
        assert ann.ask("trash", project="aves", typed="aves")["status"] == 401, "the pass of the session before"
        ann.take_pass("/start/project/aves")
        assert ann.ask("trash", project="aves", typed="birds")["status"] == 409
        assert ann.ask("trash", project="aves", typed="aves")["status"] == 200
        assert len(list((folder / ".trash").iterdir())) == 1 and "aves" not in ann.get(f"{address}/")[1]
        assert answers(mammals.port)
