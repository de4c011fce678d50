import numpy as np
import pytest
import torch
from PIL import Image

from annotator.store.pictures.bands import NO_BAND_CHOICES
from annotator.store.pictures.decoding import open_rgb
from annotator.store.pictures.files import compute_sha256
from annotator.worker.features.embed import embed_images
from models.backbones.frozen_backbone import load_backbone


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


def test_features_come_in_order_and_are_those_of_each_image_alone(backbone, folder):
    batches = list(embed_images(folder, backbone, batch=4, workers=3, bands=NO_BAND_CHOICES))
    assert [batch.indices for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    together = np.concatenate([batch.features for batch in batches])
    assert together.dtype == np.float32 and together.shape == (11, backbone.dimensions)
    for index in (0, 5, 10):
        alone = backbone.features(backbone.preprocess(open_rgb(folder[index]))[None])[0].numpy()
        assert np.abs(together[index] - alone).max() < 1e-3


def test_regions_come_beside_the_same_features_when_they_are_asked_for(backbone, folder):
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


def test_a_file_that_holds_another_picture_than_was_registered_is_a_failure(backbone, folder):
    contents = [compute_sha256(path) for path in folder]
    folder[9].write_bytes(folder[8].read_bytes())
    batches = list(embed_images(folder[8:], backbone, contents=contents[8:], bands=NO_BAND_CHOICES))
    assert [batch.indices for batch in batches] == [[0, 2]]
    assert "another picture" in batches[0].failures[0][1]


def test_files_that_cannot_be_read_are_failures_and_the_rest_goes_on(backbone, folder):
    folder[1].write_bytes(b"")
    folder[2].write_bytes(folder[2].read_bytes()[:200])
    for path in folder[4:8]:
        path.unlink()
    batches = list(embed_images(folder, backbone, batch=4, bands=NO_BAND_CHOICES))
    assert [batch.indices for batch in batches] == [[0, 3], [], [8, 9, 10]]
    assert [index for batch in batches for index, _ in batch.failures] == [1, 2, 4, 5, 6, 7]
    assert batches[0].failures[0] == (1, "empty file (0 bytes)")
    assert batches[1].features.shape == (0, backbone.dimensions)


def test_a_request_to_stop_begins_nothing_new(backbone, folder):
    seen = []
    for batch in embed_images(
        folder, backbone, batch=1, workers=1, should_stop=lambda: bool(seen), bands=NO_BAND_CHOICES
    ):
        seen.append(batch.indices)
    assert seen == [[0], [1]]  # the one under way when the request came is still handed over


def test_no_paths_is_no_batches(backbone):
    assert list(embed_images([], backbone, bands=NO_BAND_CHOICES)) == []


def test_torch_gets_its_threads_back_even_when_the_caller_leaves_early(backbone, folder):
    before = torch.get_num_threads()
    stream = embed_images(folder, backbone, batch=2, bands=NO_BAND_CHOICES)
    next(stream)
    stream.close()
    assert torch.get_num_threads() == before
