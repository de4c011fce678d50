"""Which labeled images `auto` learns from where there are more of them than it needs.

A linear model of a thousand weights a class gains little beyond some ten thousand images, and its time grows with all
of them. What is rare is kept: first the images that the caller puts first, then images of every class up to a quota of
its own, then any.
"""

import numpy as np

from models.labels import PRESENT

LEARNED = 40_960  # labeled images that are learned from, at most
FIRST = 0.5  # share of them that the caller may put first
QUOTA = 0.5  # share of them that is shared out among the classes before the rest is drawn


def learned_rows(labels: np.ndarray, most: int, first: np.ndarray | None, seed: int) -> np.ndarray | None:
    """(m,) int64, ascending: rows that are learned from, all classes among them that have a label "present".

    labels    (n, C) int8
    most      rows; more only where there are as many classes
    first     (n,) bool, rows that come before others
    returns   None where these are all rows
    """
    images, classes = labels.shape
    if images <= most:
        return None
    rank = np.random.default_rng([seed, 3]).permutation(images)
    chosen = np.zeros(images, bool)
    if first is not None:
        chosen[_lowest(np.flatnonzero(first), rank, int(FIRST * most))] = True
        rank = np.where(first, rank, rank + images)
    rows, columns = np.nonzero(labels == PRESENT)
    order = np.lexsort((rank[rows], columns))
    place = np.arange(len(order)) - np.searchsorted(columns[order], columns[order])  # of a row within its class
    chosen[rows[order[place < max(1, int(QUOTA * most) // classes)]]] = True
    chosen[_lowest(np.flatnonzero(~chosen), rank, most - int(chosen.sum()))] = True
    return np.flatnonzero(chosen)


def _lowest(rows: np.ndarray, rank: np.ndarray, most: int) -> np.ndarray:
    return rows[np.argsort(rank[rows])[: max(most, 0)]]
