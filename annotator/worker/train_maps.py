"""A run of a method that reads feature maps: make the maps, train its network on them, ask it about every image.

Its network has no linear head, which heat maps are drawn from: the run gets one that stands in for it
(models/linear/stand_in.py), and publishes the probabilities of the network itself. Making maps takes as long as
embedding the
labeled images four times over, once; training takes minutes where a linear head takes a second.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np
import torch

from annotator.errors import AnnotatorError
from annotator.records import PRESENT
from annotator.store import images
from annotator.store.arrays import FeatureCache
from annotator.store.database import Database
from annotator.worker.map_cache import WEAK, Kept, MapFiles
from models.backbones.feature_maps import FeatureMaps
from models.finetune.fit_network import NetworkTraining, fit_network, predict
from models.finetune.views import MapExamples
from models.linear.stand_in import linear_stand_in
from models.linear.training import Head, one_thread
from models.methods.base import Method
from models.methods.published import EndToEnd

Tell = Callable[[str, int, int], None]

KEPT_BYTES = 4 << 30  # plain maps of unlabeled images are kept up to this, all of them or none; else made for each run
STEPS = 32  # batches an epoch, where that makes them neither smaller nor larger than this
SMALLEST_BATCH, LARGEST_BATCH = 4, 16
PREDICT = 32  # images whose probabilities are asked for at once
TELL_SECONDS = 0.2  # between two words to the worker, whose other duties wait meanwhile


def train_on_maps(
    db: Database,
    cache: FeatureCache,
    rows: np.ndarray,
    labels: np.ndarray,
    mask: np.ndarray,
    method: Method,
    backbone,
    seed: int,
    tell: Tell,
) -> tuple[Head, np.ndarray, list[float]]:
    """Train `method` on the maps of labeled images.

    rows, labels, mask  as in annotator.worker.train.TrainingSet
    backbone            models.backbones.networks.Backbone
    tell                called with (state, done, of) several times a second; what it raises ends the run

    returns     a linear head for heat maps; the probabilities of all images of the cache, (N, C) float32 in its order;
                the loss of each epoch

    An image whose file can no longer be read is not trained on, and gets the probability that the head gives it.
    Raises AnnotatorError when the backbone has no maps or no labeled image can be read, DiskFull.
    """
    tell = _not_too_often(tell)
    try:
        network = FeatureMaps(backbone)
    except ValueError as error:
        raise AnnotatorError(f"{error} Or choose a method other than {method.name}, which needs maps.") from error
    files = MapFiles(db.paths.features(backbone.name) / "maps", network)
    ids = [int(cache.image_ids[row]) for row in rows]
    there = np.array(_make(db, files, ids, True, "making feature maps", tell))
    labels, mask = labels[there], mask[there]
    known = ((labels == PRESENT) & mask).any(0) if len(labels) else np.zeros(labels.shape[1], bool)
    if not known.any():
        raise AnnotatorError("Of no image with a label 'present' can the file be read any more. Were they moved?")
    ids = [one for one, kept in zip(ids, there, strict=True) if kept]
    training = _fit(Kept(files, ids), labels, mask, method, network.shape[0], seed, tell)
    probabilities = np.full((len(cache.image_ids), labels.shape[1]), np.nan, np.float32)
    place = {int(image_id): row for row, image_id in enumerate(cache.image_ids)}
    for image_id, found in _probabilities(db, files, list(place), training, method, tell):
        probabilities[place[image_id]] = found
    probabilities[:, ~known] = np.nan
    head = linear_stand_in(cache.features, probabilities, lambda: tell("training", 1, 1))
    unread = np.isnan(probabilities[:, known]).all(1)
    probabilities[unread] = head.probabilities(cache.features[unread])
    return head, probabilities, [epoch.loss for epoch in training.history]


def settings_of(method: Method, count: int = STEPS * LARGEST_BATCH) -> EndToEnd:
    """How a method's network is trained on the maps of `count` images: as in its paper, but for rate and epochs."""
    batch = min(max(count // STEPS, SMALLEST_BATCH), LARGEST_BATCH)
    return EndToEnd(lr=method.lr, batch=batch, epochs=method.epochs, optimiser="adamw_onecycle", weight_decay=0.01)


def _fit(
    maps: Kept, labels: np.ndarray, mask: np.ndarray, method: Method, channels: int, seed: int, tell: Tell
) -> NetworkTraining:
    """The trained network. Raises AnnotatorError for parameters that do not go together."""
    settings, history = settings_of(method, len(labels)), []

    def going_on() -> bool:
        tell("training", len(history), settings.epochs)
        return False

    try:
        decoder = method.network(channels, labels.shape[1], torch.Generator().manual_seed(seed))
        examples = MapExamples(maps, weak=WEAK)
        training = fit_network(decoder, examples, labels, method, settings, mask=mask, seed=seed, should_stop=going_on)
        history = training.history
        with one_thread():  # a second one gains little, and loses much while somebody else uses its core
            for _ in training:
                going_on()
    except ValueError as error:
        raise AnnotatorError(f"{method.name} could not be trained: {error}") from error
    return training


def _make(db: Database, files: MapFiles, ids: list[int], views: bool, state: str, tell: Tell) -> list[bool]:
    """Make what is missing; says of which images there are maps now."""
    tell(state, 0, len(ids))
    items = _existing(db, [one for one in ids if not files.has(one, views)])
    have = len(ids) - len(items)
    for done, failures in files.make(items, views):
        for image_id, reason in failures.items():
            images.mark_problem(db, image_id, reason)
        tell(state, have + done, len(ids))
    return [files.has(one, views) for one in ids]


def _existing(db: Database, ids: list[int]) -> list[tuple[int, object]]:
    """Images with the path of their file; those without one are marked."""
    found = []
    for image_id in ids:
        try:
            found.append((image_id, images.image_path(db, image_id)))
        except AnnotatorError as error:
            images.mark_problem(db, image_id, str(error))
    return found


def _probabilities(
    db: Database, files: MapFiles, ids: list[int], training: NetworkTraining, method: Method, tell: Tell
) -> Iterator[tuple[int, np.ndarray]]:
    """(image id, (C,) float32) of every image whose file can be read."""
    state, network = "asking about all images", training.average or training.network
    if len(ids) * files.bytes_each <= KEPT_BYTES:
        _make(db, files, ids, False, state, tell)
    held = [one for one in ids if files.has(one, False)]
    for start in range(0, len(held), PREDICT):
        some = held[start : start + PREDICT]
        tell(state, start, len(ids))
        yield from zip(some, predict(network, MapExamples(Kept(files, some)), method, batch=PREDICT), strict=True)
    kept = set(held)
    items = _existing(db, [one for one in ids if one not in kept])
    done = len(held)
    for keys, made in files.stream(items, False):
        done += len(keys)
        tell(state, done, len(ids))
        read = [key for key in keys if not isinstance(made[key], str)]
        if read:
            found = predict(network, MapExamples([made[key] for key in read]), method, batch=PREDICT)
            yield from zip(read, found, strict=True)


def _not_too_often(tell: Tell) -> Tell:
    """The same, but not while it was called only just now, unless there is a new state to tell of."""
    last: list = [None, 0.0]

    def sometimes(state: str, done: int, of: int) -> None:
        now = time.monotonic()
        if state != last[0] or now - last[1] >= TELL_SECONDS:
            last[:] = state, now
            tell(state, done, of)

    return sometimes
