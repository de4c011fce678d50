"""One tiny network of each family, saved in the format of real ones and loaded as they are."""

import json

import pytest
import timm
import torch
from harness.short_forms import mark_slow_after
from harness.tiny_networks import CLIP, FAMILIES, save_clip, save_timm, small_timm
from timm.data.config import resolve_model_data_config
from torch import nn

from annotator.errors import AnnotatorError
from annotator.worker.features.backbone import prepare_backbone
from spmll.backbones import families
from spmll.backbones.cam import compute_heat_map
from spmll.backbones.frozen_backbone import REGION_COUNT, Backbone, load_backbone
from spmll.backbones.joined_networks import prepare_pixels
from spmll.backbones.pretrained import Pretrained, load_pretrained
from spmll.backbones.text_image import TextImageNetwork

HALF = (0.5, 0.5, 0.5)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Family -> the name of its network; each is saved once."""
    place, saved = tmp_path_factory.mktemp("networks"), {}

    def name(family):
        if family not in saved:
            saved[family] = f"local-dir:{save_timm(place / family, family)}"
        return saved[family]

    return name


def noise(count, size, seed=0):
    return torch.randint(
        0, 256, (count, 3, size, size), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed)
    )


class Patches(nn.Module):
    """Ends in known tokens: a class token, registers that must not be seen, the colour of each patch."""

    num_prefix_tokens = 3
    num_features = 3

    def __init__(self, global_pool):
        super().__init__()
        self.global_pool = global_pool

    def reset_classifier(self, classes):
        pass

    def forward_features(self, images):
        colors = nn.functional.avg_pool2d(images, 8).flatten(2).transpose(1, 2)
        first = images.new_tensor([7.0, 1e4, -1e4]).view(1, 3, 1).expand(len(images), 3, 3)
        return torch.cat([first, colors], 1)

    def forward_head(self, tokens, pre_logits=False):
        return tokens[:, 0] if self.global_pool == "token" else tokens[:, 3:].mean(1)


@pytest.mark.parametrize("pooling", ["token", "avg"])
def test_regions_of_transformer_backbones_average_patches_without_register_tokens(pooling):
    backbone = Backbone("patches", Pretrained(Patches(pooling), "timm", 96, (0.0,) * 3, (1.0,) * 3, "bilinear"))
    image = noise(1, 96)
    features, regions = backbone.features_and_regions(image)
    thirds = nn.functional.avg_pool2d(image.float() / 255, 32).flatten(2).transpose(1, 2)[0]
    if pooling == "token":
        assert torch.equal(features[:, :3], torch.full((1, 3), 7.0)) and torch.equal(
            regions[0, :, :3], torch.full((9, 3), 7.0)
        )
    assert torch.allclose(regions[0, :, -3:], thirds, atol=1e-5)
    assert torch.allclose(regions.mean(1), features, atol=1e-5)


@pytest.mark.parametrize("family", mark_slow_after(2, FAMILIES))
def test_change_in_one_corner_changes_the_region_of_that_corner_most(family, folders):
    backbone = load_backbone(folders(family))
    size = backbone.input_size
    images = noise(1, size).repeat(2, 1, 1, 1)
    images[1, :, : size // 6, : size // 6] = 255 - images[1, :, : size // 6, : size // 6]
    features, regions = backbone.features_and_regions(images)
    assert backbone.sees_regions and regions.shape == (2, REGION_COUNT, backbone.dimensions)
    assert torch.equal(features, backbone.features(images))
    changed = (regions[0] - regions[1]).norm(dim=1)
    if family != "mobileclip":  # its last stage attends to the whole image, and its weights are random
        assert changed.argmax() == 0
    assert changed[0] > 0


@pytest.mark.parametrize("family", mark_slow_after(1, ["dinov2", "siglip", "pe", "mobileclip"]))
def test_transformer_heatmaps_have_the_size_of_the_image(family, folders):
    backbone = load_backbone(folders(family))
    size = backbone.input_size
    weight = torch.randn(9, backbone.dimensions, generator=torch.Generator().manual_seed(1))
    heat = compute_heat_map(backbone, weight, torch.zeros(9), noise(1, size)[0], range(9))
    assert heat.shape == (9, size, size) and heat.max() > 0.9


def test_feature_map_of_a_transformer_skips_special_tokens_and_orders_patches_by_row(folders):
    backbone = load_backbone(folders("dinov2"))
    tokens = torch.arange(5 + 36.0).view(1, 41, 1)
    places = backbone.to_map(tokens)[0, 0]
    assert places.shape == (6, 6) and places[0, :3].tolist() == [5, 6, 7] and places[1, 0] == 11


@pytest.mark.parametrize("family", mark_slow_after(1, ["dinov2", "siglip", "pe", "mobileclip", "swin", "convnext"]))
def test_backbone_normalization_and_embeddings_match_timm(family, folders):
    """Features are those of timm's own forward pass, on pixels prepared as it says."""
    backbone = load_backbone(folders(family))
    plain = timm.create_model(folders(family), pretrained=True, num_classes=0).eval()
    published = resolve_model_data_config(plain)
    assert (backbone.mean, backbone.std) == (tuple(published["mean"]), tuple(published["std"]))
    assert backbone.interpolation == published["interpolation"] == "bicubic"
    images = noise(2, backbone.input_size)
    with torch.no_grad():
        expected = plain(backbone.normalize(images))
    assert torch.allclose(backbone.features(images)[:, : expected.shape[1]], expected, rtol=1e-3, atol=1e-3)


