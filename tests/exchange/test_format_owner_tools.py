"""What we write is what the tools that own the formats read, and what they write we read: equal cell by cell."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from harness.answers import answer_cell
from harness.formats_view import (
    UNSURE_CELL,
    all_cells,
    assert_same,
    cells_of,
    class_names,
    file_names,
    read,
    view_of,
    write,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from annotator.exchange.croissant.croissant_facts import store_facts
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export_writer import export_data_set
from annotator.exchange.formats import FORMATS
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.classes import classes
from annotator.store.images import images

HERE = Path(__file__).resolve().parents[1]
READERS = os.environ.get("ANNOTATOR_READERS")
PYTHON = Path(READERS or HERE.parent / ".venv-readers") / "bin/python"
STATES = {1: "present", 0: "absent", 2: "unsure"}

pytestmark = [
    pytest.mark.readers,
    pytest.mark.process,
    pytest.mark.skipif(not READERS and not PYTHON.exists(), reason="these tools are installed by make test-readers"),
]


class Reader:
    """A program of tests/readers that answers what it reads at a path."""

    def __init__(self, *command: str):
        self._process = subprocess.Popen(
            [str(PYTHON), str(HERE / "readers" / command[0]), *command[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self, path: Path, again: Path | str = "") -> dict[str, dict[str, str]]:
        """Image -> class -> state. Raises AssertionError with what the tool raised."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([str(path), str(again)]) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["read"]

    def close(self) -> None:
        """End it."""
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def reader():
    """Starts a program of tests/readers; all are ended with the module."""
    started: dict[tuple[str, ...], Reader] = {}

    def start(*command: str) -> Reader:
        return started.setdefault(command, Reader(*command)) if command not in started else started[command]

    yield start
    for program in started.values():
        program.close()


@pytest.mark.parametrize(
    "command",
    [
        ("label-studio", "read_label_studio.py"),
        ("datumaro", "read_datumaro.py", "datumaro"),
        ("fiftyone", "read_fiftyone.py"),
    ],
    ids=lambda command: command[0],
)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_external_tool_reads_every_exported_label_and_writes_back_the_same_labels(
    reader, tmp_path_factory, command, data
):
    name, tool = command[0], reader(*command[1:])
    classes, names = data.draw(class_names()), data.draw(file_names())
    cells = all_cells(max(len(names), 4), max(len(classes), 4), data.draw(st.integers(0, 9)))
    cells = cells[: len(names), : len(classes)]
    splits = data.draw(st.sampled_from([(), ["train", "a/b", "", "Ünï 🦊", "con"]]))
    splits = [splits[row % len(splits)] for row in range(len(names))] if splits else ()
    folder = tmp_path_factory.mktemp("export")
    view = view_of(
        cells, classes, names, splits=splits, files=[f"file {row}.jpg" for row in range(len(names))], block=2
    )
    path = write(FORMATS[name], view, folder)
    again = folder / f"again{FORMATS[name].ending}"
    expected = {
        image: {class_: STATES[cell] for class_, cell in zip(classes, row, strict=True) if cell in STATES}
        for image, row in zip(names, cells.tolist(), strict=True)
    }
    assert tool.read(path, again) == expected
    for written in (path, again):
        assert_same(cells_of(FORMATS[name], written, names, classes), cells)


def test_datumaro_reads_the_tags_of_a_cvat_export_and_its_output_is_read_back(reader, tmp_path):
    tool, format_ = reader("read_datumaro.py", "cvat"), FORMATS["cvat"]
    classes = ["dog", "dog (absent)", "a,b", "<b>&amp;</b>", 'say "x"', "🦊 fox", "אב", "=1+2", "x" * 200]
    names = ["a.jpg", "folder/b c.jpg", "<&>'\".png", "🦊/é.jpg", "]]>.jpg"]
    cells = all_cells(len(names), len(classes))
    path = write(format_, view_of(cells, classes, names), tmp_path)
    assert_same(cells_of(format_, path, names, classes), cells)
    for name in names:
        (tmp_path / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / name).write_bytes(b"")
    tagged = tool.read(tmp_path, tmp_path / "again")
    labels = {("dog", 0): "dog (absent)'"}  # its first choice is a class
    for name, row in zip(names, cells.tolist(), strict=True):
        cells_of_row = [(class_, cell) for class_, cell in zip(classes, row, strict=True) if cell in STATES]
        expected = {
            labels.get((class_, cell), class_ if cell == 1 else f"{class_} ({STATES[cell]})")
            for class_, cell in cells_of_row
        }
        assert set(tagged[f"{tmp_path}/images/{name}"]) == expected
    (again,) = (tmp_path / "again").glob("*.xml")
    contents, problems = read(format_, again)
    assert {item.image: {given.class_name for given in item.labels} for item in contents.items} == {
        name: set(tagged[f"{tmp_path}/images/{name}"]) for name in names
    }
    assert not problems.count


def test_cvat_accepts_the_label_file_next_to_the_export(reader, tmp_path):
    classes = ["dog", "dog (absent)", "a,b", "🦊 fox"]
    path = write(FORMATS["cvat"], view_of(all_cells(2, 4), classes), tmp_path)
    labels = reader("read_cvat_labels.py").read(path.with_name("labels.labels.json"))
    assert len(labels) == 3 * len(classes)
    assert [labels[name] for name in classes] == [{}] * len(classes)
    meant = {(facts["class"], facts["state"]) for facts in labels.values() if facts}
    assert meant == {(name, state) for name in classes for state in ("absent", "unsure")}


@pytest.mark.parametrize("name", ["csv", "voc", "huggingface"])
def test_mlcroissant_validates_a_croissant_export_and_loads_every_label(reader, db, tmp_path, name):
    classes.add_classes(db, [("NA", ""), ("007", ""), ("true, false", ""), ("Ünï 🦊 'x' \"y\"", "described")])
    columns = {class_.name: class_.id for class_ in classes.load_active_classes(db)}
    drawn = all_cells(24, len(columns), 3).tolist()
    given = {1: PRESENT, 0: ABSENT, UNSURE_CELL: UNSURE}
    shown = {image.id: image.name for image in images.load_images(db, list(range(1, 25))).values()}
    expected: dict[str, dict[str, str]] = {image: {} for image in shown.values()}
    for row, image_id in enumerate(shown):
        for class_name, cell in zip(columns, drawn[row], strict=True):
            if cell in given:
                answer_cell(db, image_id, columns[class_name], given[cell])
            expected[shown[image_id]][class_name] = STATES.get(cell, "unanswered")
    store_facts(
        db,
        {
            "version": "1.0.0",
            "datePublished": "2026-05-01",
            "license": "CC-BY-4.0",
            "citeAs": "Ann (2026)",
            "creator": {"type": "Organization", "name": "Ann and Bo"},
            "keywords": ["birds", "foxes"],
            "rai:dataBiases": "More by day.",
        },
    )
    target = tmp_path / f"ünï labels{FORMATS[name].ending}"
    choices = Choices(croissant=True, splits="train=0.5,val=0.5")
    export_data_set(db, target, name, choices, lossy=True)
    described = target / "croissant.json" if target.is_dir() else target.with_name(f"{target.stem}.croissant.json")
    said = tmp_path / "said.json"
    assert reader("read_croissant.py").read(described, said) == expected
    status, text = json.loads(said.read_text(encoding="utf-8"))
    assert status == 0 and "Done." in text and "warning" not in text.lower() and "error" not in text.lower(), text
