import numpy as np
import pytest
import timm
import torch
from harness.tiny_networks import HALF, SIDE, Colors

from spmll.backbones.cam import color_heat_map, compute_heat_map
from spmll.backbones.frozen_backbone import Backbone
from spmll.backbones.pretrained import Pretrained


@pytest.fixture(scope="module")
def colors():
    return Backbone("colours", Pretrained(Colors(), "timm", SIDE, HALF, (1.0, 1.0, 1.0), "bilinear"))


@pytest.fixture
def image():
    pixels = torch.zeros(3, SIDE, SIDE, dtype=torch.uint8)
    pixels[0, :16, :16] = 255  # red at the top left
    pixels[1, 48:, 48:] = 255  # green at the bottom right
    return pixels


def test_heat_map_is_high_at_the_object_and_near_zero_elsewhere(colors, image):
    heat = compute_heat_map(colors, torch.eye(3), torch.zeros(3), image, 0)
    assert heat.shape == (SIDE, SIDE) and heat.dtype == np.float32
    assert heat[:12, :12].min() > 0.9 and heat[32:, 32:].max() < 0.01
    assert heat.min() >= 0 and heat.max() <= 1


def test_heat_maps_of_several_classes_equal_single_ones_with_one_backbone_pass(colors, image):
    runs = []
    hook = colors.trunk.register_forward_hook(lambda *_: runs.append(1))
    together = compute_heat_map(colors, torch.eye(3), torch.zeros(3), image, [1, 0])
    hook.remove()
    assert together.shape == (2, SIDE, SIDE) and len(runs) == 1
    assert together[0, 60, 60] > 0.9 and together[1, 4, 4] > 0.9
    for place, index in enumerate([1, 0]):
        assert np.array_equal(together[place], compute_heat_map(colors, torch.eye(3), torch.zeros(3), image, index))


def test_heat_map_of_a_class_without_positive_weights_is_zero(colors, image):
    against = -torch.eye(3)
    assert not compute_heat_map(colors, against, torch.zeros(3), image, 0).any()
    assert not compute_heat_map(colors, torch.zeros(3, 3), torch.zeros(3), image, [0, 1]).any()
    assert compute_heat_map(colors, torch.eye(3), torch.zeros(3), image, []).shape == (0, SIDE, SIDE)


def test_heat_map_works_in_inference_mode_and_leaves_no_gradients(colors, image):
    with torch.inference_mode():
        heat = compute_heat_map(colors, torch.eye(3), torch.zeros(3), image, 0)
    assert heat.max() > 0.9
    assert not any(parameter.requires_grad for parameter in colors.trunk.parameters())


def test_heat_map_refuses_an_unknown_class_and_a_mismatched_head(colors, image):
    with pytest.raises(ValueError, match="Class index 3 is out of range: the head knows 3 classes"):
        compute_heat_map(colors, torch.eye(3), torch.zeros(3), image, [0, 3])
    with pytest.raises(ValueError, match="has 3 features"):
        compute_heat_map(colors, torch.zeros(2, 5), torch.zeros(2), image, 0)


SMALL_SWIN = {"img_size": 56, "embed_dim": 24, "depths": (1, 1), "num_heads": (2, 4)}


@pytest.mark.parametrize(
    ("name", "size", "options"),
    [
        ("resnet10t", 64, {}),
        ("test_vit", 160, {}),
        ("test_convnext", 96, {}),
        ("swin_tiny_patch4_window7_224", 56, SMALL_SWIN),
    ],
)
def test_every_backbone_architecture_yields_heat_maps(name, size, options):
    torch.manual_seed(0)
    network = timm.create_model(name, pretrained=False, num_classes=10, **options)
    backbone = Backbone(name, Pretrained(network.eval(), "timm", size, HALF, (1.0, 1.0, 1.0), "bilinear"))
    picture = torch.randint(0, 256, (3, size, size), dtype=torch.uint8)
    heats = compute_heat_map(backbone, torch.randn(4, backbone.dimensions), torch.zeros(4), picture, [0, 1, 2, 3])
    assert heats.shape == (4, size, size) and np.isfinite(heats).all()
    assert heats.min() >= 0 and heats.max() <= 1 and heats.any()


def test_torchvision_backbone_drops_its_classifier_and_yields_a_heat_map():
    from torchvision.models import resnet18

    source = Pretrained(resnet18(weights=None).eval(), "torchvision", 64, HALF, (1.0, 1.0, 1.0), "bilinear")
    backbone = Backbone("resnet18", source)
    assert backbone.dimensions == 512
    picture = torch.randint(0, 256, (3, 64, 64), dtype=torch.uint8)
    assert compute_heat_map(backbone, torch.randn(2, 512), torch.zeros(2), picture, 1).shape == (64, 64)


def test_heat_map_color_image_is_small_transparent_at_low_and_brighter_at_high_values():
    heat = np.tile(np.linspace(0, 1, 260, dtype=np.float32), (130, 1))
    picture = color_heat_map(heat)
    assert picture.shape == (80, 160, 4) and picture.dtype == np.uint8
    assert (np.diff(picture[0, :, 3].astype(int)) >= 0).all() and picture[0, 0, 3] < 3
    assert picture[0, -1, :3].sum() > picture[0, 80, :3].sum() > picture[0, 0, :3].sum()
    assert color_heat_map(np.zeros((20, 30), np.float32)).shape == (20, 30, 4)
    with pytest.raises(ValueError, match=r"One heat map is \(H, W\)"):
        color_heat_map(np.zeros((2, 3, 4), np.float32))
