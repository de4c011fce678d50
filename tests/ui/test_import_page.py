"""The Import page: what a source would change is seen and chosen before, and nothing is left half done."""

import json
import re
import subprocess
import sys
import threading
import zipfile
from html import escape
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import numpy as np
import pytest
from harness.asked import asked
from harness.axe_findings import findings
from harness.contexts import Contexts
from harness.hostile import MARKUP
from harness.page_scripts import markdown_of
from harness.person import open_page
from harness.served import serving
from playwright.sync_api import expect
from streamlit.testing.v1 import AppTest

from annotator.errors import AnnotatorError
from annotator.exchange.imports.import_plan import ImportOptions
from annotator.records import ABSENT, PRESENT, Decision
from annotator.store.classes import class_changes, classes
from annotator.store.database.database import Database
from annotator.store.images.images import load_ids_by_name
from annotator.store.imports import past_imports
from annotator.store.labels import decisions
from annotator.store.runs import prediction_sources
from annotator.store.upkeep import consistency
from annotator.ui.access import served_project
from annotator.ui.pages.imports import uploaded_files
from annotator.ui.pages.imports.import_runner import CANCELLED, READY, ImportRequest, ImportRunner, get_import_runner
from annotator.ui.shared.markdown_text import WORD_JOINER
from annotator.ui.shared.work import readable_paths

SCRIPT = "from annotator.ui.pages.imports import imports_page\nimports_page.page()"
SETTLED = """() => [...document.querySelectorAll("[data-testid=stElementContainer]")].every((one) =>
  getComputedStyle(one).opacity === "1")"""  # what is drawn anew is faint until it is there
NEW_FOX = "![f](//evil.example) <img src=x>"


def coco(path: Path, *, classes_: tuple[str, ...] = ("Fox", "stork", NEW_FOX)) -> Path:
    """Ten images of the project and one of nobody's, each with one class."""
    images = [{"id": number, "file_name": f"{number:02}.jpg"} for number in range(10)] + [
        {"id": 10, "file_name": MARKUP[0]}
    ]
    path.write_text(
        json.dumps(
            {
                "images": images,
                "annotations": [
                    {"id": number + 1, "image_id": number, "category_id": 1 + number % len(classes_)}
                    for number in range(11)
                ],
                "categories": [{"id": place, "name": name} for place, name in enumerate(classes_, start=1)],
            }
        )
    )
    return path


@pytest.fixture
def served(project) -> Database:
    served_project.open_project(project)
    return served_project.db()


def page(name: str = "Ann") -> AppTest:
    test = AppTest.from_string(SCRIPT, default_timeout=120)
    test.session_state["name"] = name
    test.session_state["import_place"] = "Path or address"
    return fine(test.run())


def fine(test: AppTest) -> AppTest:
    assert not test.exception, test.exception
    return test


def press(test: AppTest, label: str) -> AppTest:
    """Press, and wait for what it begins."""
    fine(next(one for one in test.button if plain(one.label) == label).click().run())
    get_import_runner(served_project.db()).wait()
    return test if test.error or label.startswith(("Undo", "Remove")) else fine(test.run())


def previewed(test: AppTest, path: object) -> AppTest:
    test.text_input(key="import_path").input(str(path))
    return press(test, "Preview")


def said(test: AppTest) -> str:
    shown: list[Any] = [*test.error, *test.info, *test.success, *test.caption, *test.markdown, *test.warning]
    html = [element.proto.body for element in cast("list[Any]", test.get("html"))]
    return plain("\n".join([one.value for one in shown] + html))


def plain(text: str) -> str:
    """Without the escapes of Markdown."""
    return text.replace("\\", "").replace(WORD_JOINER, "")


def become(test: AppTest, place: int, wanted: str) -> AppTest:
    """Choose what becomes of a class of the source."""
    work = get_import_runner(served_project.db())
    fine(test.selectbox(key=f"import_class_{work.state.since}_{place}").select(wanted).run())
    work.wait()
    return fine(test.run())


