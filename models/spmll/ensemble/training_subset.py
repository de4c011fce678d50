"""Choice of the labeled images that `auto` learns from, if there are too many.

This bounds the head's time. The ridge model needs only sums (gram_cache.py) and learns from more. Preferred images come
first, then a quota per class, then any.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from spmll.ensemble.basis import signed_sqrt, to_float_tensor
from spmll.ensemble.gram_cache import AnswerReader, GramCache
from spmll.ensemble.moments import Moments
from spmll.labels import PRESENT
from spmll.linear.blocks import run_in_blocks
from spmll.linear.training import Features, one_thread

MAX_HEAD_IMAGES = 57_344  # labeled images that a model goes through one by one, at most
MAX_RIDGE_IMAGES = 131_072  # labeled images of which sums are learned from, at most
PREFERRED_SHARE = 0.5  # share of them that the caller may put first
IMAGES_PER_READ = 512  # images read at once
WAIT_SECONDS = 0.1
CLASS_QUOTA_SHARE = 0.5  # share of them that is shared out among the classes before the rest is drawn


@dataclass(frozen=True, eq=False)
class TrainingSubset:
    """The labeled images that one model learns from.

    Attributes:
        places: (m,), their positions among all labeled images.
        roots: (m, D) float32, square-root features.
        moments: Sums for the ridge model. None computes them from `roots`.
    """

    places: np.ndarray
    roots: Tensor
    moments: Moments | None = None


def select_training_rows(labels: np.ndarray, max_rows: int, is_preferred: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the rows to learn from, (m,), ascending, with every class that has positives.

    Args:
        labels: (n, C) int8.
        max_rows: Exceeded only by the number of classes.
        is_preferred: (n,) bool.
        order: (n,), distinct in [0, 1), lower first. Constant numbers keep the choice stable.
    """
    images, classes = labels.shape
    if images <= max_rows:
        return np.arange(images)
    chosen = np.zeros(images, bool)
    chosen[_select_lowest(np.flatnonzero(is_preferred), order, int(PREFERRED_SHARE * max_rows))] = True
    order = np.where(is_preferred, order, order + 1)
    rows, columns = np.nonzero(labels == PRESENT)
    by_class = np.lexsort((order[rows], columns))
    place = np.arange(len(by_class)) - np.searchsorted(columns[by_class], columns[by_class])  # of a row in its class
    chosen[rows[by_class[place < max(1, int(CLASS_QUOTA_SHARE * max_rows) // classes)]]] = True
    chosen[_select_lowest(np.flatnonzero(~chosen), order, max_rows - int(chosen.sum()))] = True
    return np.flatnonzero(chosen)


def _select_lowest(rows: np.ndarray, order: np.ndarray, max_rows: int) -> np.ndarray:
    return rows[np.argsort(order[rows])[: max(max_rows, 0)]]


def gather_subsets(
    features: Features, rows: np.ndarray, places: Sequence[np.ndarray], tell: Callable[[], None]
) -> tuple[TrainingSubset, list[TrainingSubset]]:
    """Load square-root features, and return the subset of all parts and of each part.

    Args:
        features: (N, D).
        rows: (n,), labeled images.
        places: Per part, ascending places in `rows`.
    """
    wanted = rows[np.concatenate(places)]
    roots = torch.empty(len(wanted), features.shape[1])

    def read(some: slice) -> None:
        roots[some] = signed_sqrt(to_float_tensor(features[wanted[some]]))

    run_in_blocks(len(wanted), IMAGES_PER_READ, read, tell)
    of_parts = roots.split([len(part) for part in places])
    return TrainingSubset(np.concatenate(places), roots), [
        TrainingSubset(part, of_part) for part, of_part in zip(places, of_parts, strict=True)
    ]


def sum_moments(
    features: Features,
    centre: Tensor,
    rows: Sequence[np.ndarray],
    classes: int,
    answers: Sequence[AnswerReader],
    kept: Sequence[GramCache],
    threads: int,
    tell: Callable[[], None],
) -> list[Moments]:
    """Return the sums for ridge regression (Moments) of each part of the images.

    Args:
        features: (N, D).
        centre: (D,).
        rows: Ascending images, per part.
        kept: Caches of earlier sums, per part.
        threads: Parts summed concurrently.
    """
    with one_thread(), ThreadPoolExecutor(threads, "squares", torch.set_num_threads, (1,)) as pool:
        work = [
            pool.submit(sums.compute_moments, features, centre, of_part, classes, its_answers)
            for sums, of_part, its_answers in zip(kept, rows, answers, strict=True)
        ]
        while wait(work, WAIT_SECONDS).not_done:
            tell()
        return [part.result() for part in work]
