"""An order that prefers classes with few examples."""

import numpy as np

from spmll.labels import PRESENT
from spmll.query_strategies.base import Strategy, read_open_probabilities, slice_range, slice_rows

BLOCK_DIVISOR = 8  # a chosen block counts again after every eighth part of it


def rank_by_class_balance(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Rank by the sum over classes of p / (1 + positives), rare classes first.

    Probabilities of earlier images count as positives, which greedily maximizes the sum of log(1 + positives).
    """
    chances = np.concatenate(
        [read_open_probabilities(probabilities, labels, candidates[places]) for places in slice_rows(candidates)]
    )
    np.nan_to_num(chances, copy=False)
    seen = np.ones(labels.shape[1])
    for places in slice_range(len(labels)):
        seen += (labels[places] == PRESENT).sum(0)
    rest = rng.permutation(len(candidates))
    chosen: list[np.ndarray] = []
    while len(rest):
        size = max(1, (len(candidates) - len(rest)) // BLOCK_DIVISOR)
        value = chances[rest] @ (1 / seen).astype(np.float32)
        first = np.argsort(-value, kind="stable")[:size]
        chosen.append(rest[first])
        seen += chances[rest[first]].sum(0)
        rest = np.delete(rest, first)
    return candidates[np.concatenate(chosen)] if chosen else candidates


CLASS_BALANCE = Strategy(
    "class_balance",
    "Rare classes",
    "Images that probably show classes with few examples come first.",
    "Bengar et al., Class-Balanced Active Learning for Image Classification, WACV 2022",
    "https://arxiv.org/abs/2110.04543",
    "model",
    rank_by_class_balance,
)
