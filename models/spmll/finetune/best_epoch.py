"""The best epoch of a stage, from which the next continues."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class BestEpoch:
    """Network weights and method state of one epoch.

    Attributes:
        weights: A state_dict.
        learned: Tensors of `Method.parameter_groups` (ROLE: label estimates).
    """

    weights: dict[str, Tensor]
    learned: Sequence[Tensor] = ()
