"""Predictions from class names by a text-image network, used in training like any other source.

Patch scores replace whole-image scores only once nearly all exist, because the two are not comparable.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np

from annotator.errors import AnnotatorError
from annotator.progress_callbacks import StepCallback
from annotator.store.classes import name_texts
from annotator.store.classes.name_texts import NameGuess, Wording
from annotator.store.classes.stored_patch_scores import PatchScores, delete_other_wordings
from annotator.store.database import heartbeat
from annotator.store.database.arrays import create_scratch_array
from annotator.store.images import images
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.locations.location import ImageSource, start_reading
from annotator.store.pictures.bands import BandChoices
from annotator.store.runs import prediction_sources
from annotator.store.runs.prediction_sources import CLASS_NAMES_SOURCE, PROBABILITY, ScoreBlock
from annotator.worker.features.worker_context import WorkerContext
from spmll.zero_shot.first_guess import guess_probabilities
from spmll.zero_shot.prompts import BACKGROUND_PROMPTS

if TYPE_CHECKING:
    from torch import Tensor


ScoredBatch = tuple[list[int], list[int], np.ndarray]

# times as many images, after which a guess is made again while images are still being embedded
REGUESS_GROWTH_FACTOR = 2.0
MAX_MISSING_PATCH_SHARE = 0.1  # share of the images whose patches may be missing when patch scores are used
STEP_SECONDS = 5.0  # of looking at patches, before other duties have their turn
IMAGES_PER_STEP = 256  # images of a step, at most
CHUNK_ROWS = 4096  # images compared at once


class _EncodedWording:
    """The embedded texts: class_vectors (C, E), and background_vector (E,) of texts that fit any image."""

    def __init__(self, context: WorkerContext, wording: Wording):
        from annotator.worker.features.backbone import load_project_network
        from spmll.backbones.text_image import TextImageNetwork  # loads torch
        from spmll.zero_shot.patch_scores import average_class_vectors

        self.wording = wording
        source = load_project_network(context.db, wording.network)
        self.network: TextImageNetwork = TextImageNetwork(context.get_backbone(), source)
        counts = [len(BACKGROUND_PROMPTS), *(len(some) for some in wording.prompts)]
        of_texts = self.network.encode_texts(
            [*BACKGROUND_PROMPTS, *(text for some in wording.prompts for text in some)]
        )
        self.network.free_text_encoder()
        vectors = average_class_vectors(of_texts, counts)
        self.background_vector: Tensor = vectors[0]
        self.class_vectors: Tensor = vectors[1:]


class NameGuesser:
    """The worker duty of predicting from class names."""

    def __init__(self, context: WorkerContext, on_step: StepCallback):
        """Create the duty. `on_step` is called per batch with (state, done, of)."""
        self._context, self._db, self._on_step = context, context.db, on_step
        self._encoded_wording: _EncodedWording | None = None
        self._patches: PatchScores | None = None
        self._failed = ""  # the wording that this worker could not guess by
        self._unreadable: set[int] = set()  # images of which no patch can be had, until the worker starts again

    def publish_if_due(self, all_embedded: bool) -> bool:
        """Publish predictions from class names if their inputs changed, and return whether it did."""
        wording = name_texts.build_wording(self._db)
        if wording is None:
            self._encoded_wording = self._patches = None
            return False
        count, before = len(self._context.get_features()), name_texts.load_newest_guess(self._db)
        is_other = before.wording != wording.key
        if before.error and self._failed == wording.key:
            return False  # tried again by the next worker, and where something was changed
        if not is_other and not name_texts.has_source(self._db):
            is_other = True
        if not count or not (
            is_other or count >= REGUESS_GROWTH_FACTOR * before.images or (all_embedded and count != before.images)
        ):
            return False
        return self._run_or_record_error(wording, self._publish_guess)

    def compare_some_patches(self) -> bool:
        """Compare some image patches with the class names, and return False if none remain."""
        wording, before = name_texts.build_wording(self._db), name_texts.load_newest_guess(self._db)
        if wording is None or before.wording != wording.key or before.error or before.patches >= before.images:
            return False
        return self._run_or_record_error(wording, self._compare_patches)

    def _run_or_record_error(self, wording: Wording, act: Callable[[Wording], bool]) -> bool:
        try:
            return act(wording)
        except (AnnotatorError, ValueError) as error:
            self._failed = wording.key
            name_texts.save_guess(self._db, NameGuess(wording.key, at=time.time(), error=str(error)))
            heartbeat.record_error(self._db, f"Classes could not be guessed from their names: {error}")
            self._encoded_wording = self._patches = None
            return True

    def _get_encoded_wording(self, wording: Wording) -> _EncodedWording:
        if (
            self._encoded_wording is None
            or self._encoded_wording.wording != wording
            or self._encoded_wording.network.name != wording.network
        ):
            self._context.report_state("reading the names of classes")
            self._encoded_wording = _EncodedWording(self._context, wording)
        return self._encoded_wording

    def _get_patch_scores(self, wording: Wording) -> PatchScores:
        if self._patches is None or self._patches.wording != wording.key:
            self._patches = PatchScores(self._db, wording.key, len(wording.class_ids))
        return self._patches

    def _publish_guess(self, wording: Wording) -> bool:
        self._context.report_state("guessing from names")
        cache, kept = self._context.get_features(), self._get_patch_scores(wording)
        image_ids, of_images = cache.image_ids, self._score_images(self._get_encoded_wording(wording))
        missing = self._find_missing(kept, image_ids)
        of_patches = kept.align(image_ids) if len(missing) <= MAX_MISSING_PATCH_SHARE * len(image_ids) else None
        guess = guess_probabilities(of_images, of_patches)

        def blocks() -> list[ScoreBlock]:
            class_ids = np.array(wording.class_ids, np.int64)
            return [
                (image_ids[start : start + CHUNK_ROWS], class_ids, guess[start : start + CHUNK_ROWS])
                for start in range(0, len(image_ids), CHUNK_ROWS)
            ]

        prediction_sources.add(
            self._db,
            CLASS_NAMES_SOURCE,
            PROBABILITY,
            wording.network,
            image_ids,
            wording.class_ids,
            blocks,
            replace=True,
        )
        of_all = len(image_ids)
        name_texts.save_guess(self._db, NameGuess(wording.key, of_all, of_all - len(missing), time.time()))
        if not missing:
            delete_other_wordings(self._db, wording.key)
        return True

    def _score_images(self, asked: _EncodedWording) -> np.ndarray:
        """Return the similarity of each image to the texts of each class: (N, C) float32."""
        import torch

        cache = self._context.get_features()
        result = create_scratch_array(cache.folder, (len(cache), len(asked.class_vectors)), np.float32)
        for start in range(0, len(cache), CHUNK_ROWS):
            features = torch.from_numpy(np.asarray(cache.features[start : start + CHUNK_ROWS], np.float32))
            result[start : start + CHUNK_ROWS] = (
                asked.network.project_features(features) @ asked.class_vectors.T
            ).numpy()
        return result

    def _find_missing(self, kept: PatchScores, image_ids: np.ndarray) -> list[int]:
        if not self._context.get_backbone().sees_regions:
            return []
        without = image_ids[~np.isin(image_ids, kept.image_ids)]
        return [image_id for image_id in without.tolist() if image_id not in self._unreadable]

    def _compare_patches(self, wording: Wording) -> bool:
        kept, image_ids = self._get_patch_scores(wording), self._context.get_features().image_ids
        missing, count = self._find_missing(kept, image_ids), len(image_ids)
        if not missing:
            return self._publish_guess(wording)
        asked, done = self._get_encoded_wording(wording), count - len(missing)
        ids, paths = self._find_sources(missing[:IMAGES_PER_STEP])
        state = "comparing names with patches"
        self._context.report_state(state, done, count)
        seen: list[int] = []
        scores: list[np.ndarray] = []
        try:
            for places, failed, of_batch in _score_patches(paths, asked, get_shown_bands(self._db)):
                seen += [ids[place] for place in places]
                scores.append(of_batch)
                self._unreadable.update(ids[place] for place in failed)
                self._on_step(state, done + len(seen), count)
        finally:
            if seen:
                kept.add(seen, np.concatenate(scores))
        return True

    def _find_sources(self, image_ids: Sequence[int]) -> tuple[list[int], list[ImageSource]]:
        ids: list[int] = []
        paths: list[ImageSource] = []
        for image_id in image_ids:
            try:
                paths.append(images.find_image_source(self._db, image_id))
                ids.append(image_id)
            except AnnotatorError:
                self._unreadable.add(image_id)
        return ids, paths


def _score_patches(paths: Sequence[ImageSource], asked: _EncodedWording, bands: BandChoices) -> Iterator[ScoredBatch]:
    """Yield per batch (positions of read images, positions of failed ones, patch scores (n, C))."""
    from annotator.worker.features.embed import BATCH_IMAGES, embedding_threads, read_batch
    from spmll.zero_shot.patch_scores import score_best_patch

    network, backbone = asked.network, asked.network.backbone
    ends_at = time.monotonic() + STEP_SECONDS

    def score(places: range) -> ScoredBatch:
        batch = read_batch([start_reading(paths[place]) for place in places], places, backbone, bands)
        failed = [place for place, _ in batch.failures]
        if not batch.indices:
            return [], failed, np.zeros((0, len(asked.class_vectors)), np.float32)
        _, patches, _ = network.encode_images_and_patches(batch.pixels)
        return (
            batch.indices,
            failed,
            score_best_patch(patches, asked.class_vectors, asked.background_vector, network.scale).numpy(),
        )

    with embedding_threads() as pool:
        starts = iter(range(0, len(paths), BATCH_IMAGES))
        pending: list[Future[ScoredBatch]] = []
        while True:
            while len(pending) < 2 * pool.size and time.monotonic() < ends_at:
                start = next(starts, None)
                if start is None:
                    break
                pending.append(pool.submit(score, range(start, min(start + BATCH_IMAGES, len(paths)))))
            if not pending:
                return
            yield pending.pop(0).result()
