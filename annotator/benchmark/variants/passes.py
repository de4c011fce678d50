"""One way to put images through a packaged network: at some size, perhaps mirrored, perhaps pooled in several ways."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageOps
from torch import Tensor, nn
from typing_extensions import override

from annotator.errors import AnnotatorError
from annotator.store.pictures.bands import NO_BAND_CHOICES
from annotator.worker.features.embed import embed_images
from models.backbones.frozen_backbone import Backbone
from models.backbones.network_parts import GRID_SIDE
from models.backbones.pretrained import load_pretrained

MIRRORED_REGIONS = [2, 1, 0, 5, 4, 3, 8, 7, 6]  # where the regions of a mirrored image are
POOLED_BY: tuple[str, ...] = ("average", "maximum", "generalized mean")
# of the generalized mean (GeM: Radenovic et al., TPAMI 2019, https://arxiv.org/abs/1711.02512)
GENERALIZED_MEAN_POWER = 3.0
TIMED_IMAGES = 8  # images of a timed pass


@dataclass(frozen=True)
class Pass:
    """One way to put images through a packaged network.

    Attributes:
        network: The name of the network.
        size: The size of its input in pixels.
        is_mirrored: Whether images are mirrored.
        is_pooled: Whether features are pooled in the ways of POOLED_BY, side by side, instead of averaged.
    """

    network: str
    size: int
    is_mirrored: bool = False
    is_pooled: bool = False

    def build_backbone(self) -> Backbone:
        """Return the network in the form in which the worker runs it."""
        kind = PooledBackbone if self.is_pooled else MirroredBackbone if self.is_mirrored else Backbone
        return kind(self.network, replace(load_pretrained(self.network), input_size=self.size))


class MirroredBackbone(Backbone):
    """A backbone that sees images mirrored."""

    @override
    def preprocess(self, picture: Image.Image) -> Tensor:
        return super().preprocess(ImageOps.mirror(picture))


class PooledBackbone(Backbone):
    """A backbone whose features, of images and of regions, are three vectors side by side: see POOLED_BY."""

    def _prepare_forward(self) -> None:
        if not isinstance(self.whole, PoolingNetwork):
            self.whole = PoolingNetwork(self.trunk)
        super()._prepare_forward()


class PoolingNetwork(nn.Module):
    """A module that pools a network's map in three ways, over the whole image and over each region."""

    def __init__(self, trunk: nn.Module):
        super().__init__()
        self.trunk = trunk

    @override
    def forward(self, images: Tensor, regions: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        maps = self.trunk(images)
        features = _pool_maps(maps, 1)[:, 0]
        return (features, _pool_maps(maps, GRID_SIDE)) if regions else features


def _pool_maps(maps: Tensor, grid: int) -> Tensor:
    """Pool maps (N, K, h, w) into (N, grid x grid, 3 K)."""
    mean, largest = F.adaptive_avg_pool2d(maps, grid), F.adaptive_max_pool2d(maps, grid)
    general = F.adaptive_avg_pool2d(maps.clamp(min=1e-6) ** GENERALIZED_MEAN_POWER, grid) ** (
        1 / GENERALIZED_MEAN_POWER
    )
    return torch.cat([mean, largest, general], 1).flatten(2).transpose(1, 2)


def compute_vectors(way: Pass, paths: Sequence[Path]) -> np.ndarray:
    """Return (N, 1 + R, D) float16 of these images: features, then those of the regions.

    Raises:
        AnnotatorError: An image cannot be read.
    """
    parts: list[np.ndarray] = []
    for batch in embed_images(paths, way.build_backbone(), regions=True, bands=NO_BAND_CHOICES):
        for place, reason in batch.failures:
            raise AnnotatorError(f"{paths[place]} cannot be read: {reason}")
        assert batch.regions is not None  # asked for
        regions = batch.regions[:, MIRRORED_REGIONS] if way.is_mirrored else batch.regions
        parts.append(np.concatenate([batch.features[:, None].astype(np.float16), regions], 1))
    return np.concatenate(parts)


def time_passes(ways: Sequence[Pass], rounds: int) -> dict[Pass, float]:
    """Return the forward seconds an image of each pass: the median of rounds in which all take turns."""
    backbones = {way: way.build_backbone() for way in ways}
    seconds: dict[Pass, list[float]] = {way: [] for way in ways}
    for _ in range(rounds + 1):  # the first warms up
        for way, backbone in backbones.items():
            pixels = torch.zeros(TIMED_IMAGES, 3, way.size, way.size, dtype=torch.uint8)
            began = time.perf_counter()
            backbone.features_and_regions(pixels)
            seconds[way].append((time.perf_counter() - began) / TIMED_IMAGES)
    return {way: statistics.median(of_way[1:]) for way, of_way in seconds.items()}
