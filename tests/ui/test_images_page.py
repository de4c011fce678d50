"""The Images page: folders are added while the page goes on, every error is said, nothing outside is shown."""

import csv
import io
import threading
from typing import Any, cast

import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from annotator.errors import AnnotatorError
from annotator.queues import image_queue
from annotator.records import WantedImages
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.images import images, registration
from annotator.ui.access import served_project
from annotator.ui.pages.images.image_adder import ImageAdder, get_image_adder
from annotator.ui.pages.images.images_page import MAX_LOG_LINES, _build_csv

SCRIPT = """
from annotator.ui.shared.message_boxes import show_errors
from annotator.ui.pages.images import images_page as one
with show_errors():
    one.page()
"""


@pytest.fixture
def served(tmp_path) -> Database:
    """An empty project that is being served."""
    db = Database(tmp_path / "p", create=True)
    db.close()
    served_project.open_project(tmp_path / "p")
    return served_project.db()


def show() -> AppTest:
    test = AppTest.from_string(SCRIPT, default_timeout=120)
    test.session_state["name"] = "Ann"
    return test.run()


def photos(folder, count: int = 3):
    folder.mkdir(parents=True)
    for number in range(count):
        Image.new("RGB", (8, 8), (number, len(folder.name), 0)).save(folder / f"{number}.png")
    return folder


def add(test: AppTest, path) -> AppTest:
    test.text_input(key="folder").input(str(path))
    next(button for button in test.button if button.label == "Add folder").click().run()
    get_image_adder(served_project.db()).wait()
    return test if test.error else test.run()


def said(test: AppTest) -> str:
    assert not test.exception
    shown: list[Any] = [*test.error, *test.info, *test.caption, *test.code]
    texts = [element.value for element in shown] + [
        element.proto.body for element in cast("list[Any]", test.get("html"))
    ]
    return "\n".join(texts).replace("\\", "")


def test_empty_project_leads_to_the_images_page_which_adds_and_rescans_a_folder(served, tmp_path):
    work = image_queue.lease_next_work(served, WantedImages("annotate", "tab", "Ann", (), 8))
    assert (work.next_pages, "Images page" in work.empty_reason) == (("images",), True)
    folder = photos(tmp_path / "one")
    (folder / "notes.txt").write_text("secret words")
    (folder / "4.jpg").write_bytes(b"no picture")
    test = add(show(), folder)
    assert "3 images added, 0 already there, 2 files skipped" in said(test)
    assert "2 files in these folders" in said(test) and "not an image file" in said(test)
    assert "secret words" not in said(test)
    test = add(test, folder)
    assert "0 images added, 3 already there, 2 files skipped" in said(test)
    assert f">{folder}<" in said(test) and len(images.load_folders(served)) == 1
    photos(folder / "below", 2)
    (folder / "0.png").unlink()
    next(button for button in test.button if button.label == "Look for changes").click().run()
    get_image_adder(served).wait()
    assert "2 images added" in said(test.run()) and "1 missing" in said(test)
    assert "1 image cannot be shown any more" in said(test)
    rows = list(csv.reader(io.StringIO(_build_csv(("file", "reason"), images.load_rejected_files(served)).decode())))
    assert [row[0] for row in rows] == ["file", "4.jpg", "notes.txt"]


def test_images_page_refuses_invalid_folders_without_changes(served, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a_secret_name.txt").write_text("words")
    test = show()
    for path, reason in {
        "": "Type the path",
        "photos/birds": "not a whole path",
        "~nobody-of-this-name/photos": "home",
        tmp_path / "nowhere": "There is no folder",
        tmp_path / "texts" / "a_secret_name.txt": "is a file; a folder of images is wanted",
        tmp_path / "texts": "No image was found",
    }.items():
        test = add(test, path)
        assert reason in said(test), path
    assert "a_secret_name" not in said(add(test, tmp_path / "texts"))
    assert images.load_folders(served) == [] and served.value("SELECT count(*) FROM file") == 0


def test_images_page_adds_one_folder_at_a_time_and_keeps_the_images_added_before_a_stop(served, tmp_path, monkeypatch):
    monkeypatch.setattr(registration, "FILES_PER_TRANSACTION", 1)
    folder, work = photos(tmp_path / "one", 12), ImageAdder(served)
    seen, go_on = threading.Event(), threading.Event()
    note = work._report_progress

    def note_and_wait(done: int, of: int) -> None:
        note(done, of)
        if done == 5:
            seen.set()
            go_on.wait(120)

    monkeypatch.setattr(work, "_report_progress", note_and_wait)
    work.start([folder, folder])
    assert seen.wait(120) and (work.progress.done, work.progress.of) == (5, 12)
    with pytest.raises(AnnotatorError, match="Another folder is being added"):
        work.start([folder])
    work.stop()
    go_on.set()
    work.wait()
    [outcome] = work.progress.outcomes
    assert "Stopped" in outcome.error and served.value("SELECT count(*) FROM image") == 6, "one was in hand"
    monkeypatch.undo()
    again = ImageAdder(served)
    again.start([folder])
    again.wait()
    registered = again.progress.outcomes[0].registered
    assert registered and (registered.added, registered.known) == (6, 6)


def test_worker_log_is_shown_as_text_with_its_newest_lines_and_links_are_not_followed(served, tmp_path):
    assert "Nothing to report since the worker was started." in said(show())
    lines = [f"line {number} <b>[x](http://y)</b>" for number in range(500)]
    served.paths.worker_log.write_text("\n".join(lines))
    shown = show().code[0].value.splitlines()
    assert shown == lines[-MAX_LOG_LINES:]
    assert heartbeat.read_log_tail(served, 7) == lines[-1].encode()[-7:]
    (tmp_path / "outside").write_text("secret words")
    served.paths.worker_log.unlink()
    served.paths.worker_log.symlink_to(tmp_path / "outside")
    assert heartbeat.read_log_tail(served, 1000) == b""


def test_images_page_asks_for_bands_when_needed_and_reports_stretched_images(served, tmp_path):
    from harness.band_files import tiff, values_of

    photos(tmp_path / "photos")
    test = add(show(), tmp_path / "photos")
    assert "Bands shown" not in str([one.label for one in test.text_input])
    (tmp_path / "photos" / "many.tif").write_bytes(tiff(values_of(5)).getvalue())
    test = add(test, tmp_path / "photos")
    assert "which three to show is not known" in said(test)
    test.text_input(key="bands_shown").input("5,4,99")
    choose = lambda: next(button for button in test.button if button.label == "Show these bands").click().run()  # noqa: E731
    choose()
    get_image_adder(served_project.db()).wait()
    assert images.count_rejected_files(served) == 1
    test.text_input(key="bands_shown").input("5,4,3")
    choose()
    get_image_adder(served_project.db()).wait()
    test.run()
    assert "1 image of 16 bits was stretched from 0..3000." in said(test)
    assert served.value("SELECT bands FROM image WHERE name = 'many.tif'") == "5:5,4,3"
    test.text_input(key="bands_shown").input("red")
    choose()
    assert "is no choice of bands" in test.error[0].value
