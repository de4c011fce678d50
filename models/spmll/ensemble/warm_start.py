"""The in-memory state that one stacked training passes to the next."""

from dataclasses import dataclass, field

from torch import Tensor

from spmll.ensemble.gram_cache import GramCache

HALF_COUNT = 2  # of the images: those of each are scored by models of the other


@dataclass
class WarmStart:
    """The in-memory state that one stacked training leaves to the next. Each worker has one.

    Attributes:
        weights: Head weights and biases by half, or -1 for all.
        squares: Cached ridge regression sums, per half.
    """

    weights: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)  # half, or -1 for all -> (D, C), (C,)
    squares: tuple[GramCache, ...] = field(default_factory=lambda: tuple(GramCache() for _ in range(HALF_COUNT)))
