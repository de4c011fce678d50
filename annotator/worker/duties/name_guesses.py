"""First guesses from the names of classes: a source of predictions that trainings use like any other one.

Whole images are compared with the texts as soon as they have features, which takes seconds. Their patches need the
image once more: they are compared a few seconds at a time, whenever the worker has nothing else to do, and used when
nearly all are compared, because scores of two kinds are not quite comparable.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np

from annotator.errors import AnnotatorError
from annotator.store.classes import name_texts
from annotator.store.classes.name_texts import Guessed, Wording
from annotator.store.classes.patch_scores import PatchScores, forget_others
from annotator.store.database import heartbeat
from annotator.store.database.arrays import scratch_array
from annotator.store.images import images
from annotator.store.locations.location import Source, reading
from annotator.store.runs import prediction_sources
from annotator.store.runs.prediction_sources import NAMES, PROBABILITY, Block
from annotator.worker.features.context import Context
from models.zero_shot.first_guess import first_guess
from models.zero_shot.prompts import NOTHING

if TYPE_CHECKING:
    from torch import Tensor


Part = tuple[list[int], list[int], np.ndarray]

GROWN = 2.0  # times as many images, after which a guess is made again while images are still being embedded
FEW = 0.1  # share of the images whose patches may be missing when patch scores are used
STEP_SECONDS = 5.0  # of looking at patches, before other duties have their turn
AT_ONCE = 256  # images of a step, at most
ROWS = 4096  # images compared at once


class _Asked:
    """A wording, and the vectors that the network makes of its texts.

    Attributes:
        classes: (C, E).
        nothing: (E,), of texts that name no class.
    """

    def __init__(self, context: Context, wording: Wording):
        from annotator.worker.features.backbone import network_of
        from models.backbones.text_image import TextImage  # loads torch
        from models.zero_shot.patch_scores import class_vectors

        self.wording = wording
        source = network_of(context.db, wording.network)
        self.network: TextImage = TextImage(context.backbone(), source)
        counts = [len(NOTHING), *(len(some) for some in wording.prompts)]
        of_texts = self.network.texts([*NOTHING, *(text for some in wording.prompts for text in some)])
        self.network.free_text_encoder()
        vectors = class_vectors(of_texts, counts)
        self.nothing: Tensor = vectors[0]
        self.classes: Tensor = vectors[1:]


class NameGuesses:
    """The duty of guessing classes from their names; each worker has one instance."""

    def __init__(self, context: Context, between: Callable[[str, int, int], None]):
        """Make the duty.

        Args:
            context: The worker's context.
            between: Called after every batch with (state, done, of).
        """
        self._context, self._db, self._between = context, context.db, between
        self._asked: _Asked | None = None
        self._patches: PatchScores | None = None
        self._failed = ""  # the wording that this worker could not guess by
        self._unreadable: set[int] = set()  # images of which no patch can be had, until the worker starts again

    def publish_if_due(self, all_embedded: bool) -> bool:
        """Publish a guess where classes, texts or the network changed, or enough images were added; return True if so.

        Args:
            all_embedded: Whether embedding is finished: then any other number of images is a reason.
        """
        wording = name_texts.wording(self._db)
        if wording is None:
            self._asked = self._patches = None
            return False
        count, before = len(self._context.features()), name_texts.guessed(self._db)
        is_other = before.wording != wording.key
        if before.error and self._failed == wording.key:
            return False  # tried again by the next worker, and where something was changed
        if not is_other and not name_texts.has_source(self._db):
            is_other = True
        if not count or not (is_other or count >= GROWN * before.images or (all_embedded and count != before.images)):
            return False
        return self._try(wording, self._publish)

    def look_at_patches(self) -> bool:
        """Compare the patches of some images, and publish when all are compared; return False with nothing to do."""
        wording, before = name_texts.wording(self._db), name_texts.guessed(self._db)
        if wording is None or before.wording != wording.key or before.error or before.patches >= before.images:
            return False
        return self._try(wording, self._look)

    def _try(self, wording: Wording, act: Callable[[Wording], bool]) -> bool:
        try:
            return act(wording)
        except (AnnotatorError, ValueError) as error:
            self._failed = wording.key
            name_texts.note(self._db, Guessed(wording.key, at=time.time(), error=str(error)))
            heartbeat.note_error(self._db, f"Classes could not be guessed from their names: {error}")
            self._asked = self._patches = None
            return True

    def _network(self, wording: Wording) -> _Asked:
        if self._asked is None or self._asked.wording != wording or self._asked.network.name != wording.network:
            self._context.say("reading the names of classes")
            self._asked = _Asked(self._context, wording)
        return self._asked

    def _kept(self, wording: Wording) -> PatchScores:
        if self._patches is None or self._patches.wording != wording.key:
            self._patches = PatchScores(self._db, wording.key, len(wording.class_ids))
        return self._patches

    def _publish(self, wording: Wording) -> bool:
        self._context.say("guessing from names")
        cache, kept = self._context.features(), self._kept(wording)
        image_ids, of_images = cache.image_ids, self._of_images(self._network(wording))
        missing = self._missing(kept, image_ids)
        of_patches = kept.aligned(image_ids) if len(missing) <= FEW * len(image_ids) else None
        guess = first_guess(of_images, of_patches)

        def blocks() -> list[Block]:
            class_ids = np.array(wording.class_ids, np.int64)
            return [
                (image_ids[start : start + ROWS], class_ids, guess[start : start + ROWS])
                for start in range(0, len(image_ids), ROWS)
            ]

        prediction_sources.add(
            self._db, NAMES, PROBABILITY, wording.network, image_ids, wording.class_ids, blocks, replace=True
        )
        of_all = len(image_ids)
        name_texts.note(self._db, Guessed(wording.key, of_all, of_all - len(missing), time.time()))
        if not missing:
            forget_others(self._db, wording.key)
        return True

    def _of_images(self, asked: _Asked) -> np.ndarray:
        """Return the similarities (N, C) float32 of whole images with the classes, from their features."""
        import torch

        cache = self._context.features()
        result = scratch_array(cache.folder, (len(cache), len(asked.classes)), np.float32)
        for start in range(0, len(cache), ROWS):
            features = torch.from_numpy(np.asarray(cache.features[start : start + ROWS], np.float32))
            result[start : start + ROWS] = (asked.network.of_features(features) @ asked.classes.T).numpy()
        return result

    def _missing(self, kept: PatchScores, image_ids: np.ndarray) -> list[int]:
        if not self._context.backbone().sees_regions:
            return []
        without = image_ids[~np.isin(image_ids, kept.image_ids)]
        return [image_id for image_id in without.tolist() if image_id not in self._unreadable]

    def _look(self, wording: Wording) -> bool:
        kept, image_ids = self._kept(wording), self._context.features().image_ids
        missing, count = self._missing(kept, image_ids), len(image_ids)
        if not missing:
            return self._publish(wording)
        asked, done = self._network(wording), count - len(missing)
        ids, paths = self._with_files(missing[:AT_ONCE])
        state = "comparing names with patches"
        self._context.say(state, done, count)
        seen: list[int] = []
        scores: list[np.ndarray] = []
        try:
            for places, failed, of_batch in _scored(paths, asked):
                seen += [ids[place] for place in places]
                scores.append(of_batch)
                self._unreadable.update(ids[place] for place in failed)
                self._between(state, done + len(seen), count)
        finally:
            if seen:
                kept.add(seen, np.concatenate(scores))
        return True

    def _with_files(self, image_ids: Sequence[int]) -> tuple[list[int], list[Source]]:
        ids: list[int] = []
        paths: list[Source] = []
        for image_id in image_ids:
            try:
                paths.append(images.image_source(self._db, image_id))
                ids.append(image_id)
            except AnnotatorError:
                self._unreadable.add(image_id)
        return ids, paths


def _scored(paths: Sequence[Source], asked: _Asked) -> Iterator[Part]:
    """Yield (places that were read, places that could not be, scores (n, C)) batch by batch, for STEP_SECONDS."""
    from annotator.worker.features.embed import BATCH, embedding_threads, read_batch
    from models.zero_shot.patch_scores import patch_scores

    network, backbone = asked.network, asked.network.backbone
    ends_at = time.monotonic() + STEP_SECONDS

    def score(places: range) -> Part:
        batch = read_batch([reading(paths[place]) for place in places], places, backbone)
        failed = [place for place, _ in batch.failures]
        if not batch.indices:
            return [], failed, np.zeros((0, len(asked.classes)), np.float32)
        _, patches, _ = network.images_and_patches(batch.pixels)
        return batch.indices, failed, patch_scores(patches, asked.classes, asked.nothing, network.scale).numpy()

    with embedding_threads() as pool:
        starts = iter(range(0, len(paths), BATCH))
        pending: list[Future[Part]] = []
        while True:
            while len(pending) < 2 * pool.size and time.monotonic() < ends_at:
                start = next(starts, None)
                if start is None:
                    break
                pending.append(pool.submit(score, range(start, min(start + BATCH, len(paths)))))
            if not pending:
                return
            yield pending.pop(0).result()
