"""Tiny networks of random weights in the formats of real ones, one of each family: a folder of timm's form each, and of
open_clip's; and one whose right answers are known."""

import json
from pathlib import Path

import timm
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

SMALL_VIT = {"embed_dim": 32, "depth": 2, "num_heads": 2}
# Architecture of timm, side of the input, what makes it tiny.
FAMILIES = {
    "cnn": ("test_efficientnet", 64, {}),
    "dinov2": ("vit_small_patch14_reg4_dinov2", 84, {"img_size": 84, **SMALL_VIT}),
    "dinov3": ("vit_small_patch16_dinov3", 96, {"img_size": 96, **SMALL_VIT}),
    "siglip": ("vit_base_patch16_siglip_224", 96, {"img_size": 96, **SMALL_VIT}),
    "pe": ("vit_pe_core_tiny_patch16_384", 96, {"img_size": 96, **SMALL_VIT}),
    "average": ("vit_small_patch16_224", 96, {"img_size": 96, "global_pool": "avg", **SMALL_VIT}),
    "mobileclip": ("fastvit_mci0", 128, {"layers": (1, 1, 1, 1), "embed_dims": (8, 16, 32, 64)}),
    "convnext": ("test_convnext", 96, {}),
    "swin": (
        "swin_tiny_patch4_window7_224",
        56,
        {"img_size": 56, "embed_dim": 24, "depths": (1, 1), "num_heads": (2, 4)},
    ),
}


def scattered(network: nn.Module, seed: int = 0) -> nn.Module:
    """The network with larger weights: with initial ones, what transformers give hardly depends on the image."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "stages" in name or "conv" in name:
                continue  # what convolutional networks begin with will do
            if parameter.ndim > 1:
                parameter.normal_(0, 1.5 / parameter[0].numel() ** 0.5, generator=generator)
            else:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.02)
    return network.eval()


def save_timm(folder: Path, family: str, **published: object) -> Path:
    """A folder as timm writes it; published: what its configuration says otherwise."""
    architecture, size, options = FAMILIES[family]
    torch.manual_seed(0)
    made = scattered(timm.create_model(architecture, pretrained=False, **options))
    made.pretrained_cfg = dict(made.pretrained_cfg) | {"input_size": (3, size, size), "license": "mit"} | published
    timm.models.save_for_hf(made, str(folder), safe_serialization=True, model_args=options)
    return folder


TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
CLIP = {  # embedding width and image encoder, as open_clip's configurations have them
    "siglip": (
        32,
        {"image_size": 96, "timm_model_name": "vit_base_patch16_siglip_224", "timm_pool": "map", "timm_proj": "none"},
    ),
    "mobileclip": (
        16,
        {"image_size": 128, "timm_model_name": "fastvit_mci0", "timm_pool": "avg", "timm_proj": None},
    ),
    "clip": (16, {"image_size": 96, "patch_size": 16, "layers": 2, "width": 32, "head_width": 16}),
}


def save_clip(folder: Path, family: str, prepared: dict | None = None) -> Path:
    """A folder as open_clip writes it; prepared: how images are, None to leave it out. The architectures of timm are
    made tiny by small_timm()."""
    import open_clip

    width, vision = CLIP[family]
    model = {"embed_dim": width, "vision_cfg": vision, "text_cfg": TEXT, "custom_text": True}
    folder.mkdir(parents=True)
    config = {"model_cfg": model} | ({} if prepared is None else {"preprocess_cfg": prepared})
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    torch.manual_seed(0)
    made = scattered(open_clip.create_model(f"local-dir:{folder}"))
    save_file(
        {name: tensor.contiguous() for name, tensor in made.state_dict().items()},
        folder / "open_clip_model.safetensors",
    )
    return folder


def small_timm(monkeypatch) -> None:
    """open_clip makes its timm networks tiny: it passes on no sizes of theirs."""
    from open_clip import timm_model

    sizes = {architecture: options for architecture, _, options in FAMILIES.values()}
    make = timm.create_model
    monkeypatch.setattr(
        timm_model.timm, "create_model", lambda name, **others: make(name, **(sizes.get(name, {}) | others))
    )


OF_COLORS = {"context_length": 24, "vocab_size": 49408, "width": 96, "heads": 2, "layers": 1}


def save_colored_clip(folder: Path, colors: dict[str, tuple[int, int, int]], texts: dict[str, list[str]]) -> Path:
    """A text-image network of open_clip that knows colours, with nothing learned.

    colours    what to know, by name: an image, or a patch, is the nearest of them
    texts      name -> the texts that mean this colour

    Its image encoder gives the mean colour of each patch, because its blocks add nothing; the projection of its texts,
    whose other weights are random, is solved for: the vector of each text has a product of 1 with its colour's, and of
    0 with all others.
    """
    import open_clip

    folder.mkdir(parents=True)
    vision = CLIP["clip"][1] | {"pool_type": "avg"}
    model = {"embed_dim": 16, "vision_cfg": vision, "text_cfg": OF_COLORS, "custom_text": True}
    config = {"model_cfg": model, "preprocess_cfg": {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic"}}
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    torch.manual_seed(0)
    made = open_clip.create_model(f"local-dir:{folder}").eval()
    visual, (width, _, side, _) = made.visual, made.visual.conv1.weight.shape
    with torch.no_grad():
        mixed = torch.randn(width, 3, 1, 1).expand(-1, -1, side, side)
        visual.conv1.weight.copy_(mixed / side**2)
        visual.positional_embedding.copy_(torch.randn(1, width).expand_as(visual.positional_embedding))
        visual.class_embedding.zero_()
        for block in visual.transformer.resblocks:
            for last in (block.attn.out_proj, block.mlp.c_proj):
                last.weight.zero_()
                last.bias.zero_()
        size = vision["image_size"]
        plain = torch.tensor(list(colors.values())).view(-1, 3, 1, 1) / 127.5 - 1
        known = made.encode_image(plain.expand(-1, -1, size, size), normalize=True)
        wanted = torch.linalg.pinv(known).T  # (colours, E): products of 1 and 0
        tokens = open_clip.get_tokenizer(f"local-dir:{folder}")
        of_texts = [(text, place) for place, name in enumerate(colors) for text in texts[name]]
        made.text.text_projection = None
        features = made.encode_text(tokens([text for text, _ in of_texts]))
        targets = torch.nn.functional.normalize(wanted[[place for _, place in of_texts]], dim=1)
        solved = torch.linalg.lstsq(features.double(), targets.double(), driver="gelsd").solution.float()
        made.text.text_projection = nn.Parameter(solved)
        made.logit_scale.fill_(4.0)
    save_file(
        {name: tensor.contiguous() for name, tensor in made.state_dict().items()},
        folder / "open_clip_model.safetensors",
    )
    return folder


SIDE = 64
HALF = (0.0, 0.0, 0.0)


class Colors(nn.Module):
    """A network whose features are the mean red, green and blue: where its evidence lies is known."""

    num_features = 3

    def reset_classifier(self, classes):
        pass

    def forward_features(self, x):
        return F.avg_pool2d(x, 8)

    def forward_head(self, x, pre_logits=False):
        return x.mean((2, 3))
