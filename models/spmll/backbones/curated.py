"""Recommended networks, one per purpose, without torch. A test compares them with timm and open_clip."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from spmll.backbones.packaged import PACKAGED_BACKBONES

INSTALL_CLIP = "pip install 'multilabel-annotator[clip]'"
CLASS_TOKEN_POOLING, AVERAGE_POOLING, ATTENTION_POOLING = (
    "class token and average of the patches",
    "average",
    "attention",
)


@dataclass(frozen=True)
class CuratedNetwork:
    """A recommended network.

    Attributes:
        parameters: Parameter count of the image encoder.
        input_size: Pixels per side.
        reads_text: Whether it also encodes texts.
        repository: Hub repository of `file`, empty if installed.
        extra: Required extra of this package, or empty.
    """

    name: str
    about: str
    licence: str
    parameters: int
    input_size: int
    pooling: str
    reads_text: bool = False
    repository: str = ""
    file: str = "model.safetensors"
    extra: str = ""


def _make_timm_entry(name: str, *facts: str | int) -> CuratedNetwork:
    about, licence, parameters, size, pooling = facts
    return CuratedNetwork(
        name, str(about), str(licence), int(parameters), int(size), str(pooling), False, f"timm/{name}"
    )


def _make_clip_entry(name: str, repository: str, *facts: str | int) -> CuratedNetwork:
    about, licence, parameters, size, pooling = facts
    return CuratedNetwork(
        f"open_clip:{name}", str(about), str(licence), int(parameters), int(size), str(pooling), True, repository,
        "open_clip_model.safetensors", "clip",
    )  # fmt: skip


CURATED_NETWORKS = (
    CuratedNetwork(
        "efficientnet_lite0_320", "The default: no download, a laptop.",
        "apache-2.0", 3_371_008, 320, AVERAGE_POOLING,
    ),
    CuratedNetwork(
        "efficientnet_lite0", "The same with a smaller input: a slow machine.",
        "apache-2.0", 3_371_008, 224, AVERAGE_POOLING,
    ),
    CuratedNetwork(
        "efficientnet_lite2", "The default of earlier versions; about as fast.",
        "apache-2.0", 4_811_072, 260, AVERAGE_POOLING,
    ),
    CuratedNetwork(
        "efficientnet_lite2_352", "No download, sees a little more; takes nearly twice as long.",
        "apache-2.0", 4_811_072, 352, AVERAGE_POOLING,
    ),
    _make_timm_entry(
        "vit_small_patch14_reg4_dinov2.lvd142m",
        "Self-supervised, without texts; a GPU or a fast CPU.", "apache-2.0", 22_057_344, 224, CLASS_TOKEN_POOLING,
    ),
    _make_timm_entry(
        "vit_base_patch14_reg4_dinov2.lvd142m",
        "The same, larger; a GPU.", "apache-2.0", 86_582_016, 224, CLASS_TOKEN_POOLING,
    ),
    _make_timm_entry(
        "vit_pe_core_tiny_patch16_384.fb",
        "A small transformer with a larger input; a CPU.", "apache-2.0", 6_042_240, 384, ATTENTION_POOLING,
    ),
    _make_timm_entry(
        "vit_pe_core_small_patch16_384.fb",
        "PE-Core, small, with a larger input; a GPU.", "apache-2.0", 23_586_048, 384, ATTENTION_POOLING,
    ),
    _make_timm_entry(
        "vit_pe_core_base_patch16_224.fb",
        "PE-Core, base; a GPU.", "apache-2.0", 92_886_528, 224, ATTENTION_POOLING,
    ),
    _make_timm_entry(
        "vit_base_patch16_siglip_224.v2_webli",
        "SigLIP 2, images only; a GPU.", "apache-2.0", 92_884_224, 224, ATTENTION_POOLING,
    ),
    _make_timm_entry(
        "vit_small_patch16_dinov3.lvd1689m",
        "DINOv3, small: a licence to accept.", "dinov3-license", 21_586_944, 256, CLASS_TOKEN_POOLING,
    ),
    _make_timm_entry(
        "convnext_tiny.dinov3_lvd1689m",
        "DINOv3 in a convolutional network; a CPU.", "dinov3-license", 27_820_128, 224, AVERAGE_POOLING,
    ),
    _make_timm_entry(
        "fastvit_mci0.apple_mclip2_dfndr2b",
        "MobileCLIP 2, images only; made for phones. Research only.", "apple-amlr", 10_882_176, 256, AVERAGE_POOLING,
    ),
    _make_clip_entry(
        "ViT-B-16-SigLIP2/webli", "timm/ViT-B-16-SigLIP2",
        "SigLIP 2 with its texts; a GPU.", "apache-2.0", 92_884_224, 224, ATTENTION_POOLING,
    ),
    _make_clip_entry(
        "PE-Core-T-16-384/meta", "timm/PE-Core-T-16-384",
        "PE-Core, tiny, with its texts; a CPU.", "apache-2.0", 6_042_240, 384, ATTENTION_POOLING,
    ),
    _make_clip_entry(
        "MobileCLIP2-S0/dfndr2b", "timm/MobileCLIP2-S0-OpenCLIP",
        "MobileCLIP 2 with its texts; made for phones. Research only.", "apple-amlr", 10_882_176, 256, AVERAGE_POOLING,
    ),
)  # fmt: skip


def find_curated(name: str) -> CuratedNetwork | None:
    return next((network for network in CURATED_NETWORKS if network.name == name), None)


def get_install_command(name: str) -> str:
    """Return the install command for a missing library, or ""."""
    return INSTALL_CLIP if "open_clip:" in name and find_spec("open_clip") is None else ""


def reads_text(name: str) -> bool:
    """Return whether the network also encodes texts, by its name."""
    _, _, folder = name.partition("local-dir:")
    return name.startswith("open_clip:") and ("+" not in name or (bool(folder) and Path(folder).is_dir()))


def is_packaged(name: str) -> bool:
    return name in PACKAGED_BACKBONES
