"""Parquet, numpy, torch and CSV as their own readers see them, and exports that are a folder."""

import csv
import json
import re
import runpy
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from harness.answers import answer_cell
from harness.csv_rows import rows_of
from harness.formats_view import ALL_SOURCES, UNSURE_CELL, Files, all_cells, class_names, file_names, view_of
from harness.short_forms import mark_slow_after
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import open_data_set
from annotator.exchange.exports.export_writer import export_data_set, prepare_export, write_export
from annotator.exchange.files.safe_names import safe_names
from annotator.exchange.formats import FORMATS, csv_table, json_lines, numpy_folder, parquet, spml
from annotator.exchange.formats.export_view import UNKNOWN_VALUE, TableColumns
from annotator.exchange.formats.torch_dataset_template import format_dataset_module
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.database import new_folders
from annotator.store.images import images

pytest.importorskip("pyarrow")


def from_pandas(table: pd.DataFrame, names: list[str]) -> np.ndarray:
    """The values of these columns, UNKNOWN where there is none."""
    return table[names].astype(float).fillna(UNKNOWN_VALUE).to_numpy().astype(int)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_hostile_names_survive_export_and_reading_with_the_tools_of_each_format(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp() / "hostile"
    folder.mkdir(exist_ok=True)
    names, classes_ = data.draw(file_names()), data.draw(class_names())
    cells = (
        all_cells(len(names), len(classes_))
        if len(names) * len(classes_) >= 4
        else np.ones((len(names), len(classes_)), int)
    )
    view = view_of(cells, classes_, names)
    values = np.where(cells == UNSURE_CELL, UNKNOWN_VALUE, cells)
    import pyarrow.parquet as pq

    parquet.write_parquet(view, Files(folder / "x.parquet"))
    table = pq.read_table(folder / "x.parquet")
    rows = table.to_pylist()
    image = "image_" if "image" in classes_ else "image"
    assert [row[image] for row in rows] == names
    assert (from_pandas(pd.DataFrame(rows), classes_) == values).all()
    provenance = "provenance_" if "provenance" in classes_ else "provenance"
    told = [[(one["class"], one["state"]) for one in row[provenance]] for row in rows]
    words = {1: "present", 0: "absent", UNSURE_CELL: "unsure"}
    assert told == [
        [(name, words[cell]) for name, cell in zip(classes_, row, strict=True) if cell != UNKNOWN_VALUE]
        for row in cells.tolist()
    ]

    json_lines.write_lines(view, Files(folder / "x.jsonl"))
    lines = [json.loads(line) for line in (folder / "x.jsonl").read_text("utf-8").split("\n")[:-1]]
    assert [line["image"] for line in lines] == names
    assert [[line["labels"][name] for name in classes_] for line in lines] == [
        [None if value < 0 else value for value in row] for row in values.tolist()
    ]

    numpy_folder.write_numpy(view, Files(folder / "arrays"))
    assert np.load(folder / "arrays" / "images.npy", allow_pickle=False).tolist() == names
    assert (np.load(folder / "arrays" / "labels.npy") == np.select([values == 1, values == 0], [1, -1], 0)).all()
    assert (folder / "arrays" / "classes.txt").read_text("utf-8").split("\n")[:-1] == classes_

    csv_table.write_csv(view, Files(folder / "x.csv"))
    with (folder / "x.csv").open(newline="", encoding="utf-8") as file:
        header, *body = csv.reader(file, strict=True)
    escaped = pd.read_csv(folder / "x.csv", keep_default_na=False, dtype=str)
    assert len(header) == 1 + len(classes_) and len(escaped) == len(names) == len(body)
    assert [row[1:] for row in body] == [["" if value < 0 else str(value) for value in row] for row in values.tolist()]
    assert not any(name[:1] in "=+-@" for name in [*header, *(row[0] for row in body)])


def test_long_tables_hold_one_row_per_answer_without_duplicates(tmp_path):
    cells = all_cells(40, 6)
    view = view_of(cells, block=7)
    object.__setattr__(view, "columns", TableColumns(long=True, seconds=True))
    parquet.write_parquet(view, Files(tmp_path / "x.parquet"))
    csv_table.write_csv(view, Files(tmp_path / "x.csv"))
    for table in (pd.read_parquet(tmp_path / "x.parquet"), pd.read_csv(tmp_path / "x.csv")):
        assert len(table) == (cells != UNKNOWN_VALUE).sum() and not table.duplicated(["image", "class"]).any()
        assert (table.state == "present").sum() == (cells == 1).sum()
        assert (table.state == "unsure").sum() == (cells == UNSURE_CELL).sum()


def test_spml_export_writes_only_answered_labels_to_the_observed_label_array(tmp_path):
    cells = all_cells(30, 5)
    sources = np.where(np.random.default_rng(0).random(cells.shape) < 0.3, ALL_SOURCES.index("assumed"), 1)
    splits = ["train"] * 20 + ["val"] * 9 + [""]
    spml.write(view_of(cells, sources=sources, splits=splits, block=8), Files(tmp_path / "x"))
    for split, rows in (("train", slice(20)), ("val", slice(20, 29))):
        labels, observed, names = (
            np.load(tmp_path / "x" / f"formatted_{split}_{name}.npy") for name in ("labels", "labels_obs", "images")
        )
        assert (labels == (cells[rows] == 1)).all() and len(names) == len(labels)
        answered = np.where(sources[rows] == 1, np.select([cells[rows] == 1, cells[rows] == 0], [1, -1], 0), 0)
        assert (observed == answered).all()


def test_torch_export_dataset_works_with_a_data_loader(db, tmp_path):
    import torch
    from torchvision.transforms import v2

    answer_cell(db, 1, 1, PRESENT)
    answer_cell(db, 1, 2, ABSENT)
    answer_cell(db, 2, 3, PRESENT)
    export_data_set(db, tmp_path / "set", "torch", Choices(splits="train=0.75,val=0.25", images="resize", pixels=32))
    data = runpy.run_path(str(tmp_path / "set" / "dataset.py"))["MultiLabelImages"]
    transform = v2.Compose([v2.Resize((16, 16)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])
    parts = [data(split, transform) for split in ("train", "val")]
    assert sum(map(len, parts)) == len(data()) == 24 and parts[0].classes == ["fox", "heron", "deer"]
    seen = torch.zeros(3), torch.zeros(3)
    for part in parts:
        for pictures, labels, known in torch.utils.data.DataLoader(part, batch_size=5):
            assert pictures.shape[1:] == (3, 16, 16)
            seen[0].add_(labels.sum(0))
            seen[1].add_(known.sum(0))
    assert (seen[0].tolist(), seen[1].tolist()) == ([1, 0, 1], [1, 1, 1])
    with Image.open(next((tmp_path / "set" / "images").iterdir())) as picture:
        assert max(picture.size) == 32 and picture.format == "JPEG"


@pytest.mark.parametrize("splits", mark_slow_after(1, ["", "train=0.75,val=0.25", "first=0.5,second=0.5"]))
@pytest.mark.parametrize("how", ["resize", "none"])
def test_torch_export_example_code_runs(db, tmp_path, monkeypatch, splits, how):
    answer_cell(db, 1, 1, PRESENT)
    answer_cell(db, 2, 1, ABSENT)
    export_data_set(db, tmp_path / "set", "torch", Choices(splits=splits, images=how, pixels=32))
    about = runpy.run_path(str(tmp_path / "set" / "dataset.py"))["__doc__"]
    lines = [line for line in about.splitlines() if line.startswith("    ")]
    assert ("path/to/the/images" in about) == (how == "none"), "an export without images cannot know where they are"
    example = textwrap.dedent("\n".join(lines)).replace("path/to/the/images", str(images.find_image_path(db, 1).parent))
    monkeypatch.syspath_prepend(tmp_path / "set")
    monkeypatch.delitem(sys.modules, "dataset", raising=False)
    held: dict = {}
    exec(compile(example, "example", "exec"), held)
    del sys.modules["dataset"]
    split = {"": None, "t": "train", "f": "first"}[splits[:1]]
    assert held["data"].classes == ["fox", "heron", "deer"] and held["loss"].isfinite()
    assert (len(held["data"]) < 24) == bool(split) and (f'split="{split}"' in about) == bool(split)


@pytest.mark.parametrize("splits", mark_slow_after(1, ["", "train=0.75,val=0.25", "first=0.5,second=0.5"]))
@pytest.mark.parametrize("how", ["resize", "none"])
def test_huggingface_export_example_code_runs(db, tmp_path, monkeypatch, splits, how):
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    answer_cell(db, 1, 1, PRESENT)
    export_data_set(
        db, tmp_path / "set", "huggingface",
        Choices(splits=splits, images=how, pixels=32),
    )  # fmt: skip
    (example,) = re.findall(r"```python\n(.*?)```", (tmp_path / "set" / "README.md").read_text(), re.DOTALL)
    held: dict = {}
    exec(compile(example.replace("path/to/this/folder", str(tmp_path / "set")), "example", "exec"), held)
    assert held["names"] == ["fox", "heron", "deer"]


def test_torch_example_code_omits_split_names_with_special_characters():
    hostile = ['a"b', "a\\", '""" + evil() + """', "a\nb"]
    assert "split=" not in format_dataset_module(["", *hostile], True).split("from pathlib")[0]
    assert 'split="val"' in format_dataset_module([*hostile, "val"], True)


# ---- what a format cannot hold


def test_export_refuses_lossy_formats_with_a_label_count_unless_allowed(db, tmp_path):
    answer_cell(db, 1, 1, PRESENT)
    answer_cell(db, 2, 1, UNSURE)
    with pytest.raises(AnnotatorError, match="no room for 'unsure': 1 pair would be lost"):
        export_data_set(db, tmp_path / "x", "numpy")
    assert not list(tmp_path.glob("x*"))
    with prepare_export(db, tmp_path / "x", "numpy", lossy=True) as prepared:
        assert any("1 pair" in sentence and "lost" in sentence for sentence in prepared.sentences)
        write_export(prepared)
    provenance = rows_of(tmp_path / "x" / "provenance.csv")
    assert [row["state"] for row in provenance] == ["present", "unsure"]
    export_data_set(db, tmp_path / "y", "numpy", Choices(states=("present", "absent")))
    card = json.loads((tmp_path / "x" / "data_card.json").read_text())
    written = (tmp_path / "x" / "data_card.md").read_text()
    assert card["lost"] and "unsure" in written and written.startswith("# Data card of x\n")


@pytest.mark.parametrize("kind", mark_slow_after(6, sorted(name for name, format_ in FORMATS.items() if format_.write)))
def test_every_format_stores_the_annotator_of_each_label_inside_or_in_a_sidecar(db, tmp_path, kind, monkeypatch):
    answer_cell(db, 1, 1, PRESENT, annotator="Zoe Unusual")
    answer_cell(db, 2, 2, ABSENT, annotator="Zoe Unusual")
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / f"x{FORMATS[kind].ending}"
    _, written = export_data_set(db, target, kind, lossy=True)
    texts = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".jpg"}
    named = [path for path, text in texts.items() if b"Zoe Unusual" in text and "card" not in path.name]
    assert named, sorted(texts)
    assert all(path.exists() for path in written)
    cards = [json.loads(text) for path, text in texts.items() if path.name.endswith("card.json")]
    assert len(cards) == 1 and cards[0]["images"] == 24
    before = {path: text for path, text in texts.items() if "card" not in path.name}
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + 100)
    export_data_set(db, target, kind, lossy=True)
    assert {path: path.read_bytes() for path in before} == before, "an unchanged export is replaced by an equal one"


