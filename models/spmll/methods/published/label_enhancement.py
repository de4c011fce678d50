"""Label enhancement: a soft label for every cell, inferred from the labels and from which images are alike.

A cell has a Beta density of how much its class is there. A graph network on features and labels of an image and of its
nearest neighbours gives the two parameters; it is trained by a bound on the likelihood of labels and graph.

Xu et al., "Instance-Dependent Partial Label Learning", NeurIPS 2021 (https://arxiv.org/abs/2110.12911), eq. 2 to 10,
with Beta densities in the place of Dirichlet ones, as SMILE (spmll/methods/published/smile.py) has them.
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
    """Return the rows of each image and its nearest neighbours: (N, k + 1) int64, the image itself first.

    There are fewer columns where there are fewer images.

    Args:
        features: (N, D) float; similarity is the cosine after the mean is subtracted.
        k: Number of neighbours.
        generator: Draws the MAX_NEIGHBOR_CANDIDATES of a large collection (on the CPU).
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
    """Return the mean of [features; marks] over each image and its neighbours: (N, D + C) float16.

    Every image has equally many neighbours, itself among them, so this is the normalised adjacency times the inputs of
    the network: its first layer without weights. Features are centred and of length 1 on average.

    Args:
        features: (N, D) float.
        labels: (N, C), 1 where marked.
        neighbours: (N, k + 1) int64, from `nearest`.
    """
    centred = features - features.mean(0)
    centred = centred / centred.norm(dim=1).mean().clamp(min=1e-6)
    inputs = torch.cat([centred, (labels >= PRESENT).to(centred.dtype)], 1).half()
    means = [inputs[chunk].float().mean(1).half() for chunk in neighbours.split(IMAGES_PER_CHUNK)]
    return torch.cat(means)


class InferenceModel(nn.Module):
    """The graph network, which gives densities, and the decoder, which gives marks."""

    def __init__(self, inputs: int, classes: int, width: int, generator: torch.Generator):
        """Build both networks with random weights (Glorot and Bengio 2010) from `generator` (on the CPU), biases 0."""
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
        """Return the parameters alpha and beta of the densities, each (B, C) and above 0.

        Args:
            inputs: (B, k + 1, D + C): `smoothed` of each image and of its neighbours.
        """
        first, second = self.graph
        out = F.softplus(torch.relu(inputs @ first).mean(1) @ second) + EPSILON
        return out[:, : self.classes], out[:, self.classes :]

    def predict_mark_logits(self, soft: Tensor) -> Tensor:
        """Return the logits (B, C) that a cell is marked, given soft labels (B, C), by a network of three layers."""
        first, second, third = self.decoder
        inner = torch.relu(torch.relu(soft @ first + self.biases[0]) @ second + self.biases[1])
        return inner @ third + self.biases[2]


def beta_divergence(alpha: Tensor, beta: Tensor, prior_alpha: float, prior_beta: float) -> Tensor:
    """Return KL(Beta(alpha, beta) || Beta(prior_alpha, prior_beta)) of each cell: (B, C), (B, C) -> (B, C)."""
    ours = torch.lgamma(alpha + beta) - torch.lgamma(alpha) - torch.lgamma(beta)
    prior = torch.tensor([prior_alpha, prior_beta, prior_alpha + prior_beta], dtype=alpha.dtype)
    theirs = float(torch.lgamma(prior[2]) - torch.lgamma(prior[0]) - torch.lgamma(prior[1]))
    total = torch.digamma(alpha + beta)
    moved = (alpha - prior_alpha) * (torch.digamma(alpha) - total) + (beta - prior_beta) * (torch.digamma(beta) - total)
    return ours - theirs + moved


def enhancement_loss(
    soft: Tensor, marks: Tensor, divergence: Tensor, linked: Tensor, labels: Tensor, usable: Tensor, weight: float
) -> Tensor:
    """Return the negative bound plus the compatibility term, as a scalar: a mean over images.

    The compatibility term keeps the soft labels of marked cells high. The graph is compared pair by pair with
    sigmoid(d_i . d_j), by squared error; the mean over pairs is multiplied by C to be as large as the sums over
    classes.

    Args:
        soft: (B, C) in (0, 1), drawn from the densities.
        marks: (B, C) logits that a cell is marked (InferenceModel.marks).
        divergence: (B, C), from the prior.
        linked: (B, B) bool, which of these images are neighbours.
        labels: (B, C), 1 present, -1 absent, 0 not looked at; the latter two both count as not marked.
        usable: (B, C) bool, True where a cell may be used.
        weight: Weight of the compatibility term.
    """
    soft = soft.clamp(EPSILON, 1 - EPSILON)
    marked = (labels >= PRESENT) & usable
    of_labels = F.binary_cross_entropy_with_logits(marks, marked.to(marks.dtype), reduction="none") + divergence
    of_labels = torch.where(usable, of_labels, 0)
    compatible = torch.where(marked, -soft.log(), 0)
    of_graph = (linked.to(soft.dtype) - torch.sigmoid(soft @ soft.T)).square().mean() * soft.shape[1]
    return (of_labels + weight * compatible).sum() / len(soft) + of_graph
