import numpy as np
import pytest
import torch
from PIL import Image

from annotator.store.pictures.bands import NO_BAND_CHOICES
from annotator.store.pictures.decoding import open_rgb
from annotator.store.pictures.files import compute_sha256
from annotator.worker.features.embed import embed_images
from spmll.backbones.frozen_backbone import load_backbone


@pytest.fixture(scope="module")
def backbone():
    return load_backbone("efficientnet_lite0")


@pytest.fixture
def folder(tmp_path):
    chance = np.random.default_rng(0)
    paths = []
    for number in range(11):
        path = tmp_path / f"{number:02d}.{'png' if number % 3 else 'jpg'}"
        Image.fromarray(chance.integers(0, 256, (60 + number, 90, 3), dtype=np.uint8)).save(path)
        paths.append(path)
    return paths


def test_embeddings_keep_image_order_and_equal_those_of_single_images(backbone, folder):
    batches = list(embed_images(folder, backbone, batch=4, workers=3, bands=NO_BAND_CHOICES))
    assert [batch.indices for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    together = np.concatenate([batch.features for batch in batches])
    assert together.dtype == np.float32 and together.shape == (11, backbone.dimensions)
    for index in (0, 5, 10):
        alone = backbone.features(backbone.preprocess(open_rgb(folder[index]))[None])[0].numpy()
        assert np.abs(together[index] - alone).max() < 1e-3


def test_embedding_with_regions_leaves_image_embeddings_unchanged(backbone, folder):
    folder[1].write_bytes(b"")
    for path in folder[4:8]:
        path.unlink()
    without = list(embed_images(folder, backbone, batch=4, bands=NO_BAND_CHOICES))
    assert all(batch.regions is None for batch in without)
    batches = list(embed_images(folder, backbone, batch=4, regions=True, bands=NO_BAND_CHOICES))
    assert [batch.regions.shape for batch in batches] == [(3, 9, 1280), (0, 9, 1280), (3, 9, 1280)]
    assert {batch.regions.dtype for batch in batches} == {np.dtype(np.float16)}
    for one, other in zip(without, batches, strict=True):
        assert one.indices == other.indices and np.array_equal(one.features, other.features)
    image = backbone.preprocess(open_rgb(folder[10]))[None]
    assert np.abs(batches[2].regions[2] - backbone.features_and_regions(image)[1][0].numpy()).max() < 5e-3


def test_embedding_reports_a_file_with_changed_content_as_a_failure(backbone, folder):
    contents = [compute_sha256(path) for path in folder]
    folder[9].write_bytes(folder[8].read_bytes())
    batches = list(embed_images(folder[8:], backbone, contents=contents[8:], bands=NO_BAND_CHOICES))
    assert [batch.indices for batch in batches] == [[0, 2]]
    assert "another picture" in batches[0].failures[0][1]


def test_unreadable_files_are_reported_as_failures_and_the_others_are_embedded(backbone, folder):
    folder[1].write_bytes(b"")
    folder[2].write_bytes(folder[2].read_bytes()[:200])
    for path in folder[4:8]:
        path.unlink()
    batches = list(embed_images(folder, backbone, batch=4, bands=NO_BAND_CHOICES))
    assert [batch.indices for batch in batches] == [[0, 3], [], [8, 9, 10]]
    assert [index for batch in batches for index, _ in batch.failures] == [1, 2, 4, 5, 6, 7]
    assert batches[0].failures[0] == (1, "empty file (0 bytes)")
    assert batches[1].features.shape == (0, backbone.dimensions)


def test_embedding_returns_the_batch_in_progress_and_no_further_one_after_a_stop_request(backbone, folder):
    seen = []
    for batch in embed_images(
        folder, backbone, batch=1, workers=1, should_stop=lambda: bool(seen), bands=NO_BAND_CHOICES
    ):
        seen.append(batch.indices)
    assert seen == [[0], [1]]  # the one under way when the request came is still handed over


def test_embedding_without_paths_yields_no_batches(backbone):
    assert list(embed_images([], backbone, bands=NO_BAND_CHOICES)) == []


def test_torch_thread_count_is_restored_after_an_early_exit(backbone, folder):
    before = torch.get_num_threads()
    stream = embed_images(folder, backbone, batch=2, bands=NO_BAND_CHOICES)
    next(stream)
    stream.close()
    assert torch.get_num_threads() == before
