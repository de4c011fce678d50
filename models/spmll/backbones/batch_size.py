"""Search for the fastest GPU batch size that fits in memory."""

import time
from collections.abc import Callable

import torch

from spmll.backbones.frozen_backbone import Backbone

FIRST_BATCH_IMAGES, MAX_BATCH_IMAGES = 32, 1024  # images that are tried
MIN_SPEEDUP = 1.05  # what twice as many must bring


def tune_batch_size(backbone: Backbone) -> None:
    """Set `backbone.chunk`, the images per pass, to the fastest batch size of this GPU, once per backbone."""
    if backbone.on_gpu and not backbone.batch_is_settled:
        backbone.batch_is_settled = True
        batch = find_fastest_batch_size(lambda images: _time_batch(backbone, images))
        if backbone.on_gpu and batch >= FIRST_BATCH_IMAGES:  # else it has halved the batch itself, or gone to the CPU
            backbone.chunk = batch


def find_fastest_batch_size(
    time_batch: Callable[[int], float], first: int = FIRST_BATCH_IMAGES, largest: int = MAX_BATCH_IMAGES
) -> int:
    """Double the batch size from `first` while speed rises, and return the fastest, or 1 if none fits in memory.

    Args:
        time_batch: Returns the seconds of a pass, or raises torch.OutOfMemoryError.
    """
    batch, speed, tried = 1, 0.0, first
    while tried <= largest:
        try:
            measured = tried / time_batch(tried)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            break
        if measured < speed * MIN_SPEEDUP:
            break
        batch, speed, tried = tried, measured, tried * 2
    return batch


def _time_batch(backbone: Backbone, images: int) -> float:
    pixels = torch.zeros(images, 3, backbone.input_size, backbone.input_size, dtype=torch.uint8)
    backbone.chunk = images
    backbone.features_and_regions(pixels)  # memory is taken and kernels are chosen
    if backbone.chunk < images or not backbone.on_gpu:
        raise torch.OutOfMemoryError
    began = time.perf_counter()
    backbone.features_and_regions(pixels)
    return time.perf_counter() - began
