"""Recall and precision of labels, with confidence intervals, from stratified random samples of their cells.

An audit cuts the cells of a class into strata and asks a random sample of each (stratified_sampling.py). The number of
positives of a stratum, T, never changes; the sample bounds it. Positives that people or a model label afterwards are
subtracted: missing = T - positives labeled. So an old audit stays valid, and gets more precise with every decision.

The exact test of one stratum corresponds to a beta-binomial distribution of T: T - x of the N - n cells that were not
sampled, with Beta(x + 1, n - x) for the upper limit and Beta(x, n - x + 1) for the lower one, where x of n cells of the
sample are present. (Their quantiles are the exact hypergeometric limits, Buonaccorsi 1987.) Strata are summed by
drawing from these, as in Fay, Proschan & Brittain 2015, "Combining one-sample confidence procedures for inference in
the two-sample case". The extra pseudo-count of 1 in every stratum would make the sum far too wide; as in Fay & Feuer
1997, "Confidence intervals for directly standardized rates", only the stratum in which it weighs most gets all of it,
the others in proportion to their rate of positives. Coverage is checked by simulation: `annotator bench certificate`.
"""

from dataclasses import dataclass

import numpy as np

from spmll.labels import ABSENT, PRESENT
from spmll.statistics.bounds import CONFIDENCE, Bounds, compute_lower_end, compute_upper_end, divide, draw_beta
from spmll.statistics.stratified_sampling import ACCEPTED_PRESENT, LOOK_ABSENT, LOOK_PRESENT, NO_STRATUM

DEFAULT_DRAWS = 1000


@dataclass(frozen=True, eq=False)
class Strata:
    """The strata of all audits, one row each, (H,) arrays; a class without an audit has one stratum without a sample.

    Attributes:
        of_class: The class, 0 .. C - 1.
        audit: The audit; strata of one class in several audits describe the same cells.
        code: The kind of stratum; where little was sampled, the rate of the same code in other classes is used.
        size: Number of cells.
        drawn: Number of sampled cells that may be counted.
        positives: Number of sampled cells that are present.
        unsure: Number of sampled cells answered with "unsure": they count as present and as absent, whichever is worse.
        present: Number of cells that people have by now decided present.
        absent: Number of cells that people have by now decided absent.
        accepted: Number of cells that are by now auto-accepted as present.
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
    """The current labels, numbers of cells in each class, (C,) int arrays.

    Attributes:
        present: Decided present by people.
        accepted: Auto-accepted as present.
        guaranteed: (C,) float, the guaranteed precision of auto-accepted cells, 0 where nothing is guaranteed.
        expected: (C,) float, the estimated precision of auto-accepted cells; nan where unknown.
        disagreed_present, disagreed_absent: Cells on which two people disagree, by their current label.
        guaranteed_in_all: A number: the guaranteed precision of the auto-accepted cells of all classes together.
        relabeled, relabeled_wrong: A number each: relabeled cells that people had decided present, and how many were
            wrong.
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


@dataclass(frozen=True, eq=False)
class StrataSums:
    """Draws of sums over the strata of each class and of all classes, (draws, C + 1) float64, for the intervals.

    Attributes:
        worst, best: Lower and upper limits of the correct cells among the auto-accepted.
        least, most: Lower and upper limits of the missing positives.
    """

    worst: np.ndarray
    best: np.ndarray
    least: np.ndarray
    most: np.ndarray


