"""Training of `auto`: two linear models that look at an image as a whole and at its regions, averaged.

What it adds to a head on pooled features, each measured on its own (docs/benchmarks.md):

* Square roots of the features (basis.py).
* Regions. Both models are trained on whole images, but also score the nine regions of every image: the best region
  shows a small object that hardly changes the average of the image. Training on the regions themselves was worse with
  few labels: the best region of an image is a guess, and guesses are memorised.
* A second model: ridge regression towards "was marked", which keeps the classes on one scale; the gradient-trained head
  orders the images of one class better.
* Unlabeled images. The ridge model is fitted again with its own sharpened predictions for them, at a fraction of the
  weight of a person's answers, and rescaled so that sharpening makes no class more frequent than it was.

Only the first head needs gradient descent, so that 10,000 images take seconds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from models.ensemble.basis import as_tensor, root, unit
from models.ensemble.regions import RegionCodes, Regions
from models.labels import ABSENT, PRESENT, UNSEEN
from models.linear.training import (
    Array,
    Epoch,
    Features,
    Head,
    check_labels,
    checked_features,
    fit,
    one_thread,
    standardisation,
)
from models.methods.auto import Auto

SAMPLE = 2000  # unlabeled images that are learned from, and images from which averages are taken, at most
ROWS = 512  # images scored at once
SUREST = 1e-4  # predictions of the ridge model, which are not bounded, are clipped to [SUREST, 1 - SUREST]


class Ensemble:
    """The two models of `auto`: they give probabilities for any image whose features are given.

    whole       a Head on the roots of pooled features
    weight      (D, C) of the ridge model, on centred roots of length 1
    centre      (D,) mean root of whole images
    middle      (D,) mean of what the ridge model was fitted to
    marked      (C,) share of the labeled images on which each class was marked
    gains       two (C,): how much higher than the whole the best region scores on average; subtracted again
    head_share  weight of the first model in the average of their logits
    """

    def __init__(self, method: Auto, dimensions: int, classes: int):
        self.method = method
        self.whole = Head(dimensions, classes)
        self.weight = torch.zeros(dimensions, classes)
        self.centre, self.middle = torch.zeros(dimensions), torch.zeros(dimensions)
        self.marked = torch.zeros(classes)
        self.gains = [torch.zeros(classes), torch.zeros(classes)]
        self.head_share = method.head

    @one_thread()
    def probabilities(
        self, features: Features, region_codes: Regions | None, tell: Callable[[], None] = lambda: None
    ) -> np.ndarray:
        """The probability of every class in every image.

        features    (N, D) float16 or float32, pooled
        region_codes    of the same images; None: without
        tell        called every few hundred images
        returns     (N, C) float32 in [0, 1], nan in the columns of classes nobody has marked
        """
        out = np.empty((len(features), len(self.marked)), np.float32)
        weights = (self.method.parts_of_head, self.method.parts_of_ridge) if region_codes is not None else (0.0, 0.0)
        for start in range(0, len(features), ROWS):
            tell()
            rows = slice(start, start + ROWS)
            pairs = self.whole_and_best(
                root(as_tensor(features[rows])), None if region_codes is None else region_codes[rows]
            )
            head, ridge = [
                whole + weight * (best - whole - gain)
                for (whole, best), weight, gain in zip(pairs, weights, self.gains, strict=True)
            ]
            logit = torch.logit((ridge + self.marked).clamp(SUREST, 1 - SUREST))
            out[rows] = torch.sigmoid(logit.lerp(head, self.head_share)).numpy()
        return out

    def whole_and_best(self, roots: Tensor, region_codes: RegionCodes | None) -> list[tuple[Tensor, Tensor]]:
        """For the head (logits) and the ridge model: the whole image's score and its best region's, (N, C)."""
        head, ridge = roots @ self.whole.weight.T + self.whole.bias, self.ridge_of_wholes(roots)
        if region_codes is None:
            return [(head, head), (ridge, ridge)]
        at_centre = self.centre @ self.whole.weight.T + self.whole.bias
        both = region_codes.products(torch.cat([self.whole.weight.T, self.weight], dim=1))
        of_head, of_ridge = both.split(len(self.marked), dim=-1)
        return [
            (head, of_head.amax(1) + at_centre),
            (ridge, (of_ridge / region_codes.lengths).amax(1) - self.middle @ self.weight),
        ]

    def ridge_of_wholes(self, roots: Tensor) -> Tensor:
        """Predictions of the ridge model less their average, (N, C), for roots (N, D) of pooled features."""
        return unit(roots, self.centre) @ self.weight - self.middle @ self.weight

    def ridge_of_regions(self, region_codes: RegionCodes) -> Tensor:
        """The same of each image's best region, (N, C)."""
        return (region_codes.products(self.weight) / region_codes.lengths).amax(1) - self.middle @ self.weight


