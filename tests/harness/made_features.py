"""Features of any number of made-up images, stored as a worker stores them, and how well their codes keep the order.

An image belongs to one of many kinds and lies somewhere between its own kind and a second one, with something of its
own in all directions. Features are made block by block and the same each time. Of more than MAX_EXACT_IMAGES images
no regions
are stored, which take nine times the room, and which likeness does not read.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot.similarity.exact_similarity import MEAN_SAMPLE_IMAGES
from annotator.snapshot.similarity.image_similarity import MAX_EXACT_IMAGES
from annotator.store.database.arrays import create_scratch_array
from annotator.store.database.database import Database
from annotator.store.features.project_contents import ProjectContents
from annotator.store.features.shards import CodedRegions, write_shard
from annotator.store.features.stored_image_codes import save_codes
from annotator.worker.features.region_coding import to_stored_basis
from harness.projects import save_features
from spmll.ensemble.incremental_update import encode_images, learn_image_basis

FEATURE_DIMENSIONS = 1280  # of the network that projects begin with
LATENT_DIMENSIONS = 96  # directions in which kinds differ
IMAGE_KINDS = 2000
OWN_NOISE_SCALE = 0.35  # of an image alone, beside its kinds
IMAGES_PER_SHARD = 4096  # images of a shard, as a worker writes them


def iterate_blocks(images: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (row of the first, features (n, FEATURE_DIMENSIONS) float16) of made-up images, block by block."""
    chance = np.random.default_rng(5)
    kinds = chance.normal(size=(IMAGE_KINDS, LATENT_DIMENSIONS)).astype(np.float32)
    mix = chance.normal(size=(LATENT_DIMENSIONS, FEATURE_DIMENSIONS)).astype(np.float32) / LATENT_DIMENSIONS**0.5
    for start in range(0, images, IMAGES_PER_SHARD):
        own = np.random.default_rng((6, start))
        count = min(IMAGES_PER_SHARD, images - start)
        first, second = own.integers(0, IMAGE_KINDS, (2, count))
        share = own.uniform(0, 0.5, (count, 1)).astype(np.float32)
        latent = (1 - share) * kinds[first] + share * kinds[second]
        features = latent @ mix + OWN_NOISE_SCALE * own.standard_normal((count, FEATURE_DIMENSIONS), np.float32)
        yield start, np.maximum(features, 0).astype(np.float16)  # networks end in values that are never negative


def add_features(db: Database, images: int) -> None:
    """Store the features of the first `images` images, and above MAX_EXACT_IMAGES of them the codes of these.

    Raises:
        DiskFull: The disk is full.
    """
    if images <= MAX_EXACT_IMAGES:
        save_features(db, np.concatenate([block for _, block in iterate_blocks(images)]))
        return
    folder = db.paths.features(DEFAULT_BACKBONE)
    folder.mkdir(parents=True, exist_ok=True)
    basis, shards = None, list[str]()
    codes = np.zeros((0, 0), np.int8)
    for start, block in iterate_blocks(images):
        if basis is None:
            basis = learn_image_basis(block)
            codes = create_scratch_array(folder, (images, basis.axes.shape[1]), np.int8)
        codes[start : start + len(block)] = encode_images(basis, block).steps.numpy()
        no_regions = CodedRegions(np.zeros((len(block), 1, 1), np.int8), np.zeros((len(block), 1), np.float16), "none")
        image_ids = np.arange(start, start + len(block)) + 1
        contents = ProjectContents(db).load_hashes(image_ids)
        shards.append(write_shard(folder, image_ids, contents, block, no_regions).name)
    assert basis is not None
    ids = np.arange(1, images + 1)
    save_codes(folder, to_stored_basis(basis), ids, shards, (ids - 1) // IMAGES_PER_SHARD, codes)


def find_nearest_images(images: int, examples: Sequence[int], count: int) -> list[list[int]]:
    """Return the ids of the `count` images most like each example, by the features themselves and not by codes."""
    mean, wanted = np.zeros(FEATURE_DIMENSIONS, np.float64), np.zeros((len(examples), FEATURE_DIMENSIONS), np.float32)
    for start, block in iterate_blocks(images):
        roots = np.sqrt(block.astype(np.float32))
        if not start:
            mean = roots[:MEAN_SAMPLE_IMAGES].mean(0)
        for number, example in enumerate(examples):
            if start < example <= start + len(block):
                wanted[number] = roots[example - 1 - start] - mean
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    values = np.empty((len(examples), images), np.float32)
    for start, block in iterate_blocks(images):
        roots = np.sqrt(block.astype(np.float32)) - mean
        roots /= np.linalg.norm(roots, axis=1, keepdims=True)
        values[:, start : start + len(block)] = wanted @ roots.T
    values[np.arange(len(examples)), np.asarray(examples) - 1] = 2  # the example itself comes first
    best = np.argpartition(-values, count - 1, axis=1)[:, :count]
    return [(ids + 1).tolist() for ids in best]
