"""Which labeled images `auto` learns from where there are more of them than it needs.

A linear model of a thousand weights a class gains little beyond some ten thousand images, and its time grows with all
of them. What is rare is kept: first the images that the caller puts first, then images of every class up to a quota of
its own, then any.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from models.ensemble.basis import as_tensor, root
from models.ensemble.squares import KeptSquares, Squares
from models.labels import PRESENT
from models.linear.blocks import in_blocks
from models.linear.training import Features, one_thread

LEARNED = 40_960  # labeled images that are learned from, at most
FIRST = 0.5  # share of them that the caller may put first
READ = 512  # images read at once
QUOTA = 0.5  # share of them that is shared out among the classes before the rest is drawn


@dataclass(frozen=True, eq=False)
class Learned:
    """Labeled images that are learned from.

    places     (m,) int64, which of the labeled images
    roots      (m, D) float32 of their pooled features
    squares    of their units; None: they are made where they are needed
    """

    places: np.ndarray
    roots: Tensor
    squares: Squares | None


def learned_rows(labels: np.ndarray, most: int, first: np.ndarray, order: np.ndarray) -> np.ndarray:
    """(m,) int64, ascending: rows that are learned from, all classes among them that have a label "present".

    labels    (n, C) int8
    most      rows; more only where there are as many classes
    first     (n,) bool, rows that come before others
    order     (n,) float in [0, 1), different numbers: of equal rows the lower one comes first. An image that keeps its
              number from one training to the next is learned from in both, mostly.
    returns   all rows where there are no more
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
    features: Features,
    rows: np.ndarray,
    places: Sequence[np.ndarray],
    centre: Tensor | None,
    kept: Sequence[KeptSquares],
    threads: int,
    tell: Callable[[], None],
) -> tuple[Learned, list[Learned]]:
    """All images that are learned from, and those of each part; the parts share the roots of the whole.

    features    (N, D) of all images
    rows        (n,) which of them are labeled
    places      of each part, ascending: which of the labeled images are learned from
    centre      (D,) of units; None: squares are left out
    kept        of each part: what its squares were in the training before
    """
    wanted = rows[np.concatenate(places)]
    roots = torch.empty(len(wanted), features.shape[1])

    def read(some: slice) -> None:
        roots[some] = root(as_tensor(features[wanted[some]]))

    in_blocks(len(wanted), READ, read, tell)
    of_parts = roots.split([len(part) for part in places])
    squares: list[Squares] | list[None] = [None] * len(places)
    if centre is not None:
        with one_thread(), ThreadPoolExecutor(threads, "squares", torch.set_num_threads, (1,)) as pool:
            squares = list(
                pool.map(
                    lambda sums, part, its_roots: sums.of(features, centre, rows[part], its_roots),
                    kept,
                    places,
                    of_parts,
                )
            )
    of_all = None
    for part in squares:
        of_all = part if of_all is None or part is None else of_all + part
    parts = [Learned(*part) for part in zip(places, of_parts, squares, strict=True)]
    return Learned(np.concatenate(places), roots, of_all), parts
