"""Label enhancement: soft labels inferred from labels and similar images.

A graph network on features and labels of neighbors gives each cell a Beta density. Xu et al., NeurIPS 2021
(https://arxiv.org/abs/2110.12911), eq. 2 to 10, with Beta for Dirichlet, as in SMILE.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spmll.labels import PRESENT

MAX_NEIGHBOR_CANDIDATES = 8192  # images among which neighbours are looked for; all where there are fewer
IMAGES_PER_CHUNK = 1024  # images whose neighbours are looked for at once: 34 MB of similarities
EPSILON = 1e-3  # of a parameter of a density, and of a soft label and one minus it inside a logarithm


def find_nearest_neighbors(features: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """Return each image with its nearest neighbors, at most (N, k + 1) int64 rows, itself first.

    Args:
        features: (N, D), compared by centered cosine.
        generator: Samples MAX_NEIGHBOR_CANDIDATES if there are more.
    """
    units = F.normalize(features - features.mean(0), dim=1)
    images = len(units)
    pool = torch.arange(images)
    if images > MAX_NEIGHBOR_CANDIDATES:
        pool = torch.randperm(images, generator=generator)[:MAX_NEIGHBOR_CANDIDATES].sort().values
    pool = pool.to(units.device)
    k = min(k, len(pool) - 1)
    others = []
    for start in range(0, images, IMAGES_PER_CHUNK):
        alike = units[start : start + IMAGES_PER_CHUNK] @ units[pool].T
        rows = torch.arange(start, start + len(alike), device=units.device)
        alike[rows[:, None] == pool] = -torch.inf
        others.append(pool[alike.topk(k, dim=1).indices])
    return torch.cat([torch.arange(images, device=units.device)[:, None], torch.cat(others)], 1)


def average_over_neighbors(features: Tensor, labels: Tensor, neighbours: Tensor) -> Tensor:
    """Return the mean features and marks over neighbors, (N, D + C) float16.

    Args:
        features: (N, D).
        labels: (N, C).
        neighbours: (N, k + 1).
    """
    centred = features - features.mean(0)
    centred = centred / centred.norm(dim=1).mean().clamp(min=1e-6)
    inputs = torch.cat([centred, (labels >= PRESENT).to(centred.dtype)], 1).half()
    means = [inputs[chunk].float().mean(1).half() for chunk in neighbours.split(IMAGES_PER_CHUNK)]
    return torch.cat(means)


class InferenceModel(nn.Module):
    """A graph network that predicts a Beta density per cell, and a decoder from soft labels to logits of marks."""

    def __init__(self, inputs: int, classes: int, width: int, generator: torch.Generator):
        """Build both networks with Glorot weights."""
        super().__init__()

        def layer(before: int, after: int) -> nn.Parameter:
            bound = (6 / (before + after)) ** 0.5
            return nn.Parameter((2 * torch.rand(before, after, generator=generator) - 1) * bound)

        self.classes = classes
        self.graph = nn.ParameterList([layer(inputs, width), layer(width, 2 * classes)])
        sizes = (classes, width, width, classes)
        self.decoder = nn.ParameterList([layer(a, b) for a, b in pairwise(sizes)])
        self.biases = nn.ParameterList([torch.zeros(b) for b in sizes[1:]])

    def predict_densities(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the Beta parameters alpha and beta of cells, (B, C) each, from neighbor averages (B, k + 1, D + C)."""
        first, second = self.graph
        out = F.softplus(torch.relu(inputs @ first).mean(1) @ second) + EPSILON
        return out[:, : self.classes], out[:, self.classes :]

    def predict_mark_logits(self, soft: Tensor) -> Tensor:
        """Return logits (B, C) of marks from soft labels (B, C)."""
        first, second, third = self.decoder
        inner = torch.relu(torch.relu(soft @ first + self.biases[0]) @ second + self.biases[1])
        return inner @ third + self.biases[2]


def beta_divergence(alpha: Tensor, beta: Tensor, prior_alpha: float, prior_beta: float) -> Tensor:
    """Return KL(Beta(alpha, beta) || Beta(prior_alpha, prior_beta)), (B, C)."""
    ours = torch.lgamma(alpha + beta) - torch.lgamma(alpha) - torch.lgamma(beta)
    prior = torch.tensor([prior_alpha, prior_beta, prior_alpha + prior_beta], dtype=alpha.dtype)
    theirs = float(torch.lgamma(prior[2]) - torch.lgamma(prior[0]) - torch.lgamma(prior[1]))
    total = torch.digamma(alpha + beta)
    moved = (alpha - prior_alpha) * (torch.digamma(alpha) - total) + (beta - prior_beta) * (torch.digamma(beta) - total)
    return ours - theirs + moved


def enhancement_loss(
    soft: Tensor, marks: Tensor, divergence: Tensor, linked: Tensor, labels: Tensor, usable: Tensor, weight: float
) -> Tensor:
    """Return the negative evidence lower bound plus a compatibility term, averaged over images.

    The neighbor graph is compared with sigmoid(d_i . d_j) by squared error, scaled by C.

    Args:
        soft: (B, C), sampled soft labels d in (0, 1).
        marks: (B, C), logits of marks.
        divergence: (B, C), of the Beta densities.
        linked: (B, B) bool, True for neighbors.
        labels: (B, C).
        usable: (B, C) bool.
        weight: Weight of the compatibility term, which keeps marked cells high.
    """
    soft = soft.clamp(EPSILON, 1 - EPSILON)
    marked = (labels >= PRESENT) & usable
    of_labels = F.binary_cross_entropy_with_logits(marks, marked.to(marks.dtype), reduction="none") + divergence
    of_labels = torch.where(usable, of_labels, 0)
    compatible = torch.where(marked, -soft.log(), 0)
    of_graph = (linked.to(soft.dtype) - torch.sigmoid(soft @ soft.T)).square().mean() * soft.shape[1]
    return (of_labels + weight * compatible).sum() / len(soft) + of_graph
