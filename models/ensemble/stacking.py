"""The learning of `auto` from answers to whole questions: a model of answered cells, and the stacker over all models.

A click says that one class is present and nothing else. An answered grid, an image answered in every class or an audit
says of each of its cells if the class is present or absent. These answers are unbiased: which cells were asked does not
depend on the answers. From those, and only from those, two models learn:

* `AnsweredHead` (answered_head.py), which dominates where most is answered and the remaining positives look unlike
  those that were easy to find;
* `Stacker` (models/statistics/stacker.py): how far to trust each model, how much the other classes on an image say
  of a class, and what a score is worth far down the list, where the last positives are. It is fitted to the scores of
  models that had not seen the image: two halves, each scored by models trained on the other.
"""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, reduce
from operator import add

import numpy as np
import torch
from torch import Tensor

from models.ensemble.all_images import ROWS, ImageModel, Known, Scoring, score_here
from models.ensemble.answered_head import fit_answered_head
from models.ensemble.basis import as_tensor, root, unit
from models.ensemble.fit_ensemble import Ensemble, complement, fit_ensemble, wanted
from models.ensemble.learned_rows import LEARNED, SUMMED, Learned, gathered, learned_rows, summed
from models.ensemble.regions import Regions
from models.ensemble.scoring import EnsembleModel, Scorer, StackedScorer
from models.ensemble.squares import Answers
from models.ensemble.warm_start import HALVES, WarmStart
from models.labels import PRESENT, UNSEEN
from models.linear.blocks import in_blocks
from models.linear.training import CHUNK, Epoch, Features, checked_features, one_thread, refuse_not_finite
from models.methods.auto import Auto
from models.statistics.context import Context
from models.statistics.outside_scores import OutsideScores, with_first_guesses
from models.statistics.stacker import (
    Scores,
    Stacker,
    fit_stacker,
    importance_weights,
    other_classes,
    shares_of_groups,
    sigmoid,
)

UNKNOWN = 0.03  # weight of a cell nobody has answered, as absent, against an answered one
ANSWERED, OTHERS = 20_000, 4000  # images with an answer, and without, that are learned from, at most
ALL = -1  # in place of a half: the model of all images
STACKED = 1_000_000  # answered cells that the stacker is fitted to, and cells whose scores say what is usual, at most
BESIDE = 5000  # labeled images from which on the halves are trained in a thread of their own, beside the whole
WAIT = 0.1  # seconds
FEWEST = 12  # unbiased positives and unbiased negatives from which on there is something to learn from
ROUNDS = 3  # of stacking: the other classes on an image are those that the round before found likely


def fit_stacked(
    method: Auto,
    features: Features,
    region_codes: Regions | None,
    rows: np.ndarray,
    labels: np.ndarray,
    unbiased: np.ndarray,
    *,
    mask: np.ndarray | None = None,
    warm_start: WarmStart | None = None,
    epochs: int | None = None,
    lr: float | None = None,
    batch: int | None = None,
    seed: int = 0,
    tell: Callable[[], None] = lambda: None,
    outside: Sequence[OutsideScores] = (),
    scoring: Scoring = score_here,
    groups: np.ndarray | None = None,
    context: Context | None = None,
) -> "StackedModel":
    """Return a training of `auto` that also learns from unbiased answers; iterating its `epochs` trains it.

    Args:
        method: `auto`, with its parameters.
        features: As in `fit_ensemble`.
        region_codes: As in `fit_ensemble`.
        rows: As in `fit_ensemble`.
        labels: As in `fit_ensemble`.
        unbiased: (n, C) bool, True where a label of `rows` is an unbiased answer.
        mask: As in `fit_ensemble`.
        warm_start: Weights of the training before.
        epochs: As in `fit_ensemble`.
        lr: As in `fit_ensemble`.
        batch: As in `fit_ensemble`.
        seed: As in `fit_ensemble`.
        tell: As in `fit_ensemble`.
        outside: Scores of models from elsewhere, of all N images.
        scoring: Scores all N images by the trained models.
        groups: (N,) int64, not negative: images of one group are in one half; None: each image is on its own.
        context: Where, when and together with what the images were taken; its events are the groups. None: not known.
    """
    settings = {"epochs": epochs, "lr": lr, "batch": batch, "seed": seed, "tell": tell}
    return StackedModel(
        method, features, region_codes, rows, labels, unbiased, mask, warm_start or WarmStart(), settings, outside,
        scoring, groups, context,
    )  # fmt: skip


