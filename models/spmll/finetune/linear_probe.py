"""Evaluation of features: a linear head is fitted to answered images and scores other images.

Unanswered cells count little, as absent, only in images without unbiased answers.
"""

from collections.abc import Callable

import numpy as np
import torch

from spmll.ensemble.answered_head import fit_answered_head
from spmll.ensemble.basis import center_and_normalize, signed_sqrt, to_float_tensor

UNANSWERED_WEIGHT = 0.05  # weight of a cell that nobody has answered, in an image without an unbiased answer


def score_with_probe(
    features: np.ndarray, labels: np.ndarray, mask: np.ndarray, unbiased: np.ndarray, others: np.ndarray
) -> np.ndarray:
    """Return the probabilities (m, C) of the images with features `others`, by a head of `fit_probe`."""
    return fit_probe(features, labels, mask, unbiased)(others)


def fit_probe(
    features: np.ndarray, labels: np.ndarray, mask: np.ndarray, unbiased: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Fit a linear head, and return a function from features to probabilities (m, C).

    Args:
        features: (n, D).
        labels: (n, C), 1 present, -1 absent, 0 unanswered.
        mask: (n, C), usable cells.
        unbiased: (n, C), unbiased answers.
    """
    roots = signed_sqrt(to_float_tensor(features))
    centre = roots.mean(0)
    looked_at = (unbiased & mask).any(1, keepdims=True)
    weights = np.where(labels != 0, 1.0, np.where(looked_at, 0.0, UNANSWERED_WEIGHT)) * mask
    head = fit_answered_head(
        center_and_normalize(roots, centre),
        torch.from_numpy((labels > 0).astype(np.float32)),
        torch.from_numpy(weights).float(),
    )

    def scores(others: np.ndarray) -> np.ndarray:
        return torch.sigmoid(
            center_and_normalize(signed_sqrt(to_float_tensor(others)), centre) @ head.weight + head.bias
        ).numpy()

    return scores
