"""Grad-CAM heat maps of the image regions that support a class.

Selvaraju et al., ICCV 2017, https://arxiv.org/abs/1610.02391. Only layers after the map run per class.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from pytorch_grad_cam import GradCAM
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from torch import nn

from spmll.backbones.frozen_backbone import Backbone

# From violet over orange to yellow, with increasing brightness, so that they differ without colour vision too.
_COLOR_STOPS = np.array([(40, 10, 90), (130, 25, 120), (215, 65, 70), (250, 145, 20), (252, 255, 120)], np.float64)
_MAX_ALPHA = 200  # of 255: the image stays visible under the hottest spot


@torch.inference_mode(False)  # in a caller's inference mode there would be no gradients to read
def compute_heat_map(
    backbone: Backbone,
    weight: torch.Tensor,
    bias: torch.Tensor,
    image: torch.Tensor,
    class_index: int | Sequence[int],
) -> np.ndarray:
    """Compute the Grad-CAM heat map of an image for one class, or for K classes.

    Args:
        weight: (C, D), the linear head.
        bias: (C,).
        image: (3, S, S), uint8 or floating point in [0, 1].

    Returns:
        (S, S) or (K, S, S) float32 in [0, 1]. All zeros means that no region supports the class.

    Raises:
        ValueError: Wrong shapes or class index, or the network has no map.
    """
    wanted = [class_index] if isinstance(class_index, int | np.integer) else list(class_index)
    head = backbone.make_head(weight, bias)
    outside = [index for index in wanted if not 0 <= index < head.out_features]
    if outside:
        raise ValueError(f"Class index {outside[0]} is out of range: the head knows {head.out_features} classes.")
    size = backbone.input_size
    if not wanted:
        return np.zeros((0, size, size), np.float32)
    with torch.no_grad():
        maps = backbone.trunk(backbone.normalize(image[None]))
    if backbone.map_layer is None and maps.shape[2:].numel() <= 1:
        raise ValueError(f"{backbone.name} has no spatial map, so it cannot show where it looked.")

    gate = _GradientGate()
    rest = nn.Sequential(gate, backbone.tail, head)
    layer = backbone.map_layer or gate
    # Any: GradCAM's hint asks for modules, but it only calls them.
    targets: list[Any] = [ClassifierOutputTarget(int(index)) for index in wanted]
    repeated = maps.expand(len(wanted), *maps.shape[1:])
    with (
        torch.enable_grad(),
        GradCAM(model=rest, target_layers=[layer], reshape_transform=backbone.to_map) as cam,
    ):
        heats = cam(input_tensor=repeated.clone(), targets=targets)
    heat = torch.from_numpy(np.nan_to_num(heats))[:, None]
    heat = F.interpolate(heat, (size, size), mode="bilinear", align_corners=False).clamp_(0, 1)[:, 0].numpy()
    return heat[0] if isinstance(class_index, int | np.integer) else heat


def color_heat_map(heat: np.ndarray, longest: int = 160) -> np.ndarray:
    """Convert a heat map (H, W) in [0, 1] to an RGBA overlay (h, w, 4) uint8 of at most `longest` pixels per side."""
    if heat.ndim != 2:
        raise ValueError(f"One heat map is (H, W); this is {heat.shape}.")
    scale = min(1.0, longest / max(heat.shape))
    size = [max(1, round(side * scale)) for side in heat.shape]
    values = torch.from_numpy(np.ascontiguousarray(heat, dtype=np.float32))[None, None]
    small = F.interpolate(values, size, mode="area")[0, 0].clamp(0, 1).numpy()
    steps = np.linspace(0, 1, len(_COLOR_STOPS))
    channels = [np.interp(small, steps, _COLOR_STOPS[:, channel]) for channel in range(3)]
    return np.round(np.stack([*channels, small * _MAX_ALPHA], axis=-1)).astype(np.uint8)


class _GradientGate(nn.Module):
    """A module that detaches the feature map, so that backpropagation ends there."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.detach().requires_grad_()
