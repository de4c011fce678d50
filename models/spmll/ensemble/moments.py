"""Sums that suffice for ridge regression, and that add up over images, halves and trainings."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from spmll.ensemble.basis import center_and_normalize

ROWS_PER_BLOCK = 2048  # rows whose products are made at once


@dataclass(frozen=True, eq=False)
class BlankSums:
    """Sums over unusable cells per class: their number (C,) and the sum of their feature rows (D, C)."""

    count: Tensor
    right: Tensor

    def __add__(self, other: "BlankSums") -> "BlankSums":
        return BlankSums(self.count + other.count, self.right + other.right)


@dataclass(frozen=True, eq=False)
class Moments:
    """Additive sums over images that suffice to solve ridge regression.

    Attributes:
        sum: (D,), sum of feature rows.
        products: (D, D), rows.T @ rows.
        answers: (C,), sum of targets.
        right: (D, C), rows.T @ targets.
        blanks: Sums over unusable cells, whose target is 0 in the other sums, or None.
    """

    count: float
    sum: Tensor
    products: Tensor
    answers: Tensor
    right: Tensor
    blanks: BlankSums | None = None

    @classmethod
    def build(cls, rows: Tensor, answers: Tensor, weight: float = 1.0) -> "Moments":
        """Compute the sums of rows (n, D) and targets (n, C), counted `weight` times."""
        right, total = weight * (rows.T @ answers), weight * answers.sum(0)
        return cls(weight * len(rows), weight * rows.sum(0), weight * (rows.T @ rows), total, right)

    @classmethod
    def from_roots(cls, roots: Tensor, centre: Tensor, answers: Tensor) -> "Moments":
        """Compute the sums of targets and of square-root features, centered and scaled to length 1."""
        dimensions, classes = roots.shape[1], answers.shape[1]
        products, right = torch.zeros(dimensions, dimensions), torch.zeros(dimensions, classes)
        total = torch.zeros(dimensions)
        for rows, of_rows in zip(roots.split(ROWS_PER_BLOCK), answers.split(ROWS_PER_BLOCK), strict=True):
            units = center_and_normalize(rows, centre)
            total += units.sum(0)
            products += units.T @ units
            right += units.T @ of_rows
        return cls(len(roots), total, products, answers.sum(0), right)

    def replace_targets(self, rows: Tensor, answers: Tensor, weight: float) -> "Moments":
        """Return the sums for other targets (n, C) of the same rows, counted `weight` times."""
        return replace(self, answers=weight * answers.sum(0), right=weight * (rows.T @ answers))

    def fill_blanks(self) -> "Moments":
        """Return the sums with the class's average target in unusable cells."""
        if self.blanks is None:
            return self
        average = self.answers / self.count
        return replace(
            self,
            answers=self.answers + average * self.blanks.count,
            right=self.right + average * self.blanks.right,
            blanks=None,
        )

    def subtract_level(self, level: Tensor) -> "Moments":
        """Return the sums for targets from which a level per class (C,) is subtracted."""
        return replace(self, answers=self.answers - self.count * level, right=self.right - torch.outer(self.sum, level))

    def __add__(self, other: "Moments") -> "Moments":
        blanks = [moments.blanks for moments in (self, other) if moments.blanks is not None]
        return Moments(
            self.count + other.count,
            self.sum + other.sum,
            self.products + other.products,
            self.answers + other.answers,
            self.right + other.right,
            blanks[0] + blanks[1] if len(blanks) == 2 else blanks[0] if blanks else None,
        )

    @property
    def mean(self) -> Tensor:
        return self.sum / self.count

    def solve(self, ridge: float) -> Tensor:
        """Return the ridge regression weights (D, C) for centered rows."""
        return torch.linalg.solve(self._build_normal_matrix(ridge), self.right - torch.outer(self.mean, self.answers))

    def leverages(self, centred: Tensor, ridge: float) -> Tensor:
        """Return leverages (m,) of centered rows (m, D)."""
        return (centred * torch.linalg.solve(self._build_normal_matrix(ridge), centred.T).T).sum(1) + 1 / self.count

    def _build_normal_matrix(self, ridge: float) -> Tensor:
        centred = self.products - self.count * torch.outer(self.mean, self.mean)
        centred.diagonal().add_(ridge)
        return centred
