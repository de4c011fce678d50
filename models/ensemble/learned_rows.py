"""Which labeled images `auto` learns from where there are more of them than it needs.

Its head goes through images one by one, twelve times, and its time grows with them; its ridge model needs their sums
only, which are kept (squares.py), so it learns from more. What is rare is kept in both: first the images that the
caller puts first, then images of every class up to a quota of its own, then any.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from models.ensemble.basis import as_tensor, root
from models.ensemble.moments import Moments
from models.ensemble.squares import Answers, KeptSquares
from models.labels import PRESENT
from models.linear.blocks import in_blocks
from models.linear.training import Features, one_thread

LEARNED = 57_344  # labeled images that a model goes through one by one, at most
SUMMED = 131_072  # labeled images of which sums are learned from, at most
FIRST = 0.5  # share of them that the caller may put first
READ = 512  # images read at once
WAIT = 0.1  # seconds
QUOTA = 0.5  # share of them that is shared out among the classes before the rest is drawn


@dataclass(frozen=True, eq=False)
class Learned:
    """What is learned from labeled images.

    Attributes:
        places: (m,) int64, which of them a model goes through one by one.
        roots: (m, D) float32 of their pooled features.
        moments: Of those that the ridge model learns from; None: it learns from these, too.
    """

    places: np.ndarray
    roots: Tensor
    moments: Moments | None = None


def learned_rows(labels: np.ndarray, most: int, first: np.ndarray, order: np.ndarray) -> np.ndarray:
    """(m,) int64, ascending: rows that are learned from, all classes among them that have a label "present".

    Args:
        labels: (n, C) int8.
        most: Rows; more only where there are as many classes.
        first: (n,) bool, rows that come before others.
        order: (n,) float in [0, 1), different numbers: of equal rows the lower one comes first. An image that keeps its
            number from one training to the next is learned from in both, mostly.

    Returns:
        All rows where there are no more.
    """
    images, classes = labels.shape
    if images <= most:
        return np.arange(images)
    chosen = np.zeros(images, bool)
    chosen[_lowest(np.flatnonzero(first), order, int(FIRST * most))] = True
    order = np.where(first, order, order + 1)
    rows, columns = np.nonzero(labels == PRESENT)
    by_class = np.lexsort((order[rows], columns))
    place = np.arange(len(by_class)) - np.searchsorted(columns[by_class], columns[by_class])  # of a row in its class
    chosen[rows[by_class[place < max(1, int(QUOTA * most) // classes)]]] = True
    chosen[_lowest(np.flatnonzero(~chosen), order, most - int(chosen.sum()))] = True
    return np.flatnonzero(chosen)


def _lowest(rows: np.ndarray, order: np.ndarray, most: int) -> np.ndarray:
    return rows[np.argsort(order[rows])[: max(most, 0)]]


def gathered(
    features: Features, rows: np.ndarray, places: Sequence[np.ndarray], tell: Callable[[], None]
) -> tuple[Learned, list[Learned]]:
    """All images that are learned from one by one, and those of each part; the parts share the roots of the whole.

    Args:
        features: (N, D) of all images.
        rows: (n,) which of them are labeled.
        places: Of each part, ascending: which of the labeled images are learned from.
    """
    wanted = rows[np.concatenate(places)]
    roots = torch.empty(len(wanted), features.shape[1])

    def read(some: slice) -> None:
        roots[some] = root(as_tensor(features[wanted[some]]))

    in_blocks(len(wanted), READ, read, tell)
    of_parts = roots.split([len(part) for part in places])
    return Learned(np.concatenate(places), roots), [
        Learned(part, of_part) for part, of_part in zip(places, of_parts, strict=True)
    ]


def summed(
    features: Features,
    centre: Tensor,
    rows: Sequence[np.ndarray],
    classes: int,
    answers: Sequence[Answers],
    kept: Sequence[KeptSquares],
    threads: int,
    tell: Callable[[], None],
) -> list[Moments]:
    """The moments of each part.

    Args:
        centre: (D,) of units.
        rows: Of each part, ascending: images.
        answers: Of each part, as KeptSquares.moments takes them.
        kept: Of each part: what was summed in the training before.
    """
    with one_thread(), ThreadPoolExecutor(threads, "squares", torch.set_num_threads, (1,)) as pool:
        work = [
            pool.submit(sums.moments, features, centre, of_part, classes, its_answers)
            for sums, of_part, its_answers in zip(kept, rows, answers, strict=True)
        ]
        while wait(work, WAIT).not_done:
            tell()
        return [part.result() for part in work]
