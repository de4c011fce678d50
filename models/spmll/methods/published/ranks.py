"""Selection of the lowest cells per class."""

import torch
from torch import Tensor


def select_lowest(values: Tensor, counts: Tensor) -> Tensor:
    """Return (N, C) bool, True for the `counts` lowest values per column. Ties are chosen by row.

    Args:
        values: (N, C), +inf last.
        counts: (C,).
    """
    size = len(values)
    if not values.numel():
        return torch.zeros_like(values, dtype=torch.bool)
    # Selecting one value a column is several times faster than sorting all of them.
    bars = [column.kthvalue(min(max(k, 1), size)).values for column, k in zip(values.T, counts.tolist(), strict=True)]
    below, at = values < torch.stack(bars), values == torch.stack(bars)
    room = counts - below.sum(0)
    return (counts > 0) & (below | (at & (at.cumsum(0) <= room)))
