"""Training of `auto`: two linear models that look at an image as a whole and at its regions, averaged.

What it adds to a head on pooled features, each measured on its own (docs/experiments.md, "`auto`"):

* Square roots of the features (basis.py).
* Regions. Both models are trained on whole images, but also score the nine regions of every image: the best region
  shows a small object that hardly changes the average of the image. Training on the regions themselves was worse with
  few labels: the best region of an image is a guess, and guesses are memorised.
* A second model: ridge regression towards "was marked", which keeps the classes on one scale; the gradient-trained head
  orders the images of one class better.
* Naming rates. A class that people rarely name where it is there gets higher probabilities (naming_rates.py): it has
  more positives left to find than its marks say.
* A second opinion on the order within each class, where marks are hard to tell apart (second_model.py).
* Unlabeled images. The ridge model is fitted again with its own sharpened predictions for them, at a fraction of the
  weight of a person's answers, and rescaled so that sharpening makes no class more frequent than it was.

Only the first head needs gradient descent, so that 10,000 images take seconds.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import numpy as np
import torch
from torch import Tensor

from spmll.ensemble.answered_head import fit_answered_head
from spmll.ensemble.basis import Basis, center_and_normalize, signed_sqrt, to_float_tensor
from spmll.ensemble.collection_scoring import IMAGES_PER_BLOCK
from spmll.ensemble.moments import Moments
from spmll.ensemble.naming_rates import MAX_IMAGES, estimate_log_naming_rates, predict_leave_one_out
from spmll.ensemble.regions import RegionCodes, Regions
from spmll.ensemble.second_model import (
    MAX_SECOND_IMAGES,
    MIN_SECOND_WEIGHT,
    SECOND_FIT_STEPS,
    UNMARKED_WEIGHT,
    SecondModel,
    combine_region_scores,
    estimate_difficulty,
)
from spmll.ensemble.training_subset import TrainingSubset, select_training_rows
from spmll.labels import ABSENT, PRESENT, UNSEEN
from spmll.linear.blocks import run_in_blocks
from spmll.linear.training import (
    Array,
    Epoch,
    Features,
    Head,
    check_features,
    check_features_finite,
    check_labels,
    fit,
    one_thread,
)
from spmll.methods.auto import Auto

MAX_SAMPLE_IMAGES = 2000  # unlabeled images that are learned from, and images from which averages are taken, at most
LABEL_BLOCK_IMAGES = 2048  # images whose labels are counted at once
# labeled images; from there on torch uses all of its threads: single products are long enough to be shared
MIN_IMAGES_FOR_THREADS = 10_000
RIDGE_EPS = 1e-4  # predictions of the ridge model, which are not bounded, are clipped to [RIDGE_EPS, 1 - RIDGE_EPS]


class Ensemble:
    """The two models of `auto`, which give probabilities for any image from its features.

    Attributes:
        whole: A Head on the roots of pooled features.
        weight: (D, C) of the ridge model, on centred roots of length 1.
        centre: (D,) mean root of whole images.
        middle: (D,) mean of the rows that the ridge model was fitted to.
        level: (C,) prediction of the ridge model at `middle`.
        marked: (C,) share of the labeled images on which each class was marked.
        gains: Two (C,): average advantage of the best region over the whole image, which is subtracted.
        head_share: Weight of the first model in the average of their logits.
        raised: (C,), added to the logits; positive for a class that people mark more rarely than others where present.
        doubt: How hard it is to tell marked images from others, in [0, 1] (second_model.py).
        second: The model that corrects the order within each class; None: nothing is corrected.
    """

    def __init__(self, method: Auto, dimensions: int, classes: int):
        self.method = method
        self.whole = Head(dimensions, classes)
        self.weight = torch.zeros(dimensions, classes)
        self.centre, self.middle = torch.zeros(dimensions), torch.zeros(dimensions)
        self.marked, self.level = torch.zeros(classes), torch.zeros(classes)
        self.gains = [torch.zeros(classes), torch.zeros(classes)]
        self.head_share = method.head
        self.raised = torch.zeros(classes)
        self.doubt = 0.0
        self.second: SecondModel | None = None

    def probabilities(
        self, features: Features, region_codes: Regions | None, tell: Callable[[], None] = lambda: None
    ) -> np.ndarray:
        """Return the probability of every class in every image.

        Args:
            features: (N, D) float16 or float32, pooled.
            region_codes: Regions of the same images; None to score without regions.
            tell: Called every few hundred images.

        Returns:
            (N, C) float32 in [0, 1], nan in the columns of classes nobody has marked.
        """
        out = np.empty((len(features), len(self.marked)), np.float32)
        columns = self.join_weights()

        def score(rows: slice) -> None:
            roots = signed_sqrt(to_float_tensor(features[rows]))
            wholes, best = columns.score(roots, None if region_codes is None else region_codes[rows])
            out[rows] = torch.sigmoid(self.logits(wholes, best)).numpy()

        run_in_blocks(len(features), IMAGES_PER_BLOCK, score, tell)
        return out

    def join_weights(self, *extra_weights: Tensor) -> "JoinedWeights":
        """Return Columns of the head, the ridge model, `more` weights (D, C) on units, and the second model."""
        seconds = [] if self.second is None else [self.second.head.weight]
        return JoinedWeights(
            self.whole.weight.T, self.whole.bias, torch.cat([self.weight, *extra_weights, *seconds], 1), self.centre
        )

    def logits(self, wholes: Tensor, best: Tensor | None) -> Tensor:
        """Return the joint logits (n, C); wholes and best (n, 2C or more) are from `Columns.scores_of`."""
        joint = self._combine_logits(wholes, best)
        if self.second is None:
            return joint
        last = slice(-joint.shape[1], None)
        return self.second.reorder(joint, wholes[:, last], None if best is None else best[:, last])

    def _combine_logits(self, wholes: Tensor, best: Tensor | None) -> Tensor:
        classes = len(self.marked)
        head, ridge = wholes[:, :classes], wholes[:, classes : 2 * classes] - self.middle @ self.weight
        if best is not None:
            of_head, of_ridge = best[:, :classes], best[:, classes : 2 * classes] - self.middle @ self.weight
            head = head + self.method.parts_of_head * (of_head - head - self.gains[0])
            ridge = ridge + self.method.parts_of_ridge * (of_ridge - ridge - self.gains[1])
        logits = torch.logit((ridge + self.level).clamp(RIDGE_EPS, 1 - RIDGE_EPS)).lerp(head, self.head_share)
        return logits + self.raised

    def predict_ridge_on_wholes(self, roots: Tensor) -> Tensor:
        """Return predictions of the ridge model less their average, (N, C), for roots (N, D) of pooled features."""
        return center_and_normalize(roots, self.centre) @ self.weight - self.middle @ self.weight

    def predict_ridge_on_regions(self, region_codes: RegionCodes) -> Tensor:
        """Return predictions of the ridge model for each image's best region, less the average of wholes, (N, C)."""
        return (region_codes.products(self.weight) / region_codes.lengths).amax(1) - self.middle @ self.weight


