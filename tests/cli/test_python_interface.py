"""The Python door: docs/python.md is run block by block, its types are checked, and what it leaves out is tested."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import draw

import annotator
from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.project_setup import set_up_project

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/python.md").read_text(encoding="utf-8"), re.S | re.M)


@pytest.fixture
def opened(project):
    with annotator.open(project) as opened:
        yield opened


def test_code_blocks_of_the_python_page_run_and_return_the_shown_values(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "sample_data", "sample_data")
    set_up_project(Path("birds"), images_folder=Path("sample_data/images"), class_file=Path("sample_data/classes.txt"))
    names, compared = {}, 0
    for block in BLOCKS:
        lines: list[str] = []
        for line in block.splitlines():
            expression, arrow, wanted = line.partition("  # -> ")
            if not arrow:
                lines.append(line)
                continue
            exec("\n".join(lines), names)
            lines, compared = [], compared + 1
            _, equals, value = expression.partition(" = ")
            given = eval(value if equals else expression, names)
            assert repr(given) == wanted, line
        exec("\n".join(lines), names)
    assert compared > 25


TYPES = {
    "p": "Project",
    "p.classes": "list[str]",
    "p.configuration.parameters": "dict[str, Any]",
    "labels": "DataFrame",
    "wide": "DataFrame",
    "images": "DataFrame",
    "likely": "DataFrame",
    "preview.answers_new": "int",
    "done.imported.answers": "int",
    "p.undo()": "int",
    "source.cells": "int",
    "certificate.overall.recall.low": "float",
    "certificate.lacks": "list[str]",
    "mine": "Choices",
    "annotator.Limits().expected_error": "float",
    "train[0]": "tuple[Any, Tensor, Tensor]",
    "train.classes": "list[str]",
    "written": "list[Path]",
    "error": "AnnotatorError",
}
ONE = "str | int | Iterable[str | int]"
DECIDE = f"(image: {ONE} | DataFrame, class_: {ONE} | None = None, "


@pytest.mark.slow
@pytest.mark.process
def test_strict_type_checker_infers_every_type_used_on_the_python_page(tmp_path):
    """Strict, as a user's script may be checked; pandas itself has no complete types."""
    script = "\n".join(block.replace("  # -> ", "  # ") for block in BLOCKS)
    script = script.replace("    problems = ", "    reveal_type(error)\n    problems = ")
    script += "".join(f"reveal_type({name})\n" for name in [*TYPES, "p.decide", "p.export"] if name != "error")
    (tmp_path / "script.py").write_text(script)
    settings = {"include": ["script.py"], "extraPaths": [str(ROOT)], "typeCheckingMode": "strict"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings | {"pythonVersion": "3.11"}))
    words = ["--pythonpath", sys.executable, "--outputjson", "--project", str(tmp_path)]
    done = subprocess.run([Path(sys.executable).with_name("basedpyright"), *words], capture_output=True, text=True)
    found = [one["message"] for one in json.loads(done.stdout)["generalDiagnostics"]]
    types = dict(re.findall(r'Type of "(.+?)" is "(.+)"', "\n".join(one for one in found if "partially" not in one)))
    assert {name: types.get(name) for name in TYPES} == TYPES
    assert types["p.decide"].startswith(DECIDE) and "Unknown" not in types["p.decide"] + types["p.export"]
    assert not [one for one in found if "Cannot access attribute" in one or "No parameter named" in one]


def test_script_decisions_have_source_script_and_are_undone_in_one_step(opened):
    assert opened.decide(["00.jpg", 2, np.int64(3)], ["fox", "heron", 3], ["present", "absent", "unsure"]) == 3
    labels = opened.labels().set_index(["image", "class"])
    assert labels["state"].tolist() == ["present", "absent", "unsure"] and set(labels["source"]) == {"script"}
    assert opened.labels(wide=True).loc["00.jpg", "fox"] == 1 and opened.labels(wide=True).isna().sum().sum() == 70
    assert opened.decide("00.jpg", "fox", "clear") == 1 and len(opened.labels()) == 2
    assert (opened.undo(), opened.undo()) == (1, 3) and opened.labels().empty
    with pytest.raises(AnnotatorError, match="no decision"):
        opened.undo()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((["00.jpg", "zz.jpg"], "wolf", "yes"), ["zz.jpg", "wolf", "'yes' is no state"]),
        ((99, 77, "absent"), ["no image 99", "no class 77"]),
        ((["00.jpg", "01.jpg"], ["fox", "deer", "fox"], "absent"), ["2 and 3 entries"]),
        ((["00.jpg", "00.jpg"], "fox", ["present", "absent"]), ["twice"]),
        ((pd.DataFrame({"image": ["00.jpg"], "class": ["fox"], "state": [pd.NA]}), None, None), ["<NA> is no state"]),
        ((pd.DataFrame({"image": ["00.jpg"]}), None, None), ["class, state"]),
        (([f"no {number}.jpg" for number in range(500)], "fox", "present"), ["'no 0.jpg'", "480 more images"]),
        (("00.jpg", "fox", None), ["needs an image, a class and a state"]),
        ((True, "fox", "present"), ["True is no name"]),
    ],
)
def test_decide_refuses_invalid_input_with_all_reasons_and_stores_nothing(opened, given, said):
    with pytest.raises(AnnotatorError) as refused:
        opened.decide(*given)
    assert all(words in str(refused.value) for words in said), refused.value
    assert opened.labels().empty


