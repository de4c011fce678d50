"""A penalty for a low rank of a batch's predictions, used beside a loss (opml_sp.py).

Li et al. 2023, eq. 10, https://arxiv.org/abs/2302.14695, in two readings of its lost formula.
"""

import torch
from torch import Tensor

from spmll.losses.base import check_choice

RANK_FORMS = ("logdet", "singular")


def rank_penalty(probabilities: Tensor, delta: float = 1.0, form: str = "logdet") -> Tensor:
    """Return a scalar that is lower for a higher rank, possibly negative.

    Args:
        probabilities: (B, C) in [0, 1].
        delta: Added to the diagonal in "logdet".
        form: "logdet", always finite: -log det(P P^T + delta I), or P^T P if smaller. "singular": minus the sum
            of log singular values, bounded by rounding.

    Raises:
        ValueError: Invalid delta or form.
    """
    check_choice("form", form, RANK_FORMS)
    if probabilities.dtype in (torch.float16, torch.bfloat16):
        probabilities = probabilities.float()
    if not probabilities.numel():
        return probabilities.sum()
    if form == "singular":
        values = torch.linalg.svdvals(probabilities)
        precision = torch.finfo(values.dtype)
        rounding = (values.detach().max() * max(probabilities.shape) * precision.eps).clamp(min=precision.tiny)
        return -values.clamp(min=rounding).log().sum()
    if not delta > 0:
        raise ValueError(f"delta = {delta}; it must be positive, or images that look alike would cost infinitely much.")
    rows = probabilities if probabilities.shape[0] <= probabilities.shape[1] else probabilities.T
    with torch.autocast(rows.device.type, enabled=False):  # it would multiply in half precision
        return -torch.logdet(rows @ rows.T + delta * torch.eye(len(rows), dtype=rows.dtype, device=rows.device))
