"""An order that prefers images similar to many others."""

import heapq

import numpy as np

from spmll.query_strategies.base import Strategy, find_answered_rows, slice_rows
from spmll.rows import Rows

MAX_CHOSEN_IMAGES = 500  # images chosen one by one; all others follow at random
MAX_SAMPLED_IMAGES = 2000  # images that are chosen from, and that they are to resemble; of more, a random sample
GAIN_DECIMALS = 4  # of a gain that count; the others are errors of rounding
MAX_ANSWERED_IMAGES = 2000  # answered images whose likeness counts, at most


def rank_by_representativeness(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Rank by greedy facility location: next is the image that most improves representation.

    Similarity is the squared positive cosine of centered square-root features. Outliers come late. Wei, Iyer and
    Bilmes, ICML 2015, Hacohen et al., ICML 2022. Within 1 - 1/e of the optimum (Nemhauser et al. 1978), by lazy
    evaluation.
    """
    sample = rng.permutation(candidates)
    rest, sample = sample[MAX_SAMPLED_IMAGES:], sample[:MAX_SAMPLED_IMAGES]
    if not len(sample):
        return sample
    answered = find_answered_rows(labels, candidates, MAX_ANSWERED_IMAGES, rng)
    points, known = _compute_unit_vectors(features, sample, answered)
    likeness = np.square((points @ points.T).clip(0), dtype=np.float32)
    represented = np.zeros(len(points), np.float32)
    for places in slice_rows(answered, 256):
        np.maximum(represented, np.square((points @ known[places].T).clip(0)).max(1), out=represented)
    chosen = _choose_greedily(likeness, represented)
    return np.concatenate([sample[chosen], np.delete(sample, chosen), rest])


def _choose_greedily(likeness: np.ndarray, represented: np.ndarray) -> list[int]:
    """Return up to MAX_CHOSEN_IMAGES places, largest gain first, updating `represented`. Ties prefer typical images."""
    totals = likeness.sum(1)

    def compute_bound(place: int) -> tuple[float, float, int]:
        gain = float(np.maximum(likeness[place] - represented, 0).sum())
        return -round(gain, GAIN_DECIMALS), -float(totals[place]), place

    bounds = [compute_bound(place) for place in range(len(likeness))]
    heapq.heapify(bounds)
    chosen: list[int] = []
    while bounds and len(chosen) < MAX_CHOSEN_IMAGES:
        place = bounds[0][2]
        heapq.heapreplace(bounds, compute_bound(place))
        if bounds[0][2] == place:
            heapq.heappop(bounds)
            chosen.append(place)
            np.maximum(represented, likeness[place], out=represented)
    return chosen


def _compute_unit_vectors(features: Rows, rows: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both sets of images as unit vectors, centered at the mean of `rows`."""

    def roots(some: np.ndarray) -> np.ndarray:
        vectors = np.asarray(features[some], np.float32)
        return np.copysign(np.sqrt(np.abs(vectors)), vectors)

    mean = roots(rows).mean(0)

    def unit(some: np.ndarray) -> np.ndarray:
        vectors = roots(some) - mean
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-6)

    return unit(rows), unit(others)


REPRESENTATIVE = Strategy(
    "representative",
    "Most representative",
    "Images first that resemble many others, so that the first labels tell the model most.",
    "Wei, Iyer and Bilmes, Submodularity in Data Subset Selection and Active Learning, ICML 2015",
    "https://proceedings.mlr.press/v37/wei15.html",
    "features",
    rank_by_representativeness,
)
