"""Learning of `auto` from unbiased answers: an answered-cell model and a stacker.

A click says only that one class is present. A grid, a complete image or an audit decides all its cells, so their choice
does not depend on the answers. `AnsweredHead` learns from them, and so does `Stacker`, which weighs models, other
classes and score ranges by out-of-fold scores from two halves.
"""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, reduce
from operator import add

import numpy as np
import torch
from torch import Tensor

from spmll.ensemble.answered_head import fit_answered_head
from spmll.ensemble.basis import center_and_normalize, signed_sqrt, to_float_tensor
from spmll.ensemble.collection_scoring import IMAGES_PER_BLOCK, ImageModel, KnownLabels, ScoringFunction, score_locally
from spmll.ensemble.fit_ensemble import Ensemble, LabeledImages, complement, compute_ridge_targets, fit_ensemble
from spmll.ensemble.gram_cache import AnswerReader
from spmll.ensemble.scorers import EnsembleModel, Scorer, StackedScorer
from spmll.ensemble.training_subset import (
    MAX_HEAD_IMAGES,
    MAX_RIDGE_IMAGES,
    TrainingSubset,
    gather_subsets,
    select_training_rows,
    sum_moments,
)
from spmll.ensemble.warm_start import HALF_COUNT, WarmStart
from spmll.labels import PRESENT, UNSEEN
from spmll.linear.blocks import run_in_blocks
from spmll.linear.training import (
    ROWS_PER_CHUNK,
    Epoch,
    TrainingSettings,
    check_features,
    check_features_finite,
    one_thread,
)
from spmll.methods.auto import Auto
from spmll.statistics.image_context import ImageContext
from spmll.statistics.outside_scores import OutsideScores, add_first_guesses
from spmll.statistics.stacker import (
    Scores,
    Stacker,
    compute_group_weights,
    compute_importance_weights,
    count_other_classes,
    fit_stacker,
    sigmoid,
)

UNANSWERED_WEIGHT = 0.03  # weight of a cell nobody has answered, as absent, against an answered one
# images with an answer, and without, that are learned from, at most
MAX_ANSWERED_IMAGES, MAX_UNLABELED_IMAGES = (20_000, 4000)
ALL_IMAGES = -1  # in place of a half: the model of all images
# answered cells that the stacker is fitted to, and cells whose scores say what is usual, at most
MAX_STACKED_CELLS = 1_000_000
# labeled images from which on the halves are trained in a thread of their own, beside the whole
MIN_IMAGES_FOR_THREAD = 5000
WAIT_SECONDS = 0.1
MIN_UNBIASED_ANSWERS = 12  # unbiased positives and unbiased negatives from which on there is something to learn from
STACKING_ROUNDS = 3  # of stacking: the other classes on an image are those that the round before found likely


@dataclass(frozen=True, eq=False)
class AnsweredImages(LabeledImages):
    """The training input of `auto`: labeled images, and what is known of their answers.

    Attributes:
        unbiased: (n, C) bool, True where a label of `rows` is an unbiased answer.
        groups: (N,) int64, not negative, or None. Images of a group are in the same half.
        context: Places, times and events of the images, or None.
        outside: Scores of all N images by outside models.
    """

    _: KW_ONLY
    unbiased: np.ndarray
    groups: np.ndarray | None = None
    context: ImageContext | None = None
    outside: Sequence[OutsideScores] = ()


def fit_stacked(
    method: Auto,
    images: AnsweredImages,
    settings: TrainingSettings = TrainingSettings(),
    *,
    seed: int = 0,
    tell: Callable[[], None] = lambda: None,
    warm_start: WarmStart | None = None,
    scoring: ScoringFunction = score_locally,
) -> "StackedTraining":
    """Return a training of `auto` that also learns from unbiased answers, run by iterating `epochs`.

    Args:
        warm_start: State of the previous training, updated in place.
        scoring: Scores all N images by the trained models.
    """
    return StackedTraining(method, images, settings, seed, tell, warm_start or WarmStart(), scoring)


