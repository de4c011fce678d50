"""Single-positive data from fully labeled sets, with the sampling and split of the papers.

Both repeat the code of Cole et al. (CVPR 2021) draw by draw, so other rows or another order give other labels.
"""

import numpy as np

from spmll.labels import ABSENT, PRESENT, UNSEEN

PUBLISHED_SEED = 1200
VALIDATION_SHARE = 0.2
ALL_LABELS = -1  # "as many as there are", in the published code too


def sample_single_positives(
    truth01: np.ndarray, positives: int = 1, negatives: int = 0, seed: int = PUBLISHED_SEED
) -> np.ndarray:
    """Return single-positive labels: one random true label per image, the rest unseen.

    All lists are shuffled, because each shuffle advances the random stream. Cole et al. 2021, sec. 6.1.

    Args:
        truth01: (N, C) bool or 0/1, the official training set in published order, unsplit.
        positives: Number of positives kept per image, -1 for all.
        negatives: Number of confirmed absences kept per image, -1 for all.
        seed: 1200 gives the papers' labels.

    Returns:
        (N, C) int8, 1 present, -1 absent, 0 unseen.
    """
    truth = np.asarray(truth01)
    if truth.ndim != 2:
        raise ValueError(f"The truth is {truth.shape}; it must be (images, classes).")
    if not ((truth == 0) | (truth == 1)).all():
        strange = np.unique(truth[(truth != 0) & (truth != 1)])[:5].tolist()
        raise ValueError(f"The truth must be 0 or 1 in every cell; there is also {', '.join(map(str, strange))}.")
    for name, count in (("positives", positives), ("negatives", negatives)):
        if count < ALL_LABELS:
            raise ValueError(f"{name} = {count}; it must be a number of labels an image, or -1 for all of them.")
    chance = np.random.RandomState(seed)
    labels = np.full(truth.shape, UNSEEN, np.int8)
    for row, present in enumerate(truth == 1):
        for value, cells, count in ((PRESENT, present, positives), (ABSENT, ~present, negatives)):
            columns = np.flatnonzero(cells)
            chance.shuffle(columns)
            labels[row, columns if count == ALL_LABELS else columns[:count]] = value
    return labels


def split_train_validation(
    n: int, share: float = VALIDATION_SHARE, seed: int = PUBLISHED_SEED
) -> tuple[np.ndarray, np.ndarray]:
    """Split the official training set into (train, validation) rows, ascending.

    A share that rounds to 0 holds back nothing, unlike in published code.

    Args:
        share: In [0, 1), rounded half to even.
        seed: 1200 gives the papers' split.
    """
    if n < 1 or not 0 <= share < 1:
        raise ValueError(f"n = {n}, share = {share}; it takes at least one image, and a share from 0 to below 1.")
    train = n - round(share * n)
    order = np.random.RandomState(seed).permutation(n).astype(np.int64)
    return np.sort(order[:train]), np.sort(order[train:])