def test_dinov2_takes_224_pixels_with_interpolated_positions(tmp_path):
    options = {"img_size": 518, "embed_dim": 16, "depth": 1, "num_heads": 2}
    made = timm.create_model("vit_small_patch14_reg4_dinov2", **options)
    torch.nn.init.normal_(made.pos_embed)
    timm.models.save_for_hf(made, str(tmp_path / "dinov2"), safe_serialization=True, model_args=options)
    backbone = load_backbone(f"local-dir:{tmp_path / 'dinov2'}")
    assert backbone.input_size == 224 and backbone.whole.grid == (16, 16)
    at_224 = timm.create_model(f"local-dir:{tmp_path / 'dinov2'}", pretrained=True, img_size=224).pos_embed
    assert torch.allclose(backbone.whole.network.pos_embed, at_224, atol=1e-5)


def test_every_network_family_matches_timm_models_of_its_published_size():
    for family in families.NETWORK_FAMILIES:
        architectures = timm.list_models(family.architectures, pretrained=True)
        assert architectures
        for name in architectures:
            published = timm.get_pretrained_cfg(name)
            assert (
                families.find_family(published.architecture) == family
                and published.input_size[1] == family.published_size
            )
    assert families.find_family("vit_base_patch16_siglip_224") is families.find_family("convnext_tiny") is None


def test_combined_backbones_concatenate_embeddings_of_equal_norm(folders):
    small, large = (load_pretrained(folders(family)) for family in ("dinov2", "siglip"))
    name = f"{folders('dinov2')}+{folders('siglip')}"
    backbone = load_backbone(name)
    assert backbone.input_size == 96 and backbone.dimensions == 64 + 32 and backbone.sees_regions
    images = noise(3, 96)
    features, regions = backbone.features_and_regions(images)
    assert torch.allclose(features[:, :64].norm(dim=1), features[:, 64:].norm(dim=1), rtol=1e-4)
    assert regions.shape == (3, REGION_COUNT, 96) and features.abs().max() < 100
    alone = Backbone("siglip", large)
    assert torch.allclose(
        nn.functional.normalize(features[:, 64:], dim=1),
        nn.functional.normalize(alone.features(images), dim=1),
        atol=1e-4,
    )
    assert prepare_pixels(images.float() / 255, small).shape == (3, 3, 84, 84)
    assert compute_heat_map(backbone, torch.randn(1, 96), torch.zeros(1), images[0], 0).shape == (96, 96)
    with pytest.raises(ValueError, match="different ones can be joined"):
        load_backbone("efficientnet_lite0+efficientnet_lite0")


@pytest.mark.slow
@pytest.mark.parametrize("family", CLIP)
def test_text_image_network_matches_the_image_and_text_embeddings_of_open_clip(family, tmp_path, monkeypatch):
    open_clip = pytest.importorskip("open_clip")
    small_timm(monkeypatch)
    reference = f"local-dir:{save_clip(tmp_path / family, family)}"
    source = load_pretrained(f"open_clip:{reference}")
    backbone = Backbone(family, source)
    both = TextImageNetwork(backbone, source)
    model, tokens = open_clip.create_model(reference).eval(), open_clip.get_tokenizer(reference)
    images, names = noise(2, backbone.input_size), ["a heron", "a fox in the snow", ""]
    with torch.no_grad():
        of_images = model.encode_image(backbone.normalize(images), normalize=True)
        of_texts = model.encode_text(tokens(names), normalize=True)
    embedded, patches, grid = both.encode_images_and_patches(images)
    assert torch.allclose(embedded, of_images, atol=1e-4) and torch.allclose(
        both.encode_texts(names), of_texts, atol=1e-4
    )
    assert torch.allclose(both.project_features(backbone.features(images)), of_images, atol=1e-4)
    assert patches.shape == (2, grid[0] * grid[1], both.dimensions)
    assert torch.allclose(patches.norm(dim=2), torch.ones(1))
    _, regions = backbone.features_and_regions(images)
    assert both.project_regions(regions).shape == (2, REGION_COUNT, both.dimensions)
    assert both.encode_texts([]).shape == (0, both.dimensions)


def test_siglip_without_a_preprocessing_config_gets_the_published_one(tmp_path, monkeypatch):
    open_clip = pytest.importorskip("open_clip")
    small_timm(monkeypatch)
    folder = save_clip(tmp_path / "siglip", "siglip")
    source = load_pretrained(f"open_clip:local-dir:{folder}")
    published = open_clip.get_pretrained_cfg("ViT-B-16-SigLIP2", "webli")
    assert (source.mean, source.std, source.interpolation) == (HALF, HALF, "bicubic")
    assert (published["mean"], published["std"], published["interpolation"]) == (HALF, HALF, "bicubic")
    assert published["resize_mode"] == "squash"  # as all images are here
    stated = {"mean": [0.1] * 3, "std": [0.2] * 3, "interpolation": "bilinear"}
    config = json.loads((folder / "open_clip_config.json").read_text())
    (folder / "open_clip_config.json").write_text(json.dumps(config | {"preprocess_cfg": stated}))
    source = load_pretrained(f"open_clip:local-dir:{folder}")
    assert (source.mean, source.std, source.interpolation) == ((0.1,) * 3, (0.2,) * 3, "bilinear")


