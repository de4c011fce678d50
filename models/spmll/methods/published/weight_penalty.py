"""Assume negative with L1 or L2 weight penalties, baselines of Zhou et al., ECCV 2022."""

from collections.abc import Iterable

from torch import Tensor
from typing_extensions import override

from spmll.losses.assume_negative import AssumeNegative
from spmll.losses.base import check_non_negative
from spmll.methods.base import Method
from spmll.methods.training_recipes import shared_protocol


class WeightPenalty(Method):
    """Base of methods that assume negatives and add a weight penalty, which subclasses define."""

    paper = "Zhou et al., Acknowledging the Unknown for Multi-label Learning with Single Positive Labels, ECCV"
    year = 2022
    url = "https://arxiv.org/abs/2203.16219"
    assumes = "What nobody marked is absent; weights of the network are small."
    threshold = 0.4
    yardstick = True
    published = shared_protocol()
    open_points = (
        "The texts at hand name this row and define nothing. The penalty is taken to be on the weights of the network "
        "(biases and normalisation left out), and its strength is a guess.",
    )
    strength: float

    def criterion(self) -> AssumeNegative:
        return AssumeNegative()


class L1R(WeightPenalty):
    """Assume negative plus strength x sum of absolute weights."""

    name = "l1r"
    title = "Assume negative, L1 regularization"

    def __init__(self, strength: float = 1e-6):
        """Store the strength of the penalty. Raises ValueError if it is negative."""
        check_non_negative(strength=strength)
        self.strength = strength

    @override
    def penalty(self, weights: Iterable[Tensor]) -> Tensor | float:
        return self.strength * sum((weight.abs().sum() for weight in weights), start=0.0)


class L2R(WeightPenalty):
    """Assume negative plus strength / 2 x sum of squared weights."""

    name = "l2r"
    title = "Assume negative, L2 regularization"

    def __init__(self, strength: float = 1e-4):
        """Store the strength of the penalty. Raises ValueError if it is negative."""
        check_non_negative(strength=strength)
        self.strength = strength

    @override
    def penalty(self, weights: Iterable[Tensor]) -> Tensor | float:
        return self.strength / 2 * sum((weight.square().sum() for weight in weights), start=0.0)
