"""High rank: the matrix of a batch's predictions should have a high rank.

Not a loss of labels but a term beside one (methods/published/opml_sp.py). The text of the paper that is at hand has
lost its formula; these are the two readings of "log det ... its singular values" with a minus sign.

Li et al., "Pushing One Pair of Labels Apart Each Time in Multi-Label Learning: From Single Positive to Full Labels",
2023, eq. 10, https://arxiv.org/abs/2302.14695
"""

import torch
from torch import Tensor

from spmll.losses.base import check_choice

RANK_FORMS = ("logdet", "singular")


def rank_penalty(probabilities: Tensor, delta: float = 1.0, form: str = "logdet") -> Tensor:
    """Return how far the predictions of a batch are from full rank, as a scalar.

    A lower value means a higher rank; it may be negative. An empty batch costs 0.

    Args:
        probabilities: (B, C) float in [0, 1]; half precision is converted to float32.
        delta: Added to the diagonal; 1 (the default) is mild and numerically safe, 1e-3 is nearly the bare determinant;
            "singular" ignores it.
        form: "logdet": -log det(P P^T + delta I), with P^T P where there are fewer classes than images. It is the
            default, since it is finite however alike the images are. "singular": minus the sum of the log singular
            values. A singular value that is 0 but for rounding is replaced by that rounding and has no gradient.

    Raises:
        ValueError: Delta is not positive or the form is unknown.
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
