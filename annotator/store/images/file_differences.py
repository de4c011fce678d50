"""Comparison of a folder's files with the registered ones."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.progress_callbacks import ProgressCallback
from annotator.store.database.database import Database
from annotator.store.pictures.files import (
    UNREAD_STATE,
    FileState,
    compute_sha256,
    open_checked,
    read_file_state,
    unescape_path,
)


def find_differences(folder: Path, known: Mapping[str, FileState], paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the missing and the changed registered image files, sorted. Rejected ones (UNREAD_STATE) are skipped."""
    listed = set(paths)
    images = {path: state for path, state in known.items() if state != UNREAD_STATE}
    gone = sorted(path for path in images if path not in listed)
    changed = [
        path for path, state in images.items() if path in listed and read_file_state(folder, path) not in (None, state)
    ]
    return gone, sorted(changed)


def find_same_contents(
    db: Database, folder: Path, paths: Sequence[str], progress: ProgressCallback | None = None
) -> dict[str, int]:
    """Return path -> image with the same content, if the project can still display that image.

    Only files of a registered size are read.
    """
    query = """SELECT DISTINCT f.bytes FROM file f JOIN image i ON i.id = f.image_id WHERE i.problem = ''"""
    sizes = {row[0] for row in db.tuples(query)}
    held: dict[str, int] = {}
    for number, path in enumerate(paths, start=1):
        state = read_file_state(folder, path) if sizes else None
        if state and state.bytes in sizes:
            with suppress(OSError, AnnotatorError):
                image_id = _find_readable_image(db, compute_sha256(folder / unescape_path(path)))
                held |= {path: image_id} if image_id else {}
        if progress:
            progress(number, len(paths))
    return held


def _find_readable_image(db: Database, sha256: str) -> int | None:
    rows = db.tuples(
        """SELECT i.id, d.path, f.path, f.bytes, f.modified_ns, f.stamp FROM image i JOIN file f ON f.image_id = i.id
        JOIN folder d ON d.id = f.folder_id WHERE i.sha256 = ? AND i.problem = ''""",
        [sha256],
    )
    for image_id, folder, path, *recorded in rows:
        with suppress(AnnotatorError):
            open_checked(Path(unescape_path(folder)), path, FileState(*recorded), sha256)
            return int(image_id)
    return None
