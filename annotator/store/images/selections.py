"""Image selections from the map, stored as one array file each.

File names start with a digest of the annotator, so that annotators only replace their own selections.
"""

import uuid
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError
from annotator.store.database.arrays import open_array, save_array
from annotator.store.database.database import Database

SELECTIONS_PER_PERSON = 20  # of a person
MAX_IMAGES = 50_000  # more than anybody reviews


def save(db: Database, image_ids: np.ndarray, by: str = "") -> str:
    """Store an annotator's selection, keep the newest SELECTIONS_PER_PERSON, and return its id.

    Args:
        image_ids: (n,) unique integers, thinned evenly to MAX_IMAGES.
    """
    ids = np.asarray(image_ids, np.int64)
    if len(ids) > MAX_IMAGES:
        ids = ids[np.linspace(0, len(ids) - 1, MAX_IMAGES).astype(np.int64)]
    ids = np.sort(ids)
    owner = sha256(by.encode()).hexdigest()[:16]
    selection = f"{owner}{uuid.uuid4().hex[:16]}"
    folder = db.paths.selections
    save_array(folder / f"{selection}.npy", ids)
    others = [path for path in folder.glob(f"{owner}*.npy") if path.stem != selection]
    for path in sorted(others, key=_get_save_time, reverse=True)[SELECTIONS_PER_PERSON - 1 :]:
        path.unlink(missing_ok=True)
    return selection


def _get_save_time(path: Path) -> int:
    with suppress(FileNotFoundError):  # another request of the same person deletes, too
        return path.stat().st_mtime_ns
    return 0


def load(db: Database, selection: str) -> np.ndarray:
    """Return a selection's images, (n,) int64, ascending, or raise AnnotatorError."""
    try:
        if not selection.isalnum():  # it comes from a URL and must not name another file
            raise FileNotFoundError
        return np.array(open_array(db.paths.selections / f"{selection}.npy", np.int64, 1))
    except (FileNotFoundError, ValueError):  # the latter: emptied, cut off or overwritten
        raise AnnotatorError(
            f"The selection {selection[:40]!r} is gone: only each person's newest {SELECTIONS_PER_PERSON} are kept.\n"
            "    Select the images again on the Map page."
        ) from None
