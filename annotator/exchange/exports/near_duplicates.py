"""Groups of near-duplicate images for splits, found by difference hashes without a backbone."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from annotator.errors import AnnotatorError
from annotator.progress_callbacks import ProgressCallback
from annotator.store.database.database import Database
from annotator.store.images import appearances, images
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.locations.location import open_source
from annotator.store.pictures.appearance import HASH_SIDE, compute_difference_hash
from annotator.store.pictures.decoding import BadImage, open_rgb
from spmll.near_duplicates import group_similar_hashes

IMAGES_PER_BATCH = 1000


def find_groups(db: Database, ids: np.ndarray, progress: ProgressCallback) -> np.ndarray:
    """Return the near-duplicate group of each image, (N,) int64 from 0. An unreadable image is its own group."""
    known = appearances.load_hashes(db, ids)

    def hash_(image_id: int) -> int | None:
        return known[image_id] if image_id in known else _compute_hash(db, image_id)

    hashes = np.zeros(len(ids), np.int64)
    unreadable = np.zeros(len(ids), bool)
    with ThreadPoolExecutor() as pool:
        for start in range(0, len(ids), IMAGES_PER_BATCH):
            some = ids[start : start + IMAGES_PER_BATCH].tolist()
            for place, value in enumerate(pool.map(hash_, some), start=start):
                hashes[place], unreadable[place] = value or 0, value is None
            progress(min(start + IMAGES_PER_BATCH, len(ids)), len(ids))
    groups_ = group_similar_hashes(hashes.view(np.uint64))
    alone = np.cumsum(unreadable) + (groups_.max() if len(ids) else 0)
    _, numbered = np.unique(np.where(unreadable, alone, groups_), return_inverse=True)
    return numbered.astype(np.int64)


def _compute_hash(db: Database, image_id: int) -> int | None:
    try:
        source = open_source(images.find_image_source(db, image_id), patient=True)
        picture = open_rgb(source, (HASH_SIDE * 4, HASH_SIDE * 4), get_shown_bands(db))
    except (AnnotatorError, BadImage):
        return None
    return compute_difference_hash(picture.convert("L"))
