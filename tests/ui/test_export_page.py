"""The Export page: what is downloaded is what the store holds, what is lost is agreed to, nothing is left half done."""

import csv
import io
import json
import shlex
import threading
from contextlib import redirect_stdout
from pathlib import Path

import pandas as pd
import pytest
from harness.answers import answer_cell
from harness.export_page import content, page, press, settled
from harness.page_scripts import words
from harness.published_runs import sure
from harness.short_forms import mark_slow_after
from pycocotools import coco as pycoco
from typer.testing import CliRunner

from annotator.cli import app
from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices, parse_columns
from annotator.exchange.exports.export_command import format_export_command
from annotator.exchange.exports.export_writer import prepare_export
from annotator.exchange.formats import FORMATS
from annotator.exchange.formats.export_view import TableColumns
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions, tagged_exports
from annotator.ui.access import served_project
from annotator.ui.pages.export import columns_section
from annotator.ui.shared.chart_theme import WORD_JOINER
from annotator.ui.shared.work.computations import ABANDONED_SECONDS, Computations
from annotator.ui.shared.work.downloads import Downloads
from annotator.ui.shared.work.export_runner import ExportRequest, ExportRunner, get_export_runner

__all__ = ["sure"]  # a fixture


def left_over(db: Database) -> list[Path]:
    return [path for folder in (db.paths.downloads, db.paths.exports, db.paths.tags) for path in folder.glob("**/*")]


@pytest.fixture
def labeled(db):
    """Five answers, one of them unsure."""
    for image_id, class_id, state in (
        (1, 1, PRESENT),
        (1, 2, ABSENT),
        (2, 1, UNSURE),
        (3, 3, PRESENT),
        (4, 3, PRESENT),
    ):
        answer_cell(db, image_id, class_id, state, annotator="Ben" if image_id == 4 else "Ann")
    return db


def stored(db: Database) -> dict[tuple[str, str], int]:
    """(image, class) -> state of every label."""
    files = {image.id: image.name for image in images.load_all_images(db)}
    names = {class_.id: class_.name for class_ in classes.load_active_classes(db)}
    return {(files[one.image_id], names[one.class_id]): one.state for one in decisions.load_all_labels(db)}


def test_csv_and_coco_downloads_equal_the_stored_labels(labeled, tmp_path):
    press(page(labeled))
    table = pd.read_csv(io.BytesIO(content()["labels.csv"]), index_col="image").stack().dropna()
    known = {cell: state for cell, state in stored(labeled).items() if state != UNSURE}
    assert {cell: 2 * int(value) - 1 for cell, value in table.items()} == known
    press(page(labeled, format="coco", export_name="birds"))
    (tmp_path / "birds.json").write_bytes(content()["birds.json"])
    with redirect_stdout(io.StringIO()):
        coco = pycoco.COCO(str(tmp_path / "birds.json"))
    shown_ = {
        (coco.imgs[one["image_id"]]["file_name"], coco.cats[one["category_id"]]["name"]) for one in coco.anns.values()
    }
    assert shown_ == {cell for cell, state in known.items() if state == PRESENT} and len(coco.imgs) == 24


@pytest.mark.slow
def test_export_downloads_contain_the_labels_at_the_moment_of_the_export(labeled):
    test = page(labeled)
    answer_cell(labeled, 9, 1, PRESENT)
    classes.add_classes(labeled, [("wolf", "")])
    press(test)
    files = content()
    [*rows] = csv.DictReader(io.StringIO(files["labels.csv"].decode()))
    card = json.loads(files["labels.card.json"])
    assert [one["name"] for one in card["classes"]] == ["fox", "heron", "deer", "wolf"] == list(rows[0])[1:]
    for one in card["classes"]:
        cells = sum(cell["cells"] for cell in one["cells"] if cell["state"] == "present")
        assert cells == sum(row[one["name"]] == "1" for row in rows) == one["certificate"]["people"]
    assert card["certificate"]["last_decision"] == decisions.get_newest_decision_id(labeled)


