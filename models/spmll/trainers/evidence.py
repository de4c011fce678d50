"""Evidence for cells besides labels."""

import numpy as np

from spmll.linear.prototypes import compute_prototype_p_values
from spmll.methods.base import Method
from spmll.trainers.base import TrainingInputs, TrainingLabels


def compute_evidence(method: Method, images: TrainingInputs, labels: TrainingLabels) -> np.ndarray | None:
    """Return evidence for labeled images, (n, C) float32 in [0, 1] or nan, mostly None.

    Raises errors of `images.name_scores`.
    """
    if "text" in method.needs:
        return np.asarray(images.name_scores()[labels.rows], np.float32)
    if "prototypes" in method.needs:
        return compute_prototype_p_values(images.features[labels.rows], labels.labels, labels.mask)
    return None
