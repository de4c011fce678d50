"""The choice of the labeled images that `auto` learns from, if there are more than it needs.

The head goes through images one by one, twelve times, so its time grows with their number; the ridge model needs only
their sums, which are kept (gram_cache.py), so it learns from more images. Rare classes are kept in both: first the
images that the caller prefers, then images of every class up to a quota for each, then any.
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
    """The labeled images that the models of one training learn from.

    Attributes:
        places: (m,) int64, places among the labeled images of those that the head goes through one by one.
        roots: (m, D) float32, roots of their pooled features.
        moments: Sums over the images that the ridge model learns from; None: it learns from `roots`, too.
    """

    places: np.ndarray
    roots: Tensor
    moments: Moments | None = None


def select_training_rows(labels: np.ndarray, max_rows: int, is_preferred: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the rows to learn from, (m,) int64, ascending; every class with a label "present" is among them.

    All rows are returned if there are at most `most`.

    Args:
        labels: (n, C) int8.
        max_rows: Maximum number of rows; exceeded only where there are as many classes.
        is_preferred: (n,) bool, rows that are preferred.
        order: (n,) float in [0, 1), all different: among equal rows the lower number is preferred. An image that keeps
            its number from one training to the next is mostly learned from in both.
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
    """Return the images that are learned from one by one: those of all parts together, and of each part.

    The parts share the roots of the whole.

    Args:
        features: (N, D) of all images.
        rows: (n,), the labeled images.
        places: For each part, places among the labeled images, ascending.
        tell: Called now and then.
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
    """Return the moments of each part.

    Args:
        features: (N, D) of all images.
        centre: (D,), centre of the units.
        rows: For each part, its images, ascending.
        classes: C.
        answers: For each part, as GramCache.moments takes them.
        kept: For each part, the sums of the previous training.
        threads: Number of parts that are summed at the same time.
        tell: Called while waiting.
    """
    with one_thread(), ThreadPoolExecutor(threads, "squares", torch.set_num_threads, (1,)) as pool:
        work = [
            pool.submit(sums.compute_moments, features, centre, of_part, classes, its_answers)
            for sums, of_part, its_answers in zip(kept, rows, answers, strict=True)
        ]
        while wait(work, WAIT_SECONDS).not_done:
            tell()
        return [part.result() for part in work]
