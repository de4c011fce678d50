"""Where an export may be written: never into a project, onto anything but a file, or over a file of somebody else's.

Which files are an export's own is told by the data card beside them. It lists each file with its sha256, and is itself
sealed with one, so that a file or card that anybody has changed since is left alone, too.
"""

import hashlib
import json
import os
import stat
from pathlib import Path

from annotator.settings import Paths
from annotator.store.files import content_of
from annotator.store.read_only import may_write

EXPORTS_FOLDER = "exports"  # in a project: the one place there that exports may be written to
SEAL = "sealed_with"
LARGEST_CARD = 64 * 1024 * 1024  # bytes; more was not written by an export


def problems(paths: list[Path], overwrite: bool) -> list[str]:
    """Everything that stands in the way of writing these files of one export, the last of which is its JSON card.

    overwrite    files that no export has written may be replaced
    """
    folder = paths[0].parent
    said = _folder_problems(folder)
    known, others = _written_before(paths[-1]), []
    for path in paths if not said else ():
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            said.append(f"{path} cannot be looked at: {error.strerror}.")
            continue
        if stat.S_ISDIR(mode):
            said.append(f"{path} is a folder. Name a file in it, for example {path / 'labels.csv'}")
        elif not stat.S_ISREG(mode):
            said.append(f"{path} is {_kind(mode)}, not a file. Name another one.")
        elif not overwrite and not (known if path == paths[-1] else _sha256(path) == known.get(path.name)):
            others.append(path)
    if others:
        listed = ", ".join(str(path) for path in others)
        said.append(
            f"Already there, and not written by an export, or changed since: {listed}. Name another file, or replace "
            f"{'it' if len(others) == 1 else 'them'} with --overwrite."
        )
    return said


def sealed(card: dict, path: Path, written: dict[str, str]) -> dict:
    """The card with the list of files that were written (name -> sha256), to be written to `path`.

    Files of an earlier export that shared the card (labels.csv and labels.jsonl) stay in the list.
    """
    complete = card | {"written": _written_before(path) | written}
    return complete | {SEAL: _seal(complete)}


def _folder_problems(folder: Path) -> list[str]:
    place = folder.resolve()
    project = next((one for one in (place, *place.parents) if os.path.lexists(Paths(one).database)), None)
    own = project and place.is_relative_to(project / EXPORTS_FOLDER)
    if project and not own:
        return [
            f"{folder} is in the project {project}: an export could overwrite what is kept there. Name a place outside "
            f"it, or {project / EXPORTS_FOLDER}"
        ]
    if not place.exists() and own and place == project / EXPORTS_FOLDER:
        place = project  # made when it is written to
    if not place.is_dir():
        return [f"There is no folder {folder} to write to. Make it first."]
    if not may_write(place):
        return [f"The folder {folder} may not be written. Check its rights."]
    return []


def _written_before(card: Path) -> dict[str, str]:
    """Name -> sha256 of the files that this JSON card lists; {} unless an export wrote it and nobody changed it."""
    try:
        if not stat.S_ISREG(card.lstat().st_mode) or card.lstat().st_size > LARGEST_CARD:
            return {}
        found = json.loads(card.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or found.pop(SEAL, None) != _seal(found):
        return {}
    return found["written"]


def _seal(card: dict) -> str:
    return hashlib.sha256(json.dumps(card, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str | None:
    try:
        return content_of(path)
    except OSError:
        return None


def _kind(mode: int) -> str:
    kinds = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
