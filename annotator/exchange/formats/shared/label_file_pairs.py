"""Label files next to images, and the lookup of the image of each."""

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile
from pathlib import Path, PurePath, PurePosixPath

from annotator.exchange.formats.shared.split_names import SPLIT_FOLDER_NAMES

MAX_FOLDERS_SEEN, MAX_ENTRIES_SEEN, MAX_DEPTH = 200, 200_000, 3  # looked at to recognise a format


def find_first_files(folder: Path, endings: Collection[str], max_files: int = 20) -> list[Path]:
    """Return the first files with these endings, at most three levels deep, for `recognize`."""
    found: list[Path] = []
    waiting, count = [(folder, 0)], 0
    for place, depth in waiting:  # grows meanwhile, so that outer folders come first
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    count += 1
                    name = entry.name
                    if name[:1] == ".":
                        continue
                    if name[name.rfind(".") :].lower() in endings and entry.is_file():
                        found.append(Path(entry.path))
                    elif depth < MAX_DEPTH and len(waiting) < MAX_FOLDERS_SEEN and entry.is_dir(follow_symlinks=False):
                        waiting.append((Path(entry.path), depth + 1))
                    if len(found) >= max_files or count >= MAX_ENTRIES_SEEN:
                        return sorted(found)
        except OSError:
            continue
    return sorted(found)


def find_split(path: str) -> str:
    """Return the first folder in a path that is named like a split, or ""."""
    return next((part for part in path.split("/")[:-1] if part.lower() in SPLIT_FOLDER_NAMES), "")


class ImageFiles:
    """A lookup of a folder's images by name or stem. Paths are relative to the folder."""

    def __init__(self, paths: Iterable[str]):
        self.paths = dict.fromkeys(paths)
        self._named: dict[str, list[str]] = defaultdict(list)
        self._stems: dict[str, list[str]] = defaultdict(list)
        for path in self.paths:
            name = path.rpartition("/")[2]
            self._named[name].append(path)
            self._stems[strip_suffix(name)].append(path)

    def find_image(self, label_file: str, named: str) -> str:
        """Return the image of a label file, or "" if there is none or it is ambiguous.

        Order: the image at path `named`, the one next to the file of equal stem, the nearest of equal name or stem.
        Raises ValueError if the first two differ.
        """
        folder, _, file = label_file.rpartition("/")
        stem, name = strip_suffix(file), named.replace("\\", "/").rpartition("/")[2]
        exact = resolve_relative_path(folder, named)
        alike = [path for path in self._stems.get(stem, ()) if path.rpartition("/")[0] == folder]
        if exact in self.paths:
            if alike and exact not in alike:
                raise ValueError(
                    f"it names the image {named!r}, but {alike[0]!r} beside it has its name. Was one of them renamed? "
                    "Correct the name in it, or move one of them away"
                )
            return exact
        if len(alike) == 1:
            return alike[0]
        for paths in ([], alike) if alike else (self._named.get(name, ()), self._stems.get(stem, ())):
            if near := _find_nearest(folder, paths):
                return near
        return ""


def strip_suffix(name: str) -> str:
    return PurePath(name).stem if name else ""


def resolve_relative_path(folder: str, path: str) -> str:
    """Return the root-relative path of `path` in `folder`, or "" if it is outside the root."""
    path = path.replace("\\", "/")
    if not path or path.startswith("/") or "\0" in path:
        return ""
    parts: list[str] = [part for part in folder.split("/") if part]
    for part in PurePosixPath(path).parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            return ""
    return "/".join(parts)


def _find_nearest(folder: str, paths: Sequence[str]) -> str:
    """Return the path that shares most folders with `folder`, or "" if several do."""
    own = folder.split("/")

    def common(path: str) -> int:
        pairs = zip(own, path.split("/")[:-1], strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    best = max(map(common, paths), default=0)
    nearest = [path for path in paths if common(path) == best]
    return nearest[0] if len(nearest) == 1 else ""
