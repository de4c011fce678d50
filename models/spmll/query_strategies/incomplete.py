"""An order of partly answered images, fewest answers first."""

import numpy as np

from spmll.labels import UNSEEN
from spmll.query_strategies.base import Strategy, order_by_falling_value


def rank_by_fewest_answers(features, probabilities, labels, candidates, rng) -> np.ndarray:
    """Rank images by answered classes, fewest first."""
    return order_by_falling_value(-(labels[candidates] != UNSEEN).sum(1), candidates, rng)


INCOMPLETE = Strategy(
    "incomplete",
    "Incomplete images",
    "Images with the fewest answers come first, then images without a label.",
    "None: it orders images that have answers, all others order images that have none",
    "",
    "",
    rank_by_fewest_answers,
)
