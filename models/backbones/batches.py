"""The number of images a GPU is given at once: doubled as long as that is faster and they fit in memory."""

import time
from collections.abc import Callable

import torch

from models.backbones.networks import Backbone

FIRST, LARGEST = 32, 1024  # images that are tried
FASTER = 1.05  # what twice as many must bring


def settle_batch(backbone: Backbone) -> None:
    """Set the number of images in a chunk to the fastest on this GPU; do nothing on a CPU or when it is settled."""
    if backbone.on_gpu and not backbone.batch_is_settled:
        backbone.batch_is_settled = True
        batch = largest_useful_batch(lambda images: _seconds(backbone, images))
        if backbone.on_gpu and batch >= FIRST:  # else it has halved the batch itself, or gone to the CPU
            backbone.chunk = batch


def largest_useful_batch(seconds: Callable[[int], float], first: int = FIRST, largest: int = LARGEST) -> int:
    """Return the largest batch, doubled from `first`, for which each doubling makes the network faster; at least 1.

    Args:
        seconds: Measures a pass of this many images; raises torch.OutOfMemoryError.
        first: The first batch that is tried.
        largest: No larger batch is tried.
    """
    batch, speed, tried = 1, 0.0, first
    while tried <= largest:
        try:
            measured = tried / seconds(tried)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            break
        if measured < speed * FASTER:
            break
        batch, speed, tried = tried, measured, tried * 2
    return batch


def _seconds(backbone: Backbone, images: int) -> float:
    pixels = torch.zeros(images, 3, backbone.input_size, backbone.input_size, dtype=torch.uint8)
    backbone.chunk = images
    backbone.features_and_regions(pixels)  # memory is taken and kernels are chosen
    if backbone.chunk < images or not backbone.on_gpu:
        raise torch.OutOfMemoryError
    began = time.perf_counter()
    backbone.features_and_regions(pixels)
    return time.perf_counter() - began
