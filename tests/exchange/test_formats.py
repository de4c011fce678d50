"""What all formats promise, whatever they are: over the table FORMATS, so that a new one is held to it as well."""

import numpy as np
import pytest
from harness.formats_view import UNSURE_CELL, all_cells, assert_same, cells_of, read, view_of, write
from harness.tables import over

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import MAX_PROBLEMS_SHOWN, Problems
from annotator.exchange.formats import FORMATS, match_formats

WRITTEN = [name for name, format_ in FORMATS.items() if format_.write]
# yolo-cls knows images by their file only, which an import finds by its content.
BACK = [name for name in WRITTEN if FORMATS[name].read and name != "yolo-cls"]
NAMES = [f"a/{row}.jpg" for row in range(4)] + ["\u05d0, 'b'.png", "=c.jpg"]
CLASSES = ["cat", "=dog, wild", "\U0001f98a", 'a/"b"']
FILES = [f"{row}.jpg" for row in range(len(NAMES))]
SPLITS = ["train", "val", "train", "test", "train", "val"]


def kept(name: str, cells: np.ndarray) -> np.ndarray:
    """What the format says that it keeps of the cells."""
    lost = FORMATS[name].lost
    cells = np.where((cells == UNSURE_CELL) & lost.unsure, -1, cells)
    cells = np.where((cells == 0) & lost.absent, -1, cells)
    return np.where((cells == -1) & (lost.unknown and not lost.absent), 0, cells)


# Formats that list images without an answer apart from those with answers.
ANNOTATION_TOOLS = ("label-studio", "cvat", "fiftyone", "datumaro")


@over(name=BACK, splits=[(), SPLITS])
def test_every_format_preserves_all_labels_it_does_not_declare_lost(tmp_path_factory, name, splits):
    cells = all_cells(len(NAMES), len(CLASSES))
    view = view_of(cells, CLASSES, NAMES, files=FILES, splits=splits, block=4)
    path = write(FORMATS[name], view, tmp_path_factory.mktemp("export"))
    assert_same(cells_of(FORMATS[name], path, NAMES, CLASSES), kept(name, cells))


@over(name=WRITTEN)
def test_export_is_recognized_only_as_its_own_format(tmp_path_factory, name):
    view = view_of(all_cells(len(NAMES), len(CLASSES)), CLASSES, NAMES, files=FILES, written=FORMATS[name].images)
    path = write(FORMATS[name], view, tmp_path_factory.mktemp("export"))
    found = [format_.name for format_, _ in match_formats(path)]
    # These two add images and a script to what another one reads.
    expected = {"yolo-cls": "imagefolder", "torch": "numpy"}.get(name, name)
    assert found == ([expected] if FORMATS[expected].read else [])


@over(name=BACK, shape=[(0, 2), (2, 0), (3, 2)])
def test_export_without_images_classes_or_answers_can_be_read(tmp_path_factory, name, shape):
    names, classes = NAMES[: shape[0]], CLASSES[: shape[1]]
    view = view_of(np.full(shape, -1), classes, names, files=FILES[: shape[0]])
    path = write(FORMATS[name], view, tmp_path_factory.mktemp("export"))
    assert (cells_of(FORMATS[name], path, names, classes) == -1).all()
    if name in ANNOTATION_TOOLS:
        assert not any(item.answered for item in read(FORMATS[name], path)[0].items)


@over(
    name=[name for name, format_ in FORMATS.items() if format_.recognize],
    content=[b"", b"\0\xff\xfe", b"{[", b"<a", b"a,b\n"],
)
def test_format_recognition_ignores_unknown_files_without_raising(tmp_path_factory, name, content):
    folder = tmp_path_factory.mktemp("source")
    recognize = FORMATS[name].recognize
    assert recognize
    assert recognize(folder) is None
    assert recognize(folder / "missing") is None
    for file in ("file.json", "file.csv", "file.xml", "file.zip", "file.yaml", "formatted_train_labels.npy", "file"):
        (folder / file).write_bytes(content)
        assert recognize(folder / file) is None
    assert recognize(folder) is None


@pytest.mark.parametrize("name", [name for name in BACK if FORMATS[name].ending])
def test_endless_line_is_refused_before_memory_is_exhausted(tmp_path, name):
    view = view_of(all_cells(len(NAMES), len(CLASSES)), CLASSES, NAMES)
    path = write(FORMATS[name], view, tmp_path)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size * 2 // 3)
        file.truncate()
        file.seek(10 << 30)  # sparse: 10 GB, which take no room
        file.write(b"x")
    with pytest.raises(AnnotatorError):
        contents, problems = read(FORMATS[name], path)
        list(contents.items)
        raise problems.error("Problems:")


def test_problem_list_shows_the_first_50_and_counts_the_rest():
    problems = Problems()
    for number in range(MAX_PROBLEMS_SHOWN + 7):
        problems.add(f"line {number}")
    sentences = str(problems.error("Not imported:")).splitlines()
    assert len(sentences) == 1 + MAX_PROBLEMS_SHOWN + 1
    assert sentences[-1] == "  - and 7 more"