@dataclass(frozen=True, eq=False)
class CertifiedFigures:
    """Recall and precision in [0, 1], and the number of missing positives, each with bounds.

    Attributes:
        missing: Positives that are not labeled, in cells.
        in_strata: (H,) float64, missing positives of each stratum, estimated from its own audit.
        right: (C + 1,) float64, estimated correct cells among the auto-accepted.
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
    """Return the rows of `Strata` for one audit of one class, without `of_class` and `audit`.

    Cells outside all strata that are open now (an undone decision, a new image) form a stratum without a sample.

    Args:
        strata: (N,) uint8, the stratum of each cell in the audit.
        states: (N,) int, the current decisions: PRESENT, ABSENT, or anything else for an open cell.
        accepted: (N,) bool, auto-accepted as present now; ignored where people have decided.
        rows: (n,) int64, the sampled cells.
        counted: (n,) bool, True where a sampled cell may be counted (stratified_sampling.usable).
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
    """Return what `count` returns, counted within each domain: `code` (K,), and of all else (K, G).

    Args:
        strata: (N,) uint8, as in `count`, like the next four.
        states: (N,) int.
        accepted: (N,) bool.
        rows: (n,) int64.
        counted: (n,) bool.
        domain_of: (N,) int, the domain of each image, from 0.
        domains: The number of domains, G.
    """
    decided = (states == PRESENT) | (states == ABSENT)
    looks = (strata == LOOK_PRESENT) | (strata == LOOK_ABSENT)
    code = np.where(looks, NO_STRATUM, strata)
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
    """Return recall, precision and missing positives of the current labels, with 95 % intervals.

    Decisions of people are taken as true, except for the share of mistakes found by relabeling, which lowers precision,
    and cells on which people disagree, which count either way. For a class without a sample the interval of its recall
    reaches from the recall if every unknown cell were positive up to 1.

    Args:
        strata: The population, and how many cells of each stratum were drawn.
        labels: The labels, by class.
        draws: Monte Carlo draws of the sums; more draws make the limits less noisy.
        seed: Decides the draws.
        used: (H,) bool, the strata whose samples are used; None: where the sample bounds the positives better than the
            number of open cells does.
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
    share = labels.relabeled_wrong / max(labels.relabeled, 1)
    return CertifiedFigures(
        recall=Bounds(
            divide(people + true, people + true + missing, np.nan),
            compute_lower_end(divide(sure + sums.worst, sure + sums.worst + sums.most + denied, 1.0)),
            compute_upper_end(divide(people + sums.best, people + sums.best + sums.least, 1.0)),
        ),
        precision=Bounds(
            divide(people * (1 - share) + true, people + accepted, np.nan),
            compute_lower_end(divide(sure * (1 - more_mistakes) + sums.worst, people + accepted, 0.0)),
            compute_upper_end(divide(people * (1 - mistakes) + sums.best, people + accepted, 1.0)),
        ),
        missing=Bounds(
            missing, np.floor(compute_lower_end(sums.least)), np.ceil(compute_upper_end(sums.most + denied))
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
    """Return the sums over the strata of each class, and over all of them."""
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
    """Return the four parts of Sums, each (draws, H), from limits of the positives of each stratum (draws, H)."""
    rest, own = _count_open_cells(strata), strata.code == ACCEPTED_PRESENT
    few, many = low - strata.present, high - strata.present  # positives that no person has labeled
    best = np.minimum(strata.accepted, np.maximum(many, 0))
    worst = np.clip(strata.accepted * guaranteed, np.maximum(few - rest, 0), best)
    return [worst, best, np.where(own, 0, few - best), np.where(own, rest, many - worst)]


def _draw_positive_limits(
    strata: Strata, weight: np.ndarray, used: np.ndarray, draws: int, rng: np.random.Generator
) -> tuple[Limits, Limits]:
    """Return limits (low, high) of the positives of each stratum, (draws, H): for sums by class, and over all."""
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
    """Return draws of the upper limit of the cells of one kind (present, or absent) in each stratum, (draws, H).

    Args:
        strata: The H strata.
        counts: (H,) sampled cells of this kind.
        least: (H,) cells known to be of this kind.
        others: (H,) cells known to be of the other kind.
        weight: (H,) weight of the audit in its class.
        used: (H,) bool, the strata whose samples are used.
        draws: The number of draws.
        rng: Decides the draws.

    Returns:
        Draws for sums over a class, and for sums over all classes, which have the pseudo-count in other strata.
    """
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
    """Return (H,) bool: whether the sample bounds the positives better than the number of open cells does."""
    rate = (strata.positives + 0.5) / (strata.drawn + 1)
    deviation = np.sqrt(strata.size * (strata.size - strata.drawn) * rate * (1 - rate) / np.maximum(strata.drawn, 1))
    return (strata.drawn > 0) & (strata.size - strata.present - strata.absent > deviation)


def compute_doubt(strata: Strata) -> np.ndarray:
    """Return the upper limit of positives in each stratum, (H,), for a sample without any."""
    miss = (1 - CONFIDENCE) / 2
    return (strata.size - strata.drawn) * (1 - miss ** (1 / np.maximum(strata.drawn, 1)))


def _find_most_doubtful(strata: Strata, doubt: np.ndarray) -> np.ndarray:
    """Return the strata with the most doubt: for each class one of the accepted cells and one of the others."""
    group = 2 * strata.of_class + (strata.code == ACCEPTED_PRESENT)
    order = np.lexsort((-doubt, group))
    first = order[np.unique(group[order], return_index=True)[1]]
    return first[doubt[first] > 0]


def _estimate_missing(strata: Strata, labels: LabelTotals) -> tuple[np.ndarray, np.ndarray]:
    """Return (H,) each: missing positives, and correct cells among the accepted."""
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
    """Return the weight of each audit in its class, (H,), by the number of answered cells and not by their answers."""
    key = strata.audit * classes + strata.of_class
    drawn = np.bincount(key, strata.drawn)
    share = np.minimum(drawn / np.maximum(np.bincount(key, strata.size), 1), 1 - 1e-6)
    weight = np.where(np.bincount(key) > 0, np.maximum(drawn / (1 - share), 1e-9), 0)
    total = np.bincount(np.arange(len(weight)) % max(classes, 1), weight, minlength=classes)
    return weight[key] / total[strata.of_class]


def _is_missing_known(strata: Strata, classes: int) -> np.ndarray:
    """Return (C + 1,) bool: whether missing positives are sampled, or no cell is left that could be one."""
    other = strata.code != ACCEPTED_PRESENT
    known = np.bincount(strata.of_class, (strata.drawn - strata.unsure) * other, minlength=classes) > 0
    known |= np.bincount(strata.of_class, _count_open_cells(strata), minlength=classes) == 0
    return np.append(known, known.all())


def _count_open_cells(strata: Strata) -> np.ndarray:
    """Return the number of cells in each stratum, (H,), that are neither decided nor auto-accepted as present."""
    return strata.size - strata.present - strata.absent - strata.accepted
