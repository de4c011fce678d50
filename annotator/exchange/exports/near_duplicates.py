"""Groups of images that show the same picture at another size or quality, so that they stay in one split.

Each image has a difference hash of 64 bits (store/pictures/appearance.py). Images whose hashes differ in at most three
bits are linked, and linked images form a group; no model is involved. Two such hashes agree in at least one of their
four quarters: only these are compared.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.images import appearances, images
from annotator.store.images.band_setting import shown_bands
from annotator.store.locations.location import open_source
from annotator.store.pictures.appearance import HASH_SIDE, hash_of
from annotator.store.pictures.decoding import BadImage, open_rgb

BITS = 3
NEIGHBOURS = 16  # hashes with an equal quarter, sorted by their other bits, that each hash is compared with
ONES = np.array([value.bit_count() for value in range(256)], np.uint8)
AT_ONCE = 1000


def groups(db: Database, ids: np.ndarray, progress: Callable[[int, int], None]) -> np.ndarray:
    """Return the group of each image, (N,) int64 from 0 on.

    Reads the files of images that the worker has not measured; one whose file cannot be read gets a group of its own.
    """
    known = appearances.hashes(db, ids)
    hashes = np.zeros(len(ids), np.int64)
    unreadable = np.zeros(len(ids), bool)
    with ThreadPoolExecutor() as pool:
        for start in range(0, len(ids), AT_ONCE):
            some = ids[start : start + AT_ONCE].tolist()
            for place, value in enumerate(
                pool.map(lambda image_id: known[image_id] if image_id in known else _hash_of(db, image_id), some),
                start=start,
            ):
                hashes[place], unreadable[place] = value or 0, value is None
            progress(min(start + AT_ONCE, len(ids)), len(ids))
    groups_ = similar(hashes.view(np.uint64))
    alone = np.cumsum(unreadable) + (groups_.max() if len(ids) else 0)
    _, numbered = np.unique(np.where(unreadable, alone, groups_), return_inverse=True)
    return numbered.astype(np.int64)


def similar(hashes: np.ndarray) -> np.ndarray:
    """Return the group of each hash, (N,) uint64 -> (N,) int64 from 0 on."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    unique, which = np.unique(hashes, return_inverse=True)
    starts, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for quarter in range(4):
        shift = np.uint64(16 * quarter)
        rotated = unique if not quarter else (unique << shift) | (unique >> (np.uint64(64) - shift))
        order = np.argsort(rotated)
        ranked, first = unique[order], rotated[order] >> np.uint64(48)
        for step in range(1, min(NEIGHBOURS, len(unique) - 1) + 1):
            different = ONES[(ranked[step:] ^ ranked[:-step]).view(np.uint8).reshape(-1, 8)].sum(1)
            close = np.flatnonzero((first[step:] == first[:-step]) & (different <= BITS))
            starts.append(order[close])
            ends.append(order[close + step])
    edges = np.concatenate(starts), np.concatenate(ends)
    graph = coo_array((np.ones(len(edges[0]), bool), edges), shape=(len(unique), len(unique)))
    _, component = connected_components(graph, directed=False)
    return component[which].astype(np.int64)


def _hash_of(db: Database, image_id: int) -> int | None:
    try:
        source = open_source(images.image_source(db, image_id), patient=True)
        picture = open_rgb(source, (HASH_SIDE * 4, HASH_SIDE * 4), shown_bands(db))
    except (AnnotatorError, BadImage):
        return None
    return hash_of(picture.convert("L"))
