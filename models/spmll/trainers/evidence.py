"""Presence probabilities from elsewhere, for methods that use them besides labels (Method.evidence)."""

import numpy as np

from spmll.linear.prototypes import compute_prototype_p_values
from spmll.methods.base import Method
from spmll.trainers.base import TrainingInputs, TrainingLabels


def compute_evidence(method: Method, images: TrainingInputs, labels: TrainingLabels) -> np.ndarray | None:
    """Return presence probabilities from class names or prototypes, None for most methods.

    (n, C) float32 in [0, 1] or nan, for labeled images. Raises errors of `images.name_scores`.
    """
    if "text" in method.needs:
        return np.asarray(images.name_scores()[labels.rows], np.float32)
    if "prototypes" in method.needs:
        return compute_prototype_p_values(images.features[labels.rows], labels.labels, labels.mask)
    return None
