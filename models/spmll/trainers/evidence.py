"""Evidence for cells beside their labels, for methods that name it in `needs`."""

import numpy as np

from spmll.linear.prototypes import compute_prototype_p_values
from spmll.methods.base import Method
from spmll.trainers.base import TrainingInputs, TrainingLabels


def compute_evidence(method: Method, images: TrainingInputs, labels: TrainingLabels) -> np.ndarray | None:
    """Return the evidence for the labeled images, (n, C) float32 in [0, 1], nan where unknown; None for most methods.

    Raises:
        ValueError, AnnotatorError: As `images.name_scores` does, if there are no scores of names.
    """
    if "text" in method.needs:
        return np.asarray(images.name_scores()[labels.rows], np.float32)
    if "prototypes" in method.needs:
        return compute_prototype_p_values(images.features[labels.rows], labels.labels, labels.mask)
    return None
