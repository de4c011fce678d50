"""Content hashes of images, so that features are only used for their own image.

Image ids are unique only within one project.db, so shards store sha256 prefixes.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from annotator.store.database.database import Database

CHANGES_SETTING = "pixels_changed"  # setting: how often another choice of bands has changed the pixels of images
HASH_BYTES = 8  # of a sha256: in one case of 2**64, two images have the same ones
IDS_PER_QUERY = 50_000  # ids that are looked up at once
HASH_DIGITS = 2 * HASH_BYTES
DENSE_RANGE_FACTOR = 4  # with one wanted id in so many or more, a whole range of images is read: five times as fast


class ImageContents(Protocol):
    """An interface: the image ids and content hashes by which shards are checked."""

    def get_newest_id(self) -> int:
        """Return the highest image id, or 0. Ids are never reused."""
        ...

    def count_changes(self) -> int:
        """Return a counter of content changes of existing images."""
        ...

    def load_hashes(self, image_ids: np.ndarray) -> np.ndarray:
        """Return sha256 prefixes (n, HASH_BYTES) uint8, zeros for unknown ids."""
        ...


class ProjectContents:
    """A reader of image ids and content hashes from the project's database (an `ImageContents`)."""

    def __init__(self, db: Database):
        self._db = db

    def get_newest_id(self) -> int:
        return self._db.value("SELECT coalesce(max(id), 0) FROM image")

    def count_changes(self) -> int:
        return self._db.get_setting(CHANGES_SETTING, 0)

    def load_hashes(self, image_ids: np.ndarray) -> np.ndarray:
        wanted, places = np.unique(np.asarray(image_ids, np.int64), return_inverse=True)
        found = np.zeros((len(wanted), HASH_BYTES), np.uint8)
        for start in range(0, len(wanted), IDS_PER_QUERY):
            block = wanted[start : start + IDS_PER_QUERY]
            ids, contents = self._load_block(block)
            if len(ids):
                rows = np.minimum(np.searchsorted(block, ids), len(block) - 1)
                asked = block[rows] == ids
                found[start : start + IDS_PER_QUERY][rows[asked]] = contents[asked]
        return found[places.reshape(-1)]

    def _load_block(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return image ids (m,), including the ascending `ids` (n,), and contents (m, HASH_BYTES)."""
        first, last = int(ids[0]), int(ids[-1])
        if last - first < DENSE_RANGE_FACTOR * len(ids):
            of_these, parameters = "id BETWEEN ? AND ?", [first, last]
        else:
            of_these, parameters = "id IN (SELECT value FROM json_each(?))", [json.dumps(ids.tolist())]
        # Two texts instead of a row for each image: a third of the time.
        query = (
            f"SELECT group_concat(id), group_concat(substr(sha256, 1, {HASH_DIGITS}), '') FROM image WHERE {of_these}"
        )
        numbers, digits = self._db.tuples(query, parameters)[0]
        found = np.fromstring(numbers or "", np.int64, sep=",")
        content = _parse_hex(digits or "")
        if len(content) != HASH_BYTES * len(found):
            rows = self._db.tuples(f"SELECT id, sha256 FROM image WHERE {of_these}", parameters)
            found, content = (
                np.array([row[0] for row in rows], np.int64),
                b"".join(_compute_prefix(row[1]) for row in rows),
            )
        contents = np.frombuffer(content, np.uint8).reshape(len(found), HASH_BYTES)
        # Of an image of many bands, what is shown belongs to what features were made of.
        many = self._db.tuples(
            f"SELECT id, sha256, bands FROM image WHERE bands != '' AND {of_these} ORDER BY id", parameters
        )
        if many:
            contents, place_of = contents.copy(), dict(zip(found.tolist(), range(len(found)), strict=True))
            for image_id, sha256, bands in many:
                contents[place_of[image_id]] = np.frombuffer(_compute_prefix(f"{sha256} {bands}"), np.uint8)
        return found, contents


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """The result of comparing a shard's rows with the project's images."""

    # (n,) bool, whether the content matches
    right: np.ndarray
    # mismatching rows
    others: int = 0
    # lowest image id in the shard that the project has not yet assigned, or None
    lowest: int | None = None


def compare_contents(shards: Sequence[tuple[np.ndarray, np.ndarray]], project: ImageContents) -> list[CheckedRows]:
    """Compare the image ids (n,) and contents (n, HASH_BYTES) of shards with the project's images."""
    # read before the contents: images registered in between are then found, or checked again
    newest = project.get_newest_id()
    known = project.load_hashes(np.concatenate([np.zeros(0, np.int64), *(ids for ids, _ in shards)]))
    checked: list[CheckedRows] = []
    start = 0
    for ids, made_of in shards:
        now = known[start : start + len(ids)]
        start += len(ids)
        is_image = now.any(1)
        right = is_image & (now == made_of).all(1)
        free = ids[~is_image & (ids > newest)]
        checked.append(CheckedRows(right, int((is_image & ~right).sum()), int(free.min()) if len(free) else None))
    return checked


def _compute_prefix(digest: str) -> bytes:
    """Return the first HASH_BYTES of a hexadecimal sha256, or of the sha256 of any other text."""
    content = _parse_hex(digest[:HASH_DIGITS]) if " " not in digest else b""
    return (
        content
        if len(content) == HASH_BYTES
        else hashlib.sha256(digest.encode(errors="surrogatepass")).digest()[:HASH_BYTES]
    )


def _parse_hex(digits: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError:
        return b""
