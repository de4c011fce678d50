"""The fastest form of a network on the machine at hand: half precision, batches of a GPU, what happens without room.

No GPU is needed: what is tested is what is decided, by a network on the CPU that says it were on one.
"""

import numpy as np
import pytest
import torch
from harness.tiny_networks import save_timm
from PIL import Image
from torch import nn

from annotator.benchmark.embedding_speed import measure
from annotator.cluster.package_versions import (
    OPEN_CLIP_PACKAGE,
    find_version_mismatch,
    get_package_versions,
    list_extra_packages,
)
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.pictures.bands import NO_BAND_CHOICES
from annotator.worker.features import embed
from annotator.worker.features.backbone import load_project_backbone
from annotator.worker.features.embed import embed_images
from spmll.backbones import fast_inference, frozen_backbone
from spmll.backbones.batch_size import tune_batch_size
from spmll.backbones.cam import compute_heat_map
from spmll.backbones.frozen_backbone import Backbone, load_backbone, load_on_device
from spmll.backbones.pretrained import load_pretrained


class OnGpu(Backbone):
    """Says that it is on a GPU as long as its device is called so; computes on the CPU."""

    least = 0  # bytes of memory, in images; more than so many do not fit

    @property
    def on_gpu(self):
        return self.device.type == "meta"

    def normalize(self, images):
        if self.on_gpu and len(images) > self.least:
            raise torch.OutOfMemoryError
        device, self.device = self.device, torch.device("cpu")
        try:
            return super().normalize(images)
        finally:
            self.device = device

    def upload(self, images):
        return images


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return f"local-dir:{save_timm(tmp_path_factory.mktemp('tiny') / 'average', 'average')}"


@pytest.fixture
def on_gpu(tiny):
    backbone = load_backbone(tiny)
    backbone.__class__, backbone.device = OnGpu, torch.device("meta")
    backbone.least, backbone.chunk = 4, 64
    return backbone


@pytest.fixture
def pictures(tmp_path):
    random = np.random.default_rng(0)
    paths = [tmp_path / f"{number:02d}.png" for number in range(21)]
    for path in paths:
        Image.fromarray(random.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(path)
    return paths


def pixels(count, size):
    return torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("has", "times", "least", "is_half"),
    [(True, 2.0, 1, True), (True, 1.1, 1, False), (False, 2.0, 1, False), (True, 2.0, 10**9, False)],
    ids=["faster", "not faster", "no such CPU", "small"],
)
def test_backbone_uses_bfloat16_on_cpu_only_when_supported_and_faster(tiny, monkeypatch, has, times, least, is_half):
    plain = load_backbone(tiny)
    monkeypatch.setattr(fast_inference, "has_bfloat16", lambda: has)
    monkeypatch.setattr(fast_inference, "measure_speedup", lambda first, second: (first(), second(), times)[2])
    monkeypatch.setattr(fast_inference, "MIN_BFLOAT16_WEIGHTS", least)
    backbone = load_backbone(tiny)
    assert ("bfloat16" in backbone.setting) is is_half
    images = pixels(6, backbone.input_size)
    expected, features = plain.features(images), backbone.features(images)
    assert features.dtype == torch.float32 and torch.equal(features, expected) is not is_half
    assert ((features - expected).norm(dim=1) < 0.05 * expected.norm(dim=1)).all()
    assert all(weight.dtype == torch.float32 for weight in backbone.whole.parameters()), "heat maps look into these"


def test_half_precision_inference_is_rejected_when_embeddings_overflow(monkeypatch):
    class Large(nn.Module):
        def forward(self, images, more=False):
            return images.mean((2, 3)) + 1e6

    network, images = Large(), torch.zeros(1, 3, 8, 8)
    assert fast_inference._are_close_in_half(network(images).bfloat16(), network(images))
    assert not fast_inference._are_close_in_half(network(images).half(), network(images)), "beyond 65504 it is infinite"
    assert fast_inference.measure_speedup(lambda: None, lambda: sum(range(100_000))) > 1


def test_backbone_with_folded_batch_norm_stays_in_float32(monkeypatch):
    monkeypatch.setattr(
        fast_inference, "has_bfloat16", lambda: pytest.fail("the packaged network is in float32 everywhere")
    )
    assert "folded" in load_backbone("efficientnet_lite0").setting


