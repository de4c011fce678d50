"""A project made on the start page of an empty machine: by mouse, by keyboard, by requests nobody should send."""

import contextlib
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from conftest import CLASSES, draw
from harness.axe_findings import findings
from harness.child_processes import free_port
from harness.contexts import Contexts
from harness.served import until
from harness.start_page import Asking, Browser, answers, at_home, made, wait_for_first_image
from playwright.sync_api import expect

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import set_up_project
from annotator.roles import Role
from annotator.store.database.database import Database
from annotator.store.labels import answer_mode, project_counts
from annotator.store.networks import machine_settings
from annotator.store.people import members
from annotator.store.people.members import Member
from annotator.ui.home import markup
from annotator.ui.home.allowed_roots import AllowedRoots
from annotator.ui.home.home_server import prepare_projects
from annotator.ui.home.hosted_projects import HostedProject
from annotator.ui.home.project_creator import CreatedProject, CreationState, NewProjectOptions, ProjectCreator
from annotator.ui.home.visitors import VisibleProject, Visitor

pytestmark = pytest.mark.process

ME = Visitor([], is_team=False)

MOST_CLICKS = 8


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """The home folder of somebody with six photos in three folders, who has never used this."""
    for number in range(6):
        photo = tmp_path / "ann" / "photos" / "summer" / f"{number}.jpg"
        draw(photo, CLASSES[number % 3 : number % 3 + 1], seed=number)
    (tmp_path / "ann" / "photos" / "summer" / "classes.txt").write_text("fox\nheron\ndeer\n")
    (tmp_path / "ann" / "documents").mkdir()
    (tmp_path / "ann" / "documents" / "letter.txt").write_text("Dear")
    draw(tmp_path / "secret" / "a.jpg", (), seed=1)
    return tmp_path / "ann"


@pytest.fixture
def link(person: Path) -> Iterator[str]:
    """The address that the start page printed, once."""
    with at_home("--port", free_port(), HOME=person) as home:
        yield until(lambda: next((line for line in home.stdout if "?key=" in line), None)).strip()


def wait_for_label(person: Path) -> None:
    until(lambda: project_counts.count_labels_by_state(made(person))["present"] == 1)


@pytest.mark.slow
def test_first_project_can_be_created_and_labeled_by_mouse_alone(person, link, browser: Contexts):
    page = browser.new_page(viewport={"width": 1366, "height": 768})
    page.context.add_cookies([{"name": "annotator_name", "value": "Ann%20Lee", "url": link.partition("?")[0]}])
    page.goto(link)
    expect(page.get_by_role("heading", name="No projects yet")).to_be_visible()
    assert findings(page) == []
    clicks = [
        page.get_by_role("link", name="New project"),
        page.get_by_role("button", name="photos", exact=True),
        page.get_by_role("button", name="summer", exact=True),
        page.get_by_role("button", name="Use the 3 classes of classes.txt"),
        page.get_by_role("button", name="Create project"),
        page.locator("button", has_text="heron").first,
    ]
    for place in clicks[:-1]:
        if place == clicks[-2]:
            assert findings(page) == []
        place.click()
    wait_for_first_image(page)
    clicks[-1].click()
    wait_for_label(person)
    assert len(clicks) <= MOST_CLICKS and project_counts.list_annotators(made(person)) == ["Ann Lee"]
    page.get_by_role("link", name="summer", exact=True).click()  # the way back
    expect(page.get_by_role("heading", name="Projects")).to_be_visible(timeout=60_000)


