"""Class names of a YOLO data set, from YAML, Darknet's obj.data or lists near label files.

A label file uses the nearest list, such as classes.txt, _darknet.labels or obj.names, with one class per
line.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from annotator.errors import AnnotatorError
from annotator.exchange.files.text_lines import read_lines
from annotator.exchange.files.yaml_text import parse_yaml
from annotator.store.disk.open_files import open_file

MAX_DESCRIPTION_BYTES = 1 << 20  # bytes of a description
YAML_NAMES = ("data.yaml", "dataset.yaml", "data.yml", "dataset.yml")
LIST_NAMES = ("classes.txt", "obj.names", "_darknet.labels", "classes.names")
MAX_FILES_CHECKED = 20  # files of a kind that are looked at


def has_names(yaml: Path) -> bool:
    return is_regular_file(yaml) and b"\nnames:" in b"\n" + _read_start(yaml)


def is_regular_file(path: Path) -> bool:
    try:
        return path.is_file() and not path.is_symlink()
    except (OSError, ValueError):  # a name too long, or with a zero byte
        return False


def read_description(yaml: Path) -> dict[str, Any]:
    """Return the fields of a YAML file. Raises AnnotatorError."""
    try:
        if yaml.stat().st_size > MAX_DESCRIPTION_BYTES:
            raise AnnotatorError(
                f"{yaml} has more than {MAX_DESCRIPTION_BYTES:,} bytes: it is no description of a data set."
            )
        # Texts, lists and mappings only: a class called "no" is not False, and no tag makes an object.
        described = parse_yaml(yaml.read_text(encoding="utf-8-sig"), only_texts=True)
    except (OSError, ValueError) as error:
        raise AnnotatorError(f"{yaml} cannot be read as YAML: {error}") from error
    if not isinstance(described, dict):
        raise AnnotatorError(f"{yaml} has no names: it is no description of a YOLO data set.")
    return described


def parse_class_names(yaml: Path, described: Mapping[str, Any]) -> dict[int, str]:
    """Return class names by number, from the fields of a YAML file. Raises AnnotatorError."""
    names = described.get("names")
    if isinstance(names, list):
        names = {str(number): name for number, name in enumerate(names)}
    if isinstance(names, dict) and all(
        number.isdigit() and number.isascii() and isinstance(name, str) for number, name in names.items()
    ):
        return {int(number): name.strip() for number, name in names.items()}
    raise AnnotatorError(f"{yaml}: names must be a list of classes, or number: name pairs; it is {names!r:.100}.")


def find_darknet_file(folder: Path) -> Path | None:
    """Return Darknet's data set description in a folder, if any."""
    for file in _list_files(folder, ".data"):
        fields = read_darknet(file)
        if "names" in fields and {"train", "valid", "classes"} & fields.keys():
            return file
    return None


def find_described_yaml(folder: Path) -> Path | None:
    """Return the YAML file with class names in a folder: the usual one, or the only one."""
    usual = next((folder / name for name in YAML_NAMES if has_names(folder / name)), None)
    others = (
        [] if usual else [file for end in (".yaml", ".yml") for file in _list_files(folder, end) if has_names(file)]
    )
    return usual or (others[0] if len(others) == 1 else None)


def _list_files(folder: Path, ending: str) -> list[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        names = (entry.name for entry in entries)
        found = islice((name for name in names if name.endswith(ending) and name[0] != "."), MAX_FILES_CHECKED)
        return sorted(folder / name for name in found if is_regular_file(folder / name))
    return []


def read_darknet(path: Path) -> dict[str, str]:
    """Return the `key = value` fields of Darknet's data set description."""
    pairs = (line.partition("=") for line in _read_start(path).decode("utf-8-sig", "replace").splitlines())
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def read_darknet_names(root: Path, data: Path, described: Mapping[str, str]) -> dict[int, str]:
    """Return class names by number from the list that Darknet's description names. Raises AnnotatorError."""
    # The path begins where Darknet was started, which nobody knows: data/obj.names is obj.names here.
    tried = [root / name for name in iter_tails(normalize_path(described["names"]))]
    file = next((path for path in [*tried, find_names_file(root)] if path and is_regular_file(path)), None)
    if file is None:
        raise AnnotatorError(
            f"{data} says that the names of classes are in {described['names']!r}, which is not there."
        )
    return _read_list(file)


def find_names_file(folder: Path) -> Path | None:
    """Return the list of class names in a folder, if any."""
    usual = next((folder / name for name in LIST_NAMES if is_regular_file(folder / name)), None)
    return usual or next(iter(_list_files(folder, ".names")), None)


def find_nearest_names_file(file: Path, root: Path) -> Path | None:
    """Return the nearest list of class names in or above the folder of a label file."""
    for folder in file.parents:
        if found := find_names_file(folder):
            return found
        if folder == root:
            break
    return None


class ClassNames:
    """A lookup of class names by number for each label file: `fixed` for all files, or the nearest list."""

    def __init__(self, root: Path, fixed: dict[int, str] | None):
        self._root, self._fixed = root, fixed
        self._files: dict[str, Path | None] = {}
        self._lists: dict[Path, dict[int, str]] = {}

    def find_names(self, folder: str) -> dict[int, str]:
        if self._fixed is not None:
            return self._fixed
        if folder not in self._files:
            self._files[folder] = find_nearest_names_file(self._root / folder / "a.txt", self._root)
        file = self._files[folder]
        if file is None:
            return {}
        if file not in self._lists:
            self._lists[file] = _read_list(file)
        return self._lists[file]

    def list_all_names(self, paths: Sequence[str]) -> list[str]:
        """Return the unique class names for the folders of these files."""
        folders = dict.fromkeys(path.rpartition("/")[0] for path in paths)
        lists = [self.find_names(folder) for folder in ("", *folders)]
        return list(dict.fromkeys(names[number] for names in lists for number in sorted(names)))

    def find_repeated_names(self) -> Iterator[tuple[str, list[str]]]:
        """Yield (path of a list of names, names that occur in it more than once)."""
        lists = {"": self._fixed} if self._fixed is not None else {f" in {file}": n for file, n in self._lists.items()}
        for place, names in lists.items():
            if found := sorted(name for name, count in Counter(names.values()).items() if count > 1):
                yield place, found


def normalize_path(path: str) -> str:
    return "/".join(part for part in PurePosixPath(path.replace("\\", "/")).parts if part not in ("..", ".", "/"))


def iter_tails(path: str) -> Iterator[str]:
    """Yield a path without its first 0, 1, 2, ... folders."""
    while path:
        yield path
        path = path.partition("/")[2]


def strip_path_suffix(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{name.rpartition('.')[0] or name}"


def _read_list(file: Path) -> dict[int, str]:
    stripped = [line.strip() for line in read_lines(file)]
    return {number: name for number, name in enumerate(stripped) if name}


def _read_start(path: Path) -> bytes:
    try:
        with open_file(path) as file:
            return file.read(MAX_DESCRIPTION_BYTES)
    except OSError:
        return b""
