"""Codes of images that a worker keeps for the next one: used where they fit the features, and made again otherwise."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from harness.answers import answer_cell
from harness.feature_shards import add_shard, read_made
from harness.trained_projects import KILLED, cache_of, trained

from annotator.records import ABSENT
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.features import stored_image_codes
from annotator.store.features.feature_cache import FeatureCache
from annotator.store.runs import runs
from annotator.worker.features import image_codes
from annotator.worker.features.image_codes import ImageCodesCache
from annotator.worker.features.region_coding import to_stored_basis
from annotator.worker.training.incremental_update import Updater
from spmll.ensemble.incremental_update import encode_images, learn_image_basis

__all__ = ["trained"]  # a fixture

MANY = 60


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """Axes are settled by twenty images instead of two thousand."""
    monkeypatch.setattr(image_codes, "BASIS_SAMPLE_IMAGES", 20)


def add(folder, first: int, count: int, seed: int) -> None:
    """A shard of images from `first` on."""
    chance = np.random.default_rng(seed)
    features = np.abs(chance.normal(size=(count, 8))).astype(np.float16)
    add_shard(folder, np.arange(first, first + count), features, np.zeros((count, 9, 8), np.float16))


@pytest.fixture
def folder(tmp_path):
    for shard in range(3):
        add(tmp_path, 1 + shard * MANY // 3, MANY // 3, shard)
    return tmp_path


def codes_of(cache: FeatureCache, codes: ImageCodesCache | None = None) -> np.ndarray:
    """(N, K) int8, as a new worker has them unless `codes` is given."""
    return np.array((codes or ImageCodesCache()).get_codes(cache, cache.features, cache.image_ids).steps.numpy())


def marked(folder, mark: int = 99) -> None:
    """Other codes in the place of those that are kept, so that it shows where they are used."""
    cache = read_made(folder)
    codes = np.full((len(cache), 8), mark, np.int8)
    stored_image_codes.save_codes(
        folder,
        to_stored_basis(learn_image_basis(cache.features)),
        cache.image_ids,
        *cache.features.get_shard_index(),
        codes,
    )


def test_new_worker_reuses_stored_compressed_image_embeddings(folder):
    made = codes_of(read_made(folder))
    kept = stored_image_codes.read_codes(folder)
    assert kept is not None and np.array_equal(kept.codes, made) and made.any()
    assert np.array_equal(codes_of(read_made(folder)), made)
    marked(folder)
    assert (codes_of(read_made(folder)) == 99).all(), "they are not made again"


def test_new_image_embeddings_are_compressed_with_the_stored_basis_and_old_ones_reused(folder):
    codes_of(read_made(folder))
    basis = stored_image_codes.read_codes(folder).basis
    marked(folder)
    add(folder, 101, 10, 7)
    cache = read_made(folder)
    codes, new = codes_of(cache), cache.image_ids > 100
    assert new.any() and (codes[~new] == 99).all()
    assert np.array_equal(codes[new], encode_images(image_codes.to_basis(basis), cache.features[new]).steps.numpy())
    assert len(stored_image_codes.read_codes(folder).image_ids) == MANY + 10, "one in seven is new: all are kept"


def test_running_worker_stores_compressed_embeddings_after_enough_new_images(folder):
    codes, cache = ImageCodesCache(), read_made(folder)
    codes_of(cache, codes)
    add(folder, 101, 2, 7)
    cache.refresh()
    first = codes_of(cache, codes)
    assert len(first) == MANY + 2 and len(stored_image_codes.read_codes(folder).image_ids) == MANY
    add(folder, 111, 9, 8)
    cache.refresh()
    later = codes_of(cache, codes)
    assert np.array_equal(later[: len(first)], first) and np.array_equal(
        stored_image_codes.read_codes(folder).codes, later
    )
    assert len(list((folder / stored_image_codes.CODES_FOLDER).glob("*.npy"))) == 1


def test_compressed_embeddings_stay_with_their_images_after_a_shard_is_deleted(folder):
    codes, cache = ImageCodesCache(), read_made(folder)
    before = dict(zip(cache.image_ids.tolist(), codes_of(cache, codes).tolist(), strict=True))
    next(path for path in folder.glob("*.safetensors")).unlink()
    cache.refresh()
    after = dict(zip(cache.image_ids.tolist(), codes_of(cache, codes).tolist(), strict=True))
    assert len(after) == 2 * MANY // 3 and after == {image_id: before[image_id] for image_id in after}


@pytest.mark.parametrize("damage", ["other features", "cut short", "changed", "no index", "half an index"])
def test_stale_or_damaged_compressed_embeddings_are_recomputed(folder, damage):
    marked(folder)
    (array,) = (folder / stored_image_codes.CODES_FOLDER).glob("*.npy")
    index = folder / stored_image_codes.CODES_FOLDER / stored_image_codes.INDEX_FILE
    if damage == "other features":
        for path in folder.glob("*.safetensors"):
            path.unlink()
        add(folder, 1, MANY, 50)  # the same images
    elif damage == "cut short":
        array.write_bytes(array.read_bytes()[:-1])
    elif damage == "changed":
        content = bytearray(array.read_bytes())
        content[-1] ^= 1
        array.write_bytes(content)
    elif damage == "no index":
        index.unlink()
    else:
        index.write_bytes(index.read_bytes()[:-100])
    cache = read_made(folder)
    expected = encode_images(learn_image_basis(cache.features), cache.features).steps.numpy()
    assert np.array_equal(codes_of(cache), expected)
    assert np.array_equal(stored_image_codes.read_codes(folder).codes, expected), "and kept instead"


def test_rewritten_shard_is_compressed_again_while_other_shards_are_reused(folder):
    marked(folder)
    paths = sorted(folder.glob("*.safetensors"))
    paths[0].unlink()
    there = set(read_made(folder).image_ids.tolist())
    gone = min(set(range(1, MANY + 1)) - there)
    add(folder, gone, MANY // 3, 77)
    cache = read_made(folder)
    old = np.isin(cache.image_ids, sorted(there))
    codes = codes_of(cache)
    assert (codes[old] == 99).all() and not (codes[~old] == 99).all(1).any()


def test_predictions_are_equal_with_and_without_stored_compressed_embeddings(trained):
    answer_cell(trained, 20, 1)
    Updater().update(trained, cache_of(trained))
    assert stored_image_codes.read_codes(trained.paths.features(DEFAULT_BACKBONE)) is not None
    answer_cell(trained, 21, 2, ABSENT)
    Updater().update(trained, cache_of(trained))
    kept = np.array(read_predictions(trained).probabilities)
    place = trained.paths.features(DEFAULT_BACKBONE) / stored_image_codes.CODES_FOLDER
    for path in place.iterdir():
        path.unlink()
    runs.publish_version(trained, 1, 2, runs.load_current_run(trained).trained_decision_id)
    assert Updater().update(trained, cache_of(trained)).version == 3
    assert np.array_equal(read_predictions(trained).probabilities, kept)


FEWER = "from annotator.worker.features import image_codes; image_codes.BASIS_SAMPLE_IMAGES = 20"


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("files", [1, 2])
def test_next_worker_recomputes_compressed_embeddings_after_a_kill_while_writing(trained, files):
    answer_cell(trained, 20, 1)
    words = [sys.executable, "-c", FEWER + KILLED, str(trained.paths.project), str(files)]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    folder = trained.paths.features(DEFAULT_BACKBONE)
    assert (
        stored_image_codes.read_codes(folder) is None
        and len(list((folder / stored_image_codes.CODES_FOLDER).glob("*.npy"))) == files - 1
    )
    assert Updater().update(trained, cache_of(trained)).version == 1
    assert (
        stored_image_codes.read_codes(folder) is not None
        and len(list((folder / stored_image_codes.CODES_FOLDER).glob("*.npy"))) == 1
    )
