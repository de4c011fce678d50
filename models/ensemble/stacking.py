"""What `auto` adds once people answer whole questions: a third model of answered cells, and a second look at all three.

A click says that one class is there and nothing else. An answered grid, an image answered in every class or an audit
says of each of its cells whether it is there or not ("unbiased" answers: which cells were asked does not depend on what
was answered). From those, and only from those, this learns

* `KnownHead`: logistic regression in which every answered cell counts in full and every other one a little, as absent.
  It takes over where most is answered and the remaining positives look unlike those that were easy to find.
* `Stacker`: how much to believe each model, how much what else is on the image says of a class, and what a score is
  worth far down the list, where the last positives are. It is fitted to scores of models that had not seen the image
  (two halves, each scored by models trained on the other; Wolpert, "Stacked generalization", Neural Networks 1992),
  because the scores of answers that were learned from are always right. Answered cells are the likely ones; they are
  weighted as often as their scores occur among the cells nobody has answered (Shimodaira 2000).

In experiments on 1,830 photographs of animals, answered in grids of the likeliest, the number of positives that it
still expected was mostly 0.6 to 1.6 times the truth, up to 90 % of all labels; with a slope and a shift alone it fell
to a tenth.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor
from torch.nn import functional as F

from models.ensemble.basis import as_tensor, root, unit
from models.ensemble.fit_ensemble import Ensemble, fit_ensemble
from models.ensemble.regions import RegionCodes
from models.labels import PRESENT, UNSEEN
from models.linear.training import Array, Epoch, one_thread
from models.methods.auto import Auto
from models.statistics.calibration import raw_logits
from models.statistics.logistic import fit_logistic

UNKNOWN = 0.03  # weight of a cell nobody has answered, as absent, against an answered one
RIDGE = 2e-5  # times the squared weights of KnownHead, an image
PARTS = 0.5  # share of the best part's score, as in `auto`
FIRST_STEPS, NEXT_STEPS = 50, 15  # of L-BFGS, from nothing and from the weights of the training before
ANSWERED, OTHERS = 20_000, 4000  # images with an answer, and without, that are learned from, at most
HALVES = 2
FEWEST = 12  # unbiased positives and unbiased negatives from which on there is something to learn from
TAIL = -3.5  # logit below which a score may be worth more than it says
BINS = 12  # of scores, in which answered and unanswered cells are compared
SMALLEST, LARGEST = 0.1, 10.0  # of importance weights
GAINS, ROWS = 1000, 512  # images from which the advantage of regions is taken; and scored at once
ROUNDS = 6  # of the second look: the surroundings of a cell are what the round before thought of them
# Head and ridge model of `auto`, KnownHead, one other class on the image, more than one, the tail, a shift:
PRIOR_MEAN = np.array([0.5, 0.5, 0.0, 0.0, -0.3, 0.0])
PRIOR_PRECISION = np.array([2.0, 2.0, 2.0, 2.0, 2.0, 1.0])  # answers that what is believed beforehand is worth
# The same of a class's own slope around 1 and shift around 0. Fixed, and not found by how much classes differ
# (models/statistics/calibration.py): that is found large while grids of one class after another are answered, and then
# each class
# follows its newest grids up and down.
CLASS_PRECISION = np.array([8.0, 1.0])
LEAST_SLOPE = 0.1


@dataclass
class WarmStart:
    """Weights of one training from which the next one starts; one for a worker."""

    weights: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)  # half, or -1 for all -> (D, C), (C,)


class KnownHead:
    """Logistic regression on whole images that scores their regions as well.

    weight (D, C) and bias (C,), on roots of features, centred and of length 1 (models/ensemble/fit_ensemble.py)
    """

    def __init__(self, weight: Tensor, bias: Tensor):
        self.weight, self.bias = weight, bias

    def logits(self, units: Tensor, region_codes: RegionCodes | None, gain: Tensor | float = 0.0) -> Tensor:
        """(n, C) of images given by units (n, D) and their region codes; gain (C,) as `gain` gives it."""
        whole = units @ self.weight
        if region_codes is None:
            return whole + self.bias
        best = (region_codes.products(self.weight) / region_codes.lengths).amax(1)
        return whole + PARTS * (best - whole - gain) + self.bias

    def gain(self, units: Tensor, region_codes: RegionCodes | None) -> Tensor | float:
        """(C,) how much higher the best part scores than the whole, on average."""
        if region_codes is None:
            return 0.0
        return ((region_codes.products(self.weight) / region_codes.lengths).amax(1) - units @ self.weight).mean(0)


@one_thread()
def fit_known(
    units: Tensor,
    labels: Tensor,
    weights: Tensor,
    start: tuple[Tensor, Tensor] | None = None,
    tell: Callable[[], None] = lambda: None,
) -> KnownHead:
    """Fit it to labels (n, C) in {0, 1} with weights (n, C), from the weights of another one on; units are (n, D)."""
    if start is None or start[0].shape != (units.shape[1], labels.shape[1]):
        share = (labels * weights).sum(0) / weights.sum(0).clamp(min=1e-6)
        weight, bias = torch.zeros(units.shape[1], labels.shape[1]), torch.logit(share.clamp(1e-3, 0.9))
        steps = FIRST_STEPS
    else:
        (weight, bias), steps = start, NEXT_STEPS
    weight, bias = weight.clone().requires_grad_(True), bias.clone().requires_grad_(True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=steps, history_size=8, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        tell()
        optimiser.zero_grad()
        apart = F.binary_cross_entropy_with_logits(units @ weight + bias, labels, weight=weights, reduction="sum")
        total = apart + RIDGE * len(units) * (weight * weight).sum()
        total.backward()
        return total

    optimiser.step(loss)
    return KnownHead(weight.detach(), bias.detach())


@dataclass(frozen=True, eq=False)
class Scores:
    """Logits of all images, or of some: (n, C) of `auto`, nan where it has no model, and of KnownHead."""

    auto: np.ndarray
    known: np.ndarray

    @property
    def middle(self) -> np.ndarray:
        """Of both; of KnownHead alone where the other has no model."""
        return np.where(np.isnan(self.auto), self.known, (self.auto + self.known) / 2)


class Stacker:
    """One line through what is known of a cell, and behind it a slope and a shift for every class, (C,) each."""

    def __init__(self, line: np.ndarray, slopes: np.ndarray, shifts: np.ndarray):
        self.line, self.slopes, self.shifts = line, slopes, shifts

    def logits(self, scores: Scores, others: np.ndarray) -> np.ndarray:
        """(n, C) calibrated logits; others (n, C) how many other classes are on the image, as `others_of` says."""
        return self.slopes * (_looks(scores, others) @ self.line[:-1] + self.line[-1]) + self.shifts

    def of_cells(self, scores: Scores, others: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """(n,) the same of single cells: scores and others (n, 1), columns (n,) the class of each."""
        line = (_looks(scores, others) @ self.line[:-1] + self.line[-1])[:, 0]
        return self.slopes[columns] * line + self.shifts[columns]


def others_of(labels: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """(n, C) how many other classes each image probably holds: labels (n, C) int8 where answered, else chances."""
    there = np.where(labels == UNSEEN, chances, labels == PRESENT).astype(np.float32)
    return there.sum(1, keepdims=True) - there


def fit_stacker(
    held: Scores, others: np.ndarray, columns: np.ndarray, present: np.ndarray, weights: np.ndarray, classes: int
) -> Stacker:
    """Fit it to unbiased answers.

    held       scores (n, 1) of each answered cell, by models that have not seen its image
    others     (n, 1), as in `others_of`
    columns    (n,) the class of each cell; present (n,) bool the answers; weights (n,) how often each counts
    """
    looks = np.column_stack([_looks(held, others)[:, 0], np.ones(len(columns))])
    line = fit_logistic(looks, present, PRIOR_MEAN, PRIOR_PRECISION, weights=weights).coefficients[0]
    return Stacker(line, *_class_lines(looks @ line, columns, present, weights, classes))


def fit_stacked(
    method: Auto,
    features: Array,
    region_codes: RegionCodes | None,
    rows: np.ndarray,
    labels: np.ndarray,
    unbiased: np.ndarray,
    *,
    mask: np.ndarray | None = None,
    warm_start: WarmStart | None = None,
    seed: int = 0,
    tell: Callable[[], None] = lambda: None,
) -> "StackedModel":
    """`auto` with what unbiased answers add to it. Nothing is learned before its `epochs` have been gone through.

    features, region_codes, rows, labels, mask, seed, tell    as in `models.ensemble.fit_ensemble`
    unbiased       (n, C) bool, which labels are unbiased answers, of the rows
    warm_start     weights of the training before
    """
    return StackedModel(
        method, features, region_codes, rows, labels, unbiased, mask, warm_start or WarmStart(), seed, tell
    )


class StackedModel:
    """One training; `probabilities` (N, C) float32 is there when `epochs` has ended."""

    def __init__(self, method, features, region_codes, rows, labels, unbiased, mask, warm_start, seed, tell):
        self.method, self.features, self.region_codes = method, features, region_codes
        self.rows, self.unbiased, self.warm_start, self.seed, self.tell = (
            np.asarray(rows),
            unbiased,
            warm_start,
            seed,
            tell,
        )
        self.labels, self.mask = np.asarray(labels), mask
        self.sure = self.labels != UNSEEN if mask is None else (self.labels != UNSEEN) & mask
        self.unbiased = unbiased & self.sure
        self.probabilities: np.ndarray | None = None
        self.calibrated = False

    @property
    def worth_it(self) -> bool:
        """Whether there are unbiased answers enough of both kinds."""
        present = int((self.labels[self.unbiased] == PRESENT).sum())
        return min(present, int(self.unbiased.sum()) - present) >= FEWEST

    def epochs(self) -> Iterator[Epoch]:
        """Train; steps once an epoch of the head of `auto`, on all images."""
        whole = Ensemble(self.method, self.features.shape[1], self.labels.shape[1])
        yield from self._fit(whole, np.arange(len(self.rows)))
        self.probabilities = whole.probabilities(self.features, self.region_codes, self.tell)
        if self.worth_it:
            self._stack(raw_logits(self.probabilities))

    def _fit(self, model: Ensemble, some: np.ndarray) -> Iterator[Epoch]:
        mask = None if self.mask is None else self.mask[some]
        return fit_ensemble(
            model, self.features, self.region_codes, self.rows[some], self.labels[some], mask=mask, seed=self.seed,
            tell=self.tell,
        )  # fmt: skip

    def _stack(self, auto: np.ndarray) -> None:
        centre = self.region_codes.basis.centre if self.region_codes is not None else _mean_root(self.features)
        known = self._known(centre, np.arange(len(self.rows)), -1, np.arange(len(self.features)))
        every = Scores(auto, known)
        labels = np.zeros(auto.shape, np.int8)
        labels[self.rows] = np.where(self.sure, self.labels, UNSEEN)
        asked, columns = np.nonzero(self.unbiased)
        held = self._held(centre, asked, columns)
        open_ = labels == UNSEEN
        middle = every.middle
        weights, chances = _importance(held.middle[:, 0], middle[open_]), expit(middle)
        present = self.labels[asked, columns] == PRESENT
        for _ in range(ROUNDS):
            others = others_of(labels, chances)
            cells = others[self.rows[asked], columns][:, None]
            look = fit_stacker(held, cells, columns, present, weights, auto.shape[1])
            chances = expit(look.logits(every, others))
        chances[np.isnan(auto)] = np.nan
        # Of answered cells, what models say that had not seen the answer: the others would only repeat it, and whoever
        # looks for wrong answers (Northcutt et al., "Confident Learning", JAIR 2021) would find none.
        there = ~np.isnan(auto[self.rows[asked], columns])
        told = expit(look.of_cells(held, cells, columns))[there]
        chances[self.rows[asked][there], columns[there]] = told
        self.probabilities, self.calibrated = chances.astype(np.float32), True

    def _held(self, centre: Tensor, asked: np.ndarray, columns: np.ndarray) -> Scores:
        """Scores (n, 1) of unbiased cells (place in rows, column), each by models trained on the other half."""
        halves = np.random.default_rng(0).integers(0, HALVES, len(self.features))[self.rows]
        auto, known = np.full((len(asked), 1), np.nan, np.float32), np.zeros((len(asked), 1), np.float32)
        for half in range(HALVES):
            mine = np.flatnonzero(halves[asked] == half)
            others = np.flatnonzero(halves != half)
            if not len(mine) or not (self.labels[others][self.sure[others]] == PRESENT).any():
                continue
            images, place = np.unique(self.rows[asked[mine]], return_inverse=True)
            model = Ensemble(self.method, self.features.shape[1], self.labels.shape[1])
            for _ in self._fit(model, others):
                self.tell()
            region_codes = None if self.region_codes is None else self.region_codes[images]
            told = raw_logits(model.probabilities(self.features[images], region_codes, self.tell))
            auto[mine, 0] = told[place, columns[mine]]
            known[mine, 0] = self._known(centre, others, half, images)[place, columns[mine]]
        return Scores(auto, known)

    def _known(self, centre: Tensor, some: np.ndarray, half: int, images: np.ndarray) -> np.ndarray:
        """Logits (m, C) that a KnownHead, trained on some of the rows, gives these images."""
        chance = np.random.default_rng(self.seed)
        if len(some) > ANSWERED:  # first those with unbiased answers, which say most
            order = np.lexsort((chance.random(len(some)), ~self.unbiased[some].any(1)))
            some = np.sort(some[order[:ANSWERED]])
        without = np.setdiff1d(np.arange(len(self.features)), self.rows)
        sample = np.sort(chance.permutation(without)[:OTHERS])
        units = unit(root(as_tensor(self.features[np.concatenate([self.rows[some], sample])])), centre)
        labels = np.zeros((len(units), self.labels.shape[1]), np.float32)
        labels[: len(some)] = (self.labels[some] == PRESENT) & self.sure[some]
        weights = np.full(labels.shape, UNKNOWN * max(1.0, len(without) / max(len(sample), 1)), np.float32)
        weights[: len(some)] = np.where(self.sure[some], 1.0, UNKNOWN)
        if self.mask is not None:
            weights[: len(some)][~self.mask[some]] = 0
        head = fit_known(
            units, torch.from_numpy(labels), torch.from_numpy(weights), self.warm_start.weights.get(half), self.tell
        )
        self.warm_start.weights[half] = (head.weight, head.bias)
        return _in_blocks(head, self.features, self.region_codes, centre, images, self.tell)


@one_thread()
def _in_blocks(head: KnownHead, features, region_codes, centre: Tensor, images: np.ndarray, tell) -> np.ndarray:
    """(m, C) float32 logits of some images, a few hundred at a time."""

    def look(rows: np.ndarray) -> tuple[Tensor, RegionCodes | None]:
        return unit(root(as_tensor(features[rows])), centre), None if region_codes is None else region_codes[rows]

    sample = np.sort(np.random.default_rng(0).permutation(len(features))[:GAINS])
    gain = head.gain(*look(sample))
    result = np.empty((len(images), head.weight.shape[1]), np.float32)
    for start in range(0, len(images), ROWS):
        tell()
        result[start : start + ROWS] = head.logits(*look(images[start : start + ROWS]), gain).numpy()
    return result


def _mean_root(features: Array) -> Tensor:
    sample = np.sort(np.random.default_rng(0).permutation(len(features))[:2000])
    return root(as_tensor(features[sample])).mean(0)


def _looks(scores: Scores, others: np.ndarray) -> np.ndarray:
    """(n, C, 5) what the line goes through; a class that `auto` has no model of is judged by the other alone."""
    auto = np.where(np.isnan(scores.auto), scores.known, scores.auto)
    tail = np.minimum(scores.middle - TAIL, 0)
    return np.stack([auto, scores.known, np.minimum(others, 1), np.maximum(others - 1, 0), tail], -1)


def _importance(asked: np.ndarray, unknown: np.ndarray) -> np.ndarray:
    """(n,) how often each asked score (n,) is to count so that together they lie as the unknown ones (m,) do."""
    if not len(unknown):
        return np.ones(len(asked))
    edges = np.quantile(unknown, np.arange(1, BINS) / BINS)
    places = np.searchsorted(edges, asked)
    of_asked = np.bincount(places, minlength=BINS) / len(asked)
    of_unknown = np.bincount(np.searchsorted(edges, unknown), minlength=BINS) / len(unknown)
    weights = np.clip((of_unknown / np.maximum(of_asked, 1e-9))[places], SMALLEST, LARGEST)
    return weights * weights.sum() / (weights * weights).sum()  # as many as they are worth (Kish 1965)


def _class_lines(
    logits: np.ndarray, columns: np.ndarray, present: np.ndarray, weights: np.ndarray, classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes (C,) and shifts (C,) of the classes, drawn towards 1 and 0 (Platt 1999, with a Gaussian prior)."""
    inputs, mean = np.column_stack([logits, np.ones(len(logits))]), np.tile([1.0, 0.0], (classes, 1))
    lines = fit_logistic(inputs, present, mean, CLASS_PRECISION, weights=weights, groups=columns).coefficients
    return np.maximum(lines[:, 0], LEAST_SLOPE), lines[:, 1]
