"""Recall and precision within a domain, such as a place, from samples of all images.

Cells outside the domain count as absent, so the exact intervals of certified_recall.py hold for every domain. Accepted
cells instead are a simple random sample within the domain (Cochran 1977, sec. 2.12 and 5A.14), which is narrower.
Nothing is assumed of undrawn cells.
"""

import numpy as np

from spmll.statistics.certified_recall import (
    DEFAULT_DRAWS,
    CertifiedFigures,
    LabelTotals,
    Strata,
    certify,
    compute_audit_weights,
    compute_doubt,
)
from spmll.statistics.stratified_sampling import ACCEPTED_PRESENT


def select_domain_rows(counts: dict[str, np.ndarray], domain: int) -> dict[str, np.ndarray]:
    """Return the `Strata` rows of one audit, class and domain, from counts of `count_strata_by_domain`."""
    within = {name: cells[:, domain] for name, cells in counts.items() if name != "code"}
    drawn, size = counts["drawn"].sum(1), counts["size"].sum(1)
    own = counts["code"] == ACCEPTED_PRESENT
    outside = np.where(own, 0, size - within["size"])
    rows = {"code": counts["code"]} | within
    rows |= {"size": within["size"] + outside, "absent": within["absent"] + outside}
    rows["drawn"] = np.where(own, within["drawn"], drawn)
    some = within["size"] > 0
    return {name: cells[some] for name, cells in rows.items()}


def certify_domain(strata: Strata, labels: LabelTotals, draws: int = DEFAULT_DRAWS, seed: int = 0) -> CertifiedFigures:
    """Return recall, precision and missing positives of a domain, useful only over all classes.

    Args:
        strata: Rows of `select_domain_rows`.
    """
    return certify(strata, labels, draws, seed, used=_select_used_strata(strata, len(labels.present)))


def _select_used_strata(strata: Strata, classes: int) -> np.ndarray:
    """Return which strata's samples are used, (H,) bool. The choice depends on sizes alone."""
    weight = compute_audit_weights(strata, classes)
    doubt = weight * compute_doubt(strata)
    open_ = weight * (strata.size - strata.present - strata.absent)
    used = (strata.drawn > 0) & (open_ > 0)
    summed = np.flatnonzero(used & (strata.code != ACCEPTED_PRESENT))
    order = summed[np.argsort(-doubt[summed], kind="stable")]
    costs = np.append(0, np.cumsum(open_[order])) + np.append(doubt[order], 0)
    used[order[: int(np.argmin(costs))]] = False
    return used