# ---- folders


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_export_replaces_a_folder_only_when_it_is_an_unmodified_export(db, tmp_path):
    target = tmp_path / "set"
    target.mkdir()
    for _ in range(2):
        export_data_set(db, target, "torch")
    whole = tree(target)
    assert len(list((target / "images").iterdir())) == 24
    changes = [
        lambda: (target / "mine.txt").write_text("mine"),
        lambda: (target / "images" / "mine.jpg").write_text("mine"),
        lambda: (target / "classes.txt").write_text("other"),
        lambda: next((target / "images").iterdir()).unlink(),
        lambda: (target / "data_card.json").write_text("{}"),
    ]
    for change in changes:
        change()
        changed = tree(target)
        with pytest.raises(AnnotatorError, match="holds other things, or was changed"):
            export_data_set(db, target, "torch", overwrite=True)
        assert tree(target) == changed != whole
        for path in sorted(target.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        export_data_set(db, target, "torch")
    for hostile in (db.paths.project / "set", tmp_path / "photos.jpg"):
        (tmp_path / "photos.jpg").touch()
        with pytest.raises(AnnotatorError, match=r"is in the project|is not a folder"):
            export_data_set(db, hostile, "torch")
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("how", ["link", "copy", "resize", "none"])
def test_exported_images_are_linked_copied_or_resized_and_missing_ones_left_out(db, photos, tmp_path, how):
    (photos / "03.jpg").unlink()
    with prepare_export(db, tmp_path / "set", "torch", Choices(images=how, pixels=16)) as prepared:
        write_export(prepared)
    names = np.load(tmp_path / "set" / "images.npy").tolist()
    if how == "none":
        assert len(names) == 24 and not (tmp_path / "set" / "images").exists()
        return
    assert len(names) == 23 and "1 image could not be read and left out." in prepared.sentences
    labels = np.load(tmp_path / "set" / "labels.npy")
    assert len(labels) == 23
    for image in images.load_all_images(db):
        path = (
            tmp_path
            / "set"
            / "images"
            / Path(image.name).with_suffix(".jpg" if how == "resize" else Path(image.name).suffix).name
        )
        if image.name == "03.jpg":
            assert not path.exists()
        elif how == "resize":
            with Image.open(path) as picture:
                assert max(picture.size) == 16
        else:
            assert path.read_bytes() == (photos / image.name).read_bytes()
            assert path.samefile(photos / image.name) == (how == "link")


def test_linked_image_files_count_as_unchanged(db, photos, tmp_path):
    export_data_set(db, tmp_path / "set", "torch", Choices(images="link"))
    stamps = dict(db.tuples("SELECT path, stamp FROM file"))
    for path, stamp in stamps.items():
        facts = (photos / path).stat()
        assert facts.st_nlink == 2 and stamp == f"{facts.st_ino}:{facts.st_ctime_ns}"


@pytest.mark.parametrize("kind", ["torch", "csv"])
def test_export_progress_reaches_the_end_and_an_interrupted_export_leaves_no_files(db, tmp_path, kind):
    shown: list[tuple[int, int]] = []
    target = tmp_path / f"set{FORMATS[kind].ending}"
    export_data_set(db, target, kind, progress=lambda *step: shown.append(step))
    assert shown == [(24, 24), (24, 24)], "counted, then written"

    def interrupt(done: int, of: int) -> None:
        if done == of:
            raise KeyboardInterrupt

    (tmp_path / "new").mkdir()
    with pytest.raises(KeyboardInterrupt):
        export_data_set(db, tmp_path / "new" / target.name, kind, progress=interrupt)
    assert not list((tmp_path / "new").iterdir())


def test_exported_file_names_are_unique_ignoring_case_and_safe(db, tmp_path):
    hostile = ["a/B.jpg", "b/b.JPG", "c/b.png", "con.jpg", "..jpg", "\u00e9.jpg", "e\u0301.jpg", "a:b?.jpg"]
    hostile.append("x" * 300 + ".jpg")
    with db.writing() as sql:
        for image_id, name in enumerate(hostile, start=1):
            sql.execute("UPDATE image SET name = ? WHERE id = ?", [name, image_id])
    with open_data_set(db, names_files=True) as data:
        names = [name for block in data.view.blocks() for name in block.files]
    stems = [Path(name).stem.casefold() for name in names]
    assert len(set(stems)) == 24 and all(0 < len(name.encode()) < 240 for name in names)
    assert not any(set(name) & set('/\\:*?"<>|\n') or name.startswith(".") for name in names)
    assert not {"con", "nul"} & set(stems)
    assert len({name.casefold() for name in safe_names(["Fox", "fox", "fox ", "a/b", "a\\b"])}) == 5


def test_cleanup_after_an_interrupted_export_restores_the_old_folder(tmp_path):
    (tmp_path / ".set.ab12.old.part").mkdir()
    (tmp_path / ".set.ab12.old.part" / "labels.npy").write_text("old")
    new_folders.remove_unfinished_folders(tmp_path, "set")
    assert (tmp_path / "set" / "labels.npy").read_text() == "old" and not list(tmp_path.glob(".*"))
