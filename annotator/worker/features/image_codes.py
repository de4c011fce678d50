"""Compressed embeddings (codes) of all images, for incremental updates of runs.

Until BASIS_SAMPLE_IMAGES exist, each doubling relearns the basis and nothing is stored.
"""

import logging
from functools import partial

import numpy as np
import torch

from annotator.errors import DiskFull
from annotator.store.database.arrays import create_scratch_array
from annotator.store.features.feature_cache import FeatureCache
from annotator.store.features.sharded_rows import ShardedRows
from annotator.store.features.stored_image_codes import read_codes, save_codes
from annotator.worker.features.region_coding import to_basis, to_stored_basis
from spmll.ensemble.incremental_update import (
    BASIS_SAMPLE_IMAGES,
    IMAGES_PER_CHUNK,
    ImageCodes,
    encode_images,
    learn_image_basis,
)

REWRITE_NEW_SHARE = 0.05  # share of the images whose codes are not kept yet, above which all are written again

log = logging.getLogger("annotator.worker")


class ImageCodesCache:
    """An in-memory cache of all image codes."""

    def __init__(self):
        self._folder = None
        self._codes: ImageCodes | None = None
        self._image_ids, self._learned_from, self._kept = np.zeros(0, np.int64), 0, 0

    def get_codes(self, cache: FeatureCache, features: ShardedRows, image_ids: np.ndarray) -> ImageCodes:
        """Return the codes of these images, computing missing ones.

        Args:
            features: (N, D), a snapshot of the cache.
            image_ids: (N,).
        """
        if self._codes is None or self._folder != cache.folder or not self._extends_coded_images(image_ids):
            self._folder, self._codes = cache.folder, None
            self._load_stored_codes(cache, features, image_ids)
        images, empty = len(features), partial(create_scratch_array, cache.folder)
        doubled = self._learned_from < BASIS_SAMPLE_IMAGES and images >= 2 * self._learned_from
        if self._codes is None or doubled:
            self._codes = encode_images(learn_image_basis(features), features, 0, empty)
            self._learned_from, self._kept = images, 0
        elif len(self._codes) < images:
            self._codes = self._codes.join(encode_images(self._codes.basis, features, len(self._codes), empty), empty)
        self._image_ids = image_ids
        if self._learned_from >= BASIS_SAMPLE_IMAGES and images - self._kept > REWRITE_NEW_SHARE * images:
            self._save_codes(cache, features, image_ids, self._codes)
        return self._codes

    def _extends_coded_images(self, image_ids: np.ndarray) -> bool:
        """Return whether `image_ids` starts with the images that have codes, in the same order."""
        return np.array_equal(image_ids[: len(self._image_ids)], self._image_ids)

    def _load_stored_codes(self, cache: FeatureCache, features: ShardedRows, image_ids: np.ndarray) -> None:
        """Load stored codes and add missing ones, unless most are missing."""
        kept = read_codes(cache.folder)
        if kept is None or len(kept.basis.centre) != features.shape[1]:
            return
        rows = kept.find_rows(image_ids, *features.get_shard_index())
        missing = np.flatnonzero(rows < 0)
        if 2 * len(missing) > len(rows):
            return
        basis, codes = to_basis(kept.basis), kept.codes
        if len(missing) or not np.array_equal(rows, np.arange(len(codes))):
            codes = create_scratch_array(cache.folder, (len(rows), codes.shape[1]), np.int8)
            for start in range(0, len(rows), IMAGES_PER_CHUNK):
                block = rows[start : start + IMAGES_PER_CHUNK]
                codes[start : start + IMAGES_PER_CHUNK] = kept.codes[block]  # -1: any, made below
            for start in range(0, len(missing), IMAGES_PER_CHUNK):
                block = missing[start : start + IMAGES_PER_CHUNK]
                codes[block] = encode_images(basis, features[block]).steps.numpy()
        self._codes = ImageCodes(basis, torch.from_numpy(codes))
        self._learned_from, self._kept = len(kept.image_ids), len(rows) - len(missing)

    def _save_codes(self, cache: FeatureCache, features: ShardedRows, image_ids: np.ndarray, codes: ImageCodes) -> None:
        self._kept = len(codes)  # also where it fails: not tried again at every run
        try:
            save_codes(
                cache.folder, to_stored_basis(codes.basis), image_ids, *features.get_shard_index(), codes.steps.numpy()
            )
        except DiskFull as error:
            log.warning("the codes of images were not kept: %s", error)