def states(db: Database) -> dict[tuple[int, int], int]:
    return {(one.image_id, one.class_id): one.state for one in decisions.load_all_labels(db)}


def left(db: Database) -> list[str]:
    """What an import keeps in the project's folder while it is open."""
    found = [*db.paths.project.glob("import-*"), *db.paths.project.glob("uploads/*/*")]
    return [str(path) for path in [*found, *db.paths.project.glob("imported/*")]]


def test_import_page_previews_a_coco_file_maps_its_classes_imports_it_and_undoes_it(served, tmp_path):
    ids = load_ids_by_name(served)
    decisions.save(served, [Decision("ann-one-two", "label", "Ann", "click", ids["00.jpg"], 1, ABSENT)])
    test = previewed(page(), coco(tmp_path / "instances.json"))
    text = said(test)
    assert "Format: coco (a COCO file: it has annotations and categories and images)." in text
    assert "unless the source names everything." in text, "not --exhaustive, which a page does not have"
    for line, count in {"Images in the project": 10, "Unknown images: left out": 1, "New answers": 9}.items():
        assert f'{line}</th><td dir="auto">{count}</td>' in text, line
    assert "&#x27;Fox&#x27; is present" not in text and "but Ann says absent" in text
    assert 'Answers that people gave differently: kept</th><td dir="auto">1</td>' in text
    assert states(served) == {(ids["00.jpg"], 1): ABSENT}, "a preview changes nothing"

    test = become(test, 1, "2")  # stork is the heron
    test = become(test, 2, "out")
    test = fine(test.radio[-1].set_value("replace").run())
    get_import_runner(served).wait()
    test = fine(test.run())
    assert 'Answers that people gave differently: replaced</th><td dir="auto">1</td>' in said(test)
    test = press(test, "Import")
    assert "Import 1: 7 answers (1 replaced others)." in said(test)
    assert [link.proto.page for link in test.get("page_link")] == ["annotate", "review", "progress"]
    given = states(served)
    assert given[ids["00.jpg"], 1] == PRESENT and given[ids["01.jpg"], 2] == PRESENT and len(given) == 7
    assert [one.name for one in classes.load_ordered_classes(served)] == ["fox", "heron", "deer"]

    test = press(test, "Undo 1")
    assert "Would be taken back: 7 decisions." in said(test) and states(served) == given, "nothing is taken back yet"
    test = press(test, "Undo import 1")
    assert "Import 1 taken back: 7 decisions." in said(test) and "Undone by Ann" in said(test)
    assert "Import 1: 7 answers" not in said(test), "it is not so any more"
    assert states(served) == {(ids["00.jpg"], 1): ABSENT} and not consistency.find_problems(served)
    assert not left(served)


def test_import_page_explains_unreadable_or_forbidden_paths_and_keeps_the_typed_path(served, tmp_path):
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "keys.json").write_text('{"secret words": 1}')
    (tmp_path / "passwords.txt").write_text("secret words\n")
    (tmp_path / "shadow").write_text("secret words\n")
    (tmp_path / "link.json").symlink_to(tmp_path / ".ssh" / "keys.json")
    lines = "".join(f"{number:02}.jpg,fox,perhaps\n" for number in range(24) for _ in range(3))
    (tmp_path / "bad.csv").write_text("image,class,state\n" + lines)
    (tmp_path / "half.json").write_text('{"info": {}, "images": [{"id": 1, "file_name": "00.j')
    test = page()
    for given, reason in {
        "": "Type the path first",
        "labels.json": "not a whole path",
        tmp_path / "nowhere.json": "There is nothing at",
        tmp_path / ".ssh" / "keys.json": "hidden",
        tmp_path / "link.json": "hidden",
        tmp_path / "passwords.txt": "is no list of images",
        tmp_path / "shadow": "does not end as files of data sets do",
        "http://127.0.0.1:1/labels.json": "an address inside of this machine",
        "file:///etc/passwd": "Addresses of file:// are not read",
        tmp_path / "half.json": "half.json",
        tmp_path / "bad.csv": "and 22 more",
    }.items():
        test = previewed(test, given)
        [error] = test.error
        assert reason in plain(error.value), given
        assert "secret words" not in said(test) and test.text_input(key="import_path").value == str(given)
    assert test.error[0].value.count("line") >= 50, "all problems together"
    assert not past_imports.load_imports(served) and not states(served) and not left(served)