def test_first_project_can_be_created_and_labeled_by_keyboard_alone(person, link, browser: Contexts):
    page = browser.new_page(viewport={"width": 1366, "height": 768})
    page.goto(link)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#path")).to_be_focused()
    expect(page.locator("#path")).to_have_value(str(person))
    page.keyboard.press("End")
    page.keyboard.type("/photos/su")
    expect(page.locator("datalist option")).to_have_count(1)
    assert page.locator("datalist option").get_attribute("value") == f"{person}/photos/summer"
    page.keyboard.type("mmer")
    page.keyboard.press("Enter")
    expect(page.locator("#classes")).to_be_focused()
    page.keyboard.type("fox, heron, red deer")
    expect(page.get_by_text("3 classes: fox · heron · red deer")).to_be_visible()
    for _ in range(10):
        if page.evaluate("document.activeElement.name") == "mode":
            page.keyboard.press("ArrowDown")
        if page.evaluate("document.activeElement.id") == "name":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator("#person")).to_be_focused()
    page.keyboard.type("Ann")
    page.keyboard.press("Enter")
    wait_for_first_image(page)
    expect(page.get_by_role("button", name="All labels")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("2")
    wait_for_label(person)


@pytest.mark.slow
def test_demo_command_first_opens_a_filled_in_new_project_page_and_later_the_project_list(person, browser: Contexts):
    port = free_port()
    with at_home("--port", port, command="demo", HOME=person) as demo:
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        page.goto(until(lambda: next((line for line in demo.stdout if "?key=" in line), None)).strip())
        expect(page.get_by_role("button", name="Create project")).to_be_focused()
        expect(page.locator("#name")).to_have_value("demo")
        expect(page.get_by_role("heading", name="New project")).to_be_in_viewport()
        expect(page.get_by_text("12 classes: ")).to_be_visible()
        assert findings(page) == [] and not (person / "annotator-projects" / "demo").exists()
        page.keyboard.press("Enter")
        expect(page.get_by_label("Your name")).to_be_focused(timeout=120_000)
        page.keyboard.type("Ann")
        page.keyboard.press("Enter")
        wait_for_first_image(page)
        assert made(person, "demo").value("SELECT count(*) FROM image") == 160
        page.goto(f"http://127.0.0.1:{port}/start/new")
        expect(page.locator("#path")).to_have_value(str(person))
    with at_home("--port", port, command="demo", HOME=person) as demo:
        assert f"127.0.0.1:{port}/?key=" in until(lambda: next((line for line in demo.stdout if "?key=" in line), None))


@pytest.mark.slow
def test_new_project_page_fills_in_the_name_that_the_browser_knows_and_never_the_login_name(person, browser: Contexts):
    with at_home("--port", free_port(), HOME=person, LOGNAME="strange-login") as home:
        link = until(lambda: next((line for line in home.stdout if "?key=" in line), None)).strip()
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        page.goto(link)
        for known in ("", "Ann Lee"):
            if known:
                page.context.add_cookies([{"name": "annotator_name", "value": quote(known), "url": page.url}])
            page.goto(link.partition("/?")[0] + "/start/new")
            if not known:  # the second time the tab has kept the choice
                page.get_by_role("button", name="photos", exact=True).click()
                page.get_by_role("button", name="summer", exact=True).click()
            expect(page.get_by_label("You, as stored with your answers")).to_have_value(known)
            assert "strange-login" not in page.content()


def test_allowed_image_root_inside_a_hidden_folder_is_accepted(tmp_path):
    (tmp_path / ".venv" / "sample" / "images").mkdir(parents=True)
    roots = AllowedRoots([tmp_path], [tmp_path / ".venv" / "sample"])
    assert roots.resolve_folder(f"{tmp_path}/.venv/sample/images").name == "images"
    with pytest.raises(AnnotatorError, match="is hidden"):
        roots.resolve_folder(f"{tmp_path}/.venv")
    assert roots.paths == (tmp_path,)


@pytest.mark.slow
def test_project_creation_refuses_invalid_folders_names_and_classes_with_a_reason(person, link):
    asking = Asking(link)
    photos, outside = person / "photos" / "summer", person.parent / "secret"
    (person / "shortcut").symlink_to(outside)
    (person / ".ssh").mkdir()
    refused = {
        str(outside): "lies outside of the folders that may be read here",
        str(person / "shortcut"): "lies outside",
        f"{person}/photos/../../secret": "lies outside",
        str(person / ".ssh"): "is hidden",
        str(person / "gone"): "There is nothing at",
        str(person / "documents"): "No image was found in",
        str(photos / "0.jpg"): "is a file, not a folder",
        "photos": "is not a whole path",
    }
    for path, words in refused.items():
        for answer in (asking.ask("look", path=path), asking.make(name="x", path=path)):
            assert words in (answer.get("error") or ""), (path, answer)
    inside = asking.ask("folders", path=str(person))
    assert {one["name"] for one in inside["folders"]} == {"annotator-projects", "documents", "photos"}

    for name in ("../x", "a/b", "", ".x", "start", "öl"):
        assert "cannot be called" in asking.make(name=name, path=str(photos))["error"]
    assert "'fox' again" in asking.make(name="x", path=str(photos), text="fox\nfox")["error"]
    assert "lies outside" in asking.make(name="x", path=str(photos), labels=str(outside / "a.jpg"))["error"]
    assert "lies outside" in asking.get(f"{asking.address}/start/thumb?path={outside}/a.jpg")[1]
    assert "is no image" in asking.get(f"{asking.address}/start/thumb?path={person}/documents/letter.txt")[1]
    assert list((person / "annotator-projects").iterdir()) == []

    assert asking.make(name="birds", path=str(photos))["link"].endswith("/open/birds")
    again = asking.make(name="Birds", path=str(photos))
    assert again["status"] == 409 and "There is a project called Birds already" in again["error"]
    (person / "annotator-projects" / "mine").mkdir()
    (person / "annotator-projects" / "mine" / "notes.txt").write_text("x")
    assert "mine" in asking.make(name="mine", path=str(photos))["error"]
    assert asking.get(f"{asking.address}/")[1].count("<li>") == 1
    status, _ = asking.get(f"{asking.address}/start/new")
    assert status == 200


def test_project_creation_refuses_requests_without_a_token_or_from_another_site(person, link):
    asking = Asking(link)
    make = {"name": "x", "path": str(person / "photos"), "text": "fox"}
    assert asking.post("make", make, {})[0] == 401
    assert asking.post("make", make, {"x-annotator-token": asking.token[:-2]})[0] == 401
    own = {"x-annotator-token": asking.token}
    for other in ({"origin": "https://evil.example"}, {"origin": "null"}, {"host": "evil.example"}):
        assert asking.post("make", make, own | other)[0] == 403
    assert asking.post("make", {"name": 1}, own)[0] == 400
    stranger = Browser()
    for path in ("/start/new", "/start/thumb?path=/etc/hosts", "/start/file/start/new_project.js", "/start/picture/x"):
        assert stranger.get(asking.address + path)[0] == 403
    assert asking.get(f"{asking.address}/start/file/../home/allowed_roots.py")[0] == 404
    assert asking.get(f"{asking.address}/start/picture/x")[0] == 404
    assert not (person / "annotator-projects" / "x").exists()


@pytest.mark.slow
def test_project_creation_imports_the_labels_found_in_the_image_folder(person, link):
    asking = Asking(link)
    photos = person / "photos" / "summer"
    (photos / "classes.txt").unlink()
    (photos / "labels.csv").write_text("image,labels\n0.jpg,fox|deer\n1.jpg,heron\n")
    found = asking.ask("look", path=str(photos))
    assert (found["images"], found["endings"], found["name"]) == (6, {".jpg": 6}, "summer")
    assert len(found["samples"]) == 6
    labels = asking.ask("labels", path=str(photos))["labels"]
    assert labels["name"] == "labels.csv" and labels["trouble"] == ""
    assert sorted(labels["text"].split("\n")) == ["deer", "fox", "heron"]
    thumb = urllib.request.Request(
        f"{asking.address}/start/thumb?path={found['samples'][0]}",
        headers={"cookie": "; ".join(f"{name}={value}" for name, (_, value) in asking.cookies.items())},
    )
    assert urllib.request.urlopen(thumb).headers["content-type"] == "image/jpeg"
    state = asking.make(name="summer", path=str(photos), text=labels["text"], labels=labels["file"], mode="all")
    assert state["error"] == ""
    assert project_counts.count_labels_by_state(made(person))["present"] == 3
    assert answer_mode.get_project_mode(made(person)) == answer_mode.MODE_ALL
    assert "0 of 6 images complete" in asking.get(f"{asking.address}/")[1]


@pytest.mark.slow
def test_project_is_renamed_and_moved_to_the_trash_after_typing_its_name(person, link, browser: Contexts):
    asking = Asking(link)
    assert asking.make(name="birds", path=str(person / "photos"))["error"] == ""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.context.add_cookies(
        [{"name": name, "value": value, "url": asking.address} for name, (_, value) in asking.cookies.items()]
    )
    page.goto(asking.address)
    page.get_by_role("link", name="Rename, archive, back up or delete birds").click()
    expect(page.get_by_text("0 answers about 6 images would be gone from here.")).to_be_visible()
    assert findings(page) == []
    page.get_by_label("New name").fill("summer")
    page.get_by_role("button", name="Rename", exact=True).click()
    expect(page.get_by_role("link", name="summer", exact=True)).to_be_visible(timeout=60_000)
    assert made(person, "summer") and not (person / "annotator-projects" / "birds").exists()
    page.get_by_role("link", name="Rename, archive, back up or delete summer").click()
    page.get_by_role("button", name="Move to the trash").click()
    expect(page.get_by_role("alert").last).to_contain_text("Type the name of the project, summer")
    page.get_by_label("Type the name").fill("summer")
    page.get_by_role("button", name="Move to the trash").click()
    expect(page.get_by_role("heading", name="No projects yet")).to_be_visible()
    [kept] = (person / "annotator-projects" / ".trash").iterdir()
    assert (kept / "project.db").exists() and len(list((person / "photos" / "summer").iterdir())) == 7
    own = {"x-annotator-token": asking.token}
    assert asking.post("trash", {"project": "summer", "typed": "summer"}, own)[0] == 401, "the pass of another page"


def test_canceled_project_creation_leaves_no_folder_and_only_one_runs_at_a_time(tmp_path):
    for number in range(60):
        draw(tmp_path / "photos" / f"{number}.jpg", (), seed=number)
    making = ProjectCreator(lambda project, visitor: CreatedProject("", ""))
    project = tmp_path / "all" / "birds"
    wanted = NewProjectOptions(project, tmp_path / "photos", "fox", "split", None, answer_mode.MODE_ONE)
    making.start(wanted, ME)
    with pytest.raises(AnnotatorError, match="Another project is being created"):
        making.start(wanted, ME)
    making.stop()
    assert "Cancelled" in making.state.error and not project.exists()
    making.start(wanted, ME)
    until(lambda: not making.state.is_at_work)
    assert making.state.error == "" and (project / "project.db").exists()
    assert making.get_state(ME) == making.state != CreationState()


def test_running_project_creation_is_shown_only_in_the_session_that_started_it(tmp_path):
    for number in range(60):
        draw(tmp_path / "photos" / f"{number}.jpg", (), seed=number)
    place = HostedProject("birds", tmp_path)
    # The same number and name in two projects, as of an owner who takes the name of another.
    owner = Member(1, "Ann", Role.OWNER, None, "", True, 0.0, 0.0, 0.0)
    ann, eve = (Visitor([VisibleProject(place, owner, session)], is_team=True) for session in ("birds 1", "mammals 1"))
    both = Visitor([*eve.visible_projects, *ann.visible_projects], is_team=True)
    making = ProjectCreator(lambda project, visitor: CreatedProject("a link that signs in", ""))
    wanted = NewProjectOptions(tmp_path / "new", tmp_path / "photos", "fox", "split", None, answer_mode.MODE_ONE)
    making.start(wanted, ann)
    assert making.get_state(eve) == CreationState()
    until(lambda: not making.state.is_at_work)
    assert making.get_state(ann).link == making.get_state(both).link == "a link that signs in"
    assert making.get_state(eve) == making.get_state(Visitor([], is_team=True)) == CreationState()


def test_start_page_formats_the_last_worked_on_date_of_a_project_in_words():
    now, day = time.time(), 24 * 3600
    assert markup.format_last_worked_on(None) == ""
    assert markup.format_last_worked_on(now) == "Last worked on today"
    assert markup.format_last_worked_on(now - 5 * day) == "Last worked on 5 days ago"
    assert re.fullmatch(r"Last worked on [0-9]+ [A-Z][a-z]+ [0-9]{4}", markup.format_last_worked_on(now - 90 * day))


def test_annotator_without_arguments_opens_the_last_used_projects_folder(annotator, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "ann"))
    monkeypatch.setenv("ANNOTATOR_HOME", str(tmp_path / "machine"))
    (tmp_path / "ann").mkdir()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # another program has it: just as well
            taken.bind(("127.0.0.1", 8500))
            taken.listen()
        assert "Port 8500" in annotator(code=1).stderr
        assert (tmp_path / "ann" / "annotator-projects").is_dir()
        (tmp_path / "elsewhere").mkdir()
        annotator("home", "elsewhere", code=1)
        assert machine_settings.load_home_folders() == [tmp_path / "elsewhere"]
        annotator(code=1)
        assert machine_settings.load_home_folders() == [tmp_path / "elsewhere"]
    assert "no folder" in annotator("home", "nowhere", code=1).stderr
    assert "--roots" in annotator("home", "--roots", "nowhere", code=1).stderr


