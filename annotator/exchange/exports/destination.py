"""Rules for export targets: never in a project, and only over files that an export wrote and nobody changed.

The sealed data card lists each file's sha256. Folders are replaced as a whole. Their images, and all but the
first 200 other files, are checked by name, size and time.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from annotator.settings import Paths
from annotator.store.database.read_only import can_write
from annotator.store.pictures.files import compute_sha256

DOWNLOAD_FOLDER_NAME = re.compile(r"[0-9a-f]{32}")  # the names of the folders in Paths.downloads
SEAL_KEY = "sealed_with"
MAX_CARD_BYTES = 64 * 1024 * 1024  # bytes; a larger file is not from an export


class FileDigest:
    """A counter of files, with a hash of their names, sizes and times that does not depend on their order."""

    def __init__(self, count: int = 0, digest: int = 0):
        self.count, self._digest = count, digest

    def add(self, name: str, path: Path) -> None:
        """Add a file under its export name, without following links."""
        facts = path.lstat()
        line = f"{name}\0{facts.st_size}\0{facts.st_mtime_ns}".encode("utf-8", "surrogateescape")
        self.count += 1
        self._digest = (self._digest + int(hashlib.sha256(line).hexdigest(), 16)) % 2**256

    def as_json(self) -> dict[str, Any]:
        return {"count": self.count, "digest": f"{self._digest:064x}"}


def find_folder_problems(target: Path, cards: list[Path]) -> list[str]:
    """Return why an export cannot replace this folder. It may be missing, empty, or an unchanged export.

    `cards` are the data cards of the export, the JSON card last.
    """
    sentences = _folder_problems(target.parent)
    if sentences or not os.path.lexists(target):
        return sentences
    if target.is_symlink() or not target.is_dir():
        return [f"{target} is not a folder. Name a new one."]
    names = list(_list_files(target))
    if names and not _is_unchanged(target, names, cards):
        return [
            f"{target} holds other things, or was changed since an export wrote it. Name a new folder, or empty it."
        ]
    return []


def _list_files(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if Path(place, name).is_symlink()]
        for name in [*files, *links]:
            yield Path(place, name).relative_to(folder).as_posix()


def _is_unchanged(folder: Path, names: list[str], cards: list[Path]) -> bool:
    card = _read_sealed_card(cards[-1])
    if not card:
        return False
    written, listing = card["written"], FileDigest()
    try:
        for name in names:
            if folder / name == cards[-1]:
                continue
            if name not in written:
                listing.add(name, folder / name)
            elif compute_sha256(folder / name) != written[name]:
                return False
    except OSError:
        return False
    return written.keys() <= set(names) and listing.as_json() == card.get("others", FileDigest().as_json())


def find_file_problems(path: Path, target: Path, overwrite: bool) -> list[str]:
    """Return why an additional file of this export cannot be written."""
    return find_problems([path, target.with_name(f"{target.stem}.card.json")], overwrite)


def find_problems(paths: list[Path], overwrite: bool) -> list[str]:
    """Return why the files of an export, its JSON card last, cannot be written.

    `overwrite` also replaces files that no export wrote.
    """
    folder = paths[0].parent
    sentences = _folder_problems(folder)
    known = _read_written_files(paths[-1])
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
            sentences.append(f"{path} is {_describe_file_type(mode)}, not a file. Name another one.")
        elif not overwrite and not (known if path == paths[-1] else _hash_file(path) == known.get(path.name)):
            others.append(path)
    if others:
        listed = ", ".join(str(path) for path in others)
        sentences.append(
            f"Already there, and not written by an export, or changed since: {listed}. Name another file, or replace "
            f"{'it' if len(others) == 1 else 'them'} with --overwrite."
        )
    return sentences


def is_download_folder(paths: Paths, folder: Path) -> bool:
    """Return whether a folder was made for one download from the server."""
    parts = folder.relative_to(paths.downloads).parts if folder.is_relative_to(paths.downloads) else ()
    return bool(parts and DOWNLOAD_FOLDER_NAME.fullmatch(parts[0]))


def seal_card(
    card: dict[str, Any], path: Path, written: dict[str, str], others: FileDigest | None = None
) -> dict[str, Any]:
    """Return the data card with the sha256 of written files and a seal, a hash that reveals later changes.

    Files of an earlier export with the same card stay listed. `others` is the digest of files in a folder that are not
    in `written`, None for an export to files.
    """
    if others is None:
        complete = card | {"written": _read_written_files(path) | written}
    else:
        complete = card | {"written": written, "others": others.as_json()}
    return complete | {SEAL_KEY: _compute_seal(complete)}


def _folder_problems(folder: Path) -> list[str]:
    place = folder.resolve()
    project = next((parent for parent in (place, *place.parents) if os.path.lexists(Paths(parent).database)), None)
    exports = Paths(project).exports if project else place
    if project and not place.is_relative_to(exports) and not is_download_folder(Paths(project), place):
        return [
            f"{folder} is in the project {project}: an export could overwrite what is kept there. Name a place outside "
            f"it, or {exports}"
        ]
    if project and not place.exists() and place == exports:
        place = project  # the exports folder is made when it is written to
    if not place.is_dir():
        return [f"There is no folder {folder} to write to. Make it first."]
    if not can_write(place):
        return [f"The folder {folder} may not be written. Check its rights."]
    return []


def _read_written_files(card: Path) -> dict[str, str]:
    """Return the sha256 of each file in an export's JSON card, or {} if the card was changed."""
    content = _read_sealed_card(card)
    return content["written"] if content else {}


def _read_sealed_card(card: Path) -> dict[str, Any]:
    try:
        if not stat.S_ISREG(card.lstat().st_mode) or card.lstat().st_size > MAX_CARD_BYTES:
            return {}
        content = json.loads(card.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict) or content.pop(SEAL_KEY, None) != _compute_seal(content):
        return {}
    return content


def _compute_seal(card: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(card, sort_keys=True).encode()).hexdigest()


def _hash_file(path: Path) -> str | None:
    try:
        return compute_sha256(path)
    except OSError:
        return None


def _describe_file_type(mode: int) -> str:
    kinds = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
