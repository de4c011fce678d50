"""Embeds images that have no embedding, most needed first."""

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from annotator.errors import AnnotatorError
from annotator.progress_callbacks import StepCallback
from annotator.store.images import address_cache, appearances, images
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.locations.location import ImageSource
from annotator.store.networks import embedding_claim
from annotator.store.pictures.appearance import Appearance
from annotator.worker.features.unreachable_addresses import UnreachableAddresses
from annotator.worker.features.work_list import WorkList
from annotator.worker.features.worker_context import WorkerContext

SHARD_SECONDS = 5.0  # features are written this often while embedding: the most that a kill can lose
MIN_TRAINING_INTERVAL_SECONDS = 10.0  # while features are still coming, runs are published no more often than this
IMAGES_PER_ROUND = 2000  # embedded before the order of the missing images is read again
ADDRESS_RETRY_SECONDS = 30.0  # before images of a bucket that does not answer are tried again,
LISTING_PAUSE_FACTOR = 10  # and so many times as long as listing the missing images took
NOT_FINITE_PROBLEM = "the network makes numbers of it that are not finite"

ShardParts = list[tuple[np.ndarray, np.ndarray, np.ndarray]]  # image ids (n,), features (n, D), regions (n, R, D)


class ImageEmbedder:
    """The worker duty of embedding images."""

    def __init__(self, context: WorkerContext, on_step: StepCallback):
        """Create the duty. `on_step` is called per batch with (state, done, of)."""
        self._context, self._db, self._on_step = context, context.db, on_step
        self._checked: tuple | None = None  # (registrations, backbone) for which every image has been tried
        self._waits_with: tuple | None = None  # the same, when an address was away: waits until _retry_at
        self._retry_at = 0.0
        self._looked_at = 0.0  # for shards of another process

    def embed_missing(self, train: Callable[[], bool] | None = None) -> None:
        """Embed all images that have no embedding, unless `annotator embed` is running.

        Args:
            train: Called between batches, so that suggestions do not wait for the last image.
        """
        state = self._get_state()
        if state == self._checked or (state == self._waits_with and time.monotonic() < self._retry_at):
            return
        if self._is_embedding_elsewhere():
            return
        self._context.get_features().refresh()  # another process may have added some
        trained_at = time.monotonic()
        away, missing = UnreachableAddresses(), self._build_work_list()
        while image_ids := missing.pop(IMAGES_PER_ROUND):
            for _ in self._embed_images(image_ids, len(missing) + len(image_ids), away):
                if self._is_embedding_elsewhere():
                    return
                if train and time.monotonic() - trained_at > MIN_TRAINING_INTERVAL_SECONDS and train():
                    trained_at = time.monotonic()
            if state != self._get_state() or not (len(missing) or away.addresses):
                state, missing = self._get_state(), self._build_work_list()
            for address in away.addresses - missing.excluded_addresses:
                missing.exclude_address(address)
        if away.addresses:
            self._waits_with, self._retry_at = (
                state,
                time.monotonic() + ADDRESS_RETRY_SECONDS + LISTING_PAUSE_FACTOR * missing.seconds,
            )
        else:
            self._checked = state

    def _get_state(self) -> tuple:
        return self._db.get_setting("registrations", 0), self._context.get_backbone_name()

    def _is_embedding_elsewhere(self) -> bool:
        """Return whether `annotator embed` is running, and read the shards that it has written."""
        if embedding_claim.get_running(self._db) is None:
            return False
        if time.monotonic() - self._looked_at > SHARD_SECONDS:
            self._context.get_features().refresh()
            self._looked_at = time.monotonic()
        return True

    def find_missing(self) -> list[int]:
        """Return image ids to embed, most needed first."""
        missing = self._build_work_list()
        return missing.pop(len(missing))

    def _build_work_list(self) -> WorkList:
        return WorkList(self._db, self._context.get_features().image_ids)

    def _embed_images(
        self, image_ids: Sequence[int], missing: int, unreachable: UnreachableAddresses
    ) -> Iterator[None]:
        from annotator.worker.features.embed import embed_images

        done = len(self._context.get_features().image_ids)
        total = done + missing
        self._context.report_state("embedding", done, total)
        paths, ids = self._find_sources(image_ids)
        shard: ShardParts = []
        looks: list[tuple[int, Appearance]] = []
        written_at = time.monotonic()
        registered = images.load_images(self._db, ids)
        contents = [registered[image_id].sha256 for image_id in ids]
        should_stop, bands = self._context.stop.is_set, get_shown_bands(self._db)
        for batch in embed_images(
            paths, self._context.get_backbone(), regions=True, should_stop=should_stop, contents=contents,
            should_skip=unreachable.is_unreachable, bands=bands,
        ):  # fmt: skip
            features = batch.features.astype(np.float16)
            assert batch.regions is not None  # they were asked for
            finite = np.isfinite(features).all(1) & np.isfinite(batch.regions).all((1, 2))
            batch_ids = np.array([ids[index] for index in batch.indices], np.int64)
            shard.append((batch_ids[finite], features[finite], batch.regions[finite]))
            not_finite = [(batch.indices[row], NOT_FINITE_PROBLEM) for row in np.flatnonzero(~finite)]
            for index in batch.indices:
                unreachable.record_answer(paths[index])
            for index, reason in batch.failures + not_finite:
                if not unreachable.record_failure(paths[index], reason):
                    images.mark_problem(self._db, ids[index], reason)
            address_cache.save_missing_facts(self._db, [(ids[index], facts) for index, facts in batch.facts])
            looks += [(ids[index], appearance) for index, appearance in batch.appearances]
            done += len(batch.indices)
            self._on_step("embedding", done, total)
            if get_shown_bands(self._db) != bands:
                shard.clear()  # of other pixels than those that are shown from now on
                return
            if time.monotonic() - written_at > SHARD_SECONDS:
                self._write_shard(shard, looks)
                written_at = time.monotonic()
                yield
        self._write_shard(shard, looks)
        self._context.check_stop()
        yield

    def _find_sources(self, image_ids: Sequence[int]) -> tuple[list[ImageSource], list[int]]:
        """Return (files, ids) of those images that have a file, and mark the others as missing."""
        paths: list[ImageSource] = []
        ids: list[int] = []
        for image_id in image_ids:
            try:
                paths.append(images.find_image_source(self._db, image_id))
                ids.append(image_id)
            except AnnotatorError as error:
                images.mark_problem(self._db, image_id, str(error))
        return paths, ids

    def _write_shard(self, shard: ShardParts, looks: list[tuple[int, Appearance]]) -> None:
        appearances.save(self._db, looks)
        looks.clear()
        if shard:
            ids, features, regions = (np.concatenate(arrays) for arrays in zip(*shard, strict=True))
            if len(ids):
                from annotator.worker.features.region_coding import write_features  # torch is loaded by now

                write_features(self._context.get_features(), ids, features, regions)
            shard.clear()