@pytest.mark.slow
def test_only_owners_can_create_projects_on_a_server_with_members(tmp_path):
    draw(tmp_path / "photos" / "a.jpg", (), seed=1)
    (tmp_path / "classes.txt").write_text("fox\n")
    set_up_project(tmp_path / "all" / "birds", images_folder=tmp_path / "photos", class_file=tmp_path / "classes.txt")
    port = free_port()
    (birds,) = prepare_projects([tmp_path / "all"], port)
    address = f"http://127.0.0.1:{port}"
    members.add(birds.db, "Ann", "owner", "test")
    members.add(birds.db, "Ben", "annotator", "test")
    words = ["--auth", "invitation", "--url", address, "--port", port, "--roots", tmp_path, tmp_path / "all"]
    with at_home(*words, HOME=tmp_path):
        until(lambda: answers(port) and answers(birds.port))

        def signed_in(name: str) -> Browser:
            browser = Browser()
            secret = members.create_link(birds.db, name, "test")
            assert browser.get(f"http://127.0.0.1:{birds.port}/birds/?invitation={secret}")[0] == 200
            return browser

        for other in (Browser(), signed_in("Ben")):
            assert "New project" not in other.get(f"{address}/")[1]
            assert other.get(f"{address}/start/new")[0] == 403
        ann = signed_in("Ann")
        assert "New project" in ann.get(f"{address}/")[1]
        asking = Asking.__new__(Asking)
        asking.cookies, asking.address = ann.cookies, address
        asking.token = re.search(r"token&quot;: &quot;([^&]+)&quot;", ann.get(f"{address}/start/new")[1]).group(1)
        ben = Asking.__new__(Asking)
        ben.cookies, ben.address, ben.token = signed_in("Ben").cookies, address, asking.token
        assert ben.ask("look", path=str(tmp_path / "photos"))["status"] == 403
        state = asking.make(name="mammals", path=str(tmp_path / "photos"))
        assert state["error"] == "" and f"{address}/mammals/?invitation=" in state["link"]
    mammals = Database(tmp_path / "all" / "mammals")
    assert [(one.name, one.role.value) for one in members.load_members(mammals)] == [("Ann", "owner")]
