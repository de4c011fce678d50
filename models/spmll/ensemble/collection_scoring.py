"""Block-wise scoring of a collection by trained models, here or on other machines.

An `ImageModel` holds no images and can be sent. Fixed blocks of IMAGES_PER_BLOCK keep probabilities reproducible.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from spmll.ensemble.regions import RegionCodes, Regions
from spmll.linear.blocks import run_in_blocks
from spmll.linear.training import Features, Head

IMAGES_PER_BLOCK = 256  # images scored at once: their codes as float32 fit into a cache


@dataclass(frozen=True, eq=False)
class KnownLabels:
    """The known labels of n images (m of them labeled), and their scores by other models.

    Attributes:
        rows: (m,), ascending, labeled images.
        labels: (m, C) int8.
        unbiased: (m, C), answers of cells chosen independently of the answer.
        halves: (m,), cross-fitting half of each image.
        outside: (n, C) per other model.
    """

    rows: np.ndarray
    labels: np.ndarray
    unbiased: np.ndarray
    halves: np.ndarray
    outside: Sequence[np.ndarray] = ()

    @classmethod
    def empty(cls, classes: int) -> "KnownLabels":
        none = np.zeros((0, classes), np.int8)
        return cls(np.zeros(0, np.int64), none, none.astype(bool), np.zeros(0, np.int64))

    def __getitem__(self, rows: slice) -> "KnownLabels":
        """Return the labels of a slice with start and stop."""
        some = slice(*np.searchsorted(self.rows, [rows.start, rows.stop]).tolist())
        outside = [inputs[rows] for inputs in self.outside]
        return KnownLabels(
            self.rows[some] - rows.start, self.labels[some], self.unbiased[some], self.halves[some], outside
        )


class ImageModel(Protocol):
    """The interface of trained models that score any images and hold none."""

    def probabilities(self, features: np.ndarray, region_codes: RegionCodes | None, known: KnownLabels) -> np.ndarray:
        """Return (n, C) float32 probabilities of one block of images, nan for classes without a model.

        Args:
            features: (n, D) float16.
            region_codes: None scores without regions.
        """
        ...


class ScoringFunction(Protocol):
    """The interface of functions that score a whole collection."""

    def __call__(
        self,
        model: ImageModel,
        features: Features,
        region_codes: Regions | None,
        known: Callable[[slice], KnownLabels],
        classes: int,
        tell: Callable[[], None],
    ) -> np.ndarray:
        """Return the probabilities of all N images, (N, C) float32.

        Args:
            features: (N, D).
            known: From a slice of rows to their labels.
            tell: Called periodically. An exception ends the scoring.
        """
        ...


def score_locally(
    model: ImageModel,
    features: Features,
    region_codes: Regions | None,
    known: Callable[[slice], KnownLabels],
    classes: int,
    tell: Callable[[], None],
    empty: Callable[[tuple[int, ...], type[np.generic]], np.ndarray] = np.empty,
) -> np.ndarray:
    """Score all images in this process (a `ScoringFunction`).

    Args:
        features: (N, D).
        empty: Allocates the result, for example on disk.
    """
    result = empty((len(features), classes), np.float32)

    def score(rows: slice) -> None:
        codes = None if region_codes is None else region_codes[rows]
        result[rows] = model.probabilities(np.asarray(features[rows]), codes, known(rows))

    run_in_blocks(len(features), IMAGES_PER_BLOCK, score, tell)
    return result


@dataclass(frozen=True, eq=False)
class LinearModel:
    """An `ImageModel` that applies a linear head to pooled features."""

    head: Head

    def probabilities(self, features: np.ndarray, region_codes: RegionCodes | None, known: KnownLabels) -> np.ndarray:
        return self.head.probabilities(features)
