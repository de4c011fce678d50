"""What a training of the stacked model leaves in memory for the next one."""

from dataclasses import dataclass, field

from torch import Tensor

from models.ensemble.squares import KeptSquares

HALVES = 2  # of the images: those of each are scored by models of the other


@dataclass
class WarmStart:
    """What the next training goes on from; each worker has one instance.

    Attributes:
        weights: Of the answered-cell heads, of whole images.
        squares: Of the images of each half.
    """

    weights: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)  # half, or -1 for all -> (D, C), (C,)
    squares: tuple[KeptSquares, ...] = field(default_factory=lambda: tuple(KeptSquares() for _ in range(HALVES)))
