"""Arrays of single-positive multi-label (SPML) learning, formatted_<split>_*.npy.

Format: Cole et al., CVPR 2021, https://github.com/elijahcole/single-positive-multi-label. `images` (n,) are file names,
`labels` (n, C) full truth (1, 0), `labels_obs` (n, C) observed labels (1 present, -1 absent, 0 unknown) and preferred
in reading. `labels` is written only without unanswered cells.
"""

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError, combine_problems
from annotator.exchange.files.npy_writer import NpyTextWriter, NpyWriter
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.export_view import TRAINING_VALUES, Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.numpy_folder import write_classes, write_images
from annotator.exchange.formats.shared.label_arrays import LabelArray, load_arrays, read_classes_beside, read_items
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import FILLED_BY_ASSUMPTION, FILLED_BY_MODEL

USUAL_SPLITS = ("train", "val")  # of the literature; exports may have others
OBSERVED_ARRAY_NAMES = ("labels_obs", "uniform_labels_obs")  # the older and the newer name of the array


def recognize(path: Path) -> str | None:
    folder, name = (path, None) if path.is_dir() else (path.parent, path.name)
    for part in _list_splits(folder) if name is None or name.startswith("formatted_") else ():
        files = (f"formatted_{part}_labels.npy", *(f"formatted_{part}_{name}.npy" for name in OBSERVED_ARRAY_NAMES))
        if name is None or name in files:
            return f"arrays of the SPML literature: it has formatted_{part}_images.npy"
    return None


def _list_splits(folder: Path) -> list[str]:
    names = [path.name for path in folder.glob("formatted_*_images.npy")]
    splits = sorted(name.removeprefix("formatted_").removesuffix("_images.npy") for name in names)
    return sorted(splits, key=lambda split: USUAL_SPLITS.index(split) if split in USUAL_SPLITS else len(USUAL_SPLITS))


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the labels of a folder of arrays or of one array.

    Raises AnnotatorError that lists all missing or unusable arrays. Python objects are never loaded.
    """
    folder = path if path.is_dir() else path.parent
    parts = _load_splits(folder, None if path.is_dir() else path.name)
    widths = {array.labels.shape[1] for array in parts.values()}
    if len(widths) > 1:
        raise AnnotatorError(f"The arrays in {folder} have different numbers of classes: {sorted(widths)}.")
    classes, said = read_classes_beside(folder, widths.pop())
    for split, array in parts.items():
        meaning = "1 is present, 0 is absent" if array.is_truth else "1 is present, -1 absent, 0 unknown"
        said.append(f"{array.file}: {meaning}.")
        if not array.is_truth and (folder / f"formatted_{split}_labels.npy").is_file():
            said.append(f"For the full truth name the file formatted_{split}_labels.npy instead of the folder.")
    with_files = any(array.has_image_files(folder) for array in parts.values())
    names = [name for name, _ in classes]
    rows = (
        item
        for split, array in parts.items()
        for item in read_items(array, names, partial(_repeat_split, split), with_files, problems)
    )
    return Contents(classes, rows, folder=folder if with_files else None, place="row", sentences=said)


def _repeat_split(split: str, start: int, stop: int) -> list[str]:
    return [split] * (stop - start)


def _load_splits(folder: Path, chosen: str | None) -> dict[str, LabelArray]:
    parts: dict[str, LabelArray] = {}
    problems: list[str] = []
    for split in _list_splits(folder):
        observed = [f"formatted_{split}_{name}.npy" for name in OBSERVED_ARRAY_NAMES]
        files = [*observed, f"formatted_{split}_labels.npy"]
        file = next((name for name in files if (folder / name).is_file() and chosen in (None, name)), None)
        if file is None:
            continue
        try:
            parts[split] = load_arrays(folder, f"formatted_{split}_images.npy", file, is_truth=file not in observed)
        except AnnotatorError as error:
            problems.append(str(error))
    if not parts and not problems:
        problems.append("formatted_train_images.npy, or an array of labels beside it, is missing")
    if problems:
        raise combine_problems(f"The arrays in {folder} cannot be used:", problems)
    return parts


def write(view: View, out: Output) -> None:
    """Write two or three arrays per split, without images in no split."""
    is_filled = np.isin(view.sources, (FILLED_BY_MODEL, FILLED_BY_ASSUMPTION))
    with ExitStack() as stack:
        arrays = {split: _SplitArrays(split, view, out, stack) for split in view.splits or ("train",)}
        for block in view.blocks():
            kept = write_images(block, view, out)
            observed = np.where(is_filled[block.sources], 0, TRAINING_VALUES[block.values])
            for split, of_split in arrays.items():
                rows = [row for row in kept if not view.splits or block.splits[row] == split]
                of_split.observed.append_rows(observed[rows])
                if of_split.labels:
                    of_split.labels.append_rows(block.values[rows] == 1)
                if rows:
                    of_split.names.append_texts(kept[row] for row in rows)
        for split, of_split in arrays.items():
            for array in filter(None, (of_split.labels, of_split.observed)):
                array.finish()
            of_split.names.save(out.path(f"formatted_{split}_images.npy"))
    write_classes(view, out)


class _SplitArrays:
    """A writer of the arrays of one split."""

    def __init__(self, split: str, view: View, out: Output, stack: ExitStack):
        def array(name: str) -> NpyWriter:
            file = stack.enter_context(out.open_binary(f"formatted_{split}_{name}.npy"))
            return NpyWriter(file, np.int8, len(view.classes))

        self.names, self.observed = NpyTextWriter(), array("labels_obs")
        self.labels = None if "unknown" in view.has else array("labels")


SPML = Format(
    name="spml",
    about="The formatted_*.npy arrays of the single-positive multi-label literature",
    recognize=recognize,
    read=read,
    write=write,
    lost=FormatLosses(unknown=False, unsure=True, provenance=True),
)
