"""Selections of images on the map, stored for the grid: one array file each, the newest KEPT."""

import uuid

import numpy as np

from annotator.errors import AnnotatorError
from annotator.store.database.arrays import open_array, save_array
from annotator.store.database.database import Database

KEPT = 20
MOST_IMAGES = 50_000  # more than anybody reviews


def save(db: Database, image_ids: np.ndarray) -> str:
    """Store a selection and return its id; the oldest selections are deleted.

    Args:
        image_ids: (n,) of any integer type, no image twice; of more than MOST_IMAGES, that many are kept, evenly
            spread.

    Raises DiskFull.
    """
    ids = np.asarray(image_ids, np.int64)
    if len(ids) > MOST_IMAGES:
        ids = ids[np.linspace(0, len(ids) - 1, MOST_IMAGES).astype(np.int64)]
    ids = np.sort(ids)
    selection = uuid.uuid4().hex[:16]
    folder = db.paths.selections
    save_array(folder / f"{selection}.npy", ids)
    newest = sorted(folder.glob("[!.]*.npy"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in newest[KEPT:]:
        path.unlink(missing_ok=True)
    return selection


def load(db: Database, selection: str) -> np.ndarray:
    """The images of a selection, (n,) int64, ascending. Raises AnnotatorError when it is gone."""
    try:
        if not selection.isalnum():  # it comes from a URL and must not name another file
            raise FileNotFoundError
        return np.array(open_array(db.paths.selections / f"{selection}.npy", np.int64, 1))
    except (FileNotFoundError, ValueError):  # the latter: emptied, cut off or overwritten
        raise AnnotatorError(
            f"The selection {selection[:40]!r} is gone: only the newest {KEPT} are kept.\n"
            "    Select the images again on the Map page."
        ) from None
