"""The best epoch of a stage, with which the next stage of a training goes on."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class BestEpoch:
    """The network and what the method had learned beside it, both of the same epoch.

    Attributes:
        weights: A state_dict of the network.
        learned: The tensors of Method.learned (ROLE: the estimates of all labels), in its order.
    """

    weights: dict[str, Tensor]
    learned: Sequence[Tensor] = ()
