"""What a source can be that nobody can read: an error that names the file, and a project as it was, whatever format."""

import os
import re
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.formats_view import all_cells, view_of, write
from harness.tables import over

from annotator.errors import AnnotatorError
from annotator.exchange.formats import FORMATS
from annotator.exchange.imports.import_plan import ImportOptions, prepare_import
from annotator.exchange.project_setup import set_up_project
from annotator.store.database.database import Database

NAMES = [f"{number:02}.jpg" for number in range(4)]
CLASSES = ["cat", "dog", "owl"]
READ = [name for name, format_ in FORMATS.items() if format_.read and format_.write and name != "yolo-cls"]
FOLDERS = {"numpy": "labels.npy", "spml": "formatted_train_images.npy", "fiftyone": "samples.json"}
"""Of formats that are folders: a file without which they are nothing."""
ONE_OF_MANY = ("voc", "webdataset", "huggingface", "keywords")
"""Folders of files of one kind, of which a strange one may be passed over."""
GROWTH = 400 << 10  # KB of memory that reading a line of 10 GB may take


def _replaced(pattern: bytes, by: bytes):
    return lambda path: path.write_bytes(re.sub(pattern, by, path.read_bytes()))


def _inserted(text: bytes, share: float = 0.5):
    def insert(path: Path) -> None:
        content = path.read_bytes()
        at = int(len(content) * share)
        path.write_bytes(content[:at] + text + content[at:])

    return insert


def _instead(make):
    def replace(path: Path) -> None:
        path.unlink()
        make(path)

    return replace


