"""Settings of this machine and its user, not of a project: licences, speeds of networks, folders of the start page.

One small JSON file in the user's data folder (XDG_DATA_HOME, else ~/.local/share; LOCALAPPDATA on Windows), or in the
folder that the environment variable ANNOTATOR_HOME names.
"""

import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from filelock import FileLock

from annotator.errors import AnnotatorError
from annotator.settings import login
from annotator.store.database.arrays import replacing

FILE = "machine.json"
PARTS = ("licences", "speeds", "home")
NAME = "multilabel-annotator"


@dataclass(frozen=True)
class Speed:
    """The speed of a network on this machine: images a second, the form in which it ran, and when it was measured."""

    images_a_second: float
    setting: str
    at: float


def folder() -> Path:
    """Return the folder of the file; it may not exist yet."""
    if own := os.environ.get("ANNOTATOR_HOME"):
        return Path(own)
    if platform.system() == "Windows" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / NAME
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / NAME


def accepted_licences() -> set[str]:
    """Return the names of the licences that this user has accepted on this machine."""
    return set(_part("licences"))


def accept(licence: str) -> None:
    """Record that a licence was accepted, by whom and when. Raises AnnotatorError when that cannot be written."""
    _write("licences", licence, {"by": login(), "at": time.time()})


def speeds() -> dict[str, Speed]:
    """Return the measured speeds of networks on this machine, by name."""
    found: dict[str, Speed] = {}
    for name, facts in _part("speeds").items():
        try:
            found[name] = Speed(float(facts["images_a_second"]), str(facts["setting"]), float(facts["at"]))
        except (KeyError, TypeError, ValueError):
            continue
    return found


def keep_speed(name: str, speed: Speed) -> None:
    """Store the speed of a network on this machine. Raises AnnotatorError when that cannot be written."""
    _write("speeds", name, asdict(speed))


def home_folders() -> list[Path]:
    """Return the folders that the start page was opened with last; [] before the first time."""
    paths = _part("home").get("paths")
    kept = cast(list[object], paths) if isinstance(paths, list) else []
    return [Path(path) for path in kept if isinstance(path, str)]


def keep_home_folders(paths: Sequence[Path]) -> None:
    """Store the folders of the start page. Raises AnnotatorError when that cannot be written."""
    _write("home", "paths", [str(path) for path in paths])


def _part(part: str) -> dict[str, Any]:
    try:
        stored = json.loads((folder() / FILE).read_text(encoding="utf-8"))[part]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return cast(dict[str, Any], stored) if isinstance(stored, dict) else {}


def _write(part: str, key: str, value: dict[str, Any] | list[str]) -> None:
    place = folder()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with FileLock(place / f"{FILE}.lock"):
            stored = {name: _part(name) for name in PARTS}
            stored[part][key] = value
            with replacing(place / FILE) as temporary:
                temporary.write_text(json.dumps(stored, indent=1), encoding="utf-8")
    except OSError as error:
        raise AnnotatorError(
            f"{place / FILE} cannot be written ({error.strerror or error}). ANNOTATOR_HOME can name another folder."
        ) from error
