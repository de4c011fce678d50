"""Networks saved in timm's folder form, for `timm.create_model("local-dir:FOLDER", pretrained=True)`."""

import copy
from pathlib import Path
from typing import Any

import timm.models
import torch
from torch import Tensor, nn

from spmll.backbones.pretrained import Pretrained

OUTPUT_TOLERANCE = 1e-4


def save_network(
    folder: Path, source: Pretrained, network: nn.Module, weight: Tensor, bias: Tensor, class_names: list[str]
) -> None:
    """Write a network with a linear classifier on its features into a folder.

    Args:
        network: A timm network without a classifier, not changed.
        weight: (C, D).
        bias: (C,).

    Raises:
        ValueError: The saved network's outputs differ.
    """
    whole: Any = copy.deepcopy(network).cpu().to(memory_format=torch.contiguous_format).eval()
    size = source.input_size
    example = torch.zeros(1, 3, size, size)
    example[:, :, ::3, 1::2] = 1
    with torch.no_grad():
        features = whole.forward_head(whole.forward_features(example), pre_logits=True)
        expected = nn.functional.linear(features, weight, bias)
    whole.reset_classifier(len(class_names))
    classifier = whole.get_classifier()
    with torch.no_grad():
        classifier.weight.copy_(weight.view_as(classifier.weight))
        classifier.bias.copy_(bias)
    whole.pretrained_cfg = dict(whole.pretrained_cfg) | {
        "input_size": (3, size, size),
        "mean": source.mean,
        "std": source.std,
        "interpolation": source.interpolation,
        "crop_pct": 1.0,
        "crop_mode": "squash",
        "num_classes": len(class_names),
        "classifier": (whole.pretrained_cfg or {}).get("classifier"),
    }
    save: Any = getattr(timm.models, "save_for_hf")  # noqa: B009 - not typed
    save(whole, str(folder), {"label_names": class_names}, safe_serialization=True)
    again = timm.create_model(f"local-dir:{folder}", pretrained=True).eval()
    with torch.no_grad():
        if not torch.allclose(again(example), expected, rtol=OUTPUT_TOLERANCE, atol=OUTPUT_TOLERANCE):
            raise ValueError(f"{folder} does not give what the network gives: its architecture has unknown arguments.")


def read_timm_license(source: Pretrained) -> str:
    described = getattr(source.network, "pretrained_cfg", None) or {}
    return str(described.get("license") or "")
