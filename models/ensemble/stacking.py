"""What `auto` adds once people answer whole questions: a model of answered cells, and the stacker over all three.

A click says that one class is there and nothing else. An answered grid, an image answered in every class or an audit
says of each of its cells whether it is there or not. These answers are unbiased: which cells were asked does not depend
on what was answered. From those, and only from those, this learns

* `AnsweredHead` (answered_head.py), which takes over where most is answered and the remaining positives look unlike
  those that were easy to find;
* `Stacker` (models/statistics/stacker.py): how much to believe each model, how much the other classes on an image say
  of a class, and what a score is worth far down the list, where the last positives are. It is fitted to the scores of
  models that had not seen the image: two halves, each scored by models trained on the other.

In experiments on 1,830 photographs of animals, answered in grids of the likeliest, the number of positives that it
still expected was mostly 0.6 to 1.6 times the truth, up to 90 % of all labels; with a slope and a shift alone it fell
to a tenth.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor

from models.ensemble.answered_head import fit_answered_head
from models.ensemble.basis import as_tensor, root, unit
from models.ensemble.fit_ensemble import Ensemble, fit_ensemble
from models.ensemble.regions import Regions
from models.labels import PRESENT, UNSEEN
from models.linear.training import Epoch, Features
from models.methods.auto import Auto
from models.statistics.calibration import raw_logits
from models.statistics.outside_scores import OutsideScores, with_first_guesses
from models.statistics.stacker import Scores, Stacker, fit_stacker, importance_weights, other_classes

UNKNOWN = 0.03  # weight of a cell nobody has answered, as absent, against an answered one
ANSWERED, OTHERS = 20_000, 4000  # images with an answer, and without, that are learned from, at most
HALVES = 2
FEWEST = 12  # unbiased positives and unbiased negatives from which on there is something to learn from
ROUNDS = 6  # of stacking: the other classes on an image are those that the round before found likely


@dataclass
class WarmStart:
    """Weights of one training from which the next one starts; each worker has one instance."""

    weights: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)  # half, or -1 for all -> (D, C), (C,)


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
) -> "StackedModel":
    """`auto` with what unbiased answers add to it. Nothing is learned before its `epochs` have been gone through.

    features, region_codes, rows, labels, mask, epochs, lr, batch, seed, tell    as in `models.ensemble.fit_ensemble`
    unbiased       (n, C) bool, which labels are unbiased answers, of the rows
    warm_start     weights of the training before
    outside        scores of models from elsewhere, of all N images
    """
    settings = {"epochs": epochs, "lr": lr, "batch": batch, "seed": seed, "tell": tell}
    return StackedModel(
        method, features, region_codes, rows, labels, unbiased, mask, warm_start or WarmStart(), settings, outside
    )


class StackedModel:
    """One training.

    ensemble        the two models of `auto`, trained on all labels
    probabilities   (N, C) float32, when `epochs` has ended
    calibrated      whether the stacker was fitted to unbiased answers
    outside_weights     (C, K) what it believes of each model from elsewhere (models/statistics/stacker.py), None before
    """

    def __init__(self, method, features, region_codes, rows, labels, unbiased, mask, warm_start, settings, outside=()):
        self.method, self.features, self.region_codes = method, features, region_codes
        self.rows, self.warm_start, self.settings = np.asarray(rows), warm_start, settings
        self.seed, self.tell = settings["seed"], settings["tell"]
        self.labels, self.mask = np.asarray(labels), mask
        self.sure = self.labels != UNSEEN if mask is None else (self.labels != UNSEEN) & mask
        self.unbiased = unbiased & self.sure
        self.probabilities: np.ndarray | None = None
        self.calibrated = False
        self.outside, self.outside_weights = tuple(outside), None

    @property
    def has_enough_answers(self) -> bool:
        """Whether there are enough unbiased answers of both kinds."""
        present = int((self.labels[self.unbiased] == PRESENT).sum())
        return min(present, int(self.unbiased.sum()) - present) >= FEWEST

    def epochs(self) -> Iterator[Epoch]:
        """Train; steps once an epoch of the head of `auto`, on all images.

        Without a label "present" there are no epochs, and probabilities only where other models give some.
        """
        self.ensemble = Ensemble(self.method, self.features.shape[1], self.labels.shape[1])
        if not (self.labels[self.sure] == PRESENT).any():
            self.probabilities = np.full((len(self.features), self.labels.shape[1]), np.nan, np.float32)
        else:
            yield from self._fit(self.ensemble, np.arange(len(self.rows)))
            self.probabilities = self.ensemble.probabilities(self.features, self.region_codes, self.tell)
            if self.has_enough_answers:
                self._stack(raw_logits(self.probabilities))
        if self.outside:
            labels, unbiased = self._of_all(np.where(self.sure, self.labels, UNSEEN)), self._of_all(self.unbiased)
            self.probabilities = with_first_guesses(
                self.probabilities, labels, unbiased, self.outside, self.calibrated
            ).astype(np.float32)

    def _of_all(self, values: np.ndarray) -> np.ndarray:
        """(N, C) with values (n, C) in the labeled rows, 0 elsewhere."""
        result = np.zeros((len(self.features), values.shape[1]), values.dtype)
        result[self.rows] = values
        return result

    def _fit(self, model: Ensemble, some: np.ndarray) -> Iterator[Epoch]:
        mask = None if self.mask is None else self.mask[some]
        return fit_ensemble(
            model, self.features, self.region_codes, self.rows[some], self.labels[some], mask=mask, **self.settings
        )  # fmt: skip

    def _stack(self, auto: np.ndarray) -> None:
        """Replace `probabilities` by those of the stacker; auto (N, C) are their logits."""
        centre = self.region_codes.basis.centre if self.region_codes is not None else _mean_root(self.features)
        known = self._known(centre, np.arange(len(self.rows)), -1, np.arange(len(self.features)))
        scores = Scores(auto, known, [source.inputs() for source in self.outside])
        labels = self._of_all(np.where(self.sure, self.labels, UNSEEN).astype(np.int8))
        answered, columns = np.nonzero(self.unbiased)
        images = self.rows[answered]
        held_out = self._held_out(centre, answered, columns)
        # Models from elsewhere have not seen any answer.
        of_cells = [inputs[images, columns][:, None] for inputs in scores.outside]
        held_out = Scores(held_out.auto, held_out.known, of_cells)
        weights = importance_weights(held_out.mean[:, 0], scores.mean[labels == UNSEEN])
        present = self.labels[answered, columns] == PRESENT

        def fit(others: np.ndarray) -> Stacker:
            cells = others[images, columns][:, None]
            return fit_stacker(held_out, cells, columns, present, weights, auto.shape[1])

        others = other_classes(labels, expit(scores.mean))
        stacker = fit(others)
        for _ in range(ROUNDS - 1):
            others = other_classes(labels, expit(stacker.logits(scores, others)))
            stacker = fit(others)
        self.outside_weights = stacker.outside_weights()
        probabilities = expit(stacker.logits(scores, others))
        probabilities[np.isnan(auto)] = np.nan
        # Answered cells get the probabilities of models that had not seen the answer. The others would only repeat it,
        # and wrong answers could not be found (Northcutt et al., "Confident Learning", JAIR 2021).
        modelled = ~np.isnan(auto[images, columns])
        unseen = expit(stacker.logits_of_cells(held_out, others[images, columns][:, None], columns))
        probabilities[images[modelled], columns[modelled]] = unseen[modelled]
        self.probabilities, self.calibrated = probabilities.astype(np.float32), True

    def _held_out(self, centre: Tensor, answered: np.ndarray, columns: np.ndarray) -> Scores:
        """Scores (n, 1) of cells (place in rows, column), each by models trained on the other half of the images."""
        halves = np.random.default_rng(0).integers(0, HALVES, len(self.features))[self.rows]
        auto, known = np.full((len(answered), 1), np.nan, np.float32), np.zeros((len(answered), 1), np.float32)
        for half in range(HALVES):
            cells, others = np.flatnonzero(halves[answered] == half), np.flatnonzero(halves != half)
            if not len(cells) or not (self.labels[others][self.sure[others]] == PRESENT).any():
                continue
            images, place = np.unique(self.rows[answered[cells]], return_inverse=True)
            model = Ensemble(self.method, self.features.shape[1], self.labels.shape[1])
            for _ in self._fit(model, others):
                self.tell()
            region_codes = None if self.region_codes is None else self.region_codes[images]
            logits = raw_logits(model.probabilities(self.features[images], region_codes, self.tell))
            auto[cells, 0] = logits[place, columns[cells]]
            known[cells, 0] = self._known(centre, others, half, images)[place, columns[cells]]
        return Scores(auto, known)

    def _known(self, centre: Tensor, some: np.ndarray, half: int, images: np.ndarray) -> np.ndarray:
        """Logits (m, C) that an AnsweredHead, trained on some of the rows, gives these images."""
        rng = np.random.default_rng(self.seed)
        if len(some) > ANSWERED:  # first those with unbiased answers, which say most
            order = np.lexsort((rng.random(len(some)), ~self.unbiased[some].any(1)))
            some = np.sort(some[order[:ANSWERED]])
        without = np.setdiff1d(np.arange(len(self.features)), self.rows)
        sample = np.sort(rng.permutation(without)[:OTHERS])
        units = unit(root(as_tensor(self.features[np.concatenate([self.rows[some], sample])])), centre)
        labels = np.zeros((len(units), self.labels.shape[1]), np.float32)
        labels[: len(some)] = (self.labels[some] == PRESENT) & self.sure[some]
        weights = np.full(labels.shape, UNKNOWN * max(1.0, len(without) / max(len(sample), 1)), np.float32)
        weights[: len(some)] = np.where(self.sure[some], 1.0, UNKNOWN)
        if self.mask is not None:
            weights[: len(some)][~self.mask[some]] = 0
        head = fit_answered_head(
            units, torch.from_numpy(labels), torch.from_numpy(weights), self.warm_start.weights.get(half), self.tell
        )
        self.warm_start.weights[half] = (head.weight, head.bias)
        return head.score(self.features, self.region_codes, centre, images, self.tell)


def _mean_root(features: Features) -> Tensor:
    sample = np.sort(np.random.default_rng(0).permutation(len(features))[:2000])
    return root(as_tensor(features[sample])).mean(0)
