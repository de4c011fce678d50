"""Scoring all images of a collection by what a training has learned: block by block, here or on other machines.

What has been learned (`ImageModel`) holds no image, so it can be sent to where the features are. Whoever trains may
score elsewhere (`Scoring`); `score_here` is what is done otherwise. Blocks are of ROWS images wherever they are scored,
so that the same kind of processor gives the same probabilities.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from models.ensemble.regions import RegionCodes, Regions
from models.linear.blocks import in_blocks
from models.linear.training import Features, Head

ROWS = 256  # images scored at once: their codes as float32 fit into a cache


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of n images beside their features.

    Attributes:
        rows: (m,) int64, ascending: which of them have a label.
        labels: (m, C) int8 of those.
        unbiased: (m, C) bool, which of these labels are unbiased answers.
        halves: (m,) int64, which half each belongs to (stacking.py).
        outside: Inputs (n, C) of each model from elsewhere.
    """

    rows: np.ndarray
    labels: np.ndarray
    unbiased: np.ndarray
    halves: np.ndarray
    outside: Sequence[np.ndarray] = ()

    @classmethod
    def nothing(cls, classes: int) -> "Known":
        """Of any number of images: no label."""
        none = np.zeros((0, classes), np.int8)
        return cls(np.zeros(0, np.int64), none, none.astype(bool), np.zeros(0, np.int64))

    def __getitem__(self, rows: slice) -> "Known":
        """What is known of some of the images: a slice with a beginning and an end."""
        some = slice(*np.searchsorted(self.rows, [rows.start, rows.stop]).tolist())
        outside = [inputs[rows] for inputs in self.outside]
        return Known(self.rows[some] - rows.start, self.labels[some], self.unbiased[some], self.halves[some], outside)


class ImageModel(Protocol):
    """Gives probabilities for any images, and holds none itself."""

    def probabilities(self, features: np.ndarray, region_codes: RegionCodes | None, known: Known) -> np.ndarray:
        """(n, C) float32, nan for a class without a model, of at most ROWS images.

        features (n, D) float16 and region_codes of the same images; None: without
        """
        ...


class Scoring(Protocol):
    """Scores all images of a collection."""

    def __call__(
        self,
        model: ImageModel,
        features: Features,
        region_codes: Regions | None,
        known: Callable[[slice], Known],
        classes: int,
        tell: Callable[[], None],
    ) -> np.ndarray:
        """Probabilities (N, C) float32.

        Args:
            features, region_codes: Of all N images, read by rows.
            known: Rows -> what is known of these images.
            tell: Called now and then; what it raises ends the scoring.
        """
        ...


def score_here(
    model: ImageModel,
    features: Features,
    region_codes: Regions | None,
    known: Callable[[slice], Known],
    classes: int,
    tell: Callable[[], None],
    empty: Callable[[tuple[int, ...], type[np.generic]], np.ndarray] = np.empty,
) -> np.ndarray:
    """`Scoring` by this process.

    Args:
        empty: Makes the array of the result, such as one that lies on the disk.
    """
    result = empty((len(features), classes), np.float32)

    def score(rows: slice) -> None:
        codes = None if region_codes is None else region_codes[rows]
        result[rows] = model.probabilities(np.asarray(features[rows]), codes, known(rows))

    in_blocks(len(features), ROWS, score, tell)
    return result


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A head on pooled features, as an ImageModel."""

    head: Head

    def probabilities(self, features: np.ndarray, region_codes: RegionCodes | None, known: Known) -> np.ndarray:
        return self.head.probabilities(features)
