"""What a heat map may show besides its class: which classes lose their evidence when its hottest spot is covered.

A class that often stands beside another one is learned from it, too, and its heat map then lights up on the other one.
Where that is so, covering the hottest spot takes as much from the other class as from its own: occlusion (Zeiler and
Fergus, "Visualizing and Understanding Convolutional Networks", ECCV 2014, https://arxiv.org/abs/1311.2901). The network
runs once for the image and once for each heat map.
"""

from collections.abc import Collection

import numpy as np
import torch

from models.backbones.networks import Backbone

HOT = 0.5  # of a heat map's largest value, from which a pixel is covered
REACH = 0.25  # ... within so many sides of the image around the hottest one
AS_MUCH = 1.0  # of what a class loses itself, that another one loses


def falls(
    backbone: Backbone, weight: torch.Tensor, bias: torch.Tensor, image: torch.Tensor, heats: np.ndarray
) -> np.ndarray:
    """Return how much the logit of each class falls when the hottest spot of each heat map is covered.

    Args:
        weight, bias: (C, D) and (C,), the linear head on the backbone's features.
        image: (3, S, S), as Backbone.preprocess gives it.
        heats: (K, S, S) in [0, 1], as heat_map gives them for several classes.

    Returns:
        (K, C) float32, positive where evidence is lost.

    Raises:
        ValueError: The head does not fit the network.
    """
    head = backbone.head(weight, bias)
    pictures = torch.stack([image, *(covered(image, heat) for heat in heats)])
    with torch.no_grad():
        logits = head(backbone.tail(backbone.trunk(backbone.normalised(pictures)))).numpy()
    return logits[0] - logits[1:]


def covered(image: torch.Tensor, heat: np.ndarray) -> torch.Tensor:
    """The image (3, S, S) with the hottest spot of a heat map (S, S) in the mean colour of the image; as it is where
    the heat map is empty."""
    if not heat.any():
        return image
    down, across = np.unravel_index(int(heat.argmax()), heat.shape)
    rows, columns = np.ogrid[: heat.shape[0], : heat.shape[1]]
    near = (rows - down) ** 2 + (columns - across) ** 2 <= (REACH * heat.shape[0]) ** 2
    spot = torch.from_numpy((heat >= HOT * heat.max()) & near)
    mean = image.float().mean((1, 2), keepdim=True).to(image.dtype)
    return torch.where(spot, mean, image)


def beside(fallen: np.ndarray, column: int, others: Collection[int]) -> int | None:
    """Return the class that explains a heat map as much as its own, None where there is none.

    Args:
        fallen: (C,) of this heat map, as `falls` gives it.
        column: Its class.
        others: The columns of other classes that the image shows.
    """
    known = [other for other in others if other != column and np.isfinite(fallen[other])]  # nan: without a model
    found = max(known, key=lambda other: fallen[other], default=None)
    return found if found is not None and fallen[found] > max(0.0, AS_MUCH * fallen[column]) else None
