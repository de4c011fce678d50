"""Scoring of all images of a collection by the models of a training: block by block, here or on other machines.

The models (`ImageModel`) hold no images, so they can be sent to the machine that has the features. The caller of a
training may score elsewhere (`Scoring`); the default is `score_locally`. Blocks are of IMAGES_PER_BLOCK images
wherever they are
scored, so that the same kind of processor gives the same probabilities.
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
    """The known facts about n images beside their features: labels, and scores of models from elsewhere.

    Attributes:
        rows: (m,) int64, ascending: the images with a label.
        labels: (m, C) int8, labels of `rows`.
        unbiased: (m, C) bool, True where a label is an unbiased answer.
        halves: (m,) int64, the half each belongs to (stacking.py).
        outside: Inputs (n, C) of each model from elsewhere.
    """

    rows: np.ndarray
    labels: np.ndarray
    unbiased: np.ndarray
    halves: np.ndarray
    outside: Sequence[np.ndarray] = ()

    @classmethod
    def empty(cls, classes: int) -> "KnownLabels":
        """Return a Known with no labelled images and no models from elsewhere."""
        none = np.zeros((0, classes), np.int8)
        return cls(np.zeros(0, np.int64), none, none.astype(bool), np.zeros(0, np.int64))

    def __getitem__(self, rows: slice) -> "KnownLabels":
        """Return the Known of a slice of the images, which must have a start and a stop."""
        some = slice(*np.searchsorted(self.rows, [rows.start, rows.stop]).tolist())
        outside = [inputs[rows] for inputs in self.outside]
        return KnownLabels(
            self.rows[some] - rows.start, self.labels[some], self.unbiased[some], self.halves[some], outside
        )


class ImageModel(Protocol):
    """A model that gives probabilities for any images, and holds no images itself."""

    def probabilities(self, features: np.ndarray, region_codes: RegionCodes | None, known: KnownLabels) -> np.ndarray:
        """Return (n, C) float32 probabilities of at most IMAGES_PER_BLOCK images, nan for a class without a model.

        Args:
            features: (n, D) float16, pooled.
            region_codes: Regions of the same images; None to score without regions.
            known: Labels and outside scores of the same images.
        """
        ...


class ScoringFunction(Protocol):
    """A function that scores all images of a collection."""

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
            model: The trained model.
            features: (N, D) of all images, read by rows.
            region_codes: Region codes of all images, read by rows; None: the model reads none.
            known: Function from a slice of rows to the Known of these images.
            classes: C.
            tell: Called now and then; an exception from it ends the scoring.
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
    """Return the probabilities of all images, computed in this process (`Scoring`).

    Args:
        model: The trained model.
        features: (N, D) of all images, read by rows.
        region_codes: Region codes of all images, read by rows; None: the model reads none.
        known: Function from a slice of rows to the Known of these images.
        classes: C.
        tell: Called now and then; an exception from it ends the scoring.
        empty: Makes the array of the result, for example one on the disk.
    """
    result = empty((len(features), classes), np.float32)

    def score(rows: slice) -> None:
        codes = None if region_codes is None else region_codes[rows]
        result[rows] = model.probabilities(np.asarray(features[rows]), codes, known(rows))

    run_in_blocks(len(features), IMAGES_PER_BLOCK, score, tell)
    return result


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A head on pooled features, as an ImageModel."""

    head: Head

    def probabilities(self, features: np.ndarray, region_codes: RegionCodes | None, known: KnownLabels) -> np.ndarray:
        """Return (n, C) probabilities of images; region codes and labels play no part."""
        return self.head.probabilities(features)