def test_import_page_requires_a_choice_for_archived_and_invalid_class_names(served, tmp_path):
    class_changes.archive(served, "Ann", [3])

    def is_refused(test: AppTest) -> bool:
        return test.button(key="import_store").disabled

    def call(test: AppTest, name: str) -> AppTest:
        key = f"import_class_{get_import_runner(served).state.since}_2_name"
        fine(test.text_input(key=key).input(name).run())
        get_import_runner(served).wait()
        return fine(test.run())

    test = previewed(page(), coco(tmp_path / "instances.json", classes_=("fox", "deer", "a|b")))
    assert (
        is_refused(test) and "Choose first what becomes of 'deer', 'a|b'" in said(test) and "2 to choose" in said(test)
    )
    assert "The class 'deer' is archived: restore it" in said(test) and "needs a choice, 3 answers" in said(test)
    test = become(test, 1, "out")
    assert is_refused(test) and "Choose first what becomes of 'a|b'" in said(test)
    test = call(become(test, 2, "="), "x|y")
    assert is_refused(test) and "not usable as a class: 'x|y'" in said(test)
    test = call(test, "a or b")
    assert not is_refused(test) and "3 classes in the source, 1 new, 1 left out" in said(test)
    assert "Import 1: 7 answers, 1 class added" in said(press(test, "Import"))
    assert [one.name for one in classes.load_ordered_classes(served)] == ["fox", "heron", "a or b"]


@pytest.mark.slow
def test_import_page_allows_one_import_preview_at_a_time_and_restores_it_after_a_reload(served, tmp_path, photos):
    path = coco(tmp_path / "instances.json")
    previewed(page("Ann"), path)
    assert "Preview of instances" not in said(ben := page("Ben")) and "Ann is looking at what" in said(ben)
    with pytest.raises(AnnotatorError, match=r"Ann has begun another import: .*instances\.json waits for a decision"):
        get_import_runner(served).start(ImportRequest("Ben", "b.csv", Path("/b.csv"), ImportOptions()))
    again = page("Ann")
    assert f"Preview of {path}" in said(again)
    again = press(again, "Cancel")
    assert "Cancelled" in said(again) and "the project is as it was" in said(again)
    assert not left(served) and not past_imports.load_imports(served)
    assert "Preview" in [button.label for button in page("Ben").button]
    with zipfile.ZipFile(tmp_path / "more.zip", "w") as archive:
        archive.writestr("new.jpg", (photos / "00.jpg").read_bytes() + b"x")
    dropped = said(press(previewed(page("Ben"), tmp_path / "more.zip"), "Cancel"))
    place = served.paths.project / "imported" / "more"
    assert f"Nothing was imported. What was unpacked or downloaded stays in {place}" in dropped and place.is_dir()


