"""Scores of image patches for class names, in a folder of files per wording (set of prompts).

    predictions/names/<wording>/<first image>-<random>.npz
        image_ids (n,), contents (n, 8), scores (n, C) float16

`contents` identifies the image content.
"""

import shutil
import uuid
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from annotator.indexing import find_positions
from annotator.store.database.arrays import replace_file_atomically
from annotator.store.database.database import Database
from annotator.store.features.project_contents import HASH_BYTES, ProjectContents


class PatchScores:
    """The stored patch scores of one wording (set of prompts), read at once and extended by `add`."""

    def __init__(self, db: Database, wording: str, classes: int):
        """Read the scores of images with unchanged content, and delete unreadable files."""
        self.wording = wording
        self._db, self._folder, self._contents = db, db.paths.patch_scores(wording), ProjectContents(db)
        self._ids: list[np.ndarray] = [np.zeros(0, np.int64)]
        self._scores: list[np.ndarray] = [np.zeros((0, classes), np.float16)]
        for path in sorted(self._folder.glob("*.npz")):
            rows = _read_file(path, classes)
            if rows is None:
                path.unlink(missing_ok=True)
                continue
            ids, contents, scores = rows
            same = (contents == self._contents.load_hashes(ids)).all(1)
            self._ids.append(ids[same])
            self._scores.append(scores[same])

    @property
    def image_ids(self) -> np.ndarray:
        """Return the ids of the images with scores, (n,) int64."""
        if len(self._ids) > 1:
            self._ids = [np.concatenate(self._ids)]
        return self._ids[0]

    def add(self, image_ids: Sequence[int], scores: np.ndarray) -> None:
        """Store the scores (n, C) of more images, or raise DiskFull."""
        ids, half = np.array(image_ids, np.int64), scores.astype(np.float16)
        path = self._folder / f"{ids[0]}-{uuid.uuid4().hex[:8]}.npz"
        with replace_file_atomically(path, sync=False) as part, part.open("wb") as file:
            np.savez(file, image_ids=ids, contents=self._contents.load_hashes(ids), scores=half)
        self._ids.append(ids)
        self._scores.append(half)

    def align(self, image_ids: np.ndarray) -> np.ndarray:
        """Return the scores in the order of `image_ids`, (N, C) float16, nan if missing."""
        own, scores = self.image_ids, np.concatenate(self._scores)
        self._scores = [scores]
        rows, known = find_positions(image_ids, own, np.argsort(own, kind="stable"))
        result = np.full((len(image_ids), scores.shape[1]), np.nan, np.float16)
        result[known] = scores[rows[known]]
        return result


def _read_file(path: Path, classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            ids, contents, scores = (np.asarray(file[name]) for name in ("image_ids", "contents", "scores"))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    fits = contents.shape == (len(ids), HASH_BYTES) and scores.shape == (len(ids), classes)
    return (ids, contents, scores) if fits else None


def delete_other_wordings(db: Database, wording: str) -> None:
    """Delete the patch scores of all other wordings (sets of prompts)."""
    folder = db.paths.patch_scores(wording)
    for other in folder.parent.iterdir() if folder.parent.exists() else ():
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
