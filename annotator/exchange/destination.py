"""Where an export may be written: never into a project, only to regular files, and only over files of an export.

The data card beside the files lists each of them with its sha256 and is sealed with its own, so that a file or card
that was changed since is not overwritten either.
"""

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

from annotator.settings import Paths
from annotator.store.files import content_of
from annotator.store.read_only import may_write

EXPORTS_FOLDER = "exports"  # the only folder of a project that exports may be written to
SEAL = "sealed_with"
LARGEST_CARD = 64 * 1024 * 1024  # bytes; a larger file is not from an export


def problems(paths: list[Path], overwrite: bool) -> list[str]:
    """Why these files of one export, the last of which is its JSON card, cannot be written; [] when they can.

    overwrite    files that no export has written may be replaced
    """
    folder = paths[0].parent
    sentences = _folder_problems(folder)
    known = _written_before(paths[-1])
    others: list[Path] = []
    for path in paths if not sentences else ():
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            sentences.append(f"{path} cannot be looked at: {error.strerror}.")
            continue
        if stat.S_ISDIR(mode):
            sentences.append(f"{path} is a folder. Name a file in it, for example {path / 'labels.csv'}")
        elif not stat.S_ISREG(mode):
            sentences.append(f"{path} is {_kind(mode)}, not a file. Name another one.")
        elif not overwrite and not (known if path == paths[-1] else _sha256(path) == known.get(path.name)):
            others.append(path)
    if others:
        listed = ", ".join(str(path) for path in others)
        sentences.append(
            f"Already there, and not written by an export, or changed since: {listed}. Name another file, or replace "
            f"{'it' if len(others) == 1 else 'them'} with --overwrite."
        )
    return sentences


def sealed(card: dict[str, Any], path: Path, written: dict[str, str]) -> dict[str, Any]:
    """The card with the list of files that were written (name -> sha256), to be written to `path`.

    Files of an earlier export that shared the card (labels.csv and labels.jsonl) stay in the list.
    """
    complete = card | {"written": _written_before(path) | written}
    return complete | {SEAL: _seal(complete)}


def _folder_problems(folder: Path) -> list[str]:
    place = folder.resolve()
    project = next((parent for parent in (place, *place.parents) if os.path.lexists(Paths(parent).database)), None)
    if project and not place.is_relative_to(project / EXPORTS_FOLDER):
        return [
            f"{folder} is in the project {project}: an export could overwrite what is kept there. Name a place outside "
            f"it, or {project / EXPORTS_FOLDER}"
        ]
    if project and not place.exists() and place == project / EXPORTS_FOLDER:
        place = project  # the exports folder is made when it is written to
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
        content = json.loads(card.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict) or content.pop(SEAL, None) != _seal(content):
        return {}
    return content["written"]


def _seal(card: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(card, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str | None:
    try:
        return content_of(path)
    except OSError:
        return None


def _kind(mode: int) -> str:
    kinds = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
