"""The state that a training continues from: an earlier stage, or a checkpoint of the same training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from spmll.finetune.best_epoch import BestEpoch


@dataclass(frozen=True, eq=False)
class ResumePoint:
    """Where a training finds its state, by default nowhere.

    Attributes:
        checkpoint: File to continue from if it exists, replaced per epoch, or None.
        best: Returns the epoch that a new stage starts from. None selects averaged, else last weights.
        learned: Tensors of the method from `fit_linear_start`, or None. A checkpoint replaces them.
    """

    checkpoint: Path | None = None
    best: Callable[[], BestEpoch | None] | None = None
    learned: Sequence[Tensor] | None = None
