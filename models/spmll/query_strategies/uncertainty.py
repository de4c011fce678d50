"""An order by summed entropy."""

import numpy as np

from spmll.query_strategies.base import Strategy, order_by_falling_value, read_open_probabilities, slice_rows


def rank_by_uncertainty(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Rank by the summed entropy of unanswered cells, in nats.

    For independent classes the sum is the expected information. Lewis and Gale 1994, Wu et al. 2020.
    """
    value = np.zeros(len(candidates))
    for places in slice_rows(candidates):
        chances = read_open_probabilities(probabilities, labels, candidates[places]).clip(1e-6, 1 - 1e-6)
        value[places] = -np.nansum(chances * np.log(chances) + (1 - chances) * np.log1p(-chances), 1)
    return order_by_falling_value(value, candidates, rng)


UNCERTAINTY = Strategy(
    "uncertainty",
    "Least certain",
    "Images of which the model knows least come first: it learns most from them.",
    "Lewis and Gale, A Sequential Algorithm for Training Text Classifiers, SIGIR 1994; for many labels Wu et "
    "al., Multi-Label Active Learning Algorithms for Image Classification, ACM Computing Surveys 2020",
    "https://arxiv.org/abs/cmp-lg/9407020",
    "model",
    rank_by_uncertainty,
)
