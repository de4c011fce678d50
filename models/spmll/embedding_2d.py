"""2-d layout of features by t-SNE of random landmarks and interpolation.

t-SNE (van der Maaten and Hinton, JMLR 2008) takes minutes above ten thousand rows. It arranges only landmarks, other
rows take one pass.
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
TSNE_PERPLEXITY = 30.0  # about as many neighbours are kept near
NEAREST_LANDMARKS = 3
JITTER_SCALE = 0.0015  # so that rows of one and the same place can be told apart
MIN_ROWS_FOR_TSNE = 8  # fewer rows than this have no neighbourhoods to speak of: principal axes will do
LAYOUT_MARGIN = 0.02


def compute_layout(features: Rows, seed: int = 0, landmark_count: int = LANDMARK_COUNT) -> np.ndarray:
    """Return (N, 2) float32 positions in the unit square at which similar rows are close together.

    Deterministic for a seed. Runs in one thread.

    Args:
        features: (N, D), finite, else ValueError. N may be 0.
        landmark_count: Number of rows that t-SNE arranges. The others are interpolated.
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
    """Project unit rows onto the principal axes of the chosen ones."""
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
    """Return t-SNE positions (n, 2) of the landmarks, scaled to [0, 1] with a margin."""
    if projected.size == 0 or np.ptp(projected, axis=0).max() == 0:
        return np.full((len(projected), 2), 0.5, np.float32)
    if len(projected) < MIN_ROWS_FOR_TSNE:
        flat = projected[:, :2]
    else:
        perplexity = min(TSNE_PERPLEXITY, (len(projected) - 1) / 3)
        flat = TSNE(2, perplexity=perplexity, init="pca", random_state=seed, n_jobs=1).fit_transform(projected)
    low, high = flat.min(axis=0), flat.max(axis=0)
    return (LAYOUT_MARGIN + (1 - 2 * LAYOUT_MARGIN) * (flat - low) / np.maximum(high - low, 1e-12)).astype(np.float32)


def _place_between_landmarks(
    projected: np.ndarray, rows: np.ndarray, landmarks: np.ndarray, places: np.ndarray
) -> np.ndarray:
    """Return each row's position: the distance-weighted mean position of its nearest landmarks."""
    nearest = NearestNeighbors(n_neighbors=min(NEAREST_LANDMARKS, len(landmarks)), algorithm="brute").fit(landmarks)
    placed = np.empty((len(rows), 2), np.float32)
    for start in range(0, len(rows), CHUNK_ROWS):
        distances, which = nearest.kneighbors(projected[rows[start : start + CHUNK_ROWS]])
        # Neighbours may lie in two corners of the map, and between them is nothing alike: the nearest decides.
        weights = 1 / np.maximum(distances, 1e-6) ** 4
        weights /= weights.sum(axis=1, keepdims=True)
        placed[start : start + CHUNK_ROWS] = (places[which] * weights[:, :, None]).sum(axis=1)
    return placed
