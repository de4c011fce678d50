"""Estimates of naming rates from marks alone: how often people mark a class that is present.

People name salient classes more often, so models of marks rank others too low. With e = P(marked | present), a class is
present with P(marked | image) / e (Elkan and Noto, KDD 2008, lemma 1), e per class (Bekker et al., ECML PKDD 2019) and
estimated by leave-one-out predictions of marked cells. Unrecognizable classes are raised little.
"""

from torch import Tensor

from spmll.ensemble.moments import Moments

MAX_IMAGES = 2000  # with a mark, from which rates are estimated, at most
HALFWAY_MARKS = 5.0  # marks with which a class is drawn half of the way to the usual rate
MIN_RATE, MAX_RATE = 0.02, 0.97  # rates
EPSILON = 1e-3  # of a prediction, and of what an image leaves to the others


def predict_leave_one_out(
    moments: Moments, weight: Tensor, level: Tensor, ridge: float, units: Tensor, marked: Tensor
) -> Tensor:
    """Return exact leave-one-out ridge predictions (m, C) (Allen 1974).

    Args:
        moments: Sums over the training images, with `level` subtracted from targets.
        weight: (D, C), ridge weights.
        level: (C,), marked share.
        units: (m, D), centered features of length 1.
        marked: (m, C).
    """
    rows, marks = units - moments.mean, marked.to(units.dtype)
    left = (1 - moments.leverages(rows, ridge)).clamp(min=EPSILON)[:, None]
    return marks - (marks - (rows @ weight + level)) / left


def estimate_log_naming_rates(predicted: Tensor, level: Tensor, marked: Tensor) -> Tensor:
    """Return the log of each class's naming rate relative to the average class, (C,).

    It is 0 for classes without marks and those that the model cannot recognize.

    Args:
        predicted: (m, C), leave-one-out predictions.
        level: (C,), share of images that are marked with the class.
        marked: (m, C).
    """
    marks = marked.sum(0)
    rates = ((predicted.clamp(EPSILON, 1) * marked).sum(0) / marks.clamp(min=1)).clamp(MIN_RATE, MAX_RATE)
    stands_out = ((rates - level) / rates).clamp(0, 1)
    logs, weights = rates.log(), marks * stands_out
    usual = (logs * weights).sum() / weights.sum().clamp(min=EPSILON)
    return (logs - usual) * stands_out * marks / (marks + HALFWAY_MARKS)