def test_gpu_without_room_for_one_image_falls_back_to_the_cpu_with_a_message(tiny, on_gpu):
    said, images = [], pixels(9, on_gpu.input_size)
    expected, expected_regions = load_backbone(tiny).features_and_regions(images)
    on_gpu._say = said.append
    features, regions = on_gpu.features_and_regions(images)
    assert on_gpu.chunk == 4 and on_gpu.on_gpu and said == []
    assert torch.allclose(features, expected, atol=1e-4) and torch.allclose(regions, expected_regions, atol=1e-4)
    on_gpu.least = 0  # somebody else has taken its memory
    assert torch.allclose(on_gpu.features(images), expected, atol=1e-4)
    assert not on_gpu.on_gpu and on_gpu.chunk == fast_inference.CPU_CHUNK_IMAGES
    assert said == [f"The GPU has no room for {tiny}, which therefore runs on the CPU."]
    head = torch.randn(2, on_gpu.dimensions)
    assert compute_heat_map(on_gpu, head, torch.zeros(2), images[0], 1).max() > 0


def test_backbone_that_does_not_fit_on_the_gpu_is_loaded_on_the_cpu_with_a_warning(tiny, project, monkeypatch):
    made = []

    def full(name, source, device="cpu", say=None):
        made.append((device, source.network))  # kept: a freed network's address may be the next one's
        if device == "cuda":
            raise torch.OutOfMemoryError
        return Backbone(name, source, device, say)

    monkeypatch.setattr(frozen_backbone, "Backbone", full)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.warns(UserWarning, match="no room for"):
        assert not load_on_device(tiny, lambda: load_pretrained(tiny)).on_gpu
    assert [device for device, _ in made] == ["cuda", "cpu"] and made[0][1] is not made[1][1]
    db = Database(project)
    with pytest.warns(UserWarning, match="runs on the CPU"):
        load_project_backbone(db, tiny)
    assert "The GPU has no room for" in heartbeat.load_worker_state(db).last_error


def test_gpu_batch_size_is_tuned_once_to_what_fits(on_gpu):
    on_gpu.least = 100
    tune_batch_size(on_gpu)
    assert 32 <= on_gpu.chunk <= 64 and on_gpu.batch_is_settled
    on_gpu.chunk = 7
    tune_batch_size(on_gpu)
    assert on_gpu.chunk == 7, "it is tried once"
    on_gpu.batch_is_settled, on_gpu.least = False, 10
    tune_batch_size(on_gpu)
    assert on_gpu.chunk == 8


@pytest.mark.parametrize("batch", [None, 4, 30])
def test_gpu_embedding_decodes_ahead_and_keeps_image_order(tiny, on_gpu, pictures, monkeypatch, batch):
    monkeypatch.setattr(embed, "MIN_IMAGES_TO_TUNE_BATCH", 10)
    on_gpu.least = 100
    pictures[3].write_bytes(b"")
    expected = list(embed_images(pictures, load_backbone(tiny), regions=True, bands=NO_BAND_CHOICES))
    batches = list(embed_images(pictures, on_gpu, regions=True, batch=batch, workers=2, bands=NO_BAND_CHOICES))
    assert [place for part in batches for place in part.indices] == [place for place in range(21) if place != 3]
    assert [failure for part in batches for failure in part.failures] == [(3, "empty file (0 bytes)")]
    together = [np.concatenate([part.features for part in parts]) for parts in (batches, expected)]
    assert np.allclose(*together, atol=1e-4)
    assert np.concatenate([part.regions for part in batches]).shape == (20, 9, on_gpu.dimensions)
    assert on_gpu.batch_is_settled is (batch is None or len(pictures) >= 10)


def test_gpu_embedding_stops_decoding_after_a_stop_request(on_gpu, pictures):
    seen = []
    for part in embed_images(
        pictures, on_gpu, batch=1, workers=1, should_stop=lambda: bool(seen), bands=NO_BAND_CHOICES
    ):
        seen.extend(part.indices)
    assert seen == list(range(len(seen))) and 1 <= len(seen) <= 1 + embed.MAX_GPU_BATCHES + 4
    stream = embed_images(pictures, on_gpu, batch=2, bands=NO_BAND_CHOICES)
    next(stream)
    stream.close()  # the caller leaves early


@pytest.mark.slow
def test_backbone_benchmark_runs_for_a_custom_backbone(tiny, pictures):
    figures = measure(pictures[0].parent, backbone=tiny, rounds=1, photos_a_round=4, large=1)["figures"]
    assert figures["image_side_pixels"] == 96 and figures["photos_forward_only_images_per_second"] > 0


def test_open_clip_is_required_only_for_backbones_that_use_it(monkeypatch):
    assert list_extra_packages("efficientnet_lite2+open_clip:MobileCLIP2-S0/dfndr2b") == (OPEN_CLIP_PACKAGE,)
    assert list_extra_packages("efficientnet_lite2") == () and find_version_mismatch(get_package_versions()) == ""
    assert (
        OPEN_CLIP_PACKAGE not in get_package_versions()
        and find_version_mismatch(get_package_versions() | {"no_such_package": "1.0"}) == "has no no_such_package 1.0"
    )
    assert find_version_mismatch(get_package_versions() | {"multilabel-annotator": ""}) == ""