def test_tables_have_the_same_columns_and_types_with_and_without_labels(opened):
    empty = [opened.labels(), opened.labels(wide=True), opened.images(), opened.suggestions()]
    for number, image in enumerate(("00.jpg", "01.jpg", "deep/23.png"), start=1):
        opened.decide(image, ["fox", "heron", "deer"], "absent" if number % 2 else "present")
    full = [opened.labels(), opened.labels(wide=True), opened.images(), opened.suggestions()]
    for before, after in zip(empty, full, strict=True):
        assert before.dtypes.astype(str).equals(after.dtypes.astype(str))
    with pytest.raises(AnnotatorError, match=r"^These choices cannot be used:\n.*'wolf'"):
        opened.labels(choices=Choices(classes=("wolf",)))
    every = opened.labels(unknown=True)
    assert len(every) == 72 and every["state"].isna().sum() == 63 and every["decided_at"].isna().sum() == 63
    assert full[2].loc[full[2]["complete"], "name"].tolist() == ["00.jpg", "01.jpg", "deep/23.png"]


def test_imported_labels_keep_their_original_source_and_annotator(opened, tmp_path, photos, class_file):
    opened.decide("00.jpg", "fox", "present", annotator="Ann")
    opened.export(tmp_path / "labels.jsonl", "jsonl")
    set_up_project(tmp_path / "second", images_folder=photos, class_file=class_file)
    with annotator.open(tmp_path / "second") as second:
        second.import_(tmp_path / "labels.jsonl")
        second.decide("01.jpg", "deer", "absent", annotator="Cid")
        labels = second.labels()[["source", "annotator", "origin_source", "origin_annotator"]]
    assert labels.fillna("").values.tolist() == [["import", "import", "script", "Ann"], ["script", "Cid", "", ""]]


def state(db, facts) -> None:
    """Facts of images as an import stores them: (image, name, value)."""
    with db.writing() as sql:
        sql.conn.executemany("INSERT INTO attribute (image_id, name, value) VALUES (?, ?, ?)", facts)


def test_field_named_like_a_table_column_gets_a_prefix(opened):
    state(opened.db, [(1, "path", "elsewhere"), (1, "split", "val")])
    first = opened.images().iloc[0]
    assert (first["attribute.path"], first["split"]) == ("elsewhere", "val") and first["path"].endswith("00.jpg")


@pytest.mark.process
def test_dataset_returns_each_image_with_its_labels_also_in_data_loader_workers(opened):
    from torch.utils.data import DataLoader

    opened.decide("00.jpg", ["fox", "deer"], ["present", "absent"])
    opened.decide("deep/23.png", "heron", "unsure")
    state(opened.db, [(number, "split", "train" if number % 2 else "val") for number in range(1, 25)])
    data = opened.dataset(split="train", size=8)
    assert len(data) == 12 and data.names[0] == "00.jpg" and data.classes == ["fox", "heron", "deer"]
    pictures, labels, mask = next(iter(DataLoader(data, batch_size=12, num_workers=2)))
    assert pictures.shape == (12, 3, 8, 8) and pictures.min() >= 0 and pictures.max() <= 1
    assert labels[0].tolist() == [1, 0, -1] and mask[0].tolist() == [1, 0, 1] and mask.sum() == 2
    everything = opened.dataset(transform=lambda picture: picture.size, unknown="absent")
    assert everything[0][0] == (96, 72) and everything[0][1].tolist() == [1, -1, -1]
    assert everything.targets[23].tolist() == [-1, 0, -1]  # unsure is not absent
    with pytest.raises(AnnotatorError, match=r"split 'tset'.*There is: train, val"):
        opened.dataset(split="tset")


def test_dataset_refuses_replaced_and_missing_image_files(opened, photos):
    data = opened.dataset(size=None)
    draw(photos / "00.jpg", seed=99)
    (photos / "01.jpg").unlink()
    with pytest.raises(AnnotatorError, match=r"00\.jpg cannot be read: its file holds another picture"):
        data[0]
    with pytest.raises(AnnotatorError, match=r"01\.jpg cannot be read"):
        data[1]
    assert data[2][0].size == (96, 72)


def test_predictions_accept_long_and_wide_tables_and_refuse_invalid_ones(opened):
    from annotator.store.runs import prediction_sources

    long = pd.DataFrame(
        {"image": ["00.jpg", "02.jpg", "00.jpg"], "class": ["fox", "deer", "deer"], "score": [0.9, 0.8, 0.7]}
    )
    wide = long.pivot(index="image", columns="class", values="score")
    for name, table in (("long", long), ("wide", wide)):
        source = opened.predictions(table, name)
        assert (source.images, source.cells) == (2, 3)
    for table, said in (
        (long.assign(image="00.jpg"), "twice"),
        (long.rename(columns={"score": "p"}), "columns"),
        (wide.rename(columns={"fox": "wolf"}), "wolf"),
        (wide * 2, "probab"),
    ):
        with pytest.raises(AnnotatorError, match=said):
            opened.predictions(table, "bad")
    assert [source.name for source in prediction_sources.load_sources(opened.db)] == ["long", "wide"]


def test_suggestions_are_the_most_likely_unanswered_labels_and_can_be_decided(opened):
    from harness.published_runs import publish

    probabilities = np.full((24, 3), 0.1)
    probabilities[[4, 7], [0, 1]] = 0.9, 0.8
    publish(opened.db, probabilities)
    likely = opened.suggestions(n=2)
    assert likely[["image", "class"]].values.tolist() == [["04.jpg", "fox"], ["07.jpg", "heron"]]
    assert likely["probability"].round(2).tolist() == [0.9, 0.8] and likely["run"].tolist() == [1, 1]
    assert opened.suggestions("heron", n=1)["image"].tolist() == ["07.jpg"]
    assert opened.decide(likely.assign(state="present")) == 2
    assert opened.suggestions()["probability"].max() < 0.2
    assert opened.labels()["probability"].round(2).tolist() == [0.9, 0.8]
