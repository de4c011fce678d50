"""Atomic replacement of several files of one folder.

A note file lists the synced temporary files, so that `finish_renaming` can complete renames after a kill.
"""

import glob
import json
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from annotator.errors import DiskFull
from annotator.store.database.project_identity import make_folder_in_project
from annotator.store.disk.durable import sync_file, sync_folder
from annotator.store.disk.processes import build_temporary_path, is_abandoned

NOTE_SUFFIX = "renaming"  # the word in the name of a note
MAX_NOTE_BYTES = 1 << 20  # bytes of a note


class FileGroup:
    """A collector of the files of one `replace_files_together` block (`parts`: final path -> temporary path)."""

    def __init__(self) -> None:
        self.parts: dict[Path, Path] = {}

    def add_file(self, final: Path) -> Path:
        return self.parts.setdefault(final, build_temporary_path(final))


@contextmanager
def replace_files_together(target: Path) -> Generator[FileGroup]:
    """Collect files of one folder that are renamed when the block succeeds, `target` last.

    Raises:
        DiskFull: Old files are unchanged, or `finish_renaming` completes it.
    """
    files = FileGroup()
    files.add_file(target)
    note = build_temporary_path(target, NOTE_SUFFIX)
    try:
        make_folder_in_project(target.parent)
        yield files
        for part in files.parts.values():
            sync_file(part)
        _write_note(note, list(reversed(files.parts.items())))
        sync_folder(target.parent)
    except BaseException as error:
        for part in (*files.parts.values(), note):
            with suppress(OSError):
                part.unlink()
        if not isinstance(error, OSError):
            raise
        raise DiskFull(
            f"{target} could not be written: {error.strerror or error}. Nothing of it was kept"
            + ("; the file that was there before is as it was." if target.exists() else ".")
            + "\n    Is the disk full, or the folder write-protected? Free some space and try again."
        ) from error
    try:
        for final, part in reversed(files.parts.items()):
            part.replace(final)
        sync_folder(target.parent)
        note.unlink()
    except OSError as error:
        raise DiskFull(
            f"{target} is complete and could not be given its name: {error.strerror or error}.\n"
            "    May the folder be written? The same command finishes it."
        ) from error


def finish_renaming(target: Path) -> None:
    """Finish the renames that a killed process started next to `target`.

    If a file changed since, delete the temporary files instead.
    """
    for note in target.parent.glob(f".{glob.escape(target.name)}.*.{NOTE_SUFFIX}.part"):
        with suppress(OSError):
            if note.is_symlink() or not is_abandoned(note, 0.0):
                continue
            begun = _read_note(note)
            if all(_read_file_state(final) == state for final, _, state in begun):
                for final, part, _ in begun:
                    part.replace(final)
                sync_folder(target.parent)
            for _, part, _ in begun:
                part.unlink(missing_ok=True)
            note.unlink()


def _write_note(note: Path, files: list[tuple[Path, Path]]) -> None:
    rows = [[final.name, part.name, _read_file_state(final)] for final, part in files]
    with note.open("x", encoding="utf-8") as file:
        json.dump(rows, file)
        file.flush()
        os.fsync(file.fileno())


def _read_note(note: Path) -> list[tuple[Path, Path, list[int] | None]]:
    """Return (final path, temporary path, old file state) of the files still to rename."""
    try:
        if note.stat().st_size > MAX_NOTE_BYTES:
            return []
        rows = cast(list[Any], json.loads(note.read_text(encoding="utf-8")))
        files = [(note.with_name(str(final)), note.with_name(str(part)), state) for final, part, state in rows]
    except (ValueError, TypeError):
        return []
    return [
        (final, part, state)
        for final, part, state in files
        if part.name.startswith(f".{final.name}.") and part.name.endswith(".part") and _is_file(part)
    ]


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _read_file_state(path: Path) -> list[int] | None:
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return None
    return [facts.st_size, facts.st_mtime_ns, facts.st_ino]
