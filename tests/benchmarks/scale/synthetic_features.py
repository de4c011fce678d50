"""Images that exist as features, region codes and labels only: structured, of any number, the same each time.

Every class has a direction, and lights one region of each image that shows it; the whole image is the mean of its nine
regions, as pooled features are. Frequencies fall from class to class, three classes an image on average. Features are
written shard by shard, as the worker writes them.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness.projects import FEATURE_DIMENSIONS, REGIONS_PER_IMAGE

from annotator.store.features.project_contents import ImageContents
from annotator.store.features.shards import CodedRegions, write_shard
from annotator.store.features.stored_basis import StoredBasis, publish_basis
from spmll.ensemble.basis import CLIP_DEVIATIONS, MAX_AXES, MAX_STEP

CLASSES_PER_IMAGE = 3.0  # classes an image, on average
CLASS_STRENGTH = 11.0  # of a class in its region, in standard deviations of one coordinate ...
CLASS_COORDINATES = 24  # ... on so many coordinates
CLARITY_SPREAD = 0.6  # standard deviation, between images, of how clearly a class is to be seen
NOISE_REGIONS = 16_384  # different regions without an object: drawn from these, which is faster than drawing numbers
ANSWERED_GRIDS, TILES_PER_GRID = 100, 24  # answered, of the likeliest cells
GRID_SOURCE_IMAGES = 20_000  # images that grids are made of
COMPLETE_IMAGES = 300  # images answered in every class
ROOT_SPREAD = 0.02  # of roots of features around their mean, as of real ones
IMAGES_PER_SHARD = 5000  # images


@dataclass(frozen=True, eq=False)
class MadeUp:
    """The truth and the labels of made-up images.

    Attributes:
        truth: (N, C) bool.
        labels: (N, C) int8, as a training reads them.
        unbiased: (N, C) bool, as a training reads them.
        seconds: The time that writing the features took.
    """

    truth: np.ndarray
    labels: np.ndarray
    unbiased: np.ndarray
    seconds: float = 0.0


def make_features(
    folder: Path, contents: ImageContents, images: int, classes: int, clicked: float = 1.0, arrays: Path | None = None
) -> MadeUp:
    """Write the features and region codes of images 1 .. N into a folder, and return their truth and labels.

    Args:
        folder: The folder for the shards.
        contents: The contents of these images in the project that the features are for.
        images: The number of images.
        classes: The number of classes.
        clicked: The share of the images that have one label "present".
        arrays: A folder in which the arrays of MadeUp are files; None: they are in memory.

    Raises:
        DiskFull: The disk is full.
    """
    chance = np.random.default_rng(7)
    axes, _ = np.linalg.qr(chance.standard_normal((FEATURE_DIMENSIONS, MAX_AXES)).astype(np.float32))
    centre = (0.6 + 0.1 * chance.standard_normal(FEATURE_DIMENSIONS)).astype(np.float32)
    falling = (ROOT_SPREAD * 0.97 ** np.arange(MAX_AXES)).astype(np.float32)  # standard deviation along each axis
    directions = np.zeros((classes, MAX_AXES), np.float32)
    for direction in directions:
        direction[chance.permutation(MAX_AXES)[:CLASS_COORDINATES]] = chance.choice([-1.0, 1.0], CLASS_COORDINATES)
    directions *= CLASS_STRENGTH * falling / CLASS_COORDINATES**0.5
    truth = _draw_truth(_allocate_array((images, classes), bool, arrays, "truth"), chance)
    noise = chance.standard_normal((NOISE_REGIONS, MAX_AXES)).astype(np.float32) * falling
    scales = CLIP_DEVIATIONS / MAX_STEP * np.maximum(2 * falling, ROOT_SPREAD / 100)
    basis = publish_basis(folder, StoredBasis(centre, np.ascontiguousarray(axes), scales))
    likely, seconds = np.zeros((0, classes), np.float32), 0.0
    for start in range(0, images, IMAGES_PER_SHARD):
        block = truth[start : start + IMAGES_PER_SHARD]
        regions = noise[chance.integers(0, NOISE_REGIONS, (len(block), REGIONS_PER_IMAGE))]
        rows, columns = np.nonzero(block)
        clear = np.exp(CLARITY_SPREAD * chance.standard_normal((len(rows), 1))).astype(np.float32)
        regions[rows, chance.integers(0, REGIONS_PER_IMAGE, len(rows))] += (
            clear * directions[columns]
        )  # one may cover another
        mean = regions.mean(1)
        features = np.square(np.maximum(centre + mean @ axes.T, 0)).astype(np.float16)
        codes = np.clip(np.rint(regions / scales), -MAX_STEP, MAX_STEP).astype(np.int8)
        lengths = np.linalg.norm(regions, axis=2).astype(np.float16)
        started, image_ids = time.perf_counter(), np.arange(start, start + len(block)) + 1
        write_shard(
            folder, image_ids, contents.load_hashes(image_ids), features, CodedRegions(codes, lengths, basis.name)
        )
        seconds += time.perf_counter() - started
        if start < GRID_SOURCE_IMAGES:
            likely = np.concatenate([likely, mean @ directions.T])
    made = MadeUp(
        truth,
        _allocate_array(truth.shape, np.int8, arrays, "labels"),
        _allocate_array(truth.shape, bool, arrays, "unbiased"),
        seconds,
    )
    _draw_answers(made, clicked, likely, chance)
    return made


def read_made_up(arrays: Path) -> MadeUp:
    """Read the arrays that `make_features` wrote into a folder, memory-mapped."""
    return MadeUp(*(np.load(arrays / f"{name}.npy", mmap_mode="r") for name in ("truth", "labels", "unbiased")))


def _allocate_array(shape: tuple[int, int], dtype: type, folder: Path | None, name: str) -> np.ndarray:
    if folder is None:
        return np.zeros(shape, dtype)
    return np.lib.format.open_memmap(folder / f"{name}.npy", "w+", dtype, shape)


def _draw_truth(truth: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Fill `truth` (N, C)."""
    images, classes = truth.shape
    shares = 1 / (np.arange(classes) + 3.0) ** 0.7
    shares *= CLASSES_PER_IMAGE / shares.sum()
    for start in range(0, images, IMAGES_PER_SHARD):
        block = truth[start : start + IMAGES_PER_SHARD]
        block[:] = chance.random(block.shape, np.float32) < np.minimum(0.5, shares)
        block[np.flatnonzero(~block.any(1)), 0] = True
    return truth


def _draw_answers(made: MadeUp, clicked: float, likely: np.ndarray, chance: np.random.Generator) -> None:
    """Fill labels and unbiased; `likely` (n, C) are scores of the first images, by which grids were made."""
    truth, labels, unbiased = made.truth, made.labels, made.unbiased
    images, classes = truth.shape
    rows = np.sort(chance.permutation(images)[: int(clicked * images)])
    for start in range(0, len(rows), IMAGES_PER_SHARD):
        some = rows[start : start + IMAGES_PER_SHARD]
        drawn = chance.random((len(some), classes), np.float32)
        drawn[~truth[some]] = -1
        labels[some, drawn.argmax(1)] = 1
    for number in range(ANSWERED_GRIDS):
        column = number % classes
        open_ = np.flatnonzero(labels[: len(likely), column] == 0)
        unbiased[open_[np.argsort(-likely[open_, column])[:TILES_PER_GRID]], column] = True
    unbiased[chance.permutation(images)[: min(COMPLETE_IMAGES, images // 10)]] = True
    labels[unbiased] = np.where(truth[unbiased], 1, -1)
