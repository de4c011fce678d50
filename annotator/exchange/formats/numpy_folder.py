"""Exports for numpy and torch: a folder of arrays, and for torch a Dataset that reads them.

labels.npy (n, C) int8: 1 present, -1 absent, 0 unanswered or unsure. images.npy (n,): file below `images/`,
or image name. splits.npy (n,). classes.txt: one per column.
"""

from contextlib import ExitStack
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.files.npy import load_array
from annotator.exchange.files.npy_writer import NpyTextWriter, NpyWriter
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.export_view import TRAINING_VALUES, Block, Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.shared.label_arrays import load_arrays, read_classes_beside, read_items, to_texts
from annotator.exchange.formats.torch_dataset_template import format_dataset_module
from annotator.exchange.reading.reading_options import ReadingOptions

IMAGES_FOLDER = "images"


def write_numpy(view: View, out: Output) -> None:
    _write_arrays(view, out)


def _write_arrays(view: View, out: Output) -> set[str]:
    """Write the arrays, and return the names of the splits that have images, "" for none."""
    images, splits = NpyTextWriter(), NpyTextWriter()
    used: set[str] = set()
    with ExitStack() as stack:
        labels = NpyWriter(stack.enter_context(out.open_binary("labels.npy")), np.int8, len(view.classes))
        for block in view.blocks():
            kept = write_images(block, view, out)
            labels.append_rows(TRAINING_VALUES[block.values[list(kept)]])
            if kept:
                images.append_texts(kept.values())
                splits.append_texts(block.splits[row] for row in kept)
                used.update(block.splits[row] for row in kept)
        labels.finish()
    images.save(out.path("images.npy"))
    if view.splits:
        splits.save(out.path("splits.npy"))
    write_classes(view, out)
    return used


def write_torch(view: View, out: Output) -> None:
    used = _write_arrays(view, out)
    with out.open_text("dataset.py") as file:
        file.write(format_dataset_module(used, view.image_mode != "none"))


def write_images(block: Block, view: View, out: Output) -> dict[int, str]:
    """Write a block's images, and return the names of those written by row.

    Images that cannot be written are omitted, because readers would fail.
    """
    if view.image_mode == "none":
        return {row: image.name for row, image in enumerate(block.images)}
    names = {row: f"{IMAGES_FOLDER}/{file}" for row, file in enumerate(block.files)}
    return {row: name for row, name in names.items() if out.write_image(block.images[row], name)}


def write_classes(view: View, out: Output) -> None:
    with out.open_text("classes.txt") as file:
        file.writelines(f"{class_.name}\n" for class_ in view.classes)


def recognize(path: Path) -> str | None:
    if path.is_dir() and all((path / name).is_file() for name in ("labels.npy", "images.npy")):
        return "a folder of arrays: it has labels.npy and images.npy"
    return None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the labels of the arrays. Raises AnnotatorError for unusable arrays."""
    array = load_arrays(path, "images.npy", "labels.npy")
    classes, said = read_classes_beside(path, array.labels.shape[1])
    splits = load_array(path / "splits.npy", path) if (path / "splits.npy").is_file() else None
    if splits is not None and (splits.dtype.kind not in "US" or splits.shape != array.images.shape):
        raise AnnotatorError(f"{path / 'splits.npy'} is {splits.shape} of {splits.dtype}; it must be a text a row.")

    def split_of(start: int, stop: int) -> list[str]:
        return [""] * (stop - start) if splits is None else to_texts(splits[start:stop])

    with_files = array.has_image_files(path)
    rows = read_items(array, [name for name, _ in classes], split_of, with_files, problems)
    said = ["labels.npy: 1 is present, -1 absent, 0 unknown.", *said]
    return Contents(classes, rows, folder=path if with_files else None, place="row", sentences=said)


NUMPY = Format(
    name="numpy",
    about="a folder of .npy arrays: labels in {1, 0 unknown, -1}, images, splits, classes",
    recognize=recognize,
    read=read,
    write=write_numpy,
    lost=FormatLosses(unknown=False, unsure=True, provenance=True),
)
TORCH = Format(
    name="torch",
    about="a folder with the images, the .npy arrays and a dataset.py that reads them as a torch Dataset",
    write=write_torch,
    lost=FormatLosses(unknown=False, unsure=True, provenance=True),
    images="link",
)
