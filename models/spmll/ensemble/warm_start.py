"""The state that a training of the stacked model leaves in memory for the next one."""

from dataclasses import dataclass, field

from torch import Tensor

from spmll.ensemble.gram_cache import GramCache

HALF_COUNT = 2  # of the images: those of each are scored by models of the other


@dataclass
class WarmStart:
    """The state from which the next training continues; each worker has one instance.

    Attributes:
        weights: Weights of the answered-cell heads, fitted to whole images.
        squares: Sums of the images of each half.
    """

    weights: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)  # half, or -1 for all -> (D, C), (C,)
    squares: tuple[GramCache, ...] = field(default_factory=lambda: tuple(GramCache() for _ in range(HALF_COUNT)))
