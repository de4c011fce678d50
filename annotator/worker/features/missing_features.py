"""Embeds images that have no features yet, in the order in which they are needed."""

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from annotator.errors import AnnotatorError
from annotator.store.images import address_cache as fetched
from annotator.store.images import appearances, images
from annotator.store.images.band_setting import shown_bands
from annotator.store.locations.location import Source
from annotator.store.networks import embedding
from annotator.store.pictures.appearance import Appearance
from annotator.worker.features.context import Context
from annotator.worker.features.unreachable_addresses import Away
from annotator.worker.features.work_list import WorkList

SHARD_SECONDS = 5.0  # features are written this often while embedding: the most that a kill can lose
TRAIN_WHILE_EMBEDDING = 10.0  # while features are still coming, runs are published no more often than this
IMAGES_AT_ONCE = 2000  # embedded before the order of the missing images is read again
AWAY_SECONDS = 30.0  # before images of a bucket that does not answer are tried again,
LISTING = 10  # and so many times as long as listing the missing images took
NOT_FINITE = "the network makes numbers of it that are not finite"

Shard = list[tuple[np.ndarray, np.ndarray, np.ndarray]]  # image ids (n,), features (n, D), regions (n, R, D)


class MissingFeatures:
    """The duty of embedding images without features; each worker has one instance."""

    def __init__(self, context: Context, between: Callable[[str, int, int], None]):
        """Make the duty.

        Args:
            context: The worker's context.
            between: Called after every batch with (state, done, of).
        """
        self._context, self._db, self._between = context, context.db, between
        self._checked: tuple | None = None  # (registrations, backbone) for which every image has been tried
        self._waits_with: tuple | None = None  # the same, when an address was away: waits until _again_at
        self._again_at = 0.0
        self._looked_at = 0.0  # for shards of another process

    def embed(self, train: Callable[[], bool] | None = None) -> None:
        """Embed all images without features.

        Returns at once while `annotator embed` runs, and where all images have been tried.

        Args:
            train: Called between batches, at most every TRAIN_WHILE_EMBEDDING seconds, so that suggestions do not wait
                for the last image; returns whether it has trained.
        """
        state = self._state()
        if state == self._checked or (state == self._waits_with and time.monotonic() < self._again_at):
            return
        if self._others_embed():
            return
        self._context.features().refresh()  # another process may have added some
        trained_at = time.monotonic()
        away, missing = Away(), self._work_list()
        while image_ids := missing.take(IMAGES_AT_ONCE):
            for _ in self._embed(image_ids, len(missing) + len(image_ids), away):
                if self._others_embed():
                    return
                if train and time.monotonic() - trained_at > TRAIN_WHILE_EMBEDDING and train():
                    trained_at = time.monotonic()
            if state != self._state() or not (len(missing) or away.addresses):
                state, missing = self._state(), self._work_list()
            for address in away.addresses - missing.without:
                missing.leave_out(address)
        if away.addresses:
            self._waits_with, self._again_at = state, time.monotonic() + AWAY_SECONDS + LISTING * missing.seconds
        else:
            self._checked = state

    def _state(self) -> tuple:
        return self._db.setting("registrations", 0), self._context.backbone_name()

    def _others_embed(self) -> bool:
        """Return whether `annotator embed` runs now; its new shards are then read, so that trainings use them."""
        if embedding.running(self._db) is None:
            return False
        if time.monotonic() - self._looked_at > SHARD_SECONDS:
            self._context.features().refresh()
            self._looked_at = time.monotonic()
        return True

    def missing(self) -> list[int]:
        """Return the image ids without features: labeled ones first, then as people will see them."""
        missing = self._work_list()
        return missing.take(len(missing))

    def _work_list(self) -> WorkList:
        return WorkList(self._db, self._context.features().image_ids)

    def _embed(self, image_ids: Sequence[int], missing: int, away: Away) -> Iterator[None]:
        """Embed these images, of `missing` in all; yield whenever a shard has been written."""
        from annotator.worker.features.embed import embed

        done = len(self._context.features().image_ids)
        total = done + missing
        self._context.say("embedding", done, total)
        paths, ids = self._with_files(image_ids)
        shard: Shard = []
        looks: list[tuple[int, Appearance]] = []
        written_at = time.monotonic()
        registered = images.images(self._db, ids)
        contents = [registered[image_id].sha256 for image_id in ids]
        should_stop, bands = self._context.stop.is_set, shown_bands(self._db)
        for batch in embed(
            paths, self._context.backbone(), regions=True, should_stop=should_stop, contents=contents,
            leave_out=away.holds, bands=bands,
        ):  # fmt: skip
            features = batch.features.astype(np.float16)
            assert batch.regions is not None  # they were asked for
            finite = np.isfinite(features).all(1) & np.isfinite(batch.regions).all((1, 2))
            batch_ids = np.array([ids[index] for index in batch.indices], np.int64)
            shard.append((batch_ids[finite], features[finite], batch.regions[finite]))
            not_finite = [(batch.indices[row], NOT_FINITE) for row in np.flatnonzero(~finite)]
            for index in batch.indices:
                away.note_answer(paths[index])
            for index, reason in batch.failures + not_finite:
                if not away.note_failure(paths[index], reason):
                    images.mark_problem(self._db, ids[index], reason)
            fetched.keep_facts(self._db, [(ids[index], facts) for index, facts in batch.facts])
            looks += [(ids[index], appearance) for index, appearance in batch.appearances]
            done += len(batch.indices)
            self._between("embedding", done, total)
            if shown_bands(self._db) != bands:
                shard.clear()  # of other pixels than those that are shown from now on
                return
            if time.monotonic() - written_at > SHARD_SECONDS:
                self._write(shard, looks)
                written_at = time.monotonic()
                yield
        self._write(shard, looks)
        self._context.check_stop()
        yield

    def _with_files(self, image_ids: Sequence[int]) -> tuple[list[Source], list[int]]:
        """Return sources and ids of the images that have a file; the others are marked as problems."""
        paths: list[Source] = []
        ids: list[int] = []
        for image_id in image_ids:
            try:
                paths.append(images.image_source(self._db, image_id))
                ids.append(image_id)
            except AnnotatorError as error:
                images.mark_problem(self._db, image_id, str(error))
        return paths, ids

    def _write(self, shard: Shard, looks: list[tuple[int, Appearance]]) -> None:
        appearances.keep(self._db, looks)
        looks.clear()
        if shard:
            ids, features, regions = (np.concatenate(arrays) for arrays in zip(*shard, strict=True))
            if len(ids):
                from annotator.worker.features.coding import write_features  # torch is loaded by now

                write_features(self._context.features(), ids, features, regions)
            shard.clear()
