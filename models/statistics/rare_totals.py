"""Expected totals of rare classes, shrunk to what their share of all known positives says.

The probabilities of a class with a handful of known positives add up to a total that rests on its own shift in the
stacker, and can be off by a factor of three. Its share of the known positives says something, too: with a Gamma prior
on the rates of the classes and Poisson counts, the expected share is (m + 1) / (M + C) for m of M positives and C
classes. The total becomes a geometric mean of both, in which the class's own counts by its positives.
"""

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import expit, logit

FEW = 10  # known positives from which on a total stays as it is
SHARES = 1.0  # positives with which the total of a class counts as much as its share of all positives
PRIOR = 1.0  # positives added to those of every class
LEAST = 1e-6  # of probabilities, which are clipped to [LEAST, 1 - LEAST]
FARTHEST = 5.0  # logits that a class may be moved by


def shrink_rare_totals(probabilities: np.ndarray, positives: np.ndarray) -> None:
    """Move the logits of each rare class by one number, so that its probabilities add up to the shrunk total.

    The order of the images of a class stays, and so do classes without a known positive or without probabilities.

    Args:
        probabilities: (N, C) float32, changed in place; nan in the columns of classes without a model.
        positives: (C,), known positives of each class.
    """
    totals = probabilities.sum(0, dtype=np.float64)
    modelled = np.isfinite(totals) & (totals > 0)
    shares = (positives + PRIOR) / (positives[modelled] + PRIOR).sum()
    for column in np.flatnonzero(modelled & (positives > 0) & (positives < FEW)):
        own = positives[column] / (positives[column] + SHARES)
        wanted = totals[column] ** own * (totals[modelled].sum() * shares[column]) ** (1 - own)
        logits = logit(np.clip(probabilities[:, column].astype(np.float64), LEAST, 1 - LEAST))
        probabilities[:, column] = expit(logits + _shift(logits, min(wanted, 0.5 * len(logits))))


def _shift(logits: np.ndarray, wanted: float) -> float:
    """Return what must be added to logits (n,) for probabilities that add up to `wanted`, at most FARTHEST."""

    def missing(shift: float) -> float:
        return float(expit(logits + shift).sum()) - wanted

    if missing(-FARTHEST) > 0 or missing(FARTHEST) < 0:
        return -FARTHEST if missing(-FARTHEST) > 0 else FARTHEST
    return root_scalar(missing, bracket=(-FARTHEST, FARTHEST), xtol=1e-3).root
