"""Order that prefers images that probably have most missing positives."""

import numpy as np

from models.query_strategies.base import Strategy, blocks, by_falling, open_probabilities


def expected_missing(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the expected number of missing positives of each image.

    Only unanswered cells count.

    Args:
        probabilities: (N, C) float in [0, 1], calibrated; nan where the class has no model yet (counted as 0).
        labels: (N, C) int8, 1 present, -1 absent, 0 unanswered.

    Returns:
        (N,) float64, in labels per image.

    Raises:
        ValueError: The shapes differ.

    Source: Cole et al. 2021, the expected number of positives of an image (their k-hat, of one image instead of a
    batch), with known cells taken out.
    """
    if probabilities.shape != labels.shape:
        raise ValueError(
            f"Probabilities are {probabilities.shape} but labels are {labels.shape}; both must be (images, classes).\n"
            "    Were classes added after this model was trained?"
        )
    rows = np.arange(len(labels))
    missing = np.zeros(len(labels))
    for places in blocks(rows):
        missing[places] = np.nansum(open_probabilities(probabilities, labels, rows[places]), 1, dtype=np.float64)
    return missing


def most_missing(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Rank images by their expected number of missing positives, most first."""
    return by_falling(expected_missing(probabilities[candidates], labels[candidates]), candidates, rng)


EXPECTED_MISSING = Strategy(
    "expected_missing",
    "Most missing labels",
    "Images that probably show the most classes come first.",
    "Cole et al., Multi-Label Learning from Single Positive Labels, CVPR 2021",
    "https://arxiv.org/abs/2106.09708",
    "model",
    most_missing,
)
