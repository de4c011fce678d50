"""Exports: what the model fills in and what is expected to be wrong of it, and where nothing is ever written."""

import csv
import json
import os
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness.published_runs import sure
from hypothesis import example, given, settings
from hypothesis import strategies as st

from annotator.errors import AnnotatorError
from annotator.exchange.exports import thresholds
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import open_data_set
from annotator.exchange.exports.export_writer import export_data_set
from annotator.exchange.exports.thresholds import Limits
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.csv_table import CSV
from annotator.exchange.formats.export_view import Block, View
from annotator.exchange.formats.shared.label_table import read_table
from annotator.exchange.formats.shared.sidecars import SidecarWriter
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import FILL_SOURCES, SOURCES, Class, Image
from spmll.statistics.metrics import find_confident_threshold

__all__ = ["sure"]  # a fixture

CELLS = 200_000


def calibrated_cells(seed: int, a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that mean what they say, (CELLS, 1), and what is true of each."""
    rng = np.random.default_rng(seed)
    chances = rng.beta(a, b, (CELLS, 1)).astype(np.float32)
    return chances, rng.random((CELLS, 1)) < chances


def distribution(chances: np.ndarray) -> thresholds.OpenCells:
    """These cells (N, C), all open, taken in block by block."""
    cells = thresholds.OpenCells(chances.shape[1])
    for start in range(0, len(chances), 70_000):
        block = chances[start : start + 70_000]
        cells.add(block, np.ones(block.shape, bool))
    return cells


@pytest.mark.parametrize(("a", "b"), [(1, 1), (0.5, 0.5), (0.3, 1.0), (1.0, 0.3)])
@pytest.mark.parametrize("error", [0.01, 0.05])
def test_labels_filled_in_by_a_calibrated_model_are_wrong_at_the_stated_rate(a, b, error):
    chances, truth = calibrated_cells(7, a, b)
    cells = distribution(chances)
    limits = thresholds.compute_thresholds(cells, Limits(error), calibrated=True)
    [told] = thresholds.estimate_fill(["fox"], cells, *limits)
    written = thresholds.round_probabilities(chances)
    present, absent = written >= limits[0], written <= limits[1]
    assert (told.present, told.absent) == (present.sum(), absent.sum()) and told.unknown > 0
    for filled, wrong, expected in (
        (present, present & ~truth, told.wrong_present),
        (absent, absent & truth, told.wrong_absent),
    ):
        assert 0.97 * error < expected / filled.sum() < 1.01 * error
        assert abs(wrong.sum() - error * filled.sum()) < 4 * np.sqrt(error * filled.sum())


def test_likely_images_of_a_rare_class_are_not_filled_in_as_absent():
    rare = np.full((1000, 3), np.nan)
    rare[:, 0] = 0.001
    rare[:6, 0] = 0.8  # the mean of all is below 1 %
    rare[:, 2] = 0.5
    cells = distribution(rare)
    limits = thresholds.compute_thresholds(cells, Limits(), calibrated=True)
    fox, none, half = thresholds.estimate_fill(["fox", "none", "half"], cells, *limits)
    assert (fox.present, fox.absent, fox.unknown) == (0, 994, 6)
    assert (none.present, none.absent, none.unknown) == (half.present, half.absent, half.unknown) == (0, 0, 1000)
    assert none.present_from is none.absent_to is half.present_from is half.absent_to is None


def test_uncalibrated_probabilities_need_stricter_fill_thresholds_than_calibrated_ones():
    cells = distribution(calibrated_cells(3, 0.5, 0.5)[0])
    trusted, own = (thresholds.compute_thresholds(cells, Limits(), calibrated) for calibrated in (True, False))
    assert own[0] > trusted[0] and own[1] < trusted[1]
    assert own[0] >= 0.99 and own[1] <= 0.01


@pytest.mark.parametrize(
    ("chances", "expected"),
    [
        ([], np.nan),
        ([np.nan, 0.2], np.nan),
        ([0.995, 0.99, 0.985, 0.2], 0.985),
        ([0.995, 0.985, 0.985, 0.985], 0.995),  # equal ones are filled in together or not at all
        ([1.0] * 99 + [0.05], 1.0),  # 99 certain ones do not pay for one that is a guess
    ],
)
def test_confident_threshold_is_the_lowest_that_keeps_the_expected_error(chances, expected):
    assert find_confident_threshold(np.array(chances), 0.0101, 0.1) == pytest.approx(expected, nan_ok=True)


MODEL = Choices(unknown="model")


def filled(db, limits: Limits | None = None) -> thresholds.Fill:
    with open_data_set(db, replace(MODEL, limits=limits or Limits())) as data:
        return data.fill


def test_export_with_model_fill_leaves_uncertain_labels_empty_and_states_expected_errors(sure, tmp_path):
    data, _ = export_data_set(sure, tmp_path / "out.csv", "csv", MODEL)
    fox, heron, deer = data.fill.classes
    assert (fox.present, fox.absent, fox.unknown) == (1, 1, 22) and (heron.present, deer.unknown) == (24, 24)
    rows = {row["image"]: row for row in csv.DictReader((tmp_path / "out.csv").open(newline=""))}
    assert sorted(row["fox"] for row in rows.values()) == [""] * 22 + ["0", "1"]
    assert {row["deer"] for row in rows.values()} == {""}
    card = json.loads((tmp_path / "out.card.json").read_text())["filled_in_by_model"]
    assert [one["present"] for one in card["classes"]] == [1, 24, 0]
    assert not card["calibrated"] and "uncalibrated probabilities" in " ".join(card["in_words"])
    text = (tmp_path / "out.card.md").read_text()
    assert all(sentence in text for sentence in card["in_words"]) and "| deer | never | 0 |" in text


def test_fill_report_states_that_a_model_is_calibrated(sure):
    with sure.writing() as sql:
        told = {"kind": "platt", "slopes": [1.0] * 3, "shifts": [0.0] * 3, "knots": {}}
        sql.execute("UPDATE run SET calibration = ?", [json.dumps(told)])
    fill = filled(sure)
    assert fill.calibrated and "are calibrated" in fill.sentences()[1]


def test_chosen_fill_thresholds_replace_computed_ones_and_equal_ones_fill_every_label(sure):
    fill = filled(sure, Limits(present_from=0.7, absent_to=0.2))
    assert (fill.classes[0].present, fill.classes[0].absent, fill.classes[0].unknown) == (7, 5, 12)
    assert "0.7, as asked for" in fill.rule()
    both = filled(sure, Limits(present_from=0.5, absent_to=0.5))
    assert (both.classes[0].present, both.classes[0].absent, both.classes[0].unknown) == (12, 12, 0)


def test_invalid_fill_limits_are_all_reported_together(db, tmp_path):
    with pytest.raises(AnnotatorError) as told:
        export_data_set(db, tmp_path, "csv", Choices(unknown="modle", limits=Limits(2.0, 1.5, -1)))
    for expected in ("1.5 (present from)", "-1 (absent up to)", "expected error of 2.0", "'modle'", "is a folder"):
        assert expected in str(told.value)
    with pytest.raises(AnnotatorError, match="overlap"):
        filled(db, Limits(present_from=0.2, absent_to=0.3))


# ---- where exports are written


def contents(folder) -> dict:
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


def hostile(folder, project):
    """Everything that must not be written to: (name, target, words of the refusal)."""
    (folder / "link.csv").symlink_to(project / "project.db")
    (folder / "dangling.csv").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "pipe.csv")
    (folder / "theirs.csv").write_text("somebody's thesis")
    (folder / "half.provenance.csv").write_text("somebody's notes")
    (folder / "carded.card.md").write_text("somebody's card")
    (folder / "inside").symlink_to(project)
    socket.socket(socket.AF_UNIX).bind(str(folder / "socket.csv"))
    return [
        (project / "project.db", "is in the project"),
        (project / "labels.csv", "is in the project"),
        (project / "runs" / "labels.csv", "is in the project"),
        (folder / "inside" / "labels.csv", "is in the project"),
        (folder / "link.csv", "is a link"),
        (folder / "dangling.csv", "is a link"),
        (folder / "pipe.csv", "is a pipe"),
        (folder / "socket.csv", "is a socket"),
        (folder / "inside", "is a link"),
        (folder / "theirs.csv", "not written by an export"),
        (folder / "half.csv", "half.provenance.csv"),
        (folder / "carded.csv", "carded.card.md"),
    ]


def test_export_refuses_to_overwrite_project_files_devices_and_files_of_other_programs(db, tmp_path, monkeypatch):
    folder = tmp_path / "out"
    folder.mkdir()
    monkeypatch.chdir(folder)  # the name of a socket may not be long
    (db.paths.project / "runs").mkdir(exist_ok=True)
    cases = hostile(folder, db.paths.project)
    before = contents(folder), contents(db.paths.project)
    for target, expected in cases:
        with pytest.raises(AnnotatorError, match="Nothing was exported") as told:
            export_data_set(db, target, "csv")
        assert expected in str(told.value), target
        if "not written by" not in str(told.value):
            with pytest.raises(AnnotatorError, match="Nothing was exported"):
                export_data_set(db, target, "csv", overwrite=True)
    with pytest.raises(AnnotatorError, match=r"may not be written|is a device"):
        export_data_set(db, Path("/dev/null"), "csv", overwrite=True)
    assert (contents(folder), contents(db.paths.project)) == before
    for target in ("theirs.csv", "half.csv", "carded.csv"):
        export_data_set(db, folder / target, "csv", overwrite=True)
        assert (folder / target).read_text().startswith("image,fox")


def test_export_reports_all_unwritable_output_files_together(db, tmp_path):
    (tmp_path / "out.csv").symlink_to(tmp_path / "x")
    (tmp_path / "out.provenance.csv").mkdir()
    (tmp_path / "out.card.json").write_text("{}")
    with pytest.raises(AnnotatorError) as told:
        export_data_set(db, tmp_path / "out.csv", "csv")
    for expected in ("out.csv is a link", "out.provenance.csv is a folder", "changed since: ", "out.card.json"):
        assert expected in str(told.value)


def test_export_replaces_only_unmodified_files_of_an_earlier_export(db, tmp_path):
    for kind in ("csv", "jsonl", "csv", "jsonl"):  # the two share a data card
        export_data_set(db, tmp_path / f"labels.{kind}", kind)
    for changed in ("labels.csv", "labels.provenance.csv", "labels.card.md", "labels.card.json"):
        was = (tmp_path / changed).read_bytes()
        (tmp_path / changed).write_bytes(was.replace(b"fox", b"fix", 1) + b"\n")
        with pytest.raises(AnnotatorError, match="changed since"):
            export_data_set(db, tmp_path / "labels.csv", "csv")
        (tmp_path / changed).write_bytes(was)
    export_data_set(db, tmp_path / "labels.csv", "csv")


def test_export_creates_and_writes_to_the_exports_folder_of_the_project(db):
    target = db.paths.project / "exports" / "labels.csv"
    export_data_set(db, target, "csv")
    assert target.read_text().startswith("image,fox")
    with pytest.raises(AnnotatorError, match="is in the project"):
        export_data_set(db, db.paths.project / "exports" / ".." / "labels.csv", "csv")


# ---- names


ODD = st.sampled_from("=+-@'\t\r\n \",;|\u2028\x85\ufeff")
NASTY = st.text(ODD | st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1)


def view_of(names: list[str], class_name: str, raw: bool) -> View:
    """A view of images of these names, each with a label of the one class."""
    shown = [Image(number, name, f"{number:064}", 9, 9) for number, name in enumerate(names)]
    shape = len(names), 1
    block = Block(
        images=shown,
        values=np.ones(shape, np.int8),
        states=np.ones(shape, np.int8),
        sources=np.ones(shape, np.uint8),
        annotators=np.ones(shape, np.uint16),
        decided_at=np.zeros(shape),
        seconds=np.full(shape, np.nan),
        probabilities=np.full(shape, np.nan),
        accepted={},
        origins={},
        notes=[()] * len(names),
        missing=[""] * len(names),
        attributes=[{}] * len(names),
        splits=[""] * len(names),
        files=[""] * len(names),
    )
    return View(
        [Class(1, class_name)],
        len(names),
        ("", *SOURCES, *FILL_SOURCES),
        ("", "=Ann"),
        (),
        (),
        lambda: iter([block]),
        raw=raw,
    )


class Folder:
    """An output to a folder, of which text files are needed only."""

    def __init__(self, folder: Path):
        self.folder = folder

    def open_text(self, name: str = ""):
        return (self.folder / (name or "values.csv")).open("w+", newline="", encoding="utf-8")


@settings(max_examples=150, deadline=None)
@given(st.lists(NASTY, min_size=1, max_size=4, unique=True), st.booleans())
@example(["a\rb.jpg", " a.jpg", "a.jpg ", "a.jpg"], False)
@example(["=x", "'=x", "''=x", "'x"], False)
@example(["\t=1", "\r", "\n", " "], False)
def test_image_and_class_names_survive_csv_export_and_reading(tmp_path_factory, names, raw):
    if raw:  # written as it is, a name is not told from an escaped one that is there as well
        names = [name for name in names if not name.startswith("'")] or ["x"]
    folder = tmp_path_factory.getbasetemp()
    view, out = view_of(names, "=cmd", raw), Folder(folder)
    with SidecarWriter(view, out, "nasty.csv", "notes.csv") as beside:
        CSV.write(replace(view, blocks=beside.blocks), out)
    problems = Problems()
    items = read_table(folder / "nasty.csv", problems, ReadingOptions()).items
    back = [(one.image, given.class_name, given.state) for one in items for given in one.labels]
    assert back == [(name, "=cmd", 1) for name in names] and not problems.count
    rows = list(csv.reader((folder / "values.csv").open(newline="", encoding="utf-8"), strict=True))
    assert [len(row) for row in rows] == [2] * (len(names) + 1)
    if not raw:
        assert not any(cell[:1] in tuple("=+-@\t\r") for row in rows for cell in row)