@pytest.mark.parametrize(
    "state",
    mark_slow_after(
        1,
        [
            {"unknown": "model", "export_own": True},
            {"format": "jsonl", "export_annotators": ["Ben"], "pseudonyms": True, "seconds": True},
            {"format": "openimages", "lossy": True, "only_labeled": True, "export_classes": ["deer", "fox"]},
            {"format": "yolo-cls", "lossy": True, "splits": "new", "seed": 5, "images_keep": "resize"},
            {"splits": "new", "shape": "long", "card_license": "CC-BY-4.0", "card_cite": "Ann's birds"},
        ],
    ),
    ids=lambda state: state.get("format", "csv"),
)
def test_command_line_shown_on_the_export_page_writes_the_same_files(sure, tmp_path, monkeypatch, state):
    for image_id, class_id, one, person in ((1, 1, PRESENT, "Ann"), (4, 3, PRESENT, "Ben"), (4, 1, UNSURE, "Ben")):
        answer_cell(sure, image_id, class_id, one, annotator=person)
    lossy = state.pop("lossy", False)
    test = page(sure, **state)
    if lossy:
        next(one for one in test.checkbox if one.key.startswith("export_lossy")).check()
    settled(test)
    press(test)
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    [line] = [one.value for one in test.code if one.value.startswith("annotator export")]
    told = CliRunner().invoke(app, shlex.split(line)[1:])
    assert told.exit_code == 0, told.output
    written = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_file()}
    files = content()
    assert written.keys() == files.keys()
    same = [name for name in files if "card" not in name]
    assert same and all(files[name] == written[name].read_bytes() for name in same)
    counts = [json.loads(text) for name, text in files.items() if name.endswith("card.json")]
    assert all(card["license"] == state.get("card_license") for card in counts)
    assert all(sentence in words(test) for sentence in told.stdout.splitlines() if "Expected to be wrong" in sentence)


def test_export_page_requires_consent_before_a_lossy_export(labeled):
    test = page(labeled, format="openimages")
    assert "no room for 'unsure': 1 pair would be lost" in test.warning[0].value.replace("\\", "").replace(
        WORD_JOINER, ""
    )
    assert test.button(key="export_start").disabled
    work = get_export_runner(served_project.db())
    work.start(ExportRequest("openimages", Choices(), "labels", by="Ann"))
    work.wait()
    assert "1 pair would be lost" in work.outcomes[0].error and "--" not in work.outcomes[0].error
    assert not left_over(labeled)
    [tick] = [one for one in test.checkbox if one.key.startswith("export_lossy")]
    tick.check().run()
    press(test)
    card = json.loads(content()["labels.card.json"])
    assert card["lost"] == ["openimages has no room for 'unsure': 1 pair is lost."]
    assert not page(labeled, format="jsonl").warning


def test_export_to_a_server_folder_is_complete_and_never_replaces_an_existing_one(labeled, annotator, tmp_path):
    answer_cell(labeled, 2, 1, ABSENT)  # torch has no room for unsure
    test = press(page(labeled, format="torch", export_where="server", export_name="set 1"))
    folder = labeled.paths.exports / "set 1"
    assert str(folder) in [one.value for one in test.code] and (folder / "dataset.py").is_file()
    assert len(list(folder.rglob("*.jpg"))) + len(list(folder.rglob("*.png"))) == 24
    assert next(folder.rglob("00.jpg")).stat().st_nlink == 2  # a link, as the page says
    assert [path.name for path in labeled.paths.exports.iterdir()] == ["set 1"]
    assert not list(labeled.paths.downloads.iterdir())
    with pytest.raises(AnnotatorError, match="is there already"):
        get_export_runner(served_project.db()).start(ExportRequest("csv", Choices(), "set 1", on_server=True))
    for name in ("../up", ".hidden", "a/b", "", "nul", "x" * 300):
        with pytest.raises(AnnotatorError):
            get_export_runner(served_project.db()).start(ExportRequest("csv", Choices(), name, on_server=True))
    annotator("export", labeled.paths.project, folder, "--format", "torch")  # which knows it as an export


class CancelledAt(ExportRunner):
    """Somebody presses Cancel when this step begins."""

    def __init__(self, db: Database, step: str):
        super().__init__(db)
        self.step = step

    def _begin_step(self, step: str) -> None:
        if step == self.step:
            self.cancel()
        super()._begin_step(step)


