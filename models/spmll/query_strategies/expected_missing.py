"""An order by the expected number of unmarked positives per image."""

import numpy as np

from spmll.query_strategies.base import Strategy, order_by_falling_value, read_open_probabilities, slice_rows


def count_expected_missing(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the expected number of positives among each image's unanswered cells, (N,) float64.

    The k-hat of Cole et al. 2021 per image, without answered cells.

    Args:
        probabilities: (N, C), calibrated, nan counts as 0.
        labels: (N, C) int8.

    Raises:
        ValueError: Shapes differ.
    """
    if probabilities.shape != labels.shape:
        raise ValueError(
            f"Probabilities are {probabilities.shape} but labels are {labels.shape}; both must be (images, classes).\n"
            "    Were classes added after this model was trained?"
        )
    rows = np.arange(len(labels))
    missing = np.zeros(len(labels))
    for places in slice_rows(rows):
        missing[places] = np.nansum(read_open_probabilities(probabilities, labels, rows[places]), 1, dtype=np.float64)
    return missing


def rank_by_expected_missing(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Rank images by the expected number of unmarked positives, most first."""
    return order_by_falling_value(
        count_expected_missing(probabilities[candidates], labels[candidates]), candidates, rng
    )


EXPECTED_MISSING = Strategy(
    "expected_missing",
    "Most missing labels",
    "Images that probably show the most classes come first.",
    "Cole et al., Multi-Label Learning from Single Positive Labels, CVPR 2021",
    "https://arxiv.org/abs/2106.09708",
    "model",
    rank_by_expected_missing,
)
