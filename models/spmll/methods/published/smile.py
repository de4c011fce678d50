"""SMILE: the network learns soft labels, inferred from labels of similar images.

Cross-entropy towards the class probability d is an unbiased risk estimate. Label enhancement
(label_enhancement.py) estimates d.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Beta

from spmll.labels import ABSENT, UNSEEN
from spmll.losses.base import check_fractions, check_non_negative
from spmll.losses.binary_cross_entropy import BinaryCrossEntropy
from spmll.methods.base import Method, check_positive, search_grid
from spmll.methods.published.label_enhancement import (
    EPSILON,
    InferenceModel,
    average_over_neighbors,
    beta_divergence,
    enhancement_loss,
    find_nearest_neighbors,
)


class SMILE(Method):
    """Training on soft labels, inferred by label enhancement from similar images."""

    name = "smile"
    title = "Single-positive label enhancement"
    paper = (
        "Xu et al., One Positive Label is Sufficient: Single-Positive Multi-Label Learning with Label Enhancement, "
        "NeurIPS"
    )
    year = 2022
    url = "https://arxiv.org/abs/2206.00517"
    assumes = "What nobody marked is as much there as labels and likeness of images make it."
    threshold = 0.4
    wants_features = True
    open_points = (
        "Of the paper only the abstract and summaries were at hand: Beta densities from a graph network, a bound on "
        "the likelihood, and the unbiased estimate of the risk. Graph, network, decoder and bound are those of an "
        "earlier paper by most of the same authors (VALEN, NeurIPS 2021), with Beta densities.",
        "Its prior is not in the text at hand; here Beta(prior, 1 - prior), whose mean is prior.",
        "How many neighbours, how wide the networks, how the terms of the bound are weighed, how long the network is "
        "trained on unseen cells as absent first: all are choices.",
        "There is no term that makes predictions sure (minimum entropy): whether the paper has one, and which, is not "
        "in the text at hand.",
    )
    reproduced = "no: the figures of the paper are of tabular data sets, and much of its text was not at hand"
    tunable = search_grid(prior=(0.05, 0.1, 0.2, 0.3), neighbours=(5, 10, 20), warm_up=(0.0, 0.25, 0.5))

    def __init__(
        self,
        prior: float = 0.2,
        neighbours: int = 10,
        warm_up: float = 0.5,
        compatibility: float = 1.0,
        width: int = 64,
        lr_scale: float = 1.0,
    ):
        """Store the constants.

        Args:
            prior: Prior mean of a soft label.
            neighbours: Similar images per image.
            warm_up: Share of epochs with unseen cells as absent.
            compatibility: Weight of the term that keeps marked cells high.
            width: Inner size of both networks.
            lr_scale: Their relative learning rate.
        """
        if not 0 < prior < 1:
            raise ValueError(f"prior = {prior} must be between 0 and 1: the mean of a soft label.")
        check_fractions(warm_up=warm_up)
        check_non_negative(compatibility=compatibility)
        check_positive(neighbours=neighbours, width=width, lr_scale=lr_scale)
        self.prior, self.neighbours, self.warm_up = prior, neighbours, warm_up
        self.compatibility, self.width, self.lr_scale = compatibility, width, lr_scale

    def criterion(self) -> BinaryCrossEntropy:
        return BinaryCrossEntropy(eps=0.0)

    def begin(self, labels: Tensor, mask: Tensor | None, epochs: int, generator: torch.Generator) -> None:
        """Start a training: link each image to its neighbors, and build the inference model."""
        super().begin(labels, mask, epochs, generator)
        self.given = self.targets.clone()
        self.usable = torch.ones_like(self.given, dtype=torch.bool) if mask is None else mask
        self.generator = torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=generator)))
        features = self.features
        if features is not None and len(features) != len(labels):  # of an earlier training
            features = None
        self.frozen = features is not None
        self._link_neighbors(torch.zeros_like(self.given) if features is None else features.to(labels.device).float())
        inference = InferenceModel(self.inputs.shape[1], labels.shape[1], self.width, self.generator)
        self.inference = inference.to(labels.device)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return the parameters of the inference model (graph network and decoder)."""
        return [{"params": list(self.inference.parameters()), "lr_scale": self.lr_scale}]

    def begin_epoch(self, epoch: int) -> None:
        """Infer the soft labels of unseen cells for this epoch (absent during warm-up)."""
        unseen = self.given == UNSEEN
        if epoch <= self.warm_up * self.total_epochs:
            self.targets = torch.where(unseen, float(ABSENT), self.given)
            return
        with torch.no_grad():
            rows = torch.arange(len(self.given), device=self.given.device)
            means = [alpha / (alpha + beta) for alpha, beta in map(self._predict_densities, rows.split(1024))]
        self.targets = torch.where(unseen, -torch.cat(means).clamp(EPSILON, 1 - EPSILON), self.given)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Return the cross-entropy plus the enhancement loss of a batch."""
        alpha, beta = self._predict_densities(rows)
        soft, divergence = self._draw_soft_labels(alpha, beta), beta_divergence(alpha, beta, self.prior, 1 - self.prior)
        marks, linked = self.inference.predict_mark_logits(soft), (self.links[rows][:, :, None] == rows).any(1)
        known = self.given[rows], self.usable[rows]
        enhancement = enhancement_loss(soft, marks, divergence, linked, *known, self.compatibility)
        return super().loss(logits, rows) + enhancement

    def end_epoch(self, epoch: int, predict: Callable[[], Tensor]) -> None:
        """Link images again by predicted log odds, unless features are frozen."""
        if not self.frozen:
            p = predict().clamp(EPSILON, 1 - EPSILON)
            self._link_neighbors(torch.log(p / (1 - p)))

    def _link_neighbors(self, features: Tensor) -> None:
        self.links = find_nearest_neighbors(features, self.neighbours, self.generator)
        self.inputs = average_over_neighbors(features, torch.where(self.usable, self.given, UNSEEN), self.links)

    def _draw_soft_labels(self, alpha: Tensor, beta: Tensor) -> Tensor:
        """Draw soft labels from Beta densities with gradients, without changing torch's global generators."""
        with torch.random.fork_rng(devices=[alpha.device] if alpha.device.type == "cuda" else []):
            torch.manual_seed(int(torch.randint(2**62, (), generator=self.generator)))
            return Beta(alpha, beta, validate_args=False).rsample()

    def _predict_densities(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return self.inference.predict_densities(self.inputs[self.links[rows]].float())
