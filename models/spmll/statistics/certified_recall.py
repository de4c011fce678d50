"""Recall and precision of labels, with intervals from stratified random samples of cells.

A stratum of N cells has T positives, which never change. An audit samples n cells and finds x positives. Missing
positives are T minus those labeled by now, so old audits stay valid. T - x, over the N - n unsampled cells, is
beta-binomial with Beta(x + 1, n - x) for the upper and Beta(x, n - x + 1) for the lower limit (exact hypergeometric,
Buonaccorsi 1987). Strata are summed by draws (Fay, Proschan & Brittain 2015). As in Fay & Feuer 1997, only the stratum
where it weighs most gets the full pseudo-count. `annotator bench certificate` checks coverage.
"""

from dataclasses import dataclass

import numpy as np

from spmll.labels import ABSENT, PRESENT
from spmll.statistics.bounds import CONFIDENCE, Bounds, compute_lower_end, compute_upper_end, divide, draw_beta
from spmll.statistics.stratified_sampling import ACCEPTED_PRESENT, NO_STRATUM, RELABEL_STRATA

DEFAULT_DRAWS = 2000


@dataclass(frozen=True, eq=False)
class Strata:
    """Cell counts per stratum of all audits, (H,). A class without an audit has one unsampled stratum.

    Attributes:
        audit: Audit number. Audits of a class describe the same cells.
        code: Kind of stratum. Small samples borrow rates by kind.
        drawn: Sampled cells that count.
        positives: Sampled cells that are present.
        unsure: Sampled cells answered "unsure", counted as whichever is worse.
        present, absent: Cells decided by now.
        accepted: Cells auto-accepted as present by now.
    """

    of_class: np.ndarray
    audit: np.ndarray
    code: np.ndarray
    size: np.ndarray
    drawn: np.ndarray
    positives: np.ndarray
    unsure: np.ndarray
    present: np.ndarray
    absent: np.ndarray
    accepted: np.ndarray


@dataclass(frozen=True, eq=False)
class LabelTotals:
    """Numbers of currently labeled cells per class, (C,) int.

    Attributes:
        present: Labeled present by people.
        accepted: Auto-accepted as present.
        guaranteed: (C,) guaranteed precision of accepted cells, or 0.
        expected: (C,) estimated precision of accepted cells, or nan.
        disagreed_present, disagreed_absent: Cells with conflicting answers of annotators, by label.
        guaranteed_in_all: Guaranteed precision over all classes.
        relabeled, relabeled_wrong: Numbers of relabeled present cells, and of mistakes.
        confirmed: (C,) present cells that a second look at an audit has confirmed.
        is_confirmed: (C,) bool, no present cell of an audit lacks its second look.
        looks: (C + 1,) number of audits so far, for `compute_tail`. The default 0 is a single look.
    """

    present: np.ndarray
    accepted: np.ndarray
    guaranteed: np.ndarray
    expected: np.ndarray
    disagreed_present: np.ndarray
    disagreed_absent: np.ndarray
    guaranteed_in_all: float = 0.0
    relabeled: int = 0
    relabeled_wrong: int = 0
    confirmed: np.ndarray | int = 0
    is_confirmed: np.ndarray | bool = False
    looks: np.ndarray | int = 0


@dataclass(frozen=True, eq=False)
class StrataSums:
    """Random draws of totals over strata, per class and over all, (draws, C + 1).

    Attributes:
        worst, best: Lower and upper limits of correct accepted cells.
        least, most: Lower and upper limits of missing positives.
    """

    worst: np.ndarray
    best: np.ndarray
    least: np.ndarray
    most: np.ndarray


@dataclass(frozen=True, eq=False)
class CertifiedFigures:
    """The result of `certify`: recall, precision and missing positives, with 95% intervals.

    Attributes:
        in_strata: (H,), estimated missing positives per stratum, from its audit.
        right: (C + 1,), estimated correct accepted cells.
    """

    recall: Bounds
    precision: Bounds
    missing: Bounds
    in_strata: np.ndarray
    right: np.ndarray
    sums: StrataSums