class StackedTraining:
    """A training of `auto` in progress, with a stacker if there are enough unbiased answers.

    Attributes:
        probabilities: (N, C) float32, set at the end.
        model: Scores any image. None without a label "present".
        outside_weights: (C, K), stacker weights of K outside models, or None.
    """

    def __init__(
        self,
        method: Auto,
        images: AnsweredImages,
        settings: TrainingSettings,
        seed: int,
        tell: Callable[[], None],
        warm_start: WarmStart,
        scoring: ScoringFunction,
    ):
        self.features, self.region_codes = images.features, images.region_codes
        self.rows, self.warm_start, self.settings = np.asarray(images.rows), warm_start, settings
        self.seed, self.tell = seed, tell
        self.labels = np.asarray(images.labels)
        self.mask = None if images.mask is None or images.mask.all() else images.mask
        mask = self.mask
        self.sure = self.labels != UNSEEN if mask is None else (self.labels != UNSEEN) & mask
        self.unbiased = images.unbiased & self.sure
        self.method = method.with_answer_parameters() if self.has_enough_answers else method
        self.probabilities: np.ndarray | None = None
        self.model: ImageModel | None = None
        self.calibrated = False
        self.outside, self.outside_weights = tuple(images.outside), None
        self.scoring, self.groups, self.context = scoring, images.groups, images.context

    @cached_property
    def _places_in_rows(self) -> np.ndarray:
        """Return each image's position in `rows`, or -1 if it is not labeled."""
        place = np.full(len(self.features), -1)
        place[self.rows] = np.arange(len(self.rows))
        return place

    @cached_property
    def _halves_of_images(self) -> np.ndarray:
        """Return the half of each image for cross-fitting, 0 or 1, the same in all trainings and within a group."""
        groups = np.arange(len(self.features)) if self.groups is None else self.groups
        return np.random.default_rng(0).integers(0, HALF_COUNT, int(groups.max(initial=0)) + 1)[groups]

    @cached_property
    def _preference_order(self) -> np.ndarray:
        """Return the random numbers that decide which labeled images are used first, the same in all trainings."""
        return np.random.default_rng(3).random(len(self.features))[self.rows]

    @property
    def _trains_halves_in_thread(self) -> bool:
        return len(self.rows) >= MIN_IMAGES_FOR_THREAD and torch.get_num_threads() >= 2

    @property
    def has_enough_answers(self) -> bool:
        """Return whether there are at least MIN_UNBIASED_ANSWERS unbiased answers of each state."""
        present = int((self.labels[self.unbiased] == PRESENT).sum())
        return min(present, int(self.unbiased.sum()) - present) >= MIN_UNBIASED_ANSWERS

    def epochs(self) -> Iterator[Epoch]:
        """Train, yielding each epoch of the head. Without a label "present" there are no epochs."""
        self.ensemble = Ensemble(self.method, self.features.shape[1], self.labels.shape[1])
        if not (self.labels[self.sure] == PRESENT).any():
            self.probabilities = np.full((len(self.features), self.labels.shape[1]), np.nan, np.float32)
        else:
            self._check_features_finite()
            if self.has_enough_answers:
                yield from self._train_stacked()
            else:
                learned = self._gather_subsets()[ALL_IMAGES] if len(self.rows) > MAX_HEAD_IMAGES else None
                yield from self._fit_ensemble(self.ensemble, ALL_IMAGES, learned, self.tell)
                nothing = KnownLabels.empty(self.labels.shape[1])
                self.model = EnsembleModel(self.ensemble)
                self.probabilities = self._score_all_images(self.model, lambda _: nothing)
        if self.outside and self.probabilities is not None:
            everything, labels = slice(None), np.where(self.sure, self.labels, UNSEEN)
            labels, unbiased = (
                self._expand_to_images(labels, everything),
                self._expand_to_images(self.unbiased, everything),
            )
            self.probabilities = add_first_guesses(
                self.probabilities, labels, unbiased, self.outside, self.calibrated
            ).astype(np.float32)

    def _check_features_finite(self) -> None:
        def check(rows: slice) -> None:
            check_features_finite(check_features(self.features[rows], self.features.shape[1]))

        try:
            run_in_blocks(len(self.features), ROWS_PER_CHUNK, check, self.tell)
        except ValueError:
            check_features_finite(check_features(self.features, self.features.shape[1]))  # names their rows
            raise

    def _train_stacked(self) -> Iterator[Epoch]:
        scorer, halves = yield from self._train_models()
        self._fit_stackers(scorer, halves)

    def _train_models(self) -> Generator[Epoch, None, tuple[Scorer, list[Scorer | None]]]:
        """Train all models, yielding epochs, and return (scorer of all images, scorers of the two halves)."""
        learned = self._gather_subsets()
        with self._train_halves(learned) as halves:
            yield from self._fit_ensemble(self.ensemble, ALL_IMAGES, learned[ALL_IMAGES], self.tell)
            scorer = self._fit_scorer(self.ensemble, ALL_IMAGES, self.tell)
            while not halves.done():
                self.tell()
                wait([halves], WAIT_SECONDS)
        return scorer, halves.result()

    @contextmanager
    def _train_halves(self, learned: dict[int, TrainingSubset]) -> Iterator[Future[list[Scorer | None]]]:
        """Yield a future with the scorers of both halves, which may be trained in another thread."""
        if not self._trains_halves_in_thread:
            done: Future[list[Scorer | None]] = Future()
            done.set_result([self._train_half(half, learned, self.tell) for half in range(HALF_COUNT)])
            yield done
            return
        ended = threading.Event()

        def go_on() -> None:
            if ended.is_set():
                raise InterruptedError

        def train() -> list[Scorer | None]:
            return [self._train_half(half, learned, go_on) for half in range(HALF_COUNT)]

        # Each of the two threads has one of torch's own: they train models of the same size, and share nothing.
        with one_thread(), ThreadPoolExecutor(1, "halves", torch.set_num_threads, (1,)) as pool:
            try:
                yield pool.submit(train)
            finally:
                ended.set()

    def _train_half(self, half: int, learned: dict[int, TrainingSubset], tell: Callable[[], None]) -> Scorer | None:
        """Train a scorer on the images outside this half, or return None if they are too few."""
        some = self._find_places_outside_half(half)
        is_answered = (self._halves_of_images[self.rows] == half) & self.unbiased.any(1)
        if not is_answered.any() or not (self.labels[some][self.sure[some]] == PRESENT).any():
            return None
        model = Ensemble(self.method, self.features.shape[1], self.labels.shape[1])
        for _ in self._fit_ensemble(model, half, learned[half], tell):
            tell()
        return self._fit_scorer(model, half, tell)

    def _find_places_outside_half(self, half: int) -> np.ndarray:
        return np.flatnonzero(self._halves_of_images[self.rows] != half)

    def _fit_ensemble(
        self, model: Ensemble, half: int, learned: TrainingSubset | None, tell: Callable[[], None]
    ) -> Iterator[Epoch]:
        some = slice(None) if half == ALL_IMAGES else self._find_places_outside_half(half)  # a slice copies nothing
        mask = None if self.mask is None else self.mask[some]
        images = LabeledImages(self.features, self.region_codes, self.rows[some], self.labels[some], mask)
        return fit_ensemble(model, images, self.settings, seed=self.seed, checked=True, learned=learned, tell=tell)

    def _gather_subsets(self) -> dict[int, TrainingSubset]:
        """Return the training images of the full model (key ALL_IMAGES) and of each half."""
        places, to_sum = [], []
        for half in range(HALF_COUNT):
            of_half = np.flatnonzero(self._halves_of_images[self.rows] == half)
            labels = np.where(self.sure[of_half], self.labels[of_half], UNSEEN)
            first = self.unbiased[of_half].any(1)
            for most, chosen in ((MAX_HEAD_IMAGES, places), (MAX_RIDGE_IMAGES, to_sum)):
                chosen.append(
                    of_half[select_training_rows(labels, most // HALF_COUNT, first, self._preference_order[of_half])]
                )
        whole, halves = gather_subsets(self.features, self.rows, places, self.tell)
        if self.region_codes is not None:  # without regions, units have another centre in every training
            moments = sum_moments(
                self.features, self.region_codes.basis.centre, [self.rows[some] for some in to_sum],
                self.labels.shape[1], [self._make_answer_reader(some) for some in to_sum], self.warm_start.squares,
                HALF_COUNT if self._trains_halves_in_thread else 1, self.tell,
            )  # fmt: skip
            whole = replace(whole, moments=reduce(add, moments))
            halves = [replace(half, moments=its) for half, its in zip(halves, moments, strict=True)]
        of_models = {ALL_IMAGES: whole}
        for half in range(HALF_COUNT):
            other = halves[1 - half]
            of_models[half] = replace(other, places=np.searchsorted(self._find_places_outside_half(half), other.places))
        return of_models

    def _make_answer_reader(self, places: np.ndarray) -> AnswerReader:
        """Return a function from a slice of `places` (among labeled images) to ridge targets and unusable cells."""

        def answers(some: slice) -> tuple[Tensor, Tensor | None]:
            known = torch.from_numpy(np.where(self.sure[places[some]], self.labels[places[some]], UNSEEN))
            blank = None if self.mask is None else torch.from_numpy(~self.mask[places[some]])
            return compute_ridge_targets(known, None, self.method.absent), blank

        return answers

    def _fit_scorer(self, model: Ensemble, half: int, tell: Callable[[], None]) -> Scorer:
        """Return a scorer of the trained ensemble and an AnsweredHead that is trained on the same images."""
        some, rng = self._find_places_outside_half(half), np.random.default_rng(self.seed)
        most = MAX_ANSWERED_IMAGES if half == ALL_IMAGES else MAX_ANSWERED_IMAGES // HALF_COUNT
        if len(some) > most:  # first those with unbiased answers, which say most
            order = np.lexsort((self._preference_order[some], ~self.unbiased[some].any(1)))
            some = np.sort(some[order[:most]])
        unlabelled = complement(self.rows, len(self.features))
        sample = np.sort(rng.permutation(unlabelled)[:MAX_UNLABELED_IMAGES])
        images = np.concatenate([self.rows[some], sample])
        units = center_and_normalize(signed_sqrt(to_float_tensor(self.features[images])), model.centre)
        labels = np.zeros((len(units), self.labels.shape[1]), np.float32)
        labels[: len(some)] = (self.labels[some] == PRESENT) & self.sure[some]
        weights = np.full(labels.shape, UNANSWERED_WEIGHT * max(1.0, len(unlabelled) / max(len(sample), 1)), np.float32)
        weights[: len(some)] = np.where(self.sure[some], 1.0, UNANSWERED_WEIGHT)
        if self.mask is not None:
            weights[: len(some)][~self.mask[some]] = 0
        codes = self.region_codes
        head = fit_answered_head(
            units, torch.from_numpy(labels), torch.from_numpy(weights), self.warm_start.weights.get(half), tell,
            None if codes is None else lambda some: codes[images[some]],
        )  # fmt: skip
        self.warm_start.weights[half] = head.whole_image_weights
        return Scorer(model, head, self.features, self.region_codes)

    def _fit_stackers(self, scorer: Scorer, halves: list[Scorer | None]) -> None:
        """Fit the stacker of each round, and set `probabilities`."""
        labels = self.labels if self.mask is None else np.where(self.sure, self.labels, UNSEEN).astype(np.int8)
        inputs = [source.compute_inputs() for source in self.outside]
        inputs += self.context.compute_inputs(self.rows, labels, self.unbiased) if self.context else []
        usual = self._sample_rows(np.arange(len(self.features)), labels.shape[1])
        of_usual = scorer.score_many(usual, self.tell)
        unanswered = of_usual.mean[self._expand_to_images(labels, usual) == UNSEEN]
        kept = of_usual if len(usual) == len(self.features) else None  # of few images, scores of all

        def scores_of(rows: slice | np.ndarray) -> Scores:
            scores = (
                kept[rows] if kept else scorer.score_rows(rows) if isinstance(rows, slice) else scorer.score_many(rows)
            )
            return Scores(scores.auto, scores.known, [values[rows] for values in inputs])

        def held_out_of(images: np.ndarray) -> Scores:
            scores = self._score_held_out(halves, images)
            return Scores(scores.auto, scores.known, [values[images] for values in inputs])

        stackers = self._fit_stacker_rounds(labels, unanswered, scores_of, held_out_of)
        self.outside_weights = stackers[-1].outside_weights()[:, : len(self.outside)]
        of_halves = [half and half.without_images() for half in halves]
        self.model = model = StackedScorer(scorer.without_images(), of_halves, stackers)

        def known_of(rows: slice) -> KnownLabels:
            return self._select_known_labels(rows, labels, inputs)

        if kept is None:
            self.probabilities = self._score_all_images(model, known_of)
        else:
            self.probabilities = self._combine_kept_scores(model, kept, known_of)
        self.calibrated = True

    def _score_all_images(self, model: ImageModel, known_of: Callable[[slice], KnownLabels]) -> np.ndarray:
        return self.scoring(model, self.features, self.region_codes, known_of, self.labels.shape[1], self.tell)

    def _combine_kept_scores(
        self, model: StackedScorer, kept: Scores, known_of: Callable[[slice], KnownLabels]
    ) -> np.ndarray:
        """Return the probabilities of all images from scores that are already computed."""
        result = np.empty((len(self.features), self.labels.shape[1]), np.float32)

        def score(rows: slice) -> None:
            known, codes = known_of(rows), self.region_codes
            result[rows] = model.combine_scores(
                Scores(kept.auto[rows], kept.known[rows], known.outside),
                lambda some: np.asarray(self.features[some + rows.start]),
                lambda some: None if codes is None else codes[some + rows.start],
                known,
            )

        run_in_blocks(len(result), IMAGES_PER_BLOCK, score, self.tell)
        return result

    def _select_known_labels(self, rows: slice, labels: np.ndarray, inputs: Sequence[np.ndarray]) -> KnownLabels:
        """Return the labels and other scores of a slice of images, in the form that models read."""
        some = slice(*np.searchsorted(self.rows, [rows.start, rows.stop]).tolist())
        images = self.rows[some]
        outside = [values[rows] for values in inputs]
        return KnownLabels(
            images - rows.start, labels[some], self.unbiased[some], self._halves_of_images[images], outside
        )

    def _fit_stacker_rounds(
        self,
        labels: np.ndarray,
        unanswered: np.ndarray,
        scores_of: Callable[[np.ndarray], Scores],
        held_out_of: Callable[[np.ndarray], Scores],
    ) -> list[Stacker]:
        """Fit each round's stacker to out-of-fold scores of at most MAX_STACKED_CELLS cells."""
        answered = np.flatnonzero(self.unbiased.any(1))
        answered = self._sample_rows(answered, max(1, int(self.unbiased.sum()) // len(answered)))
        images, (at, columns) = self.rows[answered], np.nonzero(self.unbiased[answered])
        scores, held_out = scores_of(images), held_out_of(images).select_cells(at, columns)
        labels = labels[answered]
        present = labels[at, columns] == PRESENT
        weights = compute_importance_weights(held_out.mean[:, 0], unanswered)
        weights *= 1 if self.groups is None else compute_group_weights(self.groups[images[at]], columns)
        of_context = len(held_out.outside) - len(self.outside)
        stackers: list[Stacker] = []
        others = count_other_classes(labels, sigmoid(scores.mean))
        for _ in range(STACKING_ROUNDS):
            self.tell()
            if stackers:
                others = count_other_classes(labels, sigmoid(stackers[-1].logits(scores, others)))
            cells = others[at, columns][:, None]
            stackers.append(fit_stacker(held_out, cells, columns, present, weights, labels.shape[1], of_context))
        return stackers

    def _expand_to_images(self, values: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """Convert values of labeled images to values of the images `rows`, 0 for unlabeled ones."""
        places = self._places_in_rows[rows]
        result = np.zeros((len(places), values.shape[1]), values.dtype)
        result[places >= 0] = values[places[places >= 0]]
        return result

    def _sample_rows(self, rows: np.ndarray, cells: int) -> np.ndarray:
        """Return a random ascending sample of rows with at most MAX_STACKED_CELLS cells, given `cells` in all."""
        most = max(1, MAX_STACKED_CELLS // cells)
        return rows if len(rows) <= most else np.sort(np.random.default_rng(0).permutation(rows)[:most])

    def _score_held_out(self, halves: list[Scorer | None], images: np.ndarray) -> Scores:
        """Return scores (m, C) by the models of the other half, or nan and 0 where a half has no model."""
        auto = np.full((len(images), self.labels.shape[1]), np.nan, np.float32)
        known = np.zeros_like(auto)
        for half, scorer in enumerate(halves):
            places = np.flatnonzero(self._halves_of_images[images] == half)
            if scorer is not None and len(places):
                scores = scorer.score_many(images[places])
                auto[places], known[places] = scores.auto, scores.known
        return Scores(auto, known)