def fit_ensemble(
    ensemble: Ensemble,
    features: Features,
    region_codes: Regions | None,
    rows: np.ndarray,
    labels: Array,
    *,
    mask: Array | None = None,
    epochs: int | None = None,
    lr: float | None = None,
    batch: int | None = None,
    seed: int = 0,
    should_stop: Callable[[], bool] | None = None,
    tell: Callable[[], None] = lambda: None,
) -> Iterator[Epoch]:
    """Trains the ensemble from scratch; steps once an epoch of the first head, and is complete when the iterator ends.

    features    (N, D) float16 or float32 of all images, also of unlabeled ones
    region_codes    of the same images; None to train without
    rows        (n,) which of them are labeled
    labels      (n, C) int8 of those, as `models.linear.training.fit` takes them; so are mask, epochs, lr, batch and
                seed
    tell        called now and then during the long steps

    Raises ValueError as `fit` does, for rows out of range, region codes of another number of images, and features of
    unlabeled images that are not finite.
    """
    everything, chosen = checked_features(features, ensemble.whole.dimensions), np.asarray(rows, np.int64)
    if len(chosen) and not (int(chosen.min()) >= 0 and int(chosen.max()) < len(everything)):
        raise ValueError(f"Rows run from {int(chosen.min())} to {int(chosen.max())}; there are {len(everything)}.")
    if region_codes is not None and len(region_codes) != len(everything):
        raise ValueError(f"There are region codes of {len(region_codes)} images and features of {len(everything)}.")
    known, usable = check_labels(labels, mask, len(chosen), ensemble.whole.classes)
    known = known if usable is None else known.masked_fill(~usable, UNSEEN)
    standardisation(everything)  # raises an error that names the rows that are not finite
    roots = root(as_tensor(everything[chosen]))
    steps = fit(
        ensemble.whole, roots, labels, ensemble.method.of_the_head(), mask=mask, epochs=epochs, lr=lr, batch=batch,
        seed=seed, should_stop=should_stop,
    )  # fmt: skip
    return _epochs(ensemble, steps, everything, region_codes, chosen, roots, known, usable, seed, tell)


def _epochs(ensemble, steps, everything, region_codes, chosen, roots, known, usable, seed, tell) -> Iterator[Epoch]:
    """The generator behind `fit_ensemble`: first the ridge model, then the epochs, then the gains of both."""
    generator = np.random.default_rng(seed)
    sample = np.sort(generator.permutation(len(everything))[:SAMPLE])
    ensemble.centre = root(as_tensor(everything[sample])).mean(0) if region_codes is None else region_codes.basis.centre
    ensemble.marked = (known == PRESENT).float().mean(0)
    method, labelled = ensemble.method, len(chosen) / len(everything)
    ensemble.head_share = method.head + (method.head_of_all - method.head) * labelled
    ensemble.gains = [torch.zeros_like(ensemble.marked) for _ in range(2)]
    others = np.setdiff1d(np.arange(len(everything)), chosen)
    others = np.sort(generator.permutation(others)[:SAMPLE])
    free, free_regions = root(as_tensor(everything[others])), None if region_codes is None else region_codes[others]
    fit_ridge(ensemble, roots, wanted(known, usable, method.absent), free, free_regions, tell)
    last = None
    for epoch in steps:
        if last is not None:
            yield last
        last = epoch
    tell()
    if region_codes is not None:
        ensemble.gains = gains_of(ensemble, root(as_tensor(everything[sample])), region_codes[sample])
    # The last epoch is reported only when the model is complete.
    if last is not None:
        yield last


