"""Training of the method `auto`: the average of two linear models of images and their regions.

Additions to a linear head on pooled features (docs/experiments.md, "`auto`"):

* Square roots of features.
* Regions, in scoring only: training on them memorizes guesses.
* Ridge regression towards labels (1 if present), which keeps classes on one scale.
* Estimated naming rates, which raise classes that annotators rarely name.
* A second model of the order within each class.
* Self-training of the ridge model at low weight.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace

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
    Epoch,
    Features,
    Head,
    TrainingSettings,
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
    """The models of `auto`, from features to probabilities.

    Attributes:
        whole: A Head on square-root features.
        weight: (D, C), ridge model on rows of `center_and_normalize`.
        centre: (D,), mean square-root features.
        middle: (D,), mean training row.
        level: (C,), ridge prediction at `middle`.
        marked: (C,), share of labeled images with each class.
        gains: Mean score advantage of the best region, (C,) each for the head and the ridge model.
        head_share: Weight of the head's logits.
        raised: (C,), added to logits of rarely named classes.
        doubt: Factor in [0, 1] of the weight of `second`, 0 ignores it.
        second: Model that ranks the images within each class again, or None.
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
        """Return (N, C) float32 probabilities, nan for classes without present labels.

        Args:
            features: (N, D), pooled.
            region_codes: None scores without regions.
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
        """Join the weights of all models and `extra_weights` (D, C), so that one product scores images by all."""
        seconds = [] if self.second is None else [self.second.head.weight]
        return JoinedWeights(
            self.whole.weight.T, self.whole.bias, torch.cat([self.weight, *extra_weights, *seconds], 1), self.centre
        )

    def logits(self, wholes: Tensor, best: Tensor | None) -> Tensor:
        """Return the ensemble's logits (n, C) from the scores of `JoinedWeights.score`."""
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
        """Return ridge predictions (N, C) for whole images with roots (N, D), relative to `level`."""
        return center_and_normalize(roots, self.centre) @ self.weight - self.middle @ self.weight

    def predict_ridge_on_regions(self, region_codes: RegionCodes) -> Tensor:
        """Return ridge predictions (N, C) for each image's best region, relative to `level`."""
        return (region_codes.products(self.weight) / region_codes.lengths).amax(1) - self.middle @ self.weight


class JoinedWeights:
    """Weights of several models, joined so that one product scores images by all of them.

    Args:
        of_head, bias: (D, C), (C,), on square-root features.
        of_units: (D, M), on rows of `center_and_normalize`.
    """

    def __init__(self, of_head: Tensor, bias: Tensor, of_units: Tensor, centre: Tensor):
        self._weight, self._classes = torch.cat([of_head, of_units], 1), of_head.shape[1]
        self._at_center, self._center = centre @ of_head + bias, centre
        self._along_axes: tuple[Basis, Tensor] | None = None

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return (joined weights, the head's output at the center, center)."""
        return self._weight, self._at_center, self._center

    def score(self, roots: Tensor, region_codes: RegionCodes | None) -> tuple[Tensor, Tensor | None]:
        """Return the joined models' scores (n, C + M) of whole images, and of their best regions or None."""
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


@dataclass(frozen=True, eq=False)
class LabeledImages:
    """All N images of a collection, and the labels of n of them.

    Attributes:
        features: (N, D).
        region_codes: Region codes of all images, or None.
        rows: (n,), labeled images.
        labels: (n, C) int8.
        mask: (n, C) bool, usable cells, or None.
    """

    features: Features
    region_codes: Regions | None
    rows: np.ndarray
    labels: np.ndarray
    mask: np.ndarray | None = None


def fit_ensemble(
    ensemble: Ensemble,
    images: LabeledImages,
    settings: TrainingSettings = TrainingSettings(),
    *,
    seed: int = 0,
    should_stop: Callable[[], bool] | None = None,
    tell: Callable[[], None] = lambda: None,
    checked: bool = False,
    learned: TrainingSubset | None = None,
) -> Iterator[Epoch]:
    """Train the ensemble in place, yielding each epoch of its linear head.

    Other arguments are those of `spmll.linear.training.fit`.

    Args:
        settings: Length and pace of the head. Classes without positives are never trained.
        checked: Whether features are known to be finite.
        learned: Subset to learn from, or None.

    Raises:
        ValueError: Invalid rows or region codes, or features not finite.
    """
    region_codes, labels, mask = images.region_codes, images.labels, images.mask
    everything = check_features(images.features, ensemble.whole.dimensions)
    chosen = np.asarray(images.rows, np.int64)
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
        ensemble.whole,
        learned.roots,
        labels,
        ensemble.method.make_head_method(),
        replace(settings, every_class=False),
        mask=mask,
        seed=seed,
        should_stop=should_stop,
    )
    return _train_epochs(ensemble, steps, everything, region_codes, chosen, learned, known, usable, seed, tell)


def _train_epochs(
    ensemble, steps, everything, region_codes, chosen, learned, known, usable, seed, tell
) -> Iterator[Epoch]:
    """Fit the ridge model, then the head's epochs, region gains and second model."""
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
    """Fit the second model, which corrects the order of images within each class."""
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
    """Return at most MAX_IMAGES images with present labels: their centered unit features, and their labels."""
    places, labels = np.flatnonzero(marked.any(1)), marked.numpy()
    order = np.random.default_rng(0).random(len(places))
    labels = np.where(labels[places], PRESENT, UNSEEN)
    places = places[select_training_rows(labels, MAX_IMAGES, np.zeros(len(places), bool), order)]
    return center_and_normalize(learned.roots[places], ensemble.centre), marked[places]


def complement(chosen: np.ndarray, images: int) -> np.ndarray:
    """Return all rows outside `chosen`, ascending."""
    is_left = np.ones(images, bool)
    is_left[chosen] = False
    return np.flatnonzero(is_left)


@one_thread()
def compute_region_gains(ensemble: Ensemble, roots: Tensor, region_codes: RegionCodes) -> list[Tensor]:
    """Return, per model, the mean score advantage of the best region over the whole image, (C,).

    The best of nine is higher by chance, which would distort rankings across classes.
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
    """Return ridge targets (n, C): 1 if present, -absent if answered absent, else 0.

    Cells outside `usable` get the class mean, without influence.
    """
    answers = (known == PRESENT).float() - absent * (known == ABSENT).float()
    return answers if usable is None else torch.where(usable, answers, answers.mean(0))


def fit_ridge(
    ensemble: Ensemble, learned: TrainingSubset, answers: Tensor, free: Tensor, region_codes: RegionCodes | None,
    labelled: float, tell,
) -> None:  # fmt: skip
    """Fit the ridge model to labeled images, then refit with its own predictions.

    Self-training (Scudder 1965), sharpened as in MixMatch (Berthelot et al., NeurIPS 2019, eq. 7).

    Args:
        answers: (n, C), targets. The fit uses those in `learned.moments` instead, if any.
        free: (m, D), square-root features of unlabeled images.
        region_codes: Region codes of the unlabeled images.
        labelled: Labeled share of all images.
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
