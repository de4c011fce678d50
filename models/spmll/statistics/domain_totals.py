"""Recall and precision within a domain, such as the images of one place, from samples drawn of all images together.

A stratum of an audit has N cells, n of them sampled, and all are equally likely to be. Whether a cell is present and in
the domain is one more property of it, so the exact intervals of units (certified_recall.py) hold for the number of such
cells of the stratum: cells outside the domain count as absent. Every sample then bounds every domain, even one from
which it happened to draw nothing. Accepted cells are the exception, as nearly all of them are present: of those in the
domain the sampled ones are, given how many they are, a simple random sample (Cochran 1977, "Sampling Techniques", sec.
2.12 and 5A.14), which is narrower.

Nothing is assumed of cells that were not drawn, so the intervals hold however alike the images of an event are.

A small domain has few open cells in each of many strata. In which strata these bound the positives better than the
sample does is therefore decided for the sum over strata (`_used`). Coverage is checked by simulation:
annotator/benchmark/certified_groups.py.
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
    """Return the rows of `Strata` for one audit of one class in one domain, without `of_class` and `audit`.

    Strata without a cell in the domain are left out.

    Args:
        counts: What `count_strata_by_domain` returned.
        domain: The domain.
    """
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
    """Return recall, precision and missing positives of one domain; only those of all classes together are of use.

    Args:
        strata: Rows of `select_domain_rows`.
        labels: The labels within the domain, by class.
        draws: Monte Carlo draws of the sums.
        seed: Decides the draws.
    """
    return certify(strata, labels, draws, seed, used=_select_used_strata(strata, len(labels.present)))


def _select_used_strata(strata: Strata, classes: int) -> np.ndarray:
    """Return (H,) bool: the strata whose samples are used; of the others all open cells may be positives.

    A sum has the doubt of one unit of the most doubtful stratum that is used, and leaving a stratum out costs its open
    cells. As many of the most doubtful ones are left out as makes both together least. Sizes alone decide.
    """
    weight = compute_audit_weights(strata, classes)
    doubt = weight * compute_doubt(strata)
    open_ = weight * (strata.size - strata.present - strata.absent)
    used = (strata.drawn > 0) & (open_ > 0)
    summed = np.flatnonzero(used & (strata.code != ACCEPTED_PRESENT))
    order = summed[np.argsort(-doubt[summed], kind="stable")]
    costs = np.append(0, np.cumsum(open_[order])) + np.append(doubt[order], 0)
    used[order[: int(np.argmin(costs))]] = False
    return used
