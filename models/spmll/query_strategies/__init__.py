"""The registry of query strategies, STRATEGIES: orders of images for annotation.

A new strategy is one file and one entry. Start with base.py.
"""

from dataclasses import dataclass

import numpy as np

from spmll.query_strategies.base import Strategy, slice_rows
from spmll.query_strategies.class_balance import CLASS_BALANCE
from spmll.query_strategies.diversity import DIVERSITY
from spmll.query_strategies.expected_missing import EXPECTED_MISSING
from spmll.query_strategies.mix import MIX
from spmll.query_strategies.random import RANDOM
from spmll.query_strategies.representative import REPRESENTATIVE
from spmll.query_strategies.uncertainty import UNCERTAINTY
from spmll.query_strategies.unusual import UNUSUAL
from spmll.rows import Rows

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        RANDOM,
        UNCERTAINTY,
        CLASS_BALANCE,
        DIVERSITY,
        REPRESENTATIVE,
        EXPECTED_MISSING,
        UNUSUAL,
        MIX,
    )
}


@dataclass(frozen=True)
class QueryOrder:
    """The result of a query strategy: candidates in the order of annotation.

    Attributes:
        rows: (n,) int64, best first.
        fallback: Missing input and what was done instead, or "".
    """

    rows: np.ndarray
    fallback: str = ""


def order_candidates(
    name: str,
    features: Rows | None,
    probabilities: Rows | None,
    labels: Rows,
    candidates: np.ndarray,
    rng: np.random.Generator,
) -> QueryOrder:
    """Order candidates by a strategy, randomly if its input is missing.

    Args:
        name: Name in STRATEGIES.
        features: (N, D), or None.
        probabilities: (N, C) or nan, or None before the first model.
        labels: (N, C) int8, 1 present, -1 absent, 0 unanswered.
        candidates: (n,) rows, each once.
        rng: For ties.

    Returns:
        The order.

    Raises:
        ValueError: Unknown name or mismatched arrays.
    """
    if name not in STRATEGIES:
        raise ValueError(f"No strategy is called {name!r}. There is: {', '.join(STRATEGIES)}.")
    candidates = np.asarray(candidates, np.int64)
    _check_arrays(features, probabilities, labels, candidates)
    if probabilities is not None and not _has_probabilities(probabilities, candidates):
        probabilities = None
    strategy = STRATEGIES[name]
    if {"model": probabilities, "features": features, "": labels}[strategy.needs] is None:
        missing = "There is no model yet" if strategy.needs == "model" else "These images have no features yet"
        return QueryOrder(rng.permutation(candidates), f"{missing}: random instead of {strategy.title.lower()}.")
    return QueryOrder(strategy.rank(features, probabilities, labels, candidates, rng))


def _check_arrays(features, probabilities, labels, candidates) -> None:
    if labels.ndim != 2:
        raise ValueError(f"Labels are {labels.shape}; they must be (images, classes).")
    if probabilities is not None and probabilities.shape != labels.shape:
        raise ValueError(
            f"Probabilities are {probabilities.shape} but labels are {labels.shape}; both must be (images, classes).\n"
            "    Were classes added after this model was trained?"
        )
    if features is not None and (features.ndim != 2 or len(features) != len(labels)):
        raise ValueError(f"Features are {features.shape} but labels are {labels.shape}; both need a row an image.")
    if len(candidates) and not 0 <= candidates.min() <= candidates.max() < len(labels):
        raise ValueError(
            f"Candidates are rows {candidates.min()} to {candidates.max()}, but there are rows 0 to {len(labels) - 1}."
        )
    if len(np.unique(candidates)) < len(candidates):
        raise ValueError("Some candidates are named twice; each row must be there once.")


def _has_probabilities(probabilities: Rows, candidates: np.ndarray) -> bool:
    return any(not np.isnan(probabilities[candidates[places]]).all() for places in slice_rows(candidates))
