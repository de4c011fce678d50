"""File lookup within a data set folder, with one error for all missing files.

Image names are untrusted and must not leave the folder, by ".." or link.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotator.benchmark.datasets.dataset import DataSet
from annotator.errors import AnnotatorError, combine_problems


@dataclass(frozen=True)
class Loader:
    """The entry of DATASETS by which one data set is recognized and read."""

    name: str
    title: str
    # published number of classes, None if not fixed
    classes: int | None
    # any of these paths identifies the set
    marker_paths: tuple[str, ...]
    # supported file layouts, for error messages
    layouts: str
    # function (folder, truth file or None) -> DataSet
    read: Callable[[Path, Path | None], DataSet]


def build_layout_error(title: str, root: Path, problems: Sequence[str], layouts: str) -> AnnotatorError:
    """Return the error for a data set that cannot be read, with its problems and the supported layouts."""
    headline = f"{root} cannot be read as {title}:"
    return AnnotatorError(
        f"{combine_problems(headline, problems)}\n    Understood is (below the folder given):\n{layouts}"
    )


def find_first_existing(root: Path, places: Sequence[str]) -> Path | None:
    """Return the first of these relative paths inside the folder, or None."""
    inside = root.resolve()
    for place in places:
        if (root / place).exists() and (root / place).resolve().is_relative_to(inside):
            return root / place
    return None


def find_missing(root: Path, places: Sequence[Path]) -> list[str]:
    """Return a sentence per path that is missing or links outside root."""
    inside, problems = root.resolve(), []
    for place in places:
        if not place.exists():
            problems.append(f"{place.relative_to(root).as_posix()} is missing")
        elif not place.resolve().is_relative_to(inside):
            problems.append(f"{place.relative_to(root).as_posix()} is a link that leads out, to {place.resolve()}")
    return problems


def find_images(root: Path, names: Sequence[str]) -> tuple[list[Path], np.ndarray]:
    """Return the paths of images relative to root, and whether each exists, (n,) bool.

    Raises AnnotatorError that lists every name outside root.
    """
    inside, listed = root.resolve(), {}
    paths, exists, outside = [], np.zeros(len(names), bool), []
    for row, name in enumerate(names):
        path = Path(name)
        if path.is_absolute() or path.drive or ".." in path.parts or "\0" in name or not path.name:
            outside.append(f"row {row}: {name!r}")
            continue
        folder = str(path.parent)
        if folder not in listed:
            listed[folder] = _list_folder(root / folder, inside)
        kind = listed[folder].get(path.name)
        if kind == "link":
            real = (root / path).resolve()
            if not real.is_relative_to(inside):
                outside.append(f"row {row}: {name!r} is a link to {real}")
                continue
            kind = "file" if real.is_file() else None
        elif kind == "outside":
            outside.append(f"row {row}: {name!r} is behind a link")
            continue
        paths.append(root / path)
        exists[row] = kind == "file"
    if outside:
        raise combine_problems(
            f"These images would lie outside {root}, so nothing is read. Give the folder that really holds them:",
            outside,
            max_listed=10,
        )
    return paths, exists


class _Outside(dict):
    """A folder listing that returns "outside" for every name, used for folders whose link leaves root."""

    def get(self, key, default=None):
        return "outside"


def _list_folder(folder: Path, inside: Path) -> dict[str, str]:
    if not folder.is_dir():
        return {}
    if not folder.resolve().is_relative_to(inside):
        return _Outside()
    with os.scandir(folder) as entries:
        return {
            entry.name: "link" if entry.is_symlink() else "file" if entry.is_file() else "other" for entry in entries
        }


def need_images(title: str, root: Path, names: Sequence[str]) -> tuple[Path, ...]:
    """Return the paths of these images. Raises AnnotatorError if some are missing or outside root."""
    paths, exists = find_images(root, names)
    if not exists.all():
        missing = [names[row] for row in np.flatnonzero(~exists).tolist()]
        raise combine_problems(
            f"{len(missing):,} of the {len(names):,} images that the labels of {title} speak of are not in {root}. "
            "Was an archive unpacked elsewhere, or only in part?",
            missing,
            max_listed=10,
        )
    return tuple(paths)


def make_count_note(noun: str, count: int, published_count: int | None) -> list[str]:
    """Return a note if a count differs from that of the published set, else []."""
    if published_count is None or count == published_count:
        return []
    return [
        f"there are {count:,} {noun}, the published set has {published_count:,}: figures cannot be compared with papers"
    ]
