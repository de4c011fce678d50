"""Settings of this machine and user, in one JSON file."""

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
from annotator.settings import get_login_name
from annotator.store.database.arrays import replace_file_atomically

SETTINGS_FILE = "machine.json"
SECTIONS = ("licences", "speeds", "home")
APP_FOLDER_NAME = "multilabel-annotator"


@dataclass(frozen=True)
class NetworkSpeed:
    """A backbone's measured speed (`at` in Unix seconds)."""

    images_a_second: float
    setting: str
    at: float


def get_folder() -> Path:
    """Return the folder of the machine settings file, which may not exist yet."""
    if own := os.environ.get("ANNOTATOR_HOME"):
        return Path(own)
    if platform.system() == "Windows" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local) / APP_FOLDER_NAME
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / APP_FOLDER_NAME


def load_accepted_licenses() -> set[str]:
    return set(_read_section("licences"))


def accept_license(licence: str) -> None:
    """Record a license acceptance. Raises AnnotatorError if unwritable."""
    _write_entry("licences", licence, {"by": get_login_name(), "at": time.time()})


def load_speeds() -> dict[str, NetworkSpeed]:
    found: dict[str, NetworkSpeed] = {}
    for name, facts in _read_section("speeds").items():
        try:
            found[name] = NetworkSpeed(float(facts["images_a_second"]), str(facts["setting"]), float(facts["at"]))
        except (KeyError, TypeError, ValueError):
            continue
    return found


def save_speed(name: str, speed: NetworkSpeed) -> None:
    """Store a backbone's speed. Raises AnnotatorError if unwritable."""
    _write_entry("speeds", name, asdict(speed))


def load_home_folders() -> list[Path]:
    paths = _read_section("home").get("paths")
    kept = cast(list[object], paths) if isinstance(paths, list) else []
    return [Path(path) for path in kept if isinstance(path, str)]


def save_home_folders(paths: Sequence[Path]) -> None:
    """Store the folders for `annotator home`. Raises AnnotatorError if unwritable."""
    _write_entry("home", "paths", [str(path) for path in paths])


def _read_section(part: str) -> dict[str, Any]:
    try:
        stored = json.loads((get_folder() / SETTINGS_FILE).read_text(encoding="utf-8"))[part]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return cast(dict[str, Any], stored) if isinstance(stored, dict) else {}


def _write_entry(part: str, key: str, value: dict[str, Any] | list[str]) -> None:
    place = get_folder()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with FileLock(place / f"{SETTINGS_FILE}.lock"):
            stored = {name: _read_section(name) for name in SECTIONS}
            stored[part][key] = value
            with replace_file_atomically(place / SETTINGS_FILE) as temporary:
                temporary.write_text(json.dumps(stored, indent=1), encoding="utf-8")
    except OSError as error:
        raise AnnotatorError(
            f"{place / SETTINGS_FILE} cannot be written ({error.strerror or error}). ANNOTATOR_HOME can name another "
            "folder."
        ) from error
