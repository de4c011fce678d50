"""An order that prefers images unlike others."""

import numpy as np

from spmll.query_strategies.base import Strategy, order_by_falling_value, slice_rows
from spmll.rows import Rows

MAX_SAMPLED_IMAGES = 500  # images that the others are compared with; of more, a random sample
NEAREST_NEIGHBORS = 5  # of them, whose mean similarity counts


def rank_by_unusualness(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Rank by mean similarity to NEAREST_NEIGHBORS of a random sample, lowest first.

    Similarities are cosines of centered square-root features, so the order does not depend on classes. Ramaswamy
    et al. 2000, Sugiyama and Borgwardt 2013.
    """
    sampled = np.sort(rng.permutation(candidates)[:MAX_SAMPLED_IMAGES])
    roots = _compute_roots(features, sampled)
    mean = roots.mean(0, keepdims=True) if len(roots) else roots
    known = _normalize_rows(roots - mean)
    nearest = min(NEAREST_NEIGHBORS, max(len(sampled) - 1, 0))
    similar = np.zeros(len(candidates))
    for places in slice_rows(candidates):
        rows = candidates[places]
        cosines = _normalize_rows(_compute_roots(features, rows) - mean) @ known.T
        cosines[rows[:, None] == sampled] = -np.inf  # an image is no neighbour of its own
        if nearest:
            similar[places] = np.partition(cosines, -nearest, axis=1)[:, -nearest:].mean(1)
    return order_by_falling_value(-similar, candidates, rng)


def _compute_roots(features: Rows, rows: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(features[rows].astype(np.float32), 0))


def _normalize_rows(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-6)


UNUSUAL = Strategy(
    "unusual",
    "Most unusual",
    "Images unlike all others come first: rare classes are among them more often than elsewhere.",
    "Sugiyama and Borgwardt, Rapid Distance-Based Outlier Detection via Sampling, NeurIPS 2013",
    "https://papers.nips.cc/paper/2013/hash/d296c101daa88a51f6ca8cfc1ac79b50-Abstract.html",
    "features",
    rank_by_unusualness,
)
