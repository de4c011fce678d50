"""An order of images as different as possible from earlier ones (k-center)."""

import numpy as np

from spmll.query_strategies.base import Strategy, find_answered_rows, slice_rows
from spmll.rows import Rows

MAX_CENTERS = 1000  # images chosen one by one; all others follow at random
PROJECTED_DIMENSIONS = 64  # features are projected to so many; distances keep to within some 10 %
MAX_ANSWERED_CENTERS = 2000  # answered images that count as chosen before


def rank_by_diversity(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Rank by k-center greedy: next is the image farthest from its nearest center.

    Centers are answered and chosen images. Distances use centered unit vectors, randomly projected (Johnson and
    Lindenstrauss 1984). After MAX_CENTERS the order is random. Sener and Savarese 2018, algorithm 1, within twice
    the best radius (Gonzalez 1985).
    """
    answered = find_answered_rows(labels, candidates, MAX_ANSWERED_CENTERS, rng)
    shuffled = rng.permutation(candidates)  # so that ties are broken at random
    points, known = _compute_unit_vectors(features, shuffled, answered, rng)
    squares = (points**2).sum(1)
    nearest = np.full(len(points), np.inf, np.float32)
    for places in slice_rows(np.arange(len(known)), 256):
        apart = squares[:, None] + (known[places] ** 2).sum(1) - 2 * points @ known[places].T
        np.minimum(nearest, apart.min(1), out=nearest)
    chosen = []
    place = int(squares.argmin() if not len(known) else nearest.argmax()) if len(points) else 0
    for _ in range(min(MAX_CENTERS, len(points))):
        chosen.append(place)
        np.minimum(nearest, squares + squares[place] - 2 * (points @ points[place]), out=nearest)
        nearest[place] = -np.inf
        place = int(nearest.argmax())
    return np.concatenate([shuffled[chosen], np.delete(shuffled, chosen)])


def _compute_unit_vectors(
    features: Rows, rows: np.ndarray, others: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return both sets of images as randomly projected unit vectors, centered at the mean of `rows`."""
    wide = features.shape[1]
    mean = np.zeros(wide)
    for places in slice_rows(rows):
        mean += features[rows[places]].sum(0, dtype=np.float64) / max(len(rows), 1)
    projection = (
        rng.standard_normal((wide, PROJECTED_DIMENSIONS), np.float32) / PROJECTED_DIMENSIONS**0.5
        if wide > PROJECTED_DIMENSIONS
        else None
    )

    def unit(some: np.ndarray) -> np.ndarray:
        parts = [np.zeros((0, wide if projection is None else PROJECTED_DIMENSIONS), np.float32)]
        for places in slice_rows(some):
            vectors = features[some[places]].astype(np.float32) - mean.astype(np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-6)
            parts.append(vectors if projection is None else vectors @ projection)
        return np.concatenate(parts)

    return unit(rows), unit(others)


DIVERSITY = Strategy(
    "diversity",
    "Most varied",
    "Each image is as unlike the ones before it as possible.",
    "Sener and Savarese, Active Learning for Convolutional Neural Networks: A Core-Set Approach, ICLR 2018",
    "https://arxiv.org/abs/1708.00489",
    "features",
    rank_by_diversity,
)
