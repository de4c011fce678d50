"""What goes wrong around New project: folders that vanish, two at once, full disks, pages that are left."""

import resource
import shutil
from pathlib import Path

import pytest
from conftest import draw
from harness.child_processes import free_port
from harness.contexts import Contexts
from harness.served import until
from harness.start_page import Asking, all_below, at_home, made, send
from playwright.sync_api import expect

from annotator.store.database.database import Database
from annotator.store.labels import answer_mode
from annotator.store.upkeep import consistency
from annotator.ui.home.project_creator import CreatedProject, NewProjectOptions, ProjectCreator
from annotator.ui.home.visitors import Visitor

pytestmark = pytest.mark.process

ME = Visitor([], is_team=False)


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """The home folder of somebody with a folder of photos."""
    for number in range(12):
        draw(tmp_path / "ann" / "birds" / f"{number:02}.jpg", (), seed=number)
    return tmp_path / "ann"


class Vanishing(ProjectCreator):
    """Whoever owns the photos deletes them once the first one was read."""

    def __init__(self, photos: Path, one: bool):
        super().__init__(lambda project, visitor: CreatedProject("", ""))
        self._photos, self._one = photos, one

    def _report_progress(self, done: int, of: int) -> None:
        if self._one:
            (self._photos / "11.jpg").unlink(missing_ok=True)
        else:
            shutil.rmtree(self._photos, ignore_errors=True)
        super()._report_progress(done, of)


@pytest.mark.parametrize("one", [True, False], ids=["one image", "all of them"])
def test_images_deleted_during_project_creation_leave_a_consistent_project_or_none(tmp_path, person, one):
    project, photos = tmp_path / "birds", person / "birds"
    making = Vanishing(photos, one)
    making.start(NewProjectOptions(project, photos, "fox", "split", None, answer_mode.MODE_ONE), ME)
    until(lambda: not making.state.is_at_work)
    if making.state.error:
        assert str(photos) in making.state.error and not project.exists()
        return
    db = Database(project)
    assert db.value("SELECT count(*) FROM image") >= 1 and consistency.find_problems(db) == []


def test_two_concurrent_creations_of_one_project_yield_one_complete_project(tmp_path, person):
    project, photos = tmp_path / "all" / "birds", person / "birds"
    # As two start pages of one folder.
    makers = [ProjectCreator(lambda project, visitor: CreatedProject("made", "")) for _ in range(2)]
    for maker in makers:
        maker.start(NewProjectOptions(project, photos, "fox", "split", None, answer_mode.MODE_ALL), ME)
    until(lambda: not any(maker.state.is_at_work for maker in makers))
    assert sorted(maker.state.link for maker in makers) == ["", "made"]
    [error] = [maker.state.error for maker in makers if maker.state.error]
    assert "making" in error or "was made by another process" in error or "is a project already" in error
    db = Database(project)
    assert db.value("SELECT count(*) FROM image") == 12 and db.value("SELECT count(*) FROM class") == 1
    assert consistency.find_problems(db) == [] and not list(project.glob("*unfinished*"))


@pytest.mark.slow
def test_full_disk_is_reported_on_the_start_page_and_leaves_no_partial_files(person):
    content = (person / "birds" / "00.jpg").read_bytes()
    with at_home("--port", free_port(), HOME=person) as home:
        asking = Asking(until(lambda: next((line for line in home.stdout if "?key=" in line), None)).strip())
        full, free = (150_000, resource.RLIM_INFINITY), (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(home.pid, resource.RLIMIT_FSIZE, full)
        state = asking.make(name="birds", path=str(person / "birds"))
        assert "could not be written" in state["error"] and not (person / "annotator-projects" / "birds").exists()
        batch = asking.ask("images_begin")["batch"]
        status, text = send(asking, batch, "large.jpg", content + bytes(200_000))
        assert status == 507 and "cannot be stored" in text
        asking.ask("images_end", batch=batch, keep=False)
        assert not (person / "annotator-photos").exists()
        resource.prlimit(home.pid, resource.RLIMIT_FSIZE, free)
        assert asking.make(name="birds", path=str(person / "birds"))["error"] == ""
        resource.prlimit(home.pid, resource.RLIMIT_FSIZE, full)
        asking.take_pass("/start/project/birds")
        asking.ask("backup", project="birds")
        state = until(lambda: (now := asking.ask("backup_state", project="birds")) and not now["is_at_work"] and now)
        assert "could not be written" in state["error"] and state["backups"] == 0
        resource.prlimit(home.pid, resource.RLIMIT_FSIZE, free)
        asking.ask("backup", project="birds")
        state = until(lambda: (now := asking.ask("backup_state", project="birds")) and not now["is_at_work"] and now)
        assert state["error"] == "" and state["backups"] == 1
        assert not [path for path in all_below(person / "annotator-projects" / ".backups") if ".part" in path]


@pytest.mark.slow
def test_refused_project_says_why_at_the_focused_button_and_a_long_line_of_classes_is_split(person, browser: Contexts):
    names = [f"class number {number}" for number in range(30)]
    with at_home("--port", free_port(), HOME=person) as home:
        page = browser.new_page(viewport={"width": 1366, "height": 600})
        page.goto(until(lambda: next((line for line in home.stdout if "?key=" in line), None)).strip())
        page.get_by_role("link", name="New project").click()
        page.get_by_role("button", name="birds", exact=True).click()
        page.locator("#classes").fill("x" * 201)
        page.get_by_role("button", name="Create project").click()
        error = page.locator(".create .error")
        expect(error).to_contain_text("at most 200 are allowed")
        expect(error).to_be_focused()
        expect(error).to_be_in_viewport(ratio=1)
        page.locator("#classes").fill(", ".join(names))
        expect(page.get_by_text("30 classes: class number 0")).to_be_visible()
        page.locator("#person").fill("Ann")
        page.get_by_role("button", name="Create project").click()
        page.locator(".stage img[data-image]").first.wait_for(timeout=120_000)
        rows = made(person, "birds").tuples("SELECT name FROM class ORDER BY id")
    assert [name for (name,) in rows] == names


@pytest.mark.slow
def test_new_project_form_survives_a_reload_and_creation_survives_a_closed_tab(person, browser: Contexts):
    with at_home("--port", free_port(), HOME=person) as home:
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        page.goto(until(lambda: next((line for line in home.stdout if "?key=" in line), None)).strip())
        page.get_by_role("link", name="New project").click()
        page.get_by_role("button", name="birds", exact=True).click()
        page.locator("#classes").fill("fox\nheron")
        expect(page.get_by_text("2 classes: fox · heron")).to_be_visible()
        page.reload()
        expect(page.get_by_text("2 classes: fox · heron")).to_be_visible()
        expect(page.locator("#path")).to_have_value(str(person / "birds"))
        with page.expect_response("**/start/api/make"):
            page.get_by_role("button", name="Create project").click()
        page.close()
        until(lambda: (person / "annotator-projects" / "birds" / "project.db").exists())
        assert made(person, "birds").value("SELECT count(*) FROM image") == 12