def _endless(path: Path) -> None:
    """A line of 10 GB that takes no room on the disk."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size * 2 // 3)
        file.seek(10 << 30)
        file.write(b"x")


DAMAGES = {
    "nothing": lambda path: path.write_bytes(b""),
    "half of it": lambda path: os.truncate(path, path.stat().st_size // 2),
    "zero bytes": _inserted(b"\0\0\0\0"),
    "Latin-1": _inserted(b"\xe9\xff"),
    "UTF-16 without a mark": lambda path: path.write_bytes(path.read_bytes().decode("latin1").encode("utf-16-le")),
    "deep": _inserted(b"[" * 100_000),
    "deep objects": _inserted(b'{"a":' * 50_000, 0),
    "no numbers": _replaced(rb"\d+", b"NaN"),
    "endless numbers": _replaced(rb"\b\d+\b", b"1e400"),
    "large numbers": _replaced(rb"\b\d+\b", b"99999999999999999999"),
    "ways out": _replaced(rb"\d\d\.jpg", b"../../../etc/passwd"),
    "absolute paths": _replaced(rb"\d\d\.jpg", b"/etc/passwd"),
    "one name": _replaced(rb"\d\d\.jpg", b"00.jpg"),
    "other words": _replaced(rb"[a-z_]{4,}", b"wrong"),
    "an endless line": _endless,
    "a folder": _instead(Path.mkdir),
    "a pipe": _instead(os.mkfifo),
    "a circle of links": _instead(lambda path: path.symlink_to(path.name)),
    "no rights": lambda path: path.chmod(0),
}
ALWAYS = {"zero bytes", "an endless line", "a folder", "a pipe", "a circle of links"}
"""What no format can take for something else."""


@pytest.fixture(scope="module")
def place(tmp_path_factory, drawn_photos) -> Iterator[Path]:
    """A folder with a project and, in every format, what it could be told."""
    root = tmp_path_factory.mktemp("bad input")
    set_up_project(root / "project", images_folder=drawn_photos)
    view = view_of(all_cells(len(NAMES), len(CLASSES)), CLASSES, NAMES, files=NAMES, splits=["train", "val"] * 2)
    for name in READ:
        (root / name).mkdir()
        write(FORMATS[name], view, root / name)
    before = state(root / "project")
    yield root
    assert state(root / "project") == before


def state(project: Path) -> tuple[list[str], list[str]]:
    """All that a project consists of. What was unpacked stays, where the next import finds it."""
    db = Database(project)
    dump = list(db.sql.conn.iterdump())
    db.close()
    files = [str(path) for path in project.rglob("*") if "/imported" not in str(path)]
    return dump, sorted(path for path in files if not path.endswith(("-wal", "-shm")))


def refused(project: Path, source: Path, format_: str) -> str:
    """What is said of a source; "" where it can be read."""
    try:
        with prepare_import(project, source, ImportOptions(format=format_), "Ann"):
            return ""
    except AnnotatorError as error:
        return str(error)


def main_file(path: Path, name: str) -> Path:
    """The file without which a source is nothing."""
    if path.is_file():
        return path
    files = [file for file in path.rglob("*") if file.is_file()]
    return path / FOLDERS[name] if name in FOLDERS else max(files, key=lambda file: file.stat().st_size)


@over(name=READ, damage=list(DAMAGES))
def test_damaged_source_file_is_read_or_refused_by_name_in_bounded_memory(place, tmp_path_factory, name, damage):
    if damage == "no rights" and os.geteuid() == 0:
        return
    source = shutil.copytree(place / name, tmp_path_factory.mktemp("source") / name) / f"labels{FORMATS[name].ending}"
    file = main_file(source, name)
    DAMAGES[damage](file)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = refused(place / "project", source, name)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < memory + GROWTH
    assert said or damage not in ALWAYS or name in ONE_OF_MANY, "it was read"
    assert not said or str(source) in said or file.name in said, said


ENTITIES = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "x"><!ENTITY c "&b;&b;&b;&b;">]>'
BAD = {  # format, file -> content, what is said of it
    "ids that point nowhere": (
        "coco", {"a.json": """{"images": [{"id": 1, "file_name": "00.jpg"}], "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"id": 1, "image_id": 7, "category_id": 1}, {"id": 2, "image_id": 1, "category_id": 9}]}"""},
        r"annotations\[0\]: no image has the id 7\n.*annotations\[1\]: no category has the id 9"),
    "two images of one id": (
        "coco", {"a.json": """{"images": [{"id": 1, "file_name": "00.jpg"}, {"id": 1, "file_name": "01.jpg"}],
        "categories": [], "annotations": []}"""}, "images: the id 1 is there twice"),
    "fifty and more": (
        "csv", {"a.csv": "image,class,state\n" + "00.jpg,cat,maybe\n" * 70},
        r"line 51: state 'maybe'(.|\n)*and 20 more"),
    "entities, voc": (
        "voc", {"Annotations/a.xml": f"{ENTITIES}<annotation>&c;</annotation>",
        "Annotations/b.xml": "<annotation><filename>00.jpg</filename></annotation>"}, "a.xml declares a document type"),
    "entities, cvat": (
        "cvat", {"a.xml": f"{ENTITIES}<annotations><version>1.1</version>&c;</annotations>"}, "declares entities"),
    "objects": ("numpy", {"labels.npy": b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '|O', 'fortran_order': False, "
        b"'shape': (1,), }".ljust(117) + b"\n\x80\x04N.", "images.npy": b"", "classes.txt": "cat"},
        "images.npy is no .npy"),
    "a class that there is not": (
        "yolo", {"data.yaml": "path: .\ntrain: images\nnames: [cat]\n",
        "labels/00.txt": "7 .5 .5 .1 .1\nx .5 .5 .1 .1\n",
        "images/00.jpg": b""}, r"labels/00.txt, line 1: .*7(.|\n)*line 2: .*x"),
    "no table": ("parquet", {"a.parquet": b"PAR1" + b"\0" * 99 + b"PAR1"}, "cannot be read as Parquet"),
}  # fmt: skip


@over(what=list(BAD))
def test_contradictory_source_is_refused_with_its_line_or_field(place, tmp_path_factory, what):
    name, files, expected = BAD[what]
    folder = tmp_path_factory.mktemp("source")
    for file, content in files.items():
        (folder / file).parent.mkdir(exist_ok=True, parents=True)
        (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    source = folder / next(iter(files)) if len(files) == 1 else folder
    said = refused(place / "project", source, name)
    assert re.search(expected, said), said


def test_import_command_reports_unreadable_sources_without_a_traceback(place, tmp_path, annotator):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "empty").mkdir()
    (tmp_path / "some.zip").write_bytes(b"PK\3\4 half of it")
    for name in ("pipe.csv", "circle", "empty", "some.zip", "missing"):
        told = annotator("import", place / "project", tmp_path / name, "--yes", code=1).stderr
        assert told.startswith("Error: ") and name in told and "Traceback" not in told, told
