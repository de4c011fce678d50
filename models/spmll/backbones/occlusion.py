"""Detection of heat maps that show another class, by classifying only their hottest spot.

A class learned from a co-occurring one is hot on it. The spot alone then lowers its logit, but not the other's. Inverse
of the occlusion of Zeiler & Fergus (ECCV 2014, https://arxiv.org/abs/1311.2901).
"""

from collections.abc import Collection

import numpy as np
import torch
import torch.nn.functional as F

from spmll.backbones.frozen_backbone import Backbone

SPOT_SIDE_SHARE = 0.5  # side of the square around the hottest place, of that of the image
MIN_LOGIT_MARGIN = 1.0  # logits by which the other class must do better than that of the heat map


def compute_logit_gains(
    backbone: Backbone, weight: torch.Tensor, bias: torch.Tensor, image: torch.Tensor, heats: np.ndarray
) -> np.ndarray:
    """Return each class's logit gain when only a heat map's hottest spot is visible.

    Args:
        weight: (C, D), the linear head.
        bias: (C,).
        image: (3, S, S).
        heats: (K, S, S), K heat maps of the image.

    Returns:
        (K, C), nan without a model, 0 for empty heat maps.
    """
    head = backbone.make_head(weight, bias)
    pictures = torch.stack([image, *(crop_hottest_spot(image, heat) for heat in heats)])
    with torch.no_grad():
        logits = head(backbone.tail(backbone.trunk(backbone.normalize(pictures)))).numpy()
    return logits[1:] - logits[0]


def crop_hottest_spot(image: torch.Tensor, heat: np.ndarray) -> torch.Tensor:
    """Return the enlarged square around the hottest spot of a heat map, or the whole image if nothing is hot."""
    if not heat.any():
        return image
    size = image.shape[1]
    side = max(1, round(SPOT_SIDE_SHARE * size))
    top, left = (
        min(max(0, int(place) - side // 2), size - side) for place in np.unravel_index(heat.argmax(), heat.shape)
    )
    cut = image[None, :, top : top + side, left : left + side].float()
    enlarged = F.interpolate(cut, (size, size), mode="bilinear", align_corners=False)[0]
    return enlarged if image.dtype.is_floating_point else enlarged.round().to(image.dtype)


def find_confused_class(gained: np.ndarray, column: int, others: Collection[int]) -> int | None:
    """Return the class that a heat map may show instead of its own, or None.

    Args:
        gained: (C,), one row of `compute_logit_gains`.
        column: Heat map's own class.
        others: Classes that are present in the image.
    """
    if not gained[column] < 0:  # also of a class without a model
        return None
    found = [other for other in others if other != column and gained[other] >= gained[column] + MIN_LOGIT_MARGIN]
    return max(found, key=lambda other: gained[other], default=None)
