"""Groups of near-duplicates, proposed by difference hashes and confirmed by features.

Hashes within MAX_DIFFERENT_BITS share one of four quarters, so only these are compared.
"""

from collections.abc import Callable

import numpy as np

MAX_DIFFERENT_BITS = 3
COMPARED_NEIGHBORS = 16  # hashes with an equal quarter, sorted by their other bits, that each hash is compared with
BIT_COUNTS = np.array([value.bit_count() for value in range(256)], np.uint8)

MIN_COSINE = 0.9  # of the features of two images of one group
MAX_SPLIT_ROUNDS = 20  # groups that a group of equal hashes can fall into; images beyond are alone
IMAGES_PER_CHUNK = 4096  # images whose features are in memory


def group_similar_hashes(hashes: np.ndarray) -> np.ndarray:
    """Group images by similar difference hashes: (N,) uint64 -> (N,) int64, the first image of each group."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    unique, which = np.unique(hashes, return_inverse=True)
    starts, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for quarter in range(4):
        shift = np.uint64(16 * quarter)
        rotated = unique if not quarter else (unique << shift) | (unique >> (np.uint64(64) - shift))
        order = np.argsort(rotated)
        ranked, first = unique[order], rotated[order] >> np.uint64(48)
        for step in range(1, min(COMPARED_NEIGHBORS, len(unique) - 1) + 1):
            different = BIT_COUNTS[(ranked[step:] ^ ranked[:-step]).view(np.uint8).reshape(-1, 8)].sum(1)
            close = np.flatnonzero((first[step:] == first[:-step]) & (different <= MAX_DIFFERENT_BITS))
            starts.append(order[close])
            ends.append(order[close + step])
    edges = np.concatenate(starts), np.concatenate(ends)
    graph = coo_array((np.ones(len(edges[0]), bool), edges), shape=(len(unique), len(unique)))
    _, component = connected_components(graph, directed=False)
    return component[which].astype(np.int64)


def split_groups_by_features(
    groups: np.ndarray, has_features: np.ndarray, features: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Split groups by features, and return the first member of each image's group.

    Hashes of flat images, such as fog, say little. A group keeps images whose cosine to its first is at least
    MIN_COSINE, and the rest is split likewise.

    Args:
        groups: (N,) int64.
        has_features: (N,). Images without features stay in their group.
        features: From positions (n,) to features (n, D).
    """
    _, starts, which = np.unique(groups, return_index=True, return_inverse=True)
    firsts = starts[which]
    waiting = np.flatnonzero((np.bincount(which)[which] > 1) & has_features)
    for _ in range(MAX_SPLIT_ROUNDS):
        if not len(waiting):
            break
        _, leading, of = np.unique(groups[waiting], return_index=True, return_inverse=True)
        leaders = waiting[leading][of]
        belongs = _compute_cosines(waiting, leaders, features) >= MIN_COSINE
        belongs[leading] = True
        firsts[waiting[belongs]] = leaders[belongs]
        waiting = waiting[~belongs]
    firsts[waiting] = waiting
    return firsts


def _compute_cosines(
    places: np.ndarray, others: np.ndarray, features: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    result = np.zeros(len(places))
    for start in range(0, len(places), IMAGES_PER_CHUNK):
        part = slice(start, start + IMAGES_PER_CHUNK)
        leaders, which = np.unique(others[part], return_inverse=True)
        one, other = features(places[part]).astype(np.float32), features(leaders).astype(np.float32)[which]
        length = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
        result[part] = (one * other).sum(1) / np.maximum(length, 1e-12)
    return result
