"""The portable classifier of a project's current run, calibrated to the published probabilities."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from annotator import __version__
from annotator.errors import AnnotatorError
from annotator.exchange.classifier.description import Description, KnownClass
from annotator.exchange.exports.thresholds import Limits, OpenCells, compute_thresholds
from annotator.humanize import format_count, format_percent
from annotator.progress_callbacks import StepCallback
from annotator.quality.classifier_evaluation import MIN_ANSWERS, ClassifierEvaluation, evaluate_classifier
from annotator.snapshot.run_predictions import Predictions, read_predictions
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache, open_features
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.labels import audits
from annotator.store.labels.audits import OPEN
from annotator.store.networks import adapted_networks
from annotator.store.pictures.bands import NO_BAND_CHOICES
from annotator.worker.features.backbone import load_project_network
from annotator.worker.features.region_coding import StoredRegions
from annotator.worker.training.publish import PORTABLE_MODEL_FILE
from spmll.ensemble.portable import PortableEnsemble, PortableHead, PortableModel
from spmll.ensemble.regions import encode_regions, learn_region_basis
from spmll.linear.training import Head
from spmll.statistics.agreement_coefficients import Estimate
from spmll.statistics.calibration import PROBABILITY_EPS, fit_calibration, to_logits

if TYPE_CHECKING:
    from torch import Tensor

    from spmll.backbones.frozen_backbone import Backbone
    from spmll.ensemble.regions import Regions

IMAGES_PER_BLOCK = 1024  # images whose features and regions are read at once
MAX_CALIBRATION_PAIRS = 500_000  # pairs that the calibration is fitted to, at most

"""Called with what is being done, how much of it is done, and of how much (0: not known)."""


@dataclass(frozen=True, eq=False)
class PortableClassifier:
    """A classifier in memory, with all that is needed to write it to files."""

    backbone: "Backbone"
    # backbone weights under their library's names
    state: "dict[str, Tensor]"
    model: PortableModel
    # (C,) int64, indices of exported classes
    columns: "Tensor"
    # slopes, shifts: (C,) float32, logit calibration
    slopes: "Tensor"
    shifts: "Tensor"
    description: Description


def build_classifier(db: Database, limits: Limits, on_step: StepCallback) -> PortableClassifier:
    """Return the portable classifier of the current run.

    Args:
        limits: Expected errors that the thresholds allow.
        on_step: Called with (current step, done, of).

    Raises:
        AnnotatorError: No run exists, its files are damaged, or the backbone's weights are unavailable.
    """
    predictions = read_predictions(db)
    if predictions is None:
        raise AnnotatorError(
            "There is no run yet to make a classifier of. Label some images and run: "
            f"annotator worker {db.paths.project} --once"
        )
    run, features = predictions.run, _StoredFeatures(db, predictions.run.backbone)
    model, is_whole = _load_model(db, predictions)
    logits = features.score_images(model, on_step)
    stored = np.arange(logits.shape[1]) if predictions.stored_columns is None else predictions.stored_columns
    known = ~np.isnan(logits[:, stored]).all(0)
    if not known.any():
        raise AnnotatorError(
            "No class has a model yet, so there is nothing to take home. Label some images of each class first."
        )
    columns, class_ids = stored[known], predictions.class_ids[known]
    on_step("Calibrating", 0, 0)
    slopes, shifts = _fit_calibration(logits[:, columns], features.cache.image_ids, predictions, class_ids)
    chances = _sigmoid(logits[:, columns] * slopes + shifts)
    mean_distance = _compute_mean_distance(chances, features.cache.image_ids, predictions, class_ids)
    present_from, absent_to = _compute_thresholds(
        db, chances, features.cache, class_ids, limits, run.calibration is not None
    )
    check = evaluate_classifier(
        db, class_ids, _make_probability_lookup(chances, features.cache), present_from, run.trained_decision_id
    )
    on_step("Loading the network", 0, 0)
    backbone, state = _load_network(db, run.backbone)
    named = {class_.id: class_ for class_ in classes.load_active_classes(db)}
    described = tuple(
        KnownClass(named[class_id].name, named[class_id].description, _nan_to_none(high), _nan_to_none(low))
        for class_id, high, low in zip(class_ids.tolist(), present_from, absent_to, strict=True)
    )
    without = [named[one].name for one in predictions.class_ids[~known].tolist() if one in named]
    facts = {
        "made_with": f"annotator {__version__}",
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "built_on": adapted_networks.find_first_parent(db, run.backbone),
        "architecture": _find_timm_architecture(adapted_networks.find_first_parent(db, run.backbone)),
        "mean": list(backbone.mean),
        "std": list(backbone.std),
        "about": _describe_origin(db, predictions, without, is_whole),
        "quality": _describe_quality(check, mean_distance, len(features.cache)),
    }
    licence = _find_license(db, run.backbone)
    description = Description(
        described, backbone.input_size, backbone.interpolation, run.backbone, licence, limits.expected_error, facts
    )
    columns_of_model, slope_tensor, shift_tensor = (
        torch.from_numpy(np.asarray(values)) for values in (columns, slopes, shifts)
    )
    return PortableClassifier(backbone, state, model, columns_of_model, slope_tensor, shift_tensor, description)


def _load_model(db: Database, predictions: Predictions) -> tuple[PortableModel, bool]:
    """Return (the current run's model, True), or (its linear head, False) if the model is not stored."""
    folder = db.paths.run(predictions.run.id)
    if (portable := PortableEnsemble.load(folder / PORTABLE_MODEL_FILE)) is not None:
        return portable, True
    try:
        return PortableHead(Head.load(folder / "head.safetensors")), False
    except (FileNotFoundError, ValueError) as error:
        raise AnnotatorError(f"{error} Train again: annotator train {db.paths.project}") from error


class _StoredFeatures:
    """The stored embeddings of all images and their regions, for scoring by a portable model."""

    def __init__(self, db: Database, backbone: str):
        self.cache = open_features(db, backbone)
        self.cache.refresh()
        if not len(self.cache):
            raise AnnotatorError(
                f"No image is analyzed with {backbone} yet. Run: annotator worker {db.paths.project} --once"
            )
        self._regions = _load_region_codes(self.cache)

    def score_images(self, model: PortableModel, on_step: StepCallback) -> np.ndarray:
        """Return the model's logits of all images, (N, C) float32."""
        parts, images = [], len(self.cache)
        with torch.inference_mode():
            for start in range(0, images, IMAGES_PER_BLOCK):
                on_step("Scoring all images", start, images)
                rows = slice(start, min(start + IMAGES_PER_BLOCK, images))
                parts.append(model.forward_codes(np.asarray(self.cache.features[rows]), self._regions[rows]).numpy())
        return np.concatenate(parts)


def _load_region_codes(cache: FeatureCache) -> "Regions":
    """Return the stored region codes without writing missing ones, since a worker may be running."""
    if cache.basis is None:
        return encode_regions(learn_region_basis(cache.features, cache.regions), cache.regions)
    if cache.list_uncoded_parts():
        raise AnnotatorError("The worker is still at work on the features of some images. Try again in a minute.")
    return StoredRegions(cache, cache.basis)


def _fit_calibration(
    logits: np.ndarray, image_ids: np.ndarray, predictions: Predictions, class_ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Fit slopes and shifts (C,) float32 that give the published probabilities (arXiv 1503.02531)."""
    most = max(1, MAX_CALIBRATION_PAIRS // len(class_ids))
    rows = np.sort(np.random.default_rng(0).permutation(len(logits))[:most])
    wanted = predictions.align(predictions.probabilities, image_ids[rows], class_ids).astype(np.float64)
    at, columns = np.nonzero(~np.isnan(wanted))
    chances = np.clip(wanted[at, columns], PROBABILITY_EPS, 1 - PROBABILITY_EPS)
    bounded = to_logits(_sigmoid(logits[rows][at, columns].astype(np.float64)))
    fitted = fit_calibration(
        "platt",
        np.tile(bounded, 2),
        np.tile(columns, 2),
        np.repeat([True, False], len(at)),
        np.concatenate([chances, 1 - chances]),
        len(class_ids),
    )
    return fitted.slopes.astype(np.float32), fitted.shifts.astype(np.float32)


def _compute_mean_distance(
    chances: np.ndarray, image_ids: np.ndarray, predictions: Predictions, class_ids: np.ndarray
) -> float:
    """Return the mean distance of probabilities (N, C) to published ones, nan without any."""
    total = count = 0.0
    for start in range(0, len(chances), IMAGES_PER_BLOCK):
        rows = slice(start, start + IMAGES_PER_BLOCK)
        published = predictions.align(predictions.probabilities, image_ids[rows], class_ids).astype(np.float32)
        apart = np.abs(published - chances[rows])
        total, count = total + float(np.nansum(apart)), count + int((~np.isnan(apart)).sum())
    return total / count if count else float("nan")


def _make_probability_lookup(chances: np.ndarray, cache: FeatureCache) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from image ids (n,) to probabilities, nan if missing."""
    order = np.argsort(cache.image_ids, kind="stable")
    ordered = cache.image_ids[order]

    def probabilities(image_ids: np.ndarray) -> np.ndarray:
        places = np.minimum(np.searchsorted(ordered, image_ids), len(order) - 1)
        return np.where((ordered[places] == image_ids)[:, None], chances[order[places]], np.nan)

    return probabilities


def _compute_thresholds(
    db: Database, chances: np.ndarray, cache: FeatureCache, class_ids: np.ndarray, limits: Limits, calibrated: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return (lowest probability of present, highest of absent), (C,) each, as an export computes them."""
    order = np.argsort(cache.image_ids, kind="stable")
    labels, _ = audits.load_label_matrix(db, cache.image_ids[order], class_ids)
    cells = OpenCells(len(class_ids))
    for start in range(0, len(order), IMAGES_PER_BLOCK):
        rows = slice(start, start + IMAGES_PER_BLOCK)
        cells.add(chances[order[rows]], labels[rows] == OPEN)
    return compute_thresholds(cells, limits, calibrated)


def _load_network(db: Database, name: str) -> "tuple[Backbone, dict[str, Tensor]]":
    from spmll.backbones.frozen_backbone import Backbone

    source = load_project_network(db, name)
    try:
        backbone = Backbone(name, source, "cpu")
    except ValueError as error:
        raise AnnotatorError(str(error)) from error
    return backbone, {key: value.clone().contiguous() for key, value in source.network.state_dict().items()}


def _find_license(db: Database, name: str) -> str:
    from spmll.backbones.packaged import PACKAGED_BACKBONES
    from spmll.backbones.pretrained import split_joined_name
    from spmll.backbones.published_weights import find_published_weights

    own = next((one for one in adapted_networks.load_networks(db) if one.name == name), None)
    if own is not None:
        return own.licence or _find_license(db, own.parent)
    licenses = [
        "apache-2.0" if part in PACKAGED_BACKBONES else find_published_weights(part).licence
        for part in split_joined_name(name)
    ]
    return ", ".join(dict.fromkeys(licenses)) if all(licenses) else ""


def _find_timm_architecture(name: str) -> str:
    import timm

    from spmll.backbones.packaged import PACKAGED_BACKBONES

    return PACKAGED_BACKBONES[name].architecture if name in PACKAGED_BACKBONES else name if timm.is_model(name) else ""


def _describe_origin(
    db: Database, predictions: Predictions, unlabeled_names: Sequence[str], is_whole: bool
) -> list[str]:
    run = predictions.run
    day = time.strftime("%Y-%m-%d", time.gmtime(run.finished_at))
    sentences = [
        f"Made of run {run.id} of the project {db.paths.project.name}: method {run.method}, trained on {day}, "
        f"{format_count(run.images, 'image')}.",
        "It sees pixels only: answers, places, hours, other models and relations of classes have no part in it.",
    ]
    if not is_whole:
        sentences.append("It is a linear head on the features of the whole image that comes near the run's model.")
    if get_shown_bands(db) != NO_BAND_CHOICES:
        sentences.append("The project shows chosen bands of images of many; the classifier reads ordinary images only.")
    if unlabeled_names:
        sentences.append(f"Left out, because nobody has labeled them: {', '.join(unlabeled_names)}.")
    return sentences


def _describe_quality(check: ClassifierEvaluation, mean_distance: float, images: int) -> list[str]:
    sentences = [
        f"On the project's {format_count(images, 'image')} its probabilities differ from those of the run by "
        f"{100 * mean_distance:.1f} percentage points on average."
    ]
    if check.answers < MIN_ANSWERS:
        enough = f"{check.answers} of the {MIN_ANSWERS} answers of audits that it takes."
        return [*sentences, f"Recall and calibration: not measured. {enough}"]
    answers = f"from {format_count(check.answers, 'answer')} of audits"
    sentences += [
        f"Recall at the thresholds: {_format_estimate(check.recall)}, {answers}.",
        f"Precision at the thresholds: {_format_estimate(check.precision)}, {answers}.",
        f"Calibration error: at most {format_percent(check.calibration_error, digits=1)} (95 % confidence), {answers}.",
    ]
    if check.learned_from:
        sentences.append("The run may have learned from some of these answers: new images can be harder.")
    return sentences


def _format_estimate(value: Estimate) -> str:
    if not np.isfinite(value.value):
        return "not measured"
    return (
        f"{format_percent(value.value, digits=1)} ({format_percent(value.low, digits=1)} to "
        f"{format_percent(value.high, digits=1)})"
    )


def _nan_to_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    return torch.sigmoid(torch.from_numpy(np.ascontiguousarray(logits))).numpy()