def count_strata(
    strata: np.ndarray, states: np.ndarray, accepted: np.ndarray, rows: np.ndarray, counted: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the `Strata` rows of one audit and class, without `of_class` and `audit`.

    Unanswered cells outside all strata, such as new images, form an unsampled stratum.

    Args:
        strata: (N,) uint8, stratum of each cell.
        states: (N,), PRESENT, ABSENT, or open.
        accepted: (N,) bool, ignored if decided.
        rows: (n,), sampled cells.
        counted: (n,) bool, samples that count.
    """
    counts = count_strata_by_domain(strata, states, accepted, rows, counted, np.zeros(len(strata), np.uint8), 1)
    return {name: cells if name == "code" else cells[:, 0] for name, cells in counts.items()}


def count_strata_by_domain(
    strata: np.ndarray,
    states: np.ndarray,
    accepted: np.ndarray,
    rows: np.ndarray,
    counted: np.ndarray,
    domain_of: np.ndarray,
    domains: int,
) -> dict[str, np.ndarray]:
    """Return the counts of `count_strata` per domain, such as a place: `code` (K,), others (K, G).

    Args:
        domain_of: (N,), domain of each cell, numbered from 0.
        domains: Number of domains, G.
    """
    decided = (states == PRESENT) | (states == ABSENT)
    code = np.where(np.isin(strata, RELABEL_STRATA), NO_STRATUM, strata)
    inside = (code != NO_STRATUM) | ~decided
    sample = rows[counted & inside[rows] & (code[rows] != NO_STRATUM)]
    codes = np.unique(code[inside])
    place = np.zeros(256, np.int64)
    place[codes] = np.arange(len(codes))
    # int32: a code and a domain of a million images take 4 MB.
    key = code if domains == 1 else place.astype(np.int32)[code] * domains + domain_of.astype(np.int32)

    def counted_by_key(chosen: np.ndarray) -> np.ndarray:
        if domains == 1:
            return np.bincount(key[chosen], minlength=256)[codes][:, None]
        return np.bincount(key[chosen], minlength=len(codes) * domains).reshape(-1, domains)

    return {
        "code": codes.astype(np.int64),
        "size": counted_by_key(inside),
        "drawn": counted_by_key(sample),
        "positives": counted_by_key(sample[states[sample] == PRESENT]),
        "unsure": counted_by_key(sample[~decided[sample]]),
        "present": counted_by_key(inside & (states == PRESENT)),
        "absent": counted_by_key(inside & (states == ABSENT)),
        "accepted": counted_by_key(inside & accepted & ~decided),
    }


def certify(
    strata: Strata, labels: LabelTotals, draws: int = DEFAULT_DRAWS, seed: int = 0, used: np.ndarray | None = None
) -> CertifiedFigures:
    """Return recall, precision and missing positives of current labels, with 95% intervals.

    Decisions count as true, except for the mistake rate of relabeling. Cells with conflicting answers count
    either way. Without samples the recall interval ends at 1.

    Args:
        used: (H,) bool, strata whose samples are used. None selects samples that bound better than open cells do.
    """
    rng = np.random.default_rng(seed)
    classes = len(labels.present)
    adders = np.zeros((len(strata.size), classes))
    adders[np.arange(len(strata.size)), strata.of_class] = compute_audit_weights(strata, classes)
    sums = _draw_sums(strata, labels, adders, _find_useful_samples(strata) if used is None else used, draws, rng)
    people, accepted, disputed, denied = (
        np.append(cells, cells.sum())
        for cells in (labels.present, labels.accepted, labels.disagreed_present, labels.disagreed_absent)
    )
    sure = people - disputed
    mistakes = draw_beta(rng, labels.relabeled_wrong, labels.relabeled - labels.relabeled_wrong + 1, (draws, 1))
    more_mistakes = (
        draw_beta(rng, labels.relabeled_wrong + 1, labels.relabeled - labels.relabeled_wrong, (draws, 1))
        if labels.relabeled
        else 0
    )
    in_strata, right = _estimate_missing(strata, labels)
    missing, true = (np.append(sum_, sum_.sum()) for sum_ in (in_strata @ adders, right @ adders))
    missing = np.where(_is_missing_known(strata, classes), missing, np.nan)
    share, looks = labels.relabeled_wrong / max(labels.relabeled, 1), labels.looks
    return CertifiedFigures(
        recall=Bounds(
            divide(people + true, people + true + missing, np.nan),
            compute_lower_end(divide(sure + sums.worst, sure + sums.worst + sums.most + denied, 1.0), looks),
            compute_upper_end(divide(people + sums.best, people + sums.best + sums.least, 1.0), looks),
        ),
        precision=Bounds(
            divide(people * (1 - share) + true, people + accepted, np.nan),
            compute_lower_end(divide(sure * (1 - more_mistakes) + sums.worst, people + accepted, 0.0), looks),
            compute_upper_end(divide(people * (1 - mistakes) + sums.best, people + accepted, 1.0), looks),
        ),
        missing=Bounds(
            missing,
            np.floor(compute_lower_end(sums.least, looks)),
            np.ceil(compute_upper_end(sums.most + denied, looks)),
        ),
        in_strata=in_strata,
        right=true,
        sums=sums,
    )


Limits = tuple[np.ndarray, np.ndarray]
"""Lower and upper limits, (draws, H) each."""


def _draw_sums(
    strata: Strata, labels: LabelTotals, adders: np.ndarray, used: np.ndarray, draws: int, rng: np.random.Generator
) -> StrataSums:
    """Return random draws of the sums over strata, per class and over all classes."""
    by_class, over_all = _draw_positive_limits(strata, adders.sum(1), used, draws, rng)
    # The guarantee counts for cells accepted after an audit. Those accepted before it have a sample of their own.
    own = strata.code == ACCEPTED_PRESENT
    parts_by_class = _bound_sum_parts(strata, *by_class, np.where(own, 0.0, labels.guaranteed[strata.of_class]))
    parts_over_all = _bound_sum_parts(strata, *over_all, np.where(own, 0.0, labels.guaranteed_in_all))
    summed = [
        np.concatenate([by_class_part @ adders, (over_all_part @ adders.sum(1))[:, None]], 1)
        for by_class_part, over_all_part in zip(parts_by_class, parts_over_all, strict=True)
    ]
    rest = _count_open_cells(strata) @ adders
    # The certain bounds are applied to the sums, not to their parts: clipping parts on one side would shift a sum.
    return StrataSums(*summed[:2], *(np.clip(missing, 0, np.append(rest, rest.sum())) for missing in summed[2:]))


def _bound_sum_parts(strata: Strata, low: np.ndarray, high: np.ndarray, guaranteed: np.ndarray) -> list[np.ndarray]:
    """Return the fields of StrataSums per stratum, (draws, H) each, from limits of positives."""
    rest, own = _count_open_cells(strata), strata.code == ACCEPTED_PRESENT
    few, many = low - strata.present, high - strata.present  # positives that no person has labeled
    best = np.minimum(strata.accepted, np.maximum(many, 0))
    worst = np.clip(strata.accepted * guaranteed, np.maximum(few - rest, 0), best)
    return [worst, best, np.where(own, 0, few - best), np.where(own, rest, many - worst)]


def _draw_positive_limits(
    strata: Strata, weight: np.ndarray, used: np.ndarray, draws: int, rng: np.random.Generator
) -> tuple[Limits, Limits]:
    """Return lower and upper limits of positives per stratum (draws, H), for sums by class and over all classes."""
    present = strata.positives + strata.unsure
    absent = strata.drawn - strata.positives
    high = _draw_upper_limits(strata, present, strata.present, strata.absent, weight, used, draws, rng)
    low = _draw_upper_limits(strata, absent, strata.absent, strata.present, weight, used, draws, rng)
    return (strata.size - low[0], high[0]), (strata.size - low[1], high[1])


def _draw_upper_limits(
    strata: Strata,
    counts: np.ndarray,
    least: np.ndarray,
    others: np.ndarray,
    weight: np.ndarray,
    used: np.ndarray,
    draws: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw upper limits of the cells of one kind per stratum (draws, H), for sums by class and over all classes."""
    n, rest = strata.drawn, strata.size - strata.drawn

    def draw_limits(more: np.ndarray, rows: np.ndarray) -> np.ndarray:
        share = draw_beta(rng, (counts + more)[rows], (n - counts + 1 - more)[rows], (draws, len(rows)))
        return np.maximum(counts[rows] + rng.binomial(rest[rows], share), least[rows])

    pooled = (np.bincount(strata.code, counts)[strata.code] + 0.5) / (np.bincount(strata.code, n)[strata.code] + 1)
    rate = (counts + pooled) / (n + 1)
    # Where most cells are of this kind the others are rare, and their lower limit has no pseudo-count.
    more = np.where(rate > 0.5, 1.0, np.maximum(rate, counts / np.maximum(n, 1)))
    by_class = np.broadcast_to(strata.size - others, (draws, len(n))).astype(np.float64)
    sampled = np.flatnonzero(used)
    by_class[:, sampled] = draw_limits(more, sampled)
    over_all = by_class.copy()
    doubt = np.where(rate > 0.5, 0.0, weight * np.where(used, compute_doubt(strata), 0.0))
    heaviest = _find_most_doubtful(strata, doubt)
    by_class[:, heaviest] = draw_limits(np.ones(len(n)), heaviest)
    own = strata.code[heaviest] == ACCEPTED_PRESENT
    of_all = [heaviest[group][np.argmax(doubt[heaviest[group]])] for group in (own, ~own) if group.any()]
    over_all[:, of_all] = by_class[:, of_all]
    return by_class, over_all


def _find_useful_samples(strata: Strata) -> np.ndarray:
    """Return whether a stratum's sample bounds its positives better than the number of open cells does, (H,)."""
    rate = (strata.positives + 0.5) / (strata.drawn + 1)
    deviation = np.sqrt(strata.size * (strata.size - strata.drawn) * rate * (1 - rate) / np.maximum(strata.drawn, 1))
    return (strata.drawn > 0) & (strata.size - strata.present - strata.absent > deviation)


def compute_doubt(strata: Strata) -> np.ndarray:
    """Return the upper limit of positives that each stratum would have if its sample had none, (H,)."""
    miss = (1 - CONFIDENCE) / 2
    return (strata.size - strata.drawn) * (1 - miss ** (1 / np.maximum(strata.drawn, 1)))


def _find_most_doubtful(strata: Strata, doubt: np.ndarray) -> np.ndarray:
    """Return per class the stratum of accepted cells, and that of others, with the largest `doubt` (H,)."""
    group = 2 * strata.of_class + (strata.code == ACCEPTED_PRESENT)
    order = np.lexsort((-doubt, group))
    first = order[np.unique(group[order], return_index=True)[1]]
    return first[doubt[first] > 0]


def _estimate_missing(strata: Strata, labels: LabelTotals) -> tuple[np.ndarray, np.ndarray]:
    """Return the estimated missing positives per stratum, and correct accepted cells per stratum, (H,) each."""
    answered = strata.drawn - strata.unsure
    rate = strata.positives / np.maximum(answered, 1)
    sampled = strata.size * (answered > 0)
    usual = np.bincount(strata.of_class, sampled * rate) / np.maximum(np.bincount(strata.of_class, sampled), 1)
    rate = np.where(answered > 0, rate, usual[strata.of_class])
    total = np.clip(strata.size * rate, strata.present, strata.size - strata.absent)
    unlabeled = total - strata.present
    rest = _count_open_cells(strata)
    expected = labels.expected[strata.of_class]
    by_size = unlabeled / np.maximum(strata.accepted + rest, 1)
    share = np.where(np.isnan(expected) | (strata.code == ACCEPTED_PRESENT), by_size, expected)
    right = np.clip(strata.accepted * share, np.maximum(unlabeled - rest, 0), np.minimum(strata.accepted, unlabeled))
    return np.minimum(rest, unlabeled - right), right


def compute_audit_weights(strata: Strata, classes: int) -> np.ndarray:
    """Return the weight of each stratum's audit among the audits of its class, (H,), by number of sampled cells."""
    key = strata.audit * classes + strata.of_class
    drawn = np.bincount(key, strata.drawn)
    share = np.minimum(drawn / np.maximum(np.bincount(key, strata.size), 1), 1 - 1e-6)
    weight = np.where(np.bincount(key) > 0, np.maximum(drawn / (1 - share), 1e-9), 0)
    total = np.bincount(np.arange(len(weight)) % max(classes, 1), weight, minlength=classes)
    return weight[key] / total[strata.of_class]


def _is_missing_known(strata: Strata, classes: int) -> np.ndarray:
    """Return whether missing positives can be estimated, (C + 1,): there is a sample, or no cell is open."""
    other = strata.code != ACCEPTED_PRESENT
    known = np.bincount(strata.of_class, (strata.drawn - strata.unsure) * other, minlength=classes) > 0
    known |= np.bincount(strata.of_class, _count_open_cells(strata), minlength=classes) == 0
    return np.append(known, known.all())


def _count_open_cells(strata: Strata) -> np.ndarray:
    """Count the cells per stratum that are neither decided nor accepted."""
    return strata.size - strata.present - strata.absent - strata.accepted