class JoinedWeights:
    """Weights of several models side by side, so that one product scores an image, and one its regions.

    Args:
        of_head, bias: (D, C) and (C,), on roots of features.
        of_units: (D, M), on roots that are centred and of length 1.
        centre: (D,).
    """

    def __init__(self, of_head: Tensor, bias: Tensor, of_units: Tensor, centre: Tensor):
        self._weight, self._classes = torch.cat([of_head, of_units], 1), of_head.shape[1]
        self._at_center, self._center = centre @ of_head + bias, centre
        self._along_axes: tuple[Basis, Tensor] | None = None

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the weights (D, C + M), what those of the head give at the centre (C,), and the centre (D,)."""
        return self._weight, self._at_center, self._center

    def score(self, roots: Tensor, region_codes: RegionCodes | None) -> tuple[Tensor, Tensor | None]:
        """Return scores (n, C + M) of the whole image and of its best region, for roots (n, D) and region codes.

        The second is None without region codes.
        """
        centred = roots - self._center
        wholes = centred @ self._weight
        wholes[:, : self._classes] += self._at_center
        wholes[:, self._classes :] /= centred.norm(dim=1, keepdim=True).clamp(min=1e-6)
        if region_codes is None:
            return wholes, None
        products = region_codes.multiply_on_axes(self._project_on_axes(region_codes.basis))
        products[:, :, self._classes :] /= region_codes.lengths
        best = products.amax(1)
        best[:, : self._classes] += self._at_center
        return wholes, best

    def _project_on_axes(self, basis: Basis) -> Tensor:
        if self._along_axes is None or self._along_axes[0] is not basis:
            self._along_axes = basis, basis.project_weights(self._weight)
        return self._along_axes[1]


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
    checked: bool = False,
    learned: TrainingSubset | None = None,
) -> Iterator[Epoch]:
    """Train the ensemble from scratch, yielding each epoch of the first head.

    The ensemble is complete when the iterator ends.

    Args:
        ensemble: The ensemble, which is overwritten.
        features: (N, D) float16 or float32 of all images, also of unlabeled ones.
        region_codes: Regions of the same images; None to train without.
        rows: (n,), the labeled images.
        labels: (n, C) int8 of `rows`, as `spmll.linear.training.fit` takes them.
        mask: As in `spmll.linear.training.fit`.
        epochs: As in `spmll.linear.training.fit`.
        lr: As in `spmll.linear.training.fit`.
        batch: As in `spmll.linear.training.fit`.
        seed: As in `spmll.linear.training.fit`.
        should_stop: As in `spmll.linear.training.fit`.
        tell: Called now and then during the long steps.
        checked: Whether the features are known to be finite.
        learned: The subset of labeled images to learn from; None: all of them.

    Raises:
        ValueError: As in `fit`; also if rows are out of range, region codes are of another number of images, or
            features of unlabeled images are not finite.
    """
    everything, chosen = check_features(features, ensemble.whole.dimensions), np.asarray(rows, np.int64)
    if len(chosen) and not (int(chosen.min()) >= 0 and int(chosen.max()) < len(everything)):
        raise ValueError(f"Rows run from {int(chosen.min())} to {int(chosen.max())}; there are {len(everything)}.")
    if region_codes is not None and len(region_codes) != len(everything):
        raise ValueError(f"There are region codes of {len(region_codes)} images and features of {len(everything)}.")
    known, usable = check_labels(labels, mask, len(chosen), ensemble.whole.classes)
    known = known if usable is None else known.masked_fill(~usable, UNSEEN)
    if not checked:
        check_features_finite(everything)
    ensemble.marked = torch.stack([(block == PRESENT).sum(0) for block in known.split(LABEL_BLOCK_IMAGES)]).sum(
        0
    ) / len(known)
    if learned is None:
        learned = TrainingSubset(np.arange(len(chosen)), signed_sqrt(to_float_tensor(everything[chosen])), None)
    else:
        labels, known = labels[learned.places], known[learned.places]
        mask, usable = (None if cells is None else cells[learned.places] for cells in (mask, usable))
    steps = fit(
        ensemble.whole, learned.roots, labels, ensemble.method.make_head_method(), mask=mask, epochs=epochs, lr=lr,
        batch=batch, seed=seed, should_stop=should_stop,
    )  # fmt: skip
    return _train_epochs(ensemble, steps, everything, region_codes, chosen, learned, known, usable, seed, tell)


def _train_epochs(
    ensemble, steps, everything, region_codes, chosen, learned, known, usable, seed, tell
) -> Iterator[Epoch]:
    """Run `fit_ensemble` as a generator: first the ridge model, then the epochs, then the gains of both models."""
    generator = np.random.default_rng(seed)
    sample = np.sort(generator.permutation(len(everything))[:MAX_SAMPLE_IMAGES])
    ensemble.centre = (
        signed_sqrt(to_float_tensor(everything[sample])).mean(0) if region_codes is None else region_codes.basis.centre
    )
    method, labelled = ensemble.method, len(chosen) / len(everything)
    ensemble.head_share = method.head + (method.head_of_all - method.head) * labelled
    ensemble.gains = [torch.zeros_like(ensemble.marked) for _ in range(2)]
    others = np.sort(generator.permutation(complement(chosen, len(everything)))[:MAX_SAMPLE_IMAGES])
    free, free_regions = (
        signed_sqrt(to_float_tensor(everything[others])),
        None if region_codes is None else region_codes[others],
    )
    fit_ridge(
        ensemble, learned, compute_ridge_targets(known, usable, method.absent), free, free_regions, labelled, tell
    )
    last = None
    for epoch in steps:
        if last is not None:
            yield last
        last = epoch
    tell()
    if region_codes is not None:
        ensemble.gains = compute_region_gains(
            ensemble, signed_sqrt(to_float_tensor(everything[sample])), region_codes[sample]
        )
        if (weight := method.second * ensemble.doubt * labelled) >= MIN_SECOND_WEIGHT:
            ensemble.second = fit_second_model(
                ensemble, everything, region_codes, chosen, learned, known, usable, weight, tell
            )
    # The last epoch is reported only when the model is complete.
    if last is not None:
        yield last


def fit_second_model(
    ensemble, everything, region_codes, chosen, learned, known, usable, weight: float, tell
) -> SecondModel:
    """Return the model that corrects the order within each class, fitted to at most MOST of the learned images."""
    places = np.sort(np.random.default_rng(0).permutation(len(learned.places))[:MAX_SECOND_IMAGES])
    marks = (known[places] == PRESENT).float()
    counts = torch.where(known[places] == UNSEEN, UNMARKED_WEIGHT, 1.0)
    if usable is not None:
        counts = counts.masked_fill(~usable[places], 0.0)
    codes = region_codes[chosen[learned.places[places]]]
    units = center_and_normalize(learned.roots[places], ensemble.centre)
    head = fit_answered_head(units, marks, counts, None, tell, lambda some: codes[some], SECOND_FIT_STEPS, 0)
    sample = np.sort(np.random.default_rng(0).permutation(len(everything))[:MAX_SAMPLE_IMAGES])
    columns, logits, scores = ensemble.join_weights(head.weight), [], []
    for start in range(0, len(sample), IMAGES_PER_BLOCK):
        tell()
        some = sample[start : start + IMAGES_PER_BLOCK]
        wholes, best = columns.score(signed_sqrt(to_float_tensor(everything[some])), region_codes[some])
        last = slice(-marks.shape[1], None)
        logits.append(ensemble.logits(wholes, best))
        scores.append(combine_region_scores(head, wholes[:, last], best[:, last]))
    return SecondModel.build(head, torch.cat(logits), torch.cat(scores), weight)


def select_marked_images(ensemble: Ensemble, learned: TrainingSubset, marked: Tensor) -> tuple[Tensor, Tensor]:
    """Return units (m, D) of at most IMAGES images with a mark, and their marks (m, C)."""
    places, labels = np.flatnonzero(marked.any(1)), marked.numpy()
    order = np.random.default_rng(0).random(len(places))
    labels = np.where(labels[places], PRESENT, UNSEEN)
    places = places[select_training_rows(labels, MAX_IMAGES, np.zeros(len(places), bool), order)]
    return center_and_normalize(learned.roots[places], ensemble.centre), marked[places]


def complement(chosen: np.ndarray, images: int) -> np.ndarray:
    """Return all rows but those in `chosen`: (m,), ascending."""
    is_left = np.ones(images, bool)
    is_left[chosen] = False
    return np.flatnonzero(is_left)


@one_thread()
def compute_region_gains(ensemble: Ensemble, roots: Tensor, region_codes: RegionCodes) -> list[Tensor]:
    """Return, for each model, how much higher the best region scores than the whole image, on average: (C,) each.

    The best of nine is higher than the whole by chance alone, and more so for some classes, which would then dominate
    rankings over several classes. The gain of the head is multiplied by `evened_of_head`.
    """
    shares = (ensemble.method.evened_of_head, 1.0)
    sums, columns = torch.zeros(2 * len(ensemble.marked)), ensemble.join_weights()
    for start in range(0, len(roots), IMAGES_PER_BLOCK):
        wholes, best = columns.score(
            roots[start : start + IMAGES_PER_BLOCK], region_codes[start : start + IMAGES_PER_BLOCK]
        )
        assert best is not None
        sums += (best - wholes).sum(0)
    return [share * gain for share, gain in zip(shares, (sums / len(roots)).split(len(ensemble.marked)), strict=True)]


def compute_ridge_targets(known: Tensor, usable: Tensor | None, absent: float) -> Tensor:
    """Return the targets (n, C) of the ridge model: 1 where marked, -absent where a person ruled the class out, else 0.

    A cell that may not be used gets the average of its class, which has no influence.
    """
    answers = (known == PRESENT).float() - absent * (known == ABSENT).float()
    return answers if usable is None else torch.where(usable, answers, answers.mean(0))


def fit_ridge(
    ensemble: Ensemble, learned: TrainingSubset, answers: Tensor, free: Tensor, region_codes: RegionCodes | None,
    labelled: float, tell,
) -> None:  # fmt: skip
    """Fit ridge regression to the labeled images, then again with its own predictions for unlabeled images.

    Self-training is Scudder's (IEEE Trans. Inf. Theory, 1965); answers are sharpened by a power, as in MixMatch
    (Berthelot et al., NeurIPS 2019, eq. 7).

    Args:
        ensemble: The ensemble, whose ridge regression is set.
        learned: The labeled images that are learned from.
        answers: (n, C), targets of the images in `learned`; used where `learned` has no moments.
        free: (m, D), roots of unlabeled images.
        region_codes: Regions of the same unlabeled images; None to fit without.
        labelled: Share of all images that have a label.
        tell: Called now and then; an exception from it ends the fit.
    """
    with one_thread() if len(answers) < MIN_IMAGES_FOR_THREADS else nullcontext():
        _fit_ridge_rounds(ensemble, learned, answers, free, region_codes, labelled, tell)


def _fit_ridge_rounds(ensemble, learned, answers, free, region_codes, labelled, tell) -> None:
    method = ensemble.method
    if learned.moments is None:
        moments = Moments.from_roots(learned.roots, ensemble.centre, answers - ensemble.marked)
    else:
        moments = learned.moments.fill_blanks().subtract_level(ensemble.marked)
    ensemble.middle, ensemble.level, ensemble.weight = moments.mean, ensemble.marked, moments.solve(method.ridge)
    tell()
    # Where few images have a label, rates are estimated badly, and most of what is hidden is on other images.
    believed = method.overlooked * labelled**0.5
    units, marked = select_marked_images(ensemble, learned, answers == 1)
    predicted = predict_leave_one_out(moments, ensemble.weight, ensemble.marked, method.ridge, units, marked)
    ensemble.raised = -believed * estimate_log_naming_rates(predicted, ensemble.marked, marked)
    ensemble.doubt = estimate_difficulty(predicted, marked)
    if not len(free) or not method.rounds or not method.unlabelled:
        return
    tell()
    centred = center_and_normalize(free, ensemble.centre)
    of_free = Moments.build(centred, torch.zeros(len(free), answers.shape[1]), method.unlabelled)
    for _ in range(int(method.rounds)):
        tell()
        guesses = ensemble.predict_ridge_on_wholes(free)
        if region_codes is not None:
            # The best of nine regions is higher than the whole by chance alone: without that, each round would find
            # every class on more images than the one before.
            higher = ensemble.predict_ridge_on_regions(region_codes) - guesses
            guesses = guesses + (higher - higher.mean(0)) / 2
        guesses = (guesses + ensemble.level).clamp(RIDGE_EPS, 1 - RIDGE_EPS)
        sharp = guesses**method.sharpness
        # Each class keeps its total: otherwise a class that is easy to see would take over. The total is not what
        # people mark, because people who confirm suggestions mark the likely classes more often than they occur.
        soft = (sharp / sharp.mean(0).clamp(min=1e-12) * guesses.mean(0)).clamp(max=1)
        both = moments + of_free.replace_targets(centred, soft - ensemble.marked, method.unlabelled)
        ensemble.middle, ensemble.weight = both.mean, both.solve(method.ridge)
        # People who confirm suggestions mark a class on a larger share of the labeled images than of all images.
        ensemble.level = ensemble.marked + both.answers / both.count
