"""The state after the best epoch of a training stage, from which the next stage continues."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class BestEpoch:
    """A record of network weights and learned tensors of the method after one epoch.

    Attributes:
        weights: The network's state_dict.
        learned: Tensors of `Method.parameter_groups` (ROLE: label estimates).
    """

    weights: dict[str, Tensor]
    learned: Sequence[Tensor] = ()
