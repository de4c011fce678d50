"""2-d layout of features: t-SNE of random landmarks; other rows are placed between their nearest landmarks.

t-SNE (van der Maaten and Hinton, "Visualizing Data using t-SNE", JMLR 2008; its Barnes-Hut form, van der Maaten, JMLR
2014) takes minutes for more than ten thousand rows. Here it arranges a few thousand landmarks; every other row takes
one pass to place, also for a million rows.
"""

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from spmll.rows import Rows

LANDMARK_COUNT = 3000  # arranged by t-SNE in some 10 s on one core; twice as many look no clearer
MAX_PCA_AXES = 50  # principal axes that distances are taken in
CHUNK_ROWS = 4096  # rows held as float32 at once
PERPLEXITY = 30.0  # about as many neighbours are kept near
NEAREST_LANDMARKS = 3
JITTER_SCALE = 0.0015  # so that rows of one and the same place can be told apart
MIN_ROWS_FOR_TSNE = 8  # fewer rows than this have no neighbourhoods to speak of: principal axes will do
LAYOUT_MARGIN = 0.02


def compute_layout(features: Rows, seed: int = 0, landmark_count: int = LANDMARK_COUNT) -> np.ndarray:
    """Return a place in the unit square for each row, similar rows close to each other.

    The same features and seed give the same layout. Works in one thread, on float32 copies of a few thousand rows at a
    time.

    Args:
        features: (N, D) of any float type, all finite; N may be 0.
        seed: Decides all that is random.
        landmark_count: How many rows t-SNE arranges; the others are placed at the weighted mean of their 3 nearest
            landmarks.

    Returns:
        (N, 2) float32 in [0, 1].

    Raises:
        ValueError: The features are not two-dimensional or not finite.
    """
    if features.ndim != 2:
        raise ValueError(f"Features are {features.shape}; they must be (rows, dimensions).")
    rng = np.random.default_rng(seed)
    with threadpool_limits(1):
        chosen = np.sort(rng.permutation(len(features))[:landmark_count])
        projected = _project_rows(features, chosen)
        places = np.empty((len(features), 2), np.float32)
        places[chosen] = _arrange_landmarks(projected[chosen], seed)
        others = np.setdiff1d(np.arange(len(features)), chosen)
        if len(others):
            places[others] = _place_between_landmarks(projected, others, projected[chosen], places[chosen])
    return (places + rng.normal(scale=JITTER_SCALE, size=places.shape).astype(np.float32)).clip(0, 1)


def _project_rows(features: Rows, chosen: np.ndarray) -> np.ndarray:
    """Return rows, scaled to length 1, along the principal axes of the chosen ones: (N, 2 to MAX_PCA_AXES) float32."""
    sample = _normalize_rows(features[chosen])
    axes = min(MAX_PCA_AXES, *sample.shape)
    projected = np.zeros((len(features), max(axes, 2)), np.float32)
    if len(sample) < 2 or np.ptp(sample, axis=0).max(initial=0) == 0:
        return projected
    pca = PCA(axes, svd_solver="randomized" if min(sample.shape) > 2 * MAX_PCA_AXES else "full", random_state=0).fit(
        sample
    )
    for start in range(0, len(features), CHUNK_ROWS):
        projected[start : start + CHUNK_ROWS, :axes] = pca.transform(
            _normalize_rows(features[start : start + CHUNK_ROWS])
        )
    return projected


def _normalize_rows(rows: np.ndarray) -> np.ndarray:
    # Brightness and sharpness of a picture scale all of its features; its content does not.
    rows = rows.astype(np.float32)
    if not np.isfinite(rows).all():
        raise ValueError("Some features are not finite (nan, or out of the range of their type).")
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)


def _arrange_landmarks(projected: np.ndarray, seed: int) -> np.ndarray:
    """Return places (n, 2) float32 in [0, 1] with a margin; identical rows are all placed in the middle."""
    if projected.size == 0 or np.ptp(projected, axis=0).max() == 0:
        return np.full((len(projected), 2), 0.5, np.float32)
    if len(projected) < MIN_ROWS_FOR_TSNE:
        flat = projected[:, :2]
    else:
        perplexity = min(PERPLEXITY, (len(projected) - 1) / 3)
        flat = TSNE(2, perplexity=perplexity, init="pca", random_state=seed, n_jobs=1).fit_transform(projected)
    low, high = flat.min(axis=0), flat.max(axis=0)
    return (LAYOUT_MARGIN + (1 - 2 * LAYOUT_MARGIN) * (flat - low) / np.maximum(high - low, 1e-12)).astype(np.float32)


def _place_between_landmarks(
    projected: np.ndarray, rows: np.ndarray, landmarks: np.ndarray, places: np.ndarray
) -> np.ndarray:
    """Return, for each of some rows, the mean of the places of its nearest landmarks, weighted by nearness."""
    nearest = NearestNeighbors(n_neighbors=min(NEAREST_LANDMARKS, len(landmarks)), algorithm="brute").fit(landmarks)
    placed = np.empty((len(rows), 2), np.float32)
    for start in range(0, len(rows), CHUNK_ROWS):
        distances, which = nearest.kneighbors(projected[rows[start : start + CHUNK_ROWS]])
        # Neighbours may lie in two corners of the map, and between them is nothing alike: the nearest decides.
        weights = 1 / np.maximum(distances, 1e-6) ** 4
        weights /= weights.sum(axis=1, keepdims=True)
        placed[start : start + CHUNK_ROWS] = (places[which] * weights[:, :, None]).sum(axis=1)
    return placed
