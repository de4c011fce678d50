"""random-colors: a tiny network with weights from a fixed seed, which tells colours apart and nothing else."""

import torch
from torch import nn

from spmll.backbones.pretrained import Pretrained


def random_colors() -> Pretrained:
    """Images (N, 3, 32, 32) to features (N, 16); the same weights at every call."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(nn.Conv2d(3, 16, 8, stride=8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Pretrained(network, "", 32, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), "bilinear")