def test_import_canceled_while_it_stores_leaves_no_labels_images_or_files(served, tmp_path, photos, monkeypatch):
    (tmp_path / "more").mkdir()
    for number, path in enumerate(sorted(photos.glob("*.jpg"))):
        (tmp_path / "more" / f"new{number}.jpg").write_bytes(path.read_bytes() + b"x")
    text = "image,class\n" + "".join(f"new{number}.jpg,fox\n" for number in range(23))
    (tmp_path / "labels.csv").write_text(text)
    work, seen, go_on = ImportRunner(served), threading.Event(), threading.Event()
    note = work._report_progress

    def note_and_wait(what: str, done: int, of: int) -> None:
        if what == "Reading images" and done == 5:
            seen.set()
            go_on.wait(120)
        note(what, done, of)

    monkeypatch.setattr(work, "_report_progress", note_and_wait)
    work.start(ImportRequest("Ann", "labels", tmp_path / "labels.csv", ImportOptions(images=tmp_path / "more")))
    work.wait()
    assert work.state.stage == READY and not work.state.error
    work.store()
    assert seen.wait(120) and work.state.is_at_work
    work.cancel()
    go_on.set()
    work.wait()
    assert work.state.stage == CANCELLED
    assert not left(served) and not past_imports.load_imports(served) and not states(served)
    asked_about = "SELECT count(*) FROM image WHERE problem = ''"
    assert served.value(asked_about) == 24, "nobody is asked about an image of it"


KILLED = """
import os, signal, sys, time
from pathlib import Path
from annotator.exchange.imports.import_plan import ImportOptions
from annotator.ui.access import served_project as context
from annotator.ui.pages.imports.import_runner import ImportRunner, ImportRequest
context.open_project(Path(sys.argv[1]))
upload = context.db().paths.project / "uploads" / "x"
upload.mkdir(parents=True)
(upload / "labels.csv").write_text("image,class\\n" + "".join(f"{number:02}.jpg,lynx\\n" for number in range(20)))
work = ImportRunner(context.db())
note = work._report_progress
def kill(what, done, of):
    note(what, done, of)
    if what == "Storing":
        os.kill(os.getpid(), signal.SIGKILL)
work._report_progress = kill
work.start(ImportRequest("Ann", "labels.csv", upload / "labels.csv", ImportOptions(), upload))
work.wait()
work.store()
time.sleep(30)
"""


