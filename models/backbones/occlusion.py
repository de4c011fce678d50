"""What a heat map may show besides its class: which classes lose their evidence when its hottest spot is covered.

A class that often stands beside another one is learned from it, too, and its heat map then lights up on the other one.
Where that is so, covering the hottest spot takes as much from the other class as from its own: occlusion (Zeiler and
Fergus, "Visualizing and Understanding Convolutional Networks", ECCV 2014, https://arxiv.org/abs/1311.2901). The network
runs once for the image and once for each heat map.
"""

from collections.abc import Sequence

import numpy as np
import torch

from models.backbones.networks import Backbone

HOT = 0.5  # of a heat map's largest value, from which a pixel is covered
REACH = 0.15  # ... within so many sides of the image around the hottest one
OWN = 0.75  # of what its own class loses: so much must another one lose to explain a heat map
WHOLE = 0.6  # ... and of what that other one loses when its own hottest spot is covered: its evidence lies here, too
LEAST = 0.1  # ... and so much of its logit, which moves a little wherever an image is covered


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


def beside(fallen: np.ndarray, columns: Sequence[int], place: int) -> int | None:
    """Return the class whose evidence lies where a heat map is hottest as much as that of its own; None for none.

    Args:
        fallen: (K, C) of heat maps of one image, as `falls` gives them.
        columns: (K,) their classes, of which the image shows all but that of `place`.
        place: Of the heat map in question.
    """
    lost, column = fallen[place], columns[place]
    least = max(LEAST, OWN * np.nan_to_num(lost[column]))  # nan: a class without a model
    found = [
        other
        for row, other in enumerate(columns)
        if other != column and lost[other] >= max(least, WHOLE * fallen[row, other])
    ]
    return max(found, key=lambda other: lost[other], default=None)
