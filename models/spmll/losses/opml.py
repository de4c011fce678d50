"""OPML: ZLPR with two constants that bound how far classes are pushed from 0, and a rank penalty.

The paper's formulas were unavailable, but these forms fit its description. Li et al. 2023, eqs. 3, 6, 10 and
11, https://arxiv.org/abs/2302.14695
"""

import torch
from torch import Tensor

from spmll.losses.base import PerImageLoss, check_choice, check_finite, presence_probability, weighted_log_sum_exp

RANK_FORMS = ("logdet", "singular")


class OPML(PerImageLoss):
    """log(e^a + sum over present of e^-z) + log(e^b + sum over others of e^z) per image.

    A soft -q is in both sums, with weights q and 1 - q (eq. 11). -1 and unseen cells are "others". The minimum is
    a + b.
    """

    name = "opml"

    def __init__(self, a: float = 0.0, b: float = 0.0):
        """Store the exponents. a = b = 0 is ZLPR."""
        super().__init__()
        check_finite(a=a, b=b)
        self.a, self.b = a, b

    def per_image(self, logits: Tensor, labels: Tensor, usable: Tensor) -> Tensor:
        present = presence_probability(labels)
        return weighted_log_sum_exp(-logits, present * usable, self.a) + weighted_log_sum_exp(
            logits, (1 - present) * usable, self.b
        )


def rank_penalty(probabilities: Tensor, delta: float = 1.0, form: str = "logdet") -> Tensor:
    """Return a scalar that is lower for a higher rank, possibly negative (eq. 10).

    methods/published/opml_sp.py adds it to the loss.

    Args:
        probabilities: (B, C) in [0, 1].
        delta: Added to the diagonal in "logdet".
        form: Two readings of the lost formula. "logdet", always finite: -log det(P P^T + delta I), or P^T P if
            smaller. "singular": minus the sum of log singular values, bounded by rounding.

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