@pytest.mark.process
def test_server_killed_while_it_stores_an_import_leaves_the_project_unchanged(project):
    done = subprocess.run([sys.executable, "-c", KILLED, str(project)], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    db = Database(project)
    assert not states(db) and not past_imports.load_imports(db) and len(classes.load_active_classes(db)) == 3
    assert len(left(db)) == 3, "the staging file with its lock, and the upload"
    served_project.open_project(project)
    uploaded_files.remove_leftover_uploads(served_project.db())  # as the next server does
    previewed(page(), coco(project.parent / "instances.json"))  # as the next import does
    press(page(), "Cancel")
    assert not left(db) and not consistency.find_problems(db)


def test_import_page_escapes_markup_in_source_names(served, tmp_path):
    """In the preview, in errors, in the result and in the history."""
    folder = tmp_path / MARKUP[0].replace("/", "")
    folder.mkdir()
    test = previewed(page(), coco(folder / "a.json", classes_=("fox", *MARKUP[1:])))
    shown = [test]
    shown.append(press(test, "Import"))
    shown.append(press(page(), "Undo 1"))
    (folder / "b.csv").write_text("image,class,state\n" + f'"{MARKUP[1]}",fox,"{MARKUP[2]}"\n')
    shown.append(previewed(page(), folder / "b.csv"))
    for one in shown:
        typed = one.text_input(key="import_path").value if one.text_input else ""
        for text in markdown_of(one):
            assert text == typed or not any(part in text for part in (*MARKUP, folder.name)), text
        html = "".join(element.proto.body for element in cast("list[Any]", one.get("html")))
        assert "<img" not in html
    assert shown[-1].error


def test_import_page_previews_predictions_maps_their_classes_adds_and_removes_them(served, tmp_path):
    rows = "".join(f"{number:02}.jpg,0.{number}5,0.5\n" for number in range(10))
    (tmp_path / "yolo.csv").write_text(f"image,vulpes,heron\n{rows}nobody.jpg,0.1,0.2\n")
    test = page()
    test.segmented_control(key="import_kind").set_value("Predictions of another model").run()
    test = previewed(test, tmp_path / "yolo.csv")
    assert "Give the model a name" in test.error[0].value
    test.text_input(key="import_called").input("yolo-world")
    test = press(test, "Preview")
    assert 'Images in the project</th><td dir="auto">10<' in said(
        test
    ) and 'Unknown images: left out</th><td dir="auto">1<' in said(test)
    assert 'not in the project: left out</th><td dir="auto">1<' in said(test)
    test = become(test, 0, "1")
    test = press(test, "Import")
    assert "yolo-world: a probability of 20 image-class pairs on 10 images" in said(test)
    [source] = prediction_sources.load_sources(served)
    [scores] = prediction_sources.open_scores(served)
    assert list(source.class_ids) == [1, 2] and np.isclose(float(scores.scores[3, 0]), 0.35, atol=1e-3)
    assert ">yolo-world<" in said(test) and "not used yet: after the next training" in said(test)
    test = fine(test.selectbox(key="source_gone").select("yolo-world").run())
    press(test, "Remove yolo-world")
    assert not prediction_sources.load_sources(served)


def test_uploads_are_private_per_annotator_and_get_safe_file_names(project, tmp_path):
    with asked(project) as server:
        db = served_project.db()
        for name, kept in {
            "labels.csv": "labels.csv",
            "../../secret": "secret",
            "C:\\labels.json": "labels.json",
            ".bashrc": "bashrc",
            "a<b>|c.tar.gz": "a_b__c.tar.gz",
        }.items():
            status, answer = server.post(f"/api/upload?name={quote(name)}", b"image,class\n00.jpg,fox\n")
            assert (status, answer) == (200, {"name": kept, "bytes": 23}), name
        upload = uploaded_files.get_uploads(db).get_files("Ann")
        assert upload is not None and len(upload.files) == 5 and uploaded_files.get_uploads(db).get_files("Ben") is None
        assert upload.folder.stat().st_mode & 0o077 == 0 and not list(project.glob("secret.*"))
        assert server.send("POST", "/api/upload?name=x.csv", b"x", token="none")[0] == 401
        assert server.send("POST", "/api/upload", b"x")[0] == 400
        for number in range(15):
            server.post(f"/api/upload?name=n{number}.csv", b"")
        assert "20 files are uploaded already" in server.post("/api/upload?name=n.csv", b"")[1]["error"]
        uploaded_files.get_uploads(db).remove_files("Ann")
        assert not left(db) and uploaded_files.get_uploads(db).get_files("Ann") is None


@pytest.mark.parametrize("given", ["/", "/etc", str(Path.home())])
def test_import_page_accepts_any_folder_outside_hidden_folders(given):
    hidden = any(part.startswith(".") for part in Path(given).resolve().parts)
    assert hidden or readable_paths.resolve_source(given) == Path(given)


@pytest.mark.slow  # each step without a browser is above, and every page is looked at in test_accessibility.py
@pytest.mark.browser
def test_import_page_uploads_previews_and_imports_a_file_in_the_browser(browser: Contexts, project, tmp_path):
    path = coco(tmp_path / "instances.json")
    with serving(project) as served:
        tab = open_page(browser, served, "Ann", "/imports")
        tab.locator("input[type=file]").set_input_files(path)
        tab.get_by_role("button", name="Preview").click()
        expect(tab.get_by_role("heading", name="Preview of instances.json")).to_be_visible()
        tab.wait_for_function(SETTLED)
        assert findings(tab) == []
        tab.keyboard.press("Control+Enter")
        expect(tab.get_by_text("Import 1: 10 answers")).to_be_visible()
        assert tab.locator("main img, main a[href*=evil]").count() == 0 and tab.troubles == []
    db = Database(project)
    assert len(states(db)) == 10 and not left(db), "the upload is gone"


def test_import_page_shows_what_each_field_is_read_as_with_markup_as_text(served, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(f"image,label,{MARKUP[0]},xmin\n00.jpg,fox,north,3\n", encoding="utf-8")
    shown = " ".join(one.proto.body for one in previewed(page(), path).get("html"))
    assert "What each field is read as" in shown
    for field, role in (
        ("image", "image"),
        ("label", "class names"),
        (escape(MARKUP[0]), "field"),
        ("xmin", "ignored"),
    ):
        assert re.search(rf'<th scope="row" dir="auto">{re.escape(field)}</th><td dir="auto">{role}</td>', shown), field


def test_import_page_disables_import_until_the_separator_is_chosen(served, tmp_path):
    (tmp_path / "labels.csv").write_text("image,labels\n00.jpg,clear primary\n01.jpg,clear\n")
    test = previewed(page(), tmp_path / "labels.csv")
    text = said(test)
    assert "may hold several labels separated by blanks" in text and "00.jpg: clear present, primary present" in text
    assert "It can be read in more than one way" in text and button(test, "Import").disabled
    work = get_import_runner(served)
    field = test.selectbox(key=f"import_reading_separator_{work.state.since}")
    assert field.value is None
    fine(field.select("none").run())
    work.wait()
    fine(test.run())
    assert "00.jpg: clear primary present" in said(test) and not button(test, "Import").disabled
    fine(test.selectbox(key=f"import_reading_separator_{work.state.since}").select(" ").run())
    work.wait()
    press(fine(test.run()), "Import")
    names = {row[0]: row[1] for row in served.tuples("SELECT id, name FROM class")}
    assert {names[class_id] for _, class_id in states(served)} == {"clear", "primary"} and len(states(served)) == 3


def test_import_page_asks_which_keywords_of_photos_are_classes(served, tmp_path):
    path = tmp_path / "tags.json"
    path.write_text(
        '[{"SourceFile": "00.jpg", "Subject": ["fox", "holiday"]}, {"SourceFile": "01.jpg", "Subject": "fox"}]'
    )
    test = previewed(page(), path)
    assert "2 keywords on 2 images (fox 2, holiday 1): which are classes" in said(test)
    assert button(test, "Import").disabled
    work = get_import_runner(served)
    fine(test.selectbox(key=f"import_reading_class_columns_{work.state.since}").select("fox,holiday").run())
    work.wait()
    press(fine(test.run()), "Import")
    assert states(served) == {(1, 1): 1, (1, 4): 1, (2, 1): 1}


@pytest.mark.slow
@pytest.mark.browser
def test_import_page_choice_between_answers_and_predictions_works_by_mouse_and_keyboard(
    browser: Contexts, project, tmp_path
):
    (tmp_path / "labels.csv").write_text("image,labels,confidence\n00.jpg,fox,0.98\n00.jpg,deer,0.03\n")
    with serving(project) as served:
        for by_mouse in (True, False):
            tab = open_page(browser, served, "Ann", "/imports")
            tab.locator("input[type=file]").set_input_files(tmp_path / "labels.csv")
            tab.get_by_role("button", name="Preview").click()
            expect(tab.get_by_text("what a model predicts, not answers")).to_be_visible()
            tab.wait_for_function(SETTLED)
            assert findings(tab) == []
            expect(tab.get_by_role("button", name="Import Shortcut Ctrl + Enter")).to_be_disabled()
            field = tab.get_by_role("combobox", name="Column of a model's score")
            if by_mouse:
                field.click()
                tab.get_by_role("option", name="none: people gave these labels").click()
            else:
                field.focus()
                tab.keyboard.press("ArrowDown")
                tab.keyboard.press("ArrowDown")
                tab.keyboard.press("Enter")
            expect(tab.get_by_role("button", name="Import Shortcut Ctrl + Enter")).to_be_enabled()
            tab.get_by_role("button", name="Cancel").click()
            expect(tab.get_by_text("Cancelled")).to_be_visible()
    assert not states(Database(project))


def button(test: AppTest, label: str) -> Any:
    return next(one for one in test.button if plain(one.label) == label)
