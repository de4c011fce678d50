"""The only writer of `annotator embed`: stores embeddings and failures.

A kill loses at most SHARD_SECONDS of work, and the next run plans from the shards.
"""

import time
from dataclasses import dataclass, field

import numpy as np

from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache
from annotator.store.features.shards import CodedRegions, write_shard
from annotator.store.images import address_cache, appearances, images
from annotator.store.locations.remote_files import UNREADABLE_NOW_PROBLEM
from annotator.store.pictures.appearance import Appearance
from annotator.store.pictures.decoding import ImageFacts
from annotator.worker.features.image_embedder import NOT_FINITE_PROBLEM, SHARD_SECONDS

MAX_SHARD_IMAGES = 4096  # after so many a shard is written also before SHARD_SECONDS: 100 MB with regions


@dataclass(frozen=True, eq=False)
class EmbeddingResult:
    """Embedded images to store."""

    # (n,) int64
    image_ids: np.ndarray
    # (n, D) float16
    features: np.ndarray
    # (n, R, D) float16, or codes from a cluster
    regions: np.ndarray | CodedRegions
    # (image id, reason)
    failures: list[tuple[int, str]] = field(default_factory=list)
    # (image id, size and time), images at URLs only
    facts: list[tuple[int, ImageFacts]] = field(default_factory=list)
    appearances: list[tuple[int, Appearance]] = field(default_factory=list)
    node: str = "this machine"


class ResultWriter:
    """The writer of embedding shards and failure reasons."""

    def __init__(self, db: Database, cache: FeatureCache):
        self._db, self._cache = db, cache
        self._shard: list[EmbeddingResult] = []
        self._written_at = time.monotonic()
        self.embedded = 0  # images with features in a shard
        self.failed = 0  # images with a note
        self.unanswered: list[int] = []  # image ids whose address did not answer: they are tried again, without a note

    def add(self, result: EmbeddingResult) -> int:
        """Add a result to the next shard and return the number of finished images.

        Images at unresponsive URLs go to `unanswered`. Raises DiskFull.
        """
        finite = np.asarray(np.isfinite(result.features).all(1))
        failures = result.failures + [(int(image_id), NOT_FINITE_PROBLEM) for image_id in result.image_ids[~finite]]
        unanswered = [image_id for image_id, reason in failures if reason.startswith(UNREADABLE_NOW_PROBLEM)]
        for image_id, reason in failures:
            if not reason.startswith(UNREADABLE_NOW_PROBLEM):
                images.mark_problem(self._db, image_id, reason)
        address_cache.save_missing_facts(self._db, result.facts)
        self.unanswered += unanswered
        self.failed += len(failures) - len(unanswered)
        if finite.any():
            regions = result.regions
            regions = regions[finite] if isinstance(regions, np.ndarray) else _select_codes(regions, finite)
            ids = result.image_ids[finite]
            self._shard.append(EmbeddingResult(ids, result.features[finite], regions, appearances=result.appearances))
        self.write_if_due()
        return int(finite.sum()) + len(failures) - len(unanswered)

    def write_if_due(self) -> None:
        """Write a shard if enough results are waiting. Raises DiskFull."""
        waiting = sum(len(part.image_ids) for part in self._shard)
        if waiting >= MAX_SHARD_IMAGES or (waiting and time.monotonic() - self._written_at > SHARD_SECONDS):
            self.write()

    def write(self) -> None:
        """Write waiting results as shards. Raises DiskFull."""
        from annotator.worker.features.region_coding import write_features  # torch is loaded by now

        appearances.save(self._db, [one for part in self._shard for one in part.appearances])
        with_regions = [part for part in self._shard if isinstance(part.regions, np.ndarray)]
        with_codes = [part for part in self._shard if isinstance(part.regions, CodedRegions)]
        if with_regions:
            write_features(
                self._cache,
                *_concatenate_features(with_regions),
                np.concatenate([np.asarray(part.regions) for part in with_regions]),
            )
        if with_codes:
            codes = [part.regions for part in with_codes if isinstance(part.regions, CodedRegions)]
            several = (np.concatenate([code.codes for code in codes]), np.concatenate([code.lengths for code in codes]))
            image_ids, features = _concatenate_features(with_codes)
            contents = self._cache.contents.load_hashes(image_ids)
            write_shard(self._cache.folder, image_ids, contents, features, CodedRegions(*several, codes[0].basis))
        self.embedded += sum(len(part.image_ids) for part in self._shard)
        self._shard.clear()
        self._written_at = time.monotonic()


def _concatenate_features(parts: list[EmbeddingResult]) -> tuple[np.ndarray, np.ndarray]:
    ids = np.concatenate([part.image_ids for part in parts])
    return ids, np.concatenate([part.features for part in parts])


def _select_codes(codes: CodedRegions, rows: np.ndarray) -> CodedRegions:
    return CodedRegions(codes.codes[rows], codes.lengths[rows], codes.basis)
