"""The registry of losses, LOSSES. One file per paper or family, one entry per loss."""

import inspect
from typing import Any

from spmll.losses.assume_negative import AssumeNegative, AssumeNegativeSmoothed, WeakAssumeNegative
from spmll.losses.asymmetric import Asymmetric
from spmll.losses.base import REDUCTIONS, Loss, check_choice, unknown_name_error
from spmll.losses.binary_cross_entropy import BinaryCrossEntropy, BinaryCrossEntropySmoothed
from spmll.losses.entropy_maximization import EntropyMaximization, EntropyMinimization
from spmll.losses.expected_negative import ExpectedNegative
from spmll.losses.expected_positive_regularization import ExpectedPositiveRegularization
from spmll.losses.focal import Focal
from spmll.losses.generalized_robust import GeneralizedRobust, GeneralizedRobustGuided
from spmll.losses.hill import Hill
from spmll.losses.ignore_unobserved import IgnoreUnobserved, IgnoreUnobservedNegatives
from spmll.losses.opml import OPML
from spmll.losses.pairwise_ranking import PairwiseRanking
from spmll.losses.self_paced_correction import SelfPacedCorrection
from spmll.losses.zlpr import ZLPR

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
        EntropyMinimization,
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
    """Create a loss by name.

    Args:
        name: Name in LOSSES.
        reduction: One of REDUCTIONS, or None for the default.
        **constants: Constants other than the defaults.

    Returns:
        The loss.

    Raises:
        ValueError: A name is unknown or a value invalid.
    """
    if name not in LOSSES:
        raise unknown_name_error("loss", name, LOSSES)
    known = inspect.signature(LOSSES[name]).parameters
    for constant in constants:
        if constant not in known:
            raise unknown_name_error(f"constant of loss {name!r}:", constant, known)
    loss = LOSSES[name](**constants)
    if reduction is not None:
        loss.reduction = check_choice("reduction", reduction, REDUCTIONS)
    return loss
