"""Single-positive data made from a fully labelled set as the papers do: which label is kept, which rows are held back.

Cole et al., "Multi-Label Learning from Single Positive Labels", CVPR 2021, and everybody who compares with them use one
sampling and one split, each fixed by a seed. Both are repeated here draw by draw, with numpy's RandomState, whose
stream never changes: a row more or less, or another order of the rows, gives other labels. Numpy only.

Their code can also thin out the two parts of the split; every published run keeps all of both, so that is left out.
"""

import numpy as np

from spmll.labels import ABSENT, PRESENT, UNSEEN

PUBLISHED_SEED = 1200
VALIDATION_SHARE = 0.2
ALL_LABELS = -1  # "as many as there are", in the published code too


def sample_single_positives(
    truth01: np.ndarray, positives: int = 1, negatives: int = 0, seed: int = PUBLISHED_SEED
) -> np.ndarray:
    """Return single-positive labels: a random choice of the true labels of every image, the rest unseen.

    Both lists of an image, its positives and its negatives, are always shuffled, as in the published code, because each
    shuffle advances the random stream.

    Args:
        truth01: (N, C) bool or 0/1, the whole official training set in its published order, before any split.
        positives: Labels kept of each image, drawn uniformly; -1 keeps all. Images with fewer keep what they have.
        negatives: Absent classes kept as confirmed absent; -1 keeps all.
        seed: 1200 gives the labels of the papers.

    Returns:
        (N, C) int8, 1 present, -1 absent, 0 unseen (spmll/labels.py); an image without a positive stays unseen.

    Raises:
        ValueError: The shape, a value or a count is not as above.

    Source: Cole et al. 2021, sec. 6.1 ("Data preparation"), and their generate_observed_labels.py.
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
    """Return the rows of the official training set to train on, and those held back to choose the epoch by.

    If the share rounds to no image, nothing is held back (the published code would then hold back everything).

    Args:
        n: Images in the official training set.
        share: In [0, 1), the share held back: round(share x n) images, a half rounded to the even number.
        seed: 1200 gives the split of the papers.

    Returns:
        (train, val), int64 and ascending.

    Raises:
        ValueError: n is below 1, or the share is not in [0, 1).

    Source: generate_split in the datasets.py of Cole et al. 2021.
    """
    if n < 1 or not 0 <= share < 1:
        raise ValueError(f"n = {n}, share = {share}; it takes at least one image, and a share from 0 to below 1.")
    train = n - round(share * n)
    order = np.random.RandomState(seed).permutation(n).astype(np.int64)
    return np.sort(order[:train]), np.sort(order[train:])
