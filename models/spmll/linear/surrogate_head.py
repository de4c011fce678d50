"""A linear approximation of a larger model, so that heat maps can be drawn."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from spmll.linear.training import Head, check_features, iterate_chunks
from spmll.rows import Rows

RIDGE_SHARE = 1e-2  # ridge, as a share of the mean variance of a feature
# probabilities are first moved this far inside (0, 1): a logit must be finite, and no cell rule the rest
PROBABILITY_EPS = 1e-3


def fit_surrogate_head(features: Rows, probabilities: np.ndarray, tell: Callable[[], None] = lambda: None) -> Head:
    """Fit a head to the logits of `probabilities` by ridge regression.

    Args:
        features: (N, D).
        probabilities: (N, C). nan columns get no model, nan rows are skipped.
    """
    everything = check_features(features, features.shape[1])
    if len(features) != len(probabilities):
        raise ValueError(f"There are {len(features)} rows of features and {len(probabilities)} of probabilities.")
    wanted = torch.from_numpy(np.asarray(probabilities, np.float32))
    known = ~torch.isnan(wanted).all(0)
    rows = ~torch.isnan(wanted[:, known]).any(1)
    head = Head(features.shape[1], wanted.shape[1])
    if not (known.any() and rows.any()):
        return head
    d = features.shape[1]
    products, answers = torch.zeros(d + 1, d + 1), torch.zeros(d + 1, int(known.sum()))

    def iterate_labeled_chunks() -> Iterator[tuple[Tensor, Tensor]]:
        for start, chunk in iterate_chunks(everything):
            some = rows[start : start + len(chunk)]
            yield chunk[some], wanted[start : start + len(chunk)][some][:, known]

    mean = torch.cat([chunk.sum(0, keepdim=True) for chunk, _ in iterate_labeled_chunks()]).sum(0) / int(rows.sum())
    for chunk, chances in iterate_labeled_chunks():
        tell()
        with_one = torch.cat([chunk - mean, torch.ones(len(chunk), 1)], dim=1)
        products += with_one.T @ with_one
        answers += with_one.T @ torch.logit(chances, PROBABILITY_EPS)
    ridge = torch.full((d + 1,), RIDGE_SHARE * float(products.diagonal()[:d].mean()) + 1e-6)
    ridge[d] = 0.0  # the bias is free
    solved = torch.linalg.solve((products + ridge.diag()).double(), answers.double()).float()
    head.weight[known] = solved[:d].T.contiguous()
    head.bias[known] = solved[d] - solved[:d].T @ mean
    return head
