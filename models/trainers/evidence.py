"""Evidence for cells beside their labels, for methods that name it in `needs`."""

import numpy as np

from models.linear.prototypes import alikeness
from models.methods.base import Method
from models.trainers.base import Images, TrainingLabels


def evidence(method: Method, images: Images, labels: TrainingLabels) -> np.ndarray | None:
    """Return the evidence for the labeled images, (n, C) float32 in [0, 1], nan where unknown; None for most methods.

    Raises:
        ValueError, AnnotatorError: As `images.name_scores` does, if there are no scores of names.
    """
    if "text" in method.needs:
        return np.asarray(images.name_scores()[labels.rows], np.float32)
    if "prototypes" in method.needs:
        return alikeness(images.features[labels.rows], labels.labels, labels.mask)
    return None
