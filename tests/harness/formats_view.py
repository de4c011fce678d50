"""Data sets from arrays, for tests of formats: written and read back without a project.

view_of makes a View, Files is an Output that writes into a folder, and cells_of reads what a format wrote.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
from hypothesis import strategies

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.export_view import IMAGES_PER_BLOCK, STATE_WORDS, UNKNOWN_VALUE, Block, View
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.sidecars import SidecarWriter, read_sidecars
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, FILL_SOURCES, PRESENT, SOURCES, UNSURE, Class, Image
from annotator.store.classes.classes import find_name_problem

UNSURE_CELL = 2  # in the array that view_of takes: 1 present, 0 absent, -1 unknown, 2 unsure
ALL_SOURCES = ("", *SOURCES, *FILL_SOURCES)


def view_of(
    cells: np.ndarray,
    classes: Sequence[str | Class] | None = None,
    names: Sequence[str] | None = None,
    *,
    sources: np.ndarray | None = None,
    splits: Sequence[str] = (),
    attributes: Sequence[dict[str, str]] = (),
    files: Sequence[str] = (),
    annotator: str = "ann",
    block: int = IMAGES_PER_BLOCK,
    written: str = "none",
) -> View:
    """A view of these cells.

    cells      (n, C) of 1 present, 0 absent, -1 unknown, 2 unsure
    sources    (n, C) of indices into ALL_SOURCES; None: a click everywhere
    splits, attributes, files    one an image, or none at all
    block      images in a block
    written    what becomes of image files: "none", "link", ...
    """
    count, columns = cells.shape
    named = [
        class_ if isinstance(class_, Class) else Class(number, class_)
        for number, class_ in enumerate(classes or [f"class {number}" for number in range(columns)], start=1)
    ]
    names = names or [f"folder/{row:06}.jpg" for row in range(count)]

    def blocks() -> Iterator[Block]:
        for start in range(0, count, block):
            yield _block(cells, names, sources, splits, attributes, files, slice(start, min(start + block, count)))

    return View(
        classes=named,
        images=count,
        sources=ALL_SOURCES,
        annotators=("", annotator),
        splits=tuple(dict.fromkeys(split for split in splits if split)),
        attributes=tuple(dict.fromkeys(name for facts in attributes for name in facts)),
        blocks=blocks,
        card={},
        image_mode=written,
    )


def _block(cells, names, sources, splits, attributes, files, part: slice) -> Block:
    inside, rows = cells[part], range(part.start, part.stop)
    known = inside != UNKNOWN_VALUE
    states = np.select([inside == 1, inside == 0, inside == UNSURE_CELL], [1, 2, 3], 0).astype(np.int8)
    given = np.full(inside.shape, ALL_SOURCES.index("click")) if sources is None else sources[part]
    return Block(
        images=[Image(row + 1, names[row], f"{row:064x}", 640, 480) for row in rows],
        values=np.where(inside == UNSURE_CELL, UNKNOWN_VALUE, inside).astype(np.int8),
        states=states,
        sources=np.where(known, given, 0).astype(np.uint8),
        annotators=known.astype(np.uint16),
        decided_at=np.where(known, 1.7e9, math.nan),
        seconds=np.full(inside.shape, math.nan),
        probabilities=np.full(inside.shape, math.nan),
        accepted={},
        origins={},
        notes=[()] * len(rows),
        missing=[""] * len(rows),
        attributes=[attributes[row] if attributes else {} for row in rows],
        splits=[splits[row] if splits else "" for row in rows],
        files=[files[row] if files else "" for row in rows],
    )


class Files:
    """An Output that writes at once.

    target     the file of a format that is one file (with an ending), or the folder
    images     whether images are written: their sha256 as text, or
    picture    the bytes that every image has
    """

    def __init__(self, target: Path, images: bool = False, picture: bytes = b""):
        self.target, self.images, self.picture = target, images or bool(picture), picture

    @contextmanager
    def open_text(self, name: str = ""):
        with self.path(name).open("w", encoding="utf-8", newline="") as file:
            yield file

    @contextmanager
    def open_binary(self, name: str = ""):
        with self.path(name).open("wb") as file:
            yield file

    def write_image(self, image: Image, name: str) -> bool:
        if self.images:
            self.path(name).write_bytes(self.picture or image.sha256.encode())
        return self.images

    def read_image(self, image: Image) -> bytes | None:
        return (self.picture or image.sha256.encode()) if self.images else None

    def path(self, name: str = "") -> Path:
        if self.target.suffix:
            return self.target.with_name(self.target.stem + name) if name else self.target
        path = self.target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def write(format_: Format, view: View, folder: Path, picture: bytes = b"") -> Path:
    """The view in this format: the file, or the folder, that was written. Images are made up where it needs them."""
    target = folder / f"labels{format_.ending}"
    assert format_.write
    out = Files(target, format_.images != "none", picture)
    if format_.name != "csv":
        format_.write(view, out)
        return target
    with SidecarWriter(view, out, ".provenance.csv", ".notes.csv") as beside:  # which hold what is unsure
        format_.write(replace(view, blocks=beside.blocks), out)
    return target


def read(format_: Format, path: Path) -> tuple[Contents, Problems]:
    """What the format reads at the path; the items have not been read yet."""
    problems = Problems()
    assert format_.read
    contents = format_.read(path, problems, ReadingOptions())
    contents.items = chain(contents.items, read_sidecars(path, problems))
    return contents, problems


def cells_of(format_: Format, path: Path, names: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    """The answers that the format reads, as view_of takes them; names of images and classes must be among the given.

    Raises AssertionError for problems, and for answers that contradict each other.
    """
    contents, problems = read(format_, path)
    states = {PRESENT: 1, ABSENT: 0, UNSURE: UNSURE_CELL}
    cells = np.full((len(names), len(classes)), UNKNOWN_VALUE)
    for item in contents.items:
        row = names.index(item.image)
        for given in item.labels:
            column = classes.index(given.class_name)
            assert cells[row, column] in (UNKNOWN_VALUE, states[given.state]), (item, given)
            cells[row, column] = states[given.state]
        for column in range(len(classes)) if item.exhaustive else ():
            if cells[row, column] == UNKNOWN_VALUE:
                cells[row, column] = 0
    assert not problems.count, problems.sentences
    return cells


def all_cells(rows: int = 6, columns: int = 4, seed: int = 0) -> np.ndarray:
    """Cells in which each of the four kinds occurs."""
    cells = np.random.default_rng(seed).integers(-1, 3, (rows, columns))
    cells.flat[:4] = (1, 0, UNKNOWN_VALUE, UNSURE_CELL)
    return cells


_HOSTILE = (
    'a,b', 'say "x"', "it's", "=1+2", "+1", "-1", "@SUM(A1)", "'=x", "''", "\U0001f98a fox", "\u05d0\u05d1 \u0634",
    "e\u0301", "\u00e9", "../up", "/root", "a/b", "a\\b", "..", ".", ".hidden", "CON", "NUL.txt", "%2F", "a%b", "#1",
    "<b>&amp;</b>", "]]>", "null", "1", "0", "-", "a;b", "a:b", "a b", "\u200b", "\u202etxt", "constructor", "x" * 200,
    "\u6f22" * 200, "\U0001f98a" * 200,
)  # fmt: skip


def class_names(least: int = 1, most: int = 5) -> strategies.SearchStrategy[list[str]]:
    """Lists of names that a class may have, hostile ones among them."""
    texts = strategies.sampled_from(_HOSTILE) | strategies.text(min_size=1, max_size=12)
    usable = texts.filter(lambda name: find_name_problem(name) is None)
    return strategies.lists(usable, min_size=least, max_size=most, unique=True)


def file_names(least: int = 1, most: int = 5) -> strategies.SearchStrategy[list[str]]:
    """Lists of names that a registered image may have: any text in folders, no lone surrogates, no leading dots."""
    letters = strategies.characters(exclude_categories=("Cs",), exclude_characters="\0/")
    hostile = strategies.sampled_from([name for name in _HOSTILE if "/" not in name and not name.startswith(".")])
    part = (hostile | strategies.text(letters, min_size=1, max_size=12)).filter(
        lambda part: not part.startswith(".") and len(part.encode()) <= 240
    )
    path = strategies.builds(
        lambda parts, ending: "/".join(parts) + ending,
        strategies.lists(part, min_size=1, max_size=3),
        strategies.sampled_from([".jpg", ".JPG", ".png", ".jpeg"]),
    )
    return strategies.lists(path, min_size=least, max_size=most, unique=True)


def assert_same(cells: np.ndarray, expected: np.ndarray) -> None:
    """Equal cell by cell; the difference is named."""
    different = np.argwhere(cells != expected)
    assert not len(different), [
        (tuple(cell), int(cells[tuple(cell)]), int(expected[tuple(cell)])) for cell in different
    ]


assert STATE_WORDS == ("", "present", "absent", "unsure")