def test_weights_file_of_an_open_clip_architecture_gets_the_published_preprocessing(tmp_path, monkeypatch):
    open_clip = pytest.importorskip("open_clip")
    small = {"embed_dim": 16, "vision_cfg": CLIP["clip"][1], "text_cfg": {"width": 16, "heads": 2, "layers": 1}}
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "ViT-B-16-SigLIP2", small)  # the name, not the size
    torch.save(open_clip.create_model("ViT-B-16-SigLIP2").state_dict(), tmp_path / "weights.pt")
    source = load_pretrained(f"open_clip:ViT-B-16-SigLIP2/{tmp_path / 'weights.pt'}")
    assert (source.mean, source.std, source.interpolation) == (HALF, HALF, "bicubic")


def test_load_backbone_error_explains_why_a_network_cannot_be_loaded(folders, tmp_path):
    pytest.importorskip("open_clip")
    whole = folders("cnn").removeprefix("local-dir:")
    cut = tmp_path / "cut"
    cut.mkdir()
    (cut / "config.json").write_bytes((tmp_path.__class__(whole) / "config.json").read_bytes())
    (cut / "model.safetensors").write_bytes((tmp_path.__class__(whole) / "model.safetensors").read_bytes()[:-1000])
    for name, message in {
        f"local-dir:{cut}": "cannot be loaded",
        f"local-dir:{tmp_path / 'none'}": "There is no network in .*no config.json and no model.safetensors",
        f"open_clip:local-dir:{cut}": "has no open_clip_config.json",
        "open_clip:ViT-B-16-SigLIP2/webly": "no weights 'webly' of ViT-B-16-SigLIP2. There is: webli",
        "open_clip:ViT-B-16-SigLIP9/webli": "no network called.*Near it: .*open_clip:ViT-B-16-SigLIP2/webli",
        "vit_small_patch14_reg4_dinov3": "No backbone is called.*vit_small_patch14_reg4_dinov2",
    }.items():
        with pytest.raises(ValueError, match=message):
            load_backbone(name)


def test_backbone_with_non_finite_output_is_refused():
    network = timm.create_model("test_efficientnet").eval()
    nn.init.constant_(network.conv_stem.weight, float("nan"))
    with pytest.raises(ValueError, match="tiny makes numbers that are not finite of an image"):
        Backbone("tiny", Pretrained(network, "timm", 64, HALF, HALF, "bilinear"))


def test_backbone_halves_a_batch_that_runs_out_of_memory_without_losing_images(folders):
    backbone = load_backbone(folders("cnn"))
    images, sizes = noise(9, backbone.input_size), []
    expected, run = backbone.features(images), backbone._forward

    def with_little_room(part, *asked):
        sizes.append(len(part))
        if len(part) > 2:
            raise torch.OutOfMemoryError
        return run(part, *asked)

    backbone._forward, backbone.chunk = with_little_room, 8
    assert torch.allclose(backbone.features(images), expected, atol=1e-5) and backbone.chunk == 2
    assert sizes == [8, 4, 2, 2, 2, 2, 1]
    assert len(backbone.features_and_regions(images)[1]) == 9

    def without_room(*_):
        raise torch.OutOfMemoryError

    backbone._forward = without_room
    with pytest.raises(torch.OutOfMemoryError):
        backbone.features(images)


def test_missing_tokenizer_is_reported_while_image_embeddings_still_work(tmp_path, monkeypatch):
    """That of SigLIP 2 is a file on the hub, which transformers reads: here is neither, or no such file."""
    pytest.importorskip("open_clip")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    small_timm(monkeypatch)
    folder = save_clip(tmp_path / "siglip", "siglip")
    config = json.loads((folder / "open_clip_config.json").read_text())
    config["model_cfg"]["text_cfg"] = config["model_cfg"]["text_cfg"] | {"hf_tokenizer_name": "timm/no-such-tokenizer"}
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    name = f"open_clip:local-dir:{folder}"
    source = load_pretrained(name)
    assert Backbone(name, source).features(noise(1, 96)).shape == (1, 32)
    with pytest.raises(ValueError, match=r"tokenizer of this network cannot be had .*multilabel-annotator\[clip\]"):
        source.text.encode(["a heron"])
    with pytest.raises(AnnotatorError, match="tokenizer of this network cannot be had"):
        prepare_backbone(name)


def test_text_image_network_refuses_a_backbone_without_a_text_encoder(folders):
    source = load_pretrained(folders("cnn"))
    with pytest.raises(ValueError, match="knows nothing of texts"):
        TextImageNetwork(Backbone("cnn", source), source)
