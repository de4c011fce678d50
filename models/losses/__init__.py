"""The losses by name. The table is the registry: a new loss is one file and one entry here."""

import inspect
from typing import Any

from models.losses.assume_negative import AssumeNegative
from models.losses.assume_negative_smoothed import AssumeNegativeSmoothed
from models.losses.asymmetric import Asymmetric
from models.losses.base import REDUCTIONS, Loss, no_such, one_of
from models.losses.binary_cross_entropy import BinaryCrossEntropy
from models.losses.binary_cross_entropy_smoothed import BinaryCrossEntropySmoothed
from models.losses.entropy_maximization import EntropyMaximization
from models.losses.expected_negative import ExpectedNegative
from models.losses.expected_positive_regularization import ExpectedPositiveRegularization
from models.losses.focal import Focal
from models.losses.generalized_robust import GeneralizedRobust
from models.losses.generalized_robust_guided import GeneralizedRobustGuided
from models.losses.hill import Hill
from models.losses.ignore_unobserved import IgnoreUnobserved
from models.losses.ignore_unobserved_negatives import IgnoreUnobservedNegatives
from models.losses.opml import OPML
from models.losses.pairwise_ranking import PairwiseRanking
from models.losses.self_paced_correction import SelfPacedCorrection
from models.losses.weak_assume_negative import WeakAssumeNegative
from models.losses.zlpr import ZLPR

LOSSES: dict[str, type[Loss]] = {
    loss.name: loss
    for loss in (
        BinaryCrossEntropy,
        BinaryCrossEntropySmoothed,
        IgnoreUnobserved,
        IgnoreUnobservedNegatives,
        AssumeNegative,
        AssumeNegativeSmoothed,
        WeakAssumeNegative,
        PairwiseRanking,
        ExpectedPositiveRegularization,
        EntropyMaximization,
        GeneralizedRobust,
        GeneralizedRobustGuided,
        Focal,
        Asymmetric,
        Hill,
        SelfPacedCorrection,
        ZLPR,
        OPML,
        ExpectedNegative,
    )
}


def make_loss(name: str, reduction: str | None = None, **constants: Any) -> Loss:
    """Return the loss of that name, built with the given constants.

    Args:
        name: A key of LOSSES.
        reduction: One of REDUCTIONS (losses/base.py); None leaves the loss its own.
        constants: Keyword arguments of the loss.

    Raises:
        ValueError: The name, a constant or the reduction is unknown; the message lists the known ones.
    """
    if name not in LOSSES:
        raise no_such("loss", name, LOSSES)
    known = inspect.signature(LOSSES[name]).parameters
    for constant in constants:
        if constant not in known:
            raise no_such(f"constant of loss {name!r}:", constant, known)
    loss = LOSSES[name](**constants)
    if reduction is not None:
        loss.reduction = one_of("reduction", reduction, REDUCTIONS)
    return loss
