"""Which other class a heat map may show: the network is run on the hottest spot of the map alone.

A class that often appears beside another one is learned from that one, too, and its heat map is then hot on the other
one. So everything but the hottest spot is cut away (the inverse of the occlusion of Zeiler & Fergus, "Visualizing and
Understanding Convolutional Networks", ECCV 2014, https://arxiv.org/abs/1311.2901). If the spot shows the class, the
class's logit rises or stays; if it shows the other class, this logit falls and that of the other class does not.
Covering the spot alone shows less: an object that is partly hidden is still recognised. The network runs once for the
image and once for each heat map.
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
    """Return how much the logit of each class rises when only the hottest spot of each heat map is seen.

    Args:
        backbone: The frozen network.
        weight: (C, D) weights of the linear head on the backbone's features.
        bias: (C,) its bias.
        image: (3, S, S), as Backbone.preprocess gives it.
        heats: (K, S, S) in [0, 1], as compute_heat_map gives them for several classes.

    Returns:
        (K, C) float32, nan for a class without a model; 0 where a heat map is empty.

    Raises:
        ValueError: The head does not fit the network.
    """
    head = backbone.make_head(weight, bias)
    pictures = torch.stack([image, *(crop_hottest_spot(image, heat) for heat in heats)])
    with torch.no_grad():
        logits = head(backbone.tail(backbone.trunk(backbone.normalize(pictures)))).numpy()
    return logits[1:] - logits[0]


def crop_hottest_spot(image: torch.Tensor, heat: np.ndarray) -> torch.Tensor:
    """Return the square around the hottest place of a heat map (S, S), enlarged to the size of the image (3, S, S).

    The image itself is returned if the heat map is empty.
    """
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
    """Return the class that a heat map may show instead of its own; None if there is no such class.

    Args:
        gained: (C,), the row of `gains` for the heat map.
        column: The class of the heat map.
        others: Classes that the image shows.
    """
    if not gained[column] < 0:  # also of a class without a model
        return None
    found = [other for other in others if other != column and gained[other] >= gained[column] + MIN_LOGIT_MARGIN]
    return max(found, key=lambda other: gained[other], default=None)
