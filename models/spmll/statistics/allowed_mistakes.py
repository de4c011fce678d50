"""Recall of labels, allowing for wrong answers: at an assumed rate, or at one that repeated answers show.

An answer misses a present cell with probability q and raises a false alarm at an absent cell with probability f.
Without repeated answers, q and f are anything up to ASSUMED_MISTAKE_SHARE, and the worst of them counts at each end.

Of present cells found by others, a person finds a share s = 1 - q, the double-observer estimate of ecology (Cook &
Jacobson 1979). For each present cell found by any of its k annotators, q^k / (1 - q^k) are missed by all (negative
binomial), and for each absent cell rightly rejected, f^k / (1 - f^k) are false alarms. If only cells answered
"present" get a second look, both looks find (1 - q)^2, and both raise f^2.

Rates of annotators are averaged by share of answers, with exact intervals (Clopper & Pearson 1934) at the effective
size (Korn & Graubard 1998), separately per class. Cells that everybody overlooks are not estimated.
"""

from dataclasses import astuple, dataclass
from math import ceil, log

import numpy as np

from spmll.statistics.bounds import CONFIDENCE, Bounds, compute_lower_end, compute_upper_end, divide, draw_beta
from spmll.statistics.certified_recall import DEFAULT_DRAWS, CertifiedFigures, LabelTotals

COUNT_AS_LABELED, COUNT_AS_PRESENT, COUNT_AS_ABSENT = 0, 1, 2
"""How cells are counted on which people differ and which nobody has settled."""
COUNTING_WAYS = 3
ASSUMED_RATES, REPEATED_ANSWERS, READ_TWICE = "assumed", "repeated answers", "several annotators"
"""What the rates of wrong answers rest on."""
EPSILON = 1e-6
ASSUMED_MISTAKE_SHARE = 0.02  # largest probability that an answer is wrong, until repeated answers show another
ENOUGH_REPEATS = ceil(log((1 - CONFIDENCE) / 2) / log(1 - ASSUMED_MISTAKE_SHARE))
"""Repeated answers without a mistake that would show ASSUMED_MISTAKE_SHARE. Fewer cannot replace the assumption."""
MAX_ALARM_SHARE = 0.05  # present labels of a class that may be false alarms before they need a second look


@dataclass(frozen=True, eq=False)
class DoubleReadings:
    """Counts of independent answers of P people to cells of C classes, two to K per cell.

    Attributes:
        share: (P,), each person's share of all answers.
        present: (COUNTING_WAYS, 2, P, C): present cells found by others, and those this person found, per way to
            count unresolved cells.
        absent: The same for absent cells.
        found, rejected: (C, K + 1), cells labeled present, or absent, by number of annotators.
    """

    share: np.ndarray
    present: np.ndarray
    absent: np.ndarray
    found: np.ndarray
    rejected: np.ndarray

    @property
    def compared_answers(self) -> np.ndarray:
        """Count the answers from which sensitivity is estimated, (C + 1,)."""
        return _append_total(self.present[COUNT_AS_LABELED, 0].sum(0))

    def count_repeats(self) -> "RepeatedAnswers":
        """Count the answers to cells that others answered, and those that differ from the label."""
        (shown, found), (empty, rejected) = (
            counts[COUNT_AS_LABELED].sum((1, 2)).tolist() for counts in (self.present, self.absent)
        )
        return RepeatedAnswers(shown, shown - found, empty, empty - rejected)