@pytest.mark.parametrize(("step", "on_server"), [("Writing", True), ("Writing", False), ("Packing", False)])
def test_cancelled_export_leaves_no_files_or_versions(labeled, step, on_server):
    work = CancelledAt(labeled, step)
    work.start(ExportRequest("torch", Choices(), "labels", on_server, tag="v1", lossy=True))
    work.wait()
    [outcome] = work.outcomes
    assert not outcome.error and outcome.folder is None and outcome.offered is None
    assert not tagged_exports.load_tags(labeled) and not [path for path in left_over(labeled) if path.is_file()]


def test_export_downloads_left_by_a_killed_process_are_deleted_at_the_next_start(labeled):
    half = labeled.paths.downloads / ("a" * 32) / "files"
    half.mkdir(parents=True)
    (half / "labels.csv").write_text("half")
    (labeled.paths.downloads / "mine").mkdir()
    offered = Downloads(labeled.paths.downloads)
    assert [path.name for path in labeled.paths.downloads.iterdir()] == ["mine"]
    path = offered.create_folder() / "x.csv"
    path.write_text("x")
    name = offered.offer(path, "text/csv").id
    assert offered.find(name).path == path
    offered.stop()
    assert offered.find(name) is None and [path.name for path in labeled.paths.downloads.iterdir()] == ["mine"]
    with (
        pytest.raises(AnnotatorError, match="is in the project"),
        prepare_export(labeled, half.parents[1] / "x.csv", "csv"),
    ):
        pass


def test_export_versions_are_listed_and_compared_with_the_current_labels(labeled):
    press(page(labeled, export_tag="v1"))
    answer_cell(labeled, 1, 1, ABSENT)
    answer_cell(labeled, 7, 2, PRESENT)
    test = page(labeled)
    listed = " ".join(one.proto.body for one in test.get("html"))
    assert ">v1<" in listed and "labels.zip (downloaded)" in listed
    test.button(key="compare").click()
    test = settled(test)
    assert "From v1 to the current labels: 2 pairs of 2 images changed; 0 images added" in words(test)
    bodies = [one.proto.body for one in test.get("html")]
    [link] = [body for body in bodies if "v1 to now.csv" in body]
    name = link.split("/api/download/")[1].split("?")[0]
    rows = list(csv.DictReader((labeled.paths.downloads / name / "v1 to now.csv").open(newline="")))
    files = {image.id: image.name for image in images.load_all_images(labeled)}
    assert [tuple(row.values()) for row in rows] == [
        (files[1], "fox", "present", "absent"),
        (files[7], "heron", "unknown", "present"),
    ]
    assert tagged_exports.find_name_problem(labeled, "v1") in words(settled(page(labeled, export_tag="v1")))


def test_export_page_columns_match_the_preview_and_the_command(labeled):
    rows = columns_section.build_rows(["image", "fox", "heron"], ["sha256"])
    rows[1]["write"], rows[2]["place"], rows[3]["write"], rows[0]["name"] = False, 1, True, ' a=b,"c" '
    chosen = tuple(columns_section.read_chosen_columns(rows))
    assert chosen == (("heron", "heron"), ("image", 'a=b,"c"'), ("sha256", "sha256"))
    hostile = Choices(columns=TableColumns(chosen=(*chosen, ("x=\\y", "z"))))
    line = shlex.split(format_export_command(Path("p"), Path("x.csv"), FORMATS["csv"], hostile))
    [option] = [word for word in line if word.startswith("--columns=")]
    assert parse_columns(option.removeprefix("--columns=")) == hostile.columns.chosen
    test = page(labeled, choose_columns=True, shape="long")
    [preview] = [one.proto.body for one in test.get("html") if "The first rows of the export" in one.proto.body]
    assert "decided_at" in preview and preview.count("<tr>") == 6


def test_background_computation_is_shared_by_requests_and_stopped_when_none_asks_for_it():
    gate, begun = threading.Event(), []

    def slow(note):
        begun.append(1)
        note(3, 10)
        gate.wait(120)
        note(10, 10)
        return "done"

    work = Computations()
    first = work.request("key", 1, slow)
    assert not first.ended.is_set() and first.fraction == 0.3 and work.request("key", 2, slow) is first
    first.asked -= 2 * ABANDONED_SECONDS
    gate.set()
    first.ended.wait(120)
    assert first.result is None and not first.error
    again = work.request("key", 2, slow)
    again.ended.wait(120)
    assert again.result == "done" and len(begun) == 2 and work.request("key", 2, slow) is again
