"""The sums over rows that a ridge regression needs; they add up over images, halves and trainings."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from spmll.ensemble.basis import center_and_normalize

ROWS_PER_BLOCK = 2048  # rows whose products are made at once


@dataclass(frozen=True, eq=False)
class BlankSums:
    """Sums over cells that may not be used: count (C,), cells of each class, and right (D, C), sums of their rows."""

    count: Tensor
    right: Tensor

    def __add__(self, other: "BlankSums") -> "BlankSums":
        return BlankSums(self.count + other.count, self.right + other.right)


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over rows; those of two lists of rows add up to those of both.

    Attributes:
        count: Number of rows.
        sum: (D,), sum of rows.
        products: (D, D), products of rows with rows.
        answers: (C,), sum of answers.
        right: (D, C), products of rows with answers.
        blanks: Sums of cells without an answer, which are 0 in `answers` and `right`; None: no such cells.
    """

    count: float
    sum: Tensor
    products: Tensor
    answers: Tensor
    right: Tensor
    blanks: BlankSums | None = None

    @classmethod
    def build(cls, rows: Tensor, answers: Tensor, weight: float = 1.0) -> "Moments":
        """Return the moments of rows (n, D) and answers (n, C), each counted `weight` times."""
        right, total = weight * (rows.T @ answers), weight * answers.sum(0)
        return cls(weight * len(rows), weight * rows.sum(0), weight * (rows.T @ rows), total, right)

    @classmethod
    def from_roots(cls, roots: Tensor, centre: Tensor, answers: Tensor) -> "Moments":
        """Return the moments of the units of roots (n, D), computed block by block, and answers (n, C)."""
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
        """Return moments of the same rows for different answers (n, C)."""
        return replace(self, answers=weight * answers.sum(0), right=weight * (rows.T @ answers))

    def fill_blanks(self) -> "Moments":
        """Return moments with the average answer of its class in every blank cell, where it has no influence."""
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
        """Return moments with all answers lowered by a level (C,) of their class."""
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
        """Return the mean row, (D,)."""
        return self.sum / self.count

    def solve(self, ridge: float) -> Tensor:
        """Return the weights (D, C) on centred rows of least squared error plus `ridge` times their own squares."""
        return torch.linalg.solve(self._build_normal_matrix(ridge), self.right - torch.outer(self.mean, self.answers))

    def leverages(self, centred: Tensor, ridge: float) -> Tensor:
        """Return how much the prediction for each of the rows, centred (m, D), follows its own answer: (m,)."""
        return (centred * torch.linalg.solve(self._build_normal_matrix(ridge), centred.T).T).sum(1) + 1 / self.count

    def _build_normal_matrix(self, ridge: float) -> Tensor:
        centred = self.products - self.count * torch.outer(self.mean, self.mean)
        centred.diagonal().add_(ridge)
        return centred