class StackedModel:
    """One training of `auto`, stacked where there are enough unbiased answers.

    Attributes:
        ensemble: The two models of `auto`, trained on all labels.
        probabilities: (N, C) float32, when `epochs` has ended.
        calibrated: Whether the stacker was fitted to unbiased answers.
        model: Scores any image, when `epochs` has ended; None without a label "present".
        outside_weights: (C, K), the stacker's weight of each model from elsewhere (models/statistics/stacker.py); None
            before a stacker is fitted.
    """

    def __init__(
        self,
        method,
        features,
        region_codes,
        rows,
        labels,
        unbiased,
        mask,
        warm_start,
        settings,
        outside,
        scoring: Scoring,
        groups: np.ndarray | None,
        context: Context | None,
    ):
        self.features, self.region_codes = features, region_codes
        self.rows, self.warm_start, self.settings = np.asarray(rows), warm_start, settings
        self.seed, self.tell = settings["seed"], settings["tell"]
        self.labels, self.mask = np.asarray(labels), None if mask is None or mask.all() else mask
        mask = self.mask
        self.sure = self.labels != UNSEEN if mask is None else (self.labels != UNSEEN) & mask
        self.unbiased = unbiased & self.sure
        self.method = method.beside_answers() if self.has_enough_answers else method
        self.probabilities: np.ndarray | None = None
        self.model: ImageModel | None = None
        self.calibrated = False
        self.outside, self.outside_weights = tuple(outside), None
        self.scoring, self.groups, self.context = scoring, groups, context

    @cached_property
    def _place(self) -> np.ndarray:
        """Return the place of each image in `rows`, (N,); -1 for an image that is not in `rows`."""
        place = np.full(len(self.features), -1)
        place[self.rows] = np.arange(len(self.rows))
        return place

    @cached_property
    def _half_of(self) -> np.ndarray:
        """Return the half of each image, (N,), the same in every training; images of one group are in one half."""
        groups = np.arange(len(self.features)) if self.groups is None else self.groups
        return np.random.default_rng(0).integers(0, HALVES, int(groups.max(initial=0)) + 1)[groups]

    @cached_property
    def _order(self) -> np.ndarray:
        """Return the order (n,) in which labeled images are preferred if not all are used; it never changes."""
        return np.random.default_rng(3).random(len(self.features))[self.rows]

    @property
    def _is_shared(self) -> bool:
        """Return whether the halves are trained in a thread of their own."""
        return len(self.rows) >= BESIDE and torch.get_num_threads() >= 2

    @property
    def has_enough_answers(self) -> bool:
        """Return whether there are FEWEST unbiased answers of each kind, present and absent."""
        present = int((self.labels[self.unbiased] == PRESENT).sum())
        return min(present, int(self.unbiased.sum()) - present) >= FEWEST

    def epochs(self) -> Iterator[Epoch]:
        """Train, yielding each epoch of the head of `auto` on all images.

        Without a label "present" there are no epochs, and probabilities only where other models give some.
        """
        self.ensemble = Ensemble(self.method, self.features.shape[1], self.labels.shape[1])
        if not (self.labels[self.sure] == PRESENT).any():
            self.probabilities = np.full((len(self.features), self.labels.shape[1]), np.nan, np.float32)
        else:
            self._refuse_not_finite()
            if self.has_enough_answers:
                yield from self._stacked()
            else:
                learned = self._learned()[ALL] if len(self.rows) > LEARNED else None
                yield from self._fit(self.ensemble, ALL, learned, self.tell)
                nothing = Known.no_labels(self.labels.shape[1])
                self.model = EnsembleModel(self.ensemble)
                self.probabilities = self._score(self.model, lambda _: nothing)
        if self.outside and self.probabilities is not None:
            everything, labels = slice(None), np.where(self.sure, self.labels, UNSEEN)
            labels, unbiased = self._of_images(labels, everything), self._of_images(self.unbiased, everything)
            self.probabilities = with_first_guesses(
                self.probabilities, labels, unbiased, self.outside, self.calibrated
            ).astype(np.float32)

    def _refuse_not_finite(self) -> None:
        def check(rows: slice) -> None:
            refuse_not_finite(checked_features(self.features[rows], self.features.shape[1]))

        try:
            in_blocks(len(self.features), CHUNK, check, self.tell)
        except ValueError:
            refuse_not_finite(checked_features(self.features, self.features.shape[1]))  # names their rows
            raise

    def _stacked(self) -> Iterator[Epoch]:
        """Train all models, then the stacker, and set `probabilities`."""
        scorer, halves = yield from self._models()
        self._stack(scorer, halves)

    def _models(self) -> Generator[Epoch, None, tuple[Scorer, list[Scorer | None]]]:
        """Train, yielding epochs; return the scorers of the whole and of each half."""
        learned = self._learned()
        with self._halves(learned) as halves:
            yield from self._fit(self.ensemble, ALL, learned[ALL], self.tell)
            scorer = self._scorer(self.ensemble, ALL, self.tell)
            while not halves.done():
                self.tell()
                wait([halves], WAIT)
        return scorer, halves.result()

    @contextmanager
    def _halves(self, learned: dict[int, Learned]) -> Iterator[Future[list[Scorer | None]]]:
        """Yield a future of the scorers of all halves, trained in another thread if `_is_shared`, else at once."""
        if not self._is_shared:
            done: Future[list[Scorer | None]] = Future()
            done.set_result([self._half(half, learned, self.tell) for half in range(HALVES)])
            yield done
            return
        ended = threading.Event()

        def go_on() -> None:
            if ended.is_set():
                raise InterruptedError

        def train() -> list[Scorer | None]:
            return [self._half(half, learned, go_on) for half in range(HALVES)]

        # Each of the two threads has one of torch's own: they train models of the same size, and share nothing.
        with one_thread(), ThreadPoolExecutor(1, "halves", torch.set_num_threads, (1,)) as pool:
            try:
                yield pool.submit(train)
            finally:
                ended.set()

    def _half(self, half: int, learned: dict[int, Learned], tell: Callable[[], None]) -> Scorer | None:
        """Return models trained on images outside of this half; None where there is nothing to learn or to score."""
        some = self._learned_from(half)
        is_answered = (self._half_of[self.rows] == half) & self.unbiased.any(1)
        if not is_answered.any() or not (self.labels[some][self.sure[some]] == PRESENT).any():
            return None
        model = Ensemble(self.method, self.features.shape[1], self.labels.shape[1])
        for _ in self._fit(model, half, learned[half], tell):
            tell()
        return self._scorer(model, half, tell)

    def _learned_from(self, half: int) -> np.ndarray:
        """Return the places in `rows` of images outside of this half."""
        return np.flatnonzero(self._half_of[self.rows] != half)

    def _fit(self, model: Ensemble, half: int, learned: Learned | None, tell: Callable[[], None]) -> Iterator[Epoch]:
        some = slice(None) if half == ALL else self._learned_from(half)  # a slice copies nothing
        mask = None if self.mask is None else self.mask[some]
        return fit_ensemble(
            model, self.features, self.region_codes, self.rows[some], self.labels[some], mask=mask, checked=True,
            learned=learned, **(self.settings | {"tell": tell}),
        )  # fmt: skip

    def _learned(self) -> dict[int, Learned]:
        """Return the images that the model of all images (ALL) and that of each half learn from."""
        places, to_sum = [], []
        for half in range(HALVES):
            of_half = np.flatnonzero(self._half_of[self.rows] == half)
            labels = np.where(self.sure[of_half], self.labels[of_half], UNSEEN)
            first = self.unbiased[of_half].any(1)
            for most, chosen in ((LEARNED, places), (SUMMED, to_sum)):
                chosen.append(of_half[learned_rows(labels, most // HALVES, first, self._order[of_half])])
        whole, halves = gathered(self.features, self.rows, places, self.tell)
        if self.region_codes is not None:  # without regions, units have another centre in every training
            moments = summed(
                self.features, self.region_codes.basis.centre, [self.rows[some] for some in to_sum],
                self.labels.shape[1], [self._answers_of(some) for some in to_sum], self.warm_start.squares,
                HALVES if self._is_shared else 1, self.tell,
            )  # fmt: skip
            whole = replace(whole, moments=reduce(add, moments))
            halves = [replace(half, moments=its) for half, its in zip(halves, moments, strict=True)]
        of_models = {ALL: whole}
        for half in range(HALVES):
            other = halves[1 - half]
            of_models[half] = replace(other, places=np.searchsorted(self._learned_from(half), other.places))
        return of_models

    def _answers_of(self, places: np.ndarray) -> Answers:
        """Return a function that gives the targets of the ridge model for slices of these labeled images."""

        def answers(some: slice) -> tuple[Tensor, Tensor | None]:
            known = torch.from_numpy(np.where(self.sure[places[some]], self.labels[places[some]], UNSEEN))
            blank = None if self.mask is None else torch.from_numpy(~self.mask[places[some]])
            return wanted(known, None, self.method.absent), blank

        return answers

    def _scorer(self, model: Ensemble, half: int, tell: Callable[[], None]) -> Scorer:
        """Return the scorer of the model and of an AnsweredHead trained on the same images."""
        some, rng = self._learned_from(half), np.random.default_rng(self.seed)
        most = ANSWERED if half == ALL else ANSWERED // HALVES
        if len(some) > most:  # first those with unbiased answers, which say most
            order = np.lexsort((self._order[some], ~self.unbiased[some].any(1)))
            some = np.sort(some[order[:most]])
        unlabelled = complement(self.rows, len(self.features))
        sample = np.sort(rng.permutation(unlabelled)[:OTHERS])
        images = np.concatenate([self.rows[some], sample])
        units = unit(root(as_tensor(self.features[images])), model.centre)
        labels = np.zeros((len(units), self.labels.shape[1]), np.float32)
        labels[: len(some)] = (self.labels[some] == PRESENT) & self.sure[some]
        weights = np.full(labels.shape, UNKNOWN * max(1.0, len(unlabelled) / max(len(sample), 1)), np.float32)
        weights[: len(some)] = np.where(self.sure[some], 1.0, UNKNOWN)
        if self.mask is not None:
            weights[: len(some)][~self.mask[some]] = 0
        codes = self.region_codes
        head = fit_answered_head(
            units, torch.from_numpy(labels), torch.from_numpy(weights), self.warm_start.weights.get(half), tell,
            None if codes is None else lambda some: codes[images[some]],
        )  # fmt: skip
        self.warm_start.weights[half] = head.of_wholes
        return Scorer(model, head, self.features, self.region_codes)

    def _stack(self, scorer: Scorer, halves: list[Scorer | None]) -> None:
        """Fit the stacker, and set `probabilities` to those of all models together."""
        labels = self.labels if self.mask is None else np.where(self.sure, self.labels, UNSEEN).astype(np.int8)
        inputs = [source.inputs() for source in self.outside]
        inputs += self.context.inputs(self.rows, labels, self.unbiased) if self.context else []
        usual = self._sampled(np.arange(len(self.features)), labels.shape[1])
        of_usual = scorer.of_many(usual, self.tell)
        unanswered = of_usual.mean[self._of_images(labels, usual) == UNSEEN]
        kept = of_usual if len(usual) == len(self.features) else None  # of few images, scores of all

        def scores_of(rows: slice | np.ndarray) -> Scores:
            scores = kept[rows] if kept else scorer.scores_of(rows) if isinstance(rows, slice) else scorer.of_many(rows)
            return Scores(scores.auto, scores.known, [values[rows] for values in inputs])

        def held_out_of(images: np.ndarray) -> Scores:
            scores = self._held_out(halves, images)
            return Scores(scores.auto, scores.known, [values[images] for values in inputs])

        stackers = self._stackers(labels, unanswered, scores_of, held_out_of)
        self.outside_weights = stackers[-1].outside_weights()[:, : len(self.outside)]
        of_halves = [half and half.without_images() for half in halves]
        self.model = model = StackedScorer(scorer.without_images(), of_halves, stackers)

        def known_of(rows: slice) -> Known:
            return self._known_of(rows, labels, inputs)

        if kept is None:
            self.probabilities = self._score(model, known_of)
        else:
            self.probabilities = self._of_kept(model, kept, known_of)
        self.calibrated = True

    def _score(self, model: ImageModel, known_of: Callable[[slice], Known]) -> np.ndarray:
        return self.scoring(model, self.features, self.region_codes, known_of, self.labels.shape[1], self.tell)

    def _of_kept(self, model: StackedScorer, kept: Scores, known_of: Callable[[slice], Known]) -> np.ndarray:
        """Return the probabilities of all images, given their scores by the models of all images."""
        result = np.empty((len(self.features), self.labels.shape[1]), np.float32)

        def score(rows: slice) -> None:
            known, codes = known_of(rows), self.region_codes
            result[rows] = model.of_scores(
                Scores(kept.auto[rows], kept.known[rows], known.outside),
                lambda some: np.asarray(self.features[some + rows.start]),
                lambda some: None if codes is None else codes[some + rows.start],
                known,
            )

        in_blocks(len(result), ROWS, score, self.tell)
        return result

    def _known_of(self, rows: slice, labels: np.ndarray, inputs: Sequence[np.ndarray]) -> Known:
        """Return the Known of a slice of images, from labels (n, C) of labeled images and outside inputs (N, C)."""
        some = slice(*np.searchsorted(self.rows, [rows.start, rows.stop]).tolist())
        images = self.rows[some]
        outside = [values[rows] for values in inputs]
        return Known(images - rows.start, labels[some], self.unbiased[some], self._half_of[images], outside)

    def _stackers(
        self,
        labels: np.ndarray,
        unanswered: np.ndarray,
        scores_of: Callable[[np.ndarray], Scores],
        held_out_of: Callable[[np.ndarray], Scores],
    ) -> list[Stacker]:
        """Return the stacker of each round, fitted to the unbiased answers of STACKED cells.

        Args:
            labels: (n, C) int8 of the labeled images.
            unanswered: (m,) scores of cells that nobody has answered.
            scores_of: Images -> their scores by the models of all images.
            held_out_of: Images -> their scores by the models of the other half.
        """
        answered = np.flatnonzero(self.unbiased.any(1))
        answered = self._sampled(answered, max(1, int(self.unbiased.sum()) // len(answered)))
        images, (at, columns) = self.rows[answered], np.nonzero(self.unbiased[answered])
        scores, held_out = scores_of(images), held_out_of(images).of_cells(at, columns)
        labels = labels[answered]
        present = labels[at, columns] == PRESENT
        weights = importance_weights(held_out.mean[:, 0], unanswered)
        weights *= 1 if self.groups is None else shares_of_groups(self.groups[images[at]], columns)
        of_context = len(held_out.outside) - len(self.outside)
        stackers: list[Stacker] = []
        others = other_classes(labels, sigmoid(scores.mean))
        for _ in range(ROUNDS):
            self.tell()
            if stackers:
                others = other_classes(labels, sigmoid(stackers[-1].logits(scores, others)))
            cells = others[at, columns][:, None]
            stackers.append(fit_stacker(held_out, cells, columns, present, weights, labels.shape[1], of_context))
        return stackers

    def _of_images(self, values: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """Return (m, C) for any images, from values (n, C) of the labeled ones; 0 for the others."""
        places = self._place[rows]
        result = np.zeros((len(places), values.shape[1]), values.dtype)
        result[places >= 0] = values[places[places >= 0]]
        return result

    def _sampled(self, rows: np.ndarray, cells: int) -> np.ndarray:
        """Return rows whose cells, `cells` each, are at most STACKED in number: all or a random sample, ascending."""
        most = max(1, STACKED // cells)
        return rows if len(rows) <= most else np.sort(np.random.default_rng(0).permutation(rows)[:most])

    def _held_out(self, halves: list[Scorer | None], images: np.ndarray) -> Scores:
        """Return scores (m, C) of images by models trained on the other half; nan and 0 where there are none."""
        auto = np.full((len(images), self.labels.shape[1]), np.nan, np.float32)
        known = np.zeros_like(auto)
        for half, scorer in enumerate(halves):
            places = np.flatnonzero(self._half_of[images] == half)
            if scorer is not None and len(places):
                scores = scorer.of_many(images[places])
                auto[places], known[places] = scores.auto, scores.known
        return Scores(auto, known)