@dataclass(frozen=True)
class RepeatedAnswers:
    """Counts of blind second answers to cells labeled present (of these `mistaken`) or absent (of these `missed`)."""

    present: int = 0
    mistaken: int = 0
    absent: int = 0
    missed: int = 0

    def __add__(self, other: "RepeatedAnswers") -> "RepeatedAnswers":
        return RepeatedAnswers(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def total(self) -> int:
        """Return the number of second answers."""
        return self.present + self.absent


@dataclass(frozen=True, eq=False)
class AnswerRates:
    """Sensitivity s and specificity t of single answers, (C + 1,) or (draws, C + 1).

    Attributes:
        wrong_share: Share of present labels that are wrong, or None to compute it from t.
    """

    sensitivity: np.ndarray
    specificity: np.ndarray
    wrong_share: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class AllowedMistakes:
    """Rates of wrong answers to allow for: the usual ones, and those that make recall lowest and highest."""

    usual: AnswerRates
    worst: AnswerRates
    best: AnswerRates


def assume_mistakes(share: float, classes: int, draws: int) -> AllowedMistakes:
    """Allow for any rates of wrong answers up to `share`, in each of C classes."""
    usual = np.full(classes + 1, 1.0 - share)
    worst, best = np.full((draws, classes + 1), 1.0 - share), np.ones((draws, classes + 1))
    return AllowedMistakes(AnswerRates(usual, usual), AnswerRates(worst, worst), AnswerRates(best, best))


def measure_repeats(repeats: RepeatedAnswers, classes: int, draws: int, seed: int = 0) -> AllowedMistakes:
    """Allow for the rates that blind second answers to randomly drawn labels show, equal for all C classes.

    The share of present labels whose second answer is "absent" bounds misses and wrong labels alike, from above.
    """
    rng = np.random.default_rng(seed)

    def draw_rate(wrong: int, asked: int, more: int) -> np.ndarray:
        drawn = draw_beta(rng, wrong + more, asked - wrong + 1 - more, (draws, 1))
        return np.broadcast_to(drawn, (draws, classes + 1))

    missed, alarms = ((repeats.mistaken, repeats.present), (repeats.missed, repeats.absent))
    shares = [np.full(classes + 1, wrong / max(asked, 1)) for wrong, asked in (missed, alarms)]
    high = [draw_rate(*counts, 1) for counts in (missed, alarms)]
    # A second answer that differs may itself be wrong, so that these counts say nothing about the lowest rates.
    none = np.ones((draws, classes + 1))
    return AllowedMistakes(
        AnswerRates(1 - shares[0], 1 - shares[1], shares[0]),
        AnswerRates(1 - high[0], 1 - high[1], high[0]),
        AnswerRates(none, none),
    )


def measure_double_readings(read: DoubleReadings, draws: int, seed: int = 0) -> AllowedMistakes:
    """Allow for the rates that cells of several annotators show, per class."""
    rng = np.random.default_rng(seed)

    def draw_rates(present: int, absent: int, more: int) -> AnswerRates:
        return AnswerRates(
            _draw_rates(read, read.present[present], more, draws, rng),
            _draw_rates(read, read.absent[absent], more, draws, rng),
        )

    return AllowedMistakes(
        AnswerRates(*(_average_rate(read, counts[COUNT_AS_LABELED])[0] for counts in (read.present, read.absent))),
        draw_rates(COUNT_AS_PRESENT, COUNT_AS_ABSENT, 0),
        draw_rates(COUNT_AS_ABSENT, COUNT_AS_PRESENT, 1),
    )


def select_allowed_mistakes(
    repeats: RepeatedAnswers,
    read: DoubleReadings | None,
    present: np.ndarray,
    absent: np.ndarray,
    draws: int = DEFAULT_DRAWS,
) -> tuple[str, AllowedMistakes]:
    """Return what the rates rest on (ASSUMED_RATES, REPEATED_ANSWERS or READ_TWICE), and the rates.

    Repeated answers replace the assumption once there are ENOUGH_REPEATS, or as soon as they refute it.

    Args:
        read: Cells with several answers, or None.
        present, absent: (C,), cells labeled present and absent.
    """
    classes, cells = len(present), (int(present.sum()), int(absent.sum()))
    if read is not None and _is_assumption_replaced(read.count_repeats(), *cells):
        return READ_TWICE, measure_double_readings(read, draws)
    if _is_assumption_replaced(repeats, *cells):
        return REPEATED_ANSWERS, measure_repeats(repeats, classes, draws)
    return ASSUMED_RATES, assume_mistakes(ASSUMED_MISTAKE_SHARE, classes, draws)


def allocate_second_looks(present: np.ndarray, absent: np.ndarray, most: int) -> np.ndarray:
    """Return how many present labels of each class need a second look, (C,), rarest classes first, `most` in all.

    A class needs it where false alarms at ASSUMED_MISTAKE_SHARE could be more than MAX_ALARM_SHARE of its labels.

    Args:
        present: (C,), labels without a second look.
        absent: (C,), cells labeled absent.
    """
    needed = np.where(ASSUMED_MISTAKE_SHARE * absent > MAX_ALARM_SHARE * present, present, 0)
    order = np.argsort(present / np.maximum(absent, 1), kind="stable")
    before = np.cumsum(needed[order]) - needed[order]
    result = np.zeros(len(present), np.int64)
    result[order] = np.clip(most - before, 0, needed[order])
    return result


def allow_for_mistakes(
    certified: CertifiedFigures,
    labels: LabelTotals,
    absent: np.ndarray,
    open_: np.ndarray,
    allowed: AllowedMistakes,
    read: DoubleReadings | None = None,
    seed: int = 0,
) -> Bounds:
    """Return the recall of `certified` without assuming that answers are right.

    Audits count as one answer each, or as two where a second look has confirmed their present cells.

    Args:
        labels: Labels of `certified`.
        absent: (C,), cells labeled absent.
        open_: (C,), cells neither labeled nor accepted.
        allowed: Rates of wrong answers.
        read: Cells with several answers. None: each cell has one.
    """
    rng = np.random.default_rng(seed)
    groups = _AnswerGroups(labels, absent, read)
    disputed, denied, open_ = map(_append_total, (labels.disagreed_present, labels.disagreed_absent, open_))
    checked = np.broadcast_to(labels.is_confirmed, (len(labels.present),))
    checked = np.append(checked, checked.all())
    usual, worst, best = allowed.usual, allowed.worst, allowed.best
    sums = certified.sums
    labeled = groups.found - groups.estimate_wrong(usual)
    missing = (labeled * (1 / groups.compute_noticed(usual) - 1)).sum(-1)
    missing = missing + _estimate_open_positives(certified.missing.estimate, open_, usual, checked)
    fewest, most = (groups.found - groups.draw_wrong(worst, 1, rng)), (groups.found - groups.draw_wrong(best, 0, rng))
    noticed = np.where(checked, worst.sensitivity**2, worst.sensitivity)
    at_most = groups.draw_missed(fewest, worst, 1, rng) + sums.most / np.maximum(noticed, EPSILON) + denied
    # Some cells that audits call present are absent.
    alarm = np.where(checked, (1 - worst.specificity) ** 2, 1 - worst.specificity)
    alarms = rng.binomial(np.broadcast_to(open_, sums.least.shape), alarm)
    at_least = groups.draw_missed(most, best, 0, rng) + np.maximum(sums.least - alarms, 0)
    labeled = labeled.sum(-1) + certified.right
    fewest, most = np.maximum(fewest.sum(-1) - disputed, 0) + sums.worst, most.sum(-1) + sums.best
    return Bounds(
        divide(labeled, labeled + missing, np.nan),
        compute_lower_end(divide(fewest, fewest + at_most, 0.0), labels.looks),
        compute_upper_end(divide(most, most + at_least, 1.0), labels.looks),
    )


def _is_assumption_replaced(repeats: RepeatedAnswers, present: int, absent: int) -> bool:
    """Return whether repeated answers are enough, or differ too often for ASSUMED_MISTAKE_SHARE."""
    from scipy.special import bdtrc

    if min(repeats.present, repeats.absent) >= ENOUGH_REPEATS:
        return True
    # With a share e of wrong answers at most 2 e + e A / P of P present labels get another answer, by chance.
    tail, limit = (1 - CONFIDENCE) / 2, ASSUMED_MISTAKE_SHARE
    return any(
        different > 0 and bdtrc(different - 1, asked, min(1.0, limit * (2 + others / max(cells, 1)))) < tail
        for different, asked, cells, others in (
            (repeats.mistaken, repeats.present, present, absent),
            (repeats.missed, repeats.absent, absent, present),
        )
    )


class _AnswerGroups:
    """Cells labeled present, and absent ones, by number k = 1 ... K of answers, then those with a second look.

    `found` and `rejected` are (C + 1, K + 1).
    """

    def __init__(self, labels: LabelTotals, absent: np.ndarray, read: DoubleReadings | None):
        none = np.zeros((len(absent), 2), np.int64)
        counts = []
        confirmed = np.broadcast_to(labels.confirmed, absent.shape)
        # Every absent cell that one person answered would have had the second look if the first had been wrong.
        for cells, several, twice in (
            (labels.present - confirmed, none if read is None else read.found, confirmed),
            (absent, none if read is None else read.rejected, absent),
        ):
            by_people = several[:, 1:].copy()
            by_people[:, 0] = np.maximum(cells - by_people[:, 1:].sum(1), 0)
            by_group = np.concatenate([by_people, np.asarray(twice)[:, None]], 1)
            counts.append(np.concatenate([by_group, by_group.sum(0, keepdims=True)]))
        self.found, self.rejected = counts
        self._people = np.arange(1, self.found.shape[1])

    def compute_noticed(self, rates: AnswerRates) -> np.ndarray:
        """Return the probability that a present cell of each group is labeled present, (..., K + 1)."""
        q = np.clip(1 - rates.sensitivity, 0, 1 - EPSILON)[..., None]
        return np.concatenate([1 - q**self._people, (1 - q) ** 2], -1)

    def estimate_wrong(self, rates: AnswerRates) -> np.ndarray:
        """Return the expected number of cells wrongly labeled present per group."""
        if rates.wrong_share is not None:
            return self.found * rates.wrong_share[..., None]
        alarm = self._compute_alarms(rates)
        return np.minimum(self.rejected * alarm / (1 - alarm), self.found)

    def draw_wrong(self, rates: AnswerRates, more: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the number of cells wrongly labeled present per group, (draws, C + 1, K + 1)."""
        if rates.wrong_share is not None:
            return rng.binomial(self.found, rates.wrong_share[..., None])
        return np.minimum(self._draw_before(self.rejected, 1 - self._compute_alarms(rates), more, rng), self.found)

    def draw_missed(self, right: np.ndarray, rates: AnswerRates, more: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the number of present cells labeled absent, (draws, C + 1). `more` 1: upper limits."""
        return self._draw_before(right, self.compute_noticed(rates), more, rng).sum(-1)

    def _compute_alarms(self, rates: AnswerRates) -> np.ndarray:
        f = np.clip(1 - rates.specificity, 0, 1 - EPSILON)[..., None]
        return np.concatenate([f**self._people, f**2], -1)

    def _draw_before(self, cells: np.ndarray, chance: np.ndarray, more: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the number of failures before as many successes as `cells`."""
        # The pseudo-count is added where its effect is largest; two of them would make the sum too wide.
        added = np.zeros(cells.shape)
        added[..., 0] = more
        drawn = rng.negative_binomial(np.maximum(cells + added, EPSILON), np.clip(chance, EPSILON, 1))
        return np.where(cells + added > 0, drawn, 0)


def _estimate_open_positives(
    missing: np.ndarray, open_: np.ndarray, usual: AnswerRates, checked: np.ndarray
) -> np.ndarray:
    """Return the number of positives among open cells, corrected for mistakes (Rogan & Gladen 1978), or nan."""
    noticed = np.where(checked, usual.sensitivity**2, usual.sensitivity)
    alarm = np.where(checked, (1 - usual.specificity) ** 2, 1 - usual.specificity)
    better_than_chance = noticed - alarm
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (missing - open_ * alarm) / better_than_chance
    return np.where(better_than_chance > 0, np.clip(found, 0, open_), np.nan)


def _draw_rates(
    read: DoubleReadings, counts: np.ndarray, more: int, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw lower (`more` 0) or upper (1) limits of an average rate, (draws, C + 1)."""
    mean, size = _average_rate(read, counts)
    right = np.nan_to_num(mean) * size
    return draw_beta(rng, right + more, size - right + 1 - more, (draws, len(size)))


def _average_rate(read: DoubleReadings, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the average rate over annotators (C + 1,), and its effective number of answers."""
    asked, right = (np.concatenate([part, part.sum(1, keepdims=True)], 1) for part in counts)
    weight = read.share[:, None] * (asked > 0)
    weight = divide(weight, weight.sum(0), 0.0)
    size = divide(np.ones(asked.shape[1]), (weight**2 / np.maximum(asked, 1)).sum(0), 0.0)
    mean = (weight * divide(right, asked, 0.0)).sum(0)
    return np.where(size > 0, mean, np.nan), size


def _append_total(cells: np.ndarray) -> np.ndarray:
    return np.append(cells, cells.sum())