@one_thread()
def gains_of(ensemble: Ensemble, roots: Tensor, region_codes: RegionCodes) -> list[Tensor]:
    """How much higher the best region scores than the whole, on average over some images; (C,) for each model.

    The best of nine is higher than the whole by chance alone, and more so for some classes, which would then dominate
    rankings over several classes.
    """
    shares = (ensemble.method.evened_of_head, 1.0)
    pairs = ensemble.whole_and_best(roots, region_codes)
    return [share * (best - whole).mean(0) for share, (whole, best) in zip(shares, pairs, strict=True)]


def wanted(known: Tensor, usable: Tensor | None, absent: float) -> Tensor:
    """(n, C) targets of the ridge model: 1 where marked, -absent where a person ruled the class out, 0 elsewhere.

    A cell that may not be used gets the average of its class, which has no influence.
    """
    answers = (known == PRESENT).float() - absent * (known == ABSENT).float()
    return answers if usable is None else torch.where(usable, answers, answers.mean(0))


@one_thread()
def fit_ridge(
    ensemble: Ensemble, roots: Tensor, answers: Tensor, free: Tensor, region_codes: RegionCodes | None, tell
) -> None:
    """Ridge regression on the labeled images, then again with its own predictions for unlabeled images.

    roots (n, D) and answers (n, C) of the labeled images; free (m, D) roots and region codes of unlabeled ones.
    Self-training is Scudder's (IEEE Trans. Inf. Theory, 1965); answers are sharpened by a power, as in MixMatch
    (Berthelot et al., NeurIPS 2019, eq. 7).
    """
    method = ensemble.method
    labelled = unit(roots, ensemble.centre)
    moments = Moments.of(labelled)
    ensemble.middle = moments.mean
    ensemble.weight = moments.solve(labelled, answers - ensemble.marked, method.ridge)
    if not len(free) or not method.rounds or not method.unlabelled:
        return
    tell()
    centred = unit(free, ensemble.centre)
    both = moments + Moments.of(centred, method.unlabelled)
    everyone = torch.cat([labelled, centred])
    weights = torch.cat([torch.ones(len(labelled), 1), torch.full((len(free), 1), method.unlabelled)])
    for _ in range(int(method.rounds)):
        tell()
        guesses = ensemble.ridge_of_wholes(free)
        if region_codes is not None:
            guesses = (guesses + ensemble.ridge_of_regions(region_codes)) / 2
        guesses = (guesses + ensemble.marked).clamp(SUREST, 1 - SUREST)
        sharp = guesses**method.sharpness
        # Each class keeps its total: otherwise a class that is easy to see would take over. The total is not what
        # people mark, because who confirms suggestions marks the likely classes more often than they occur.
        soft = (sharp / sharp.mean(0).clamp(min=1e-12) * guesses.mean(0)).clamp(max=1)
        towards = (torch.cat([answers, soft]) - ensemble.marked) * weights
        ensemble.middle = both.mean
        ensemble.weight = both.solve(everyone, towards, method.ridge)


@dataclass(frozen=True)
class Moments:
    """Sums over rows that a ridge regression needs: their number (), sum (D,), and products (D, D)."""

    count: float
    sum: Tensor
    products: Tensor

    @classmethod
    def of(cls, rows: Tensor, weight: float = 1.0) -> "Moments":
        """Of rows (n, D), each counted `weight` times."""
        return cls(weight * len(rows), weight * rows.sum(0), weight * (rows.T @ rows))

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.count + other.count, self.sum + other.sum, self.products + other.products)

    @property
    def mean(self) -> Tensor:
        return self.sum / self.count

    def solve(self, rows: Tensor, answers: Tensor, ridge: float) -> Tensor:
        """(D, C): the weights on centred rows of least squared error plus `ridge` times their own squares.

        rows (n, D), answers (n, C), already multiplied with the weights of their rows where those are not 1.
        """
        centred = self.products - self.count * torch.outer(self.mean, self.mean)
        centred.diagonal().add_(ridge)
        right = rows.T @ answers - torch.outer(self.mean, answers.sum(0))
        return torch.linalg.solve(centred, right)
