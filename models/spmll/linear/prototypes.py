"""Similarity of images to the marked images of each class, as conformal p-values.

A prototype is the mean of a class's centered unit features. The p-value (Vovk, Gammerman and Shafer 2005)
makes similarities comparable across classes.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from spmll.labels import PRESENT
from spmll.linear.training import ROWS_PER_CHUNK, Features, iterate_chunks, to_feature_tensor

MIN_MARKED_IMAGES = 5  # marked images of a class, with fewer of which nothing is said


def compute_prototype_p_values(features: Features, labels: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Return p-values of similarity to each class, (N, C) float32 in (0, 1].

    The value is (1 + r) / (1 + m), if r of m marked images are at most as similar. nan below MIN_MARKED_IMAGES.

    Args:
        features: (N, D).
        labels: (N, C).
        mask: (N, C), usable labels.
    """
    given = to_feature_tensor(features, features.shape[1])
    marked = torch.from_numpy((labels == PRESENT) if mask is None else (labels == PRESENT) & mask)
    mean = sum((chunk.sum(0) for _, chunk in iterate_chunks(given)), torch.zeros(given.shape[1])) / max(len(given), 1)
    sums = torch.zeros(marked.shape[1], given.shape[1])
    for start, chunk in iterate_chunks(given):
        sums += marked[start : start + ROWS_PER_CHUNK].T.float() @ F.normalize(chunk - mean, dim=1)
    lengths = sums.norm(dim=1)
    inner = torch.cat([F.normalize(chunk - mean, dim=1) @ sums.T for _, chunk in iterate_chunks(given)])
    result = np.full(labels.shape, np.nan, np.float32)
    for column in torch.nonzero(marked.sum(0) >= MIN_MARKED_IMAGES)[:, 0].tolist():
        of_class, length = inner[:, column], lengths[column]
        references = _leave_one_out_cosines(of_class[marked[:, column]], length).sort().values
        below = torch.searchsorted(references, of_class / length.clamp(min=1e-12), right=True)
        result[:, column] = ((1 + below) / (1 + len(references))).numpy()
    return result


def _leave_one_out_cosines(inner: Tensor, length: Tensor) -> Tensor:
    """Return the cosines (m,) of marked images with the prototype of the other marked images."""
    others = (length**2 - 2 * inner + 1).clamp(min=1e-12).sqrt()
    return (inner - 1) / others
