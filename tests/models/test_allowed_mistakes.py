"""Recall that allows for people's mistakes: worked out by hand for small cases."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import nbinom, norm

from spmll.statistics.allowed_mistakes import (
    ASSUMED_RATES,
    COUNT_AS_ABSENT,
    COUNT_AS_LABELED,
    COUNT_AS_PRESENT,
    COUNTING_WAYS,
    ENOUGH_REPEATS,
    REPEATED_ANSWERS,
    DoubleReadings,
    RepeatedAnswers,
    allocate_second_looks,
    allow_for_mistakes,
    measure_double_readings,
    select_allowed_mistakes,
)
from spmll.statistics.bounds import Bounds, compute_lower_end, compute_tail, compute_upper_end
from spmll.statistics.certified_recall import CertifiedFigures, LabelTotals, Strata, certify

NONE = np.zeros(1, np.int64)


def read(
    asked=((90, 90), (90, 90)), said=((81, 81), (81, 81)), share=(0.5, 0.5), found=0, rejected=0
) -> DoubleReadings:
    """Two people, one class; asked and said: (present, absent) of each person."""
    counts = np.array([asked, said]).transpose(2, 0, 1)[:, None, :, :, None].repeat(COUNTING_WAYS, 1)
    several = np.zeros((2, 1, 3), np.int64)
    several[:, 0, 2] = found, rejected
    return DoubleReadings(np.array(share), counts[0], counts[1], *several)


def complete(present: int, absent: int) -> tuple[CertifiedFigures, LabelTotals]:
    """A project in which everything is answered."""
    none = dict.fromkeys(Strata.__dataclass_fields__, np.zeros(1, np.int64))
    size = np.array([present + absent])
    strata = Strata(**none | {"size": size, "present": np.array([present]), "absent": np.array([absent])})
    labels = LabelTotals(np.array([present]), NONE, np.zeros(1), np.full(1, np.nan), NONE, NONE)
    return certify(strata, labels), labels


def correct(certified: CertifiedFigures, labels: LabelTotals, absent: int, of: DoubleReadings):
    allowed = measure_double_readings(of, len(certified.sums.most))
    return allow_for_mistakes(certified, labels, np.array([absent]), NONE, allowed, of)


def recall(present, absent, of, **more):
    certified, labels = complete(present, absent)
    return correct(certified, replace(labels, **more), absent, of)


def test_recall_with_one_answer_per_image_is_lowered_by_the_miss_rate_of_annotators():
    sure = read(asked=((90, 900), (90, 900)), said=((81, 900), (81, 900)))
    found = recall(500, 4000, sure)
    assert found.estimate[0] == pytest.approx(0.9)
    # 162 of 180, Clopper & Pearson 1934: 0.8466 to 0.9396; the count of those missed is drawn, too.
    assert 0.82 < found.low[0] < 0.8466 and 0.9396 < found.high[0] < 0.96


def test_recall_with_two_answers_per_image_assumes_misses_only_by_both_annotators():
    found = recall(500, 4000, read(said=((81, 90), (81, 90)), found=500, rejected=4000))
    assert found.estimate[0] == pytest.approx(0.99) and found.low[0] > 0.95


def test_recall_weights_annotators_by_their_fraction_of_the_answers():
    uneven = read(said=((90, 90), (45, 90)), share=(0.8, 0.2))
    assert recall(500, 4000, uneven).estimate[0] == pytest.approx(0.8 * 1 + 0.2 * 0.5)


def test_false_positives_of_annotators_do_not_count_as_found():
    # 1 % of what is absent is called present: of 4,000 rejected 40 more were not.
    alarms = read(asked=((90, 900), (90, 900)), said=((81, 891), (81, 891)))
    certified, labels = complete(50, 4000)
    found = correct(certified, labels, 4000, alarms)
    assert found.estimate[0] == pytest.approx(0.9) and found.low[0] < 0.8, (
        "of 10 found, how many are missed is less sure"
    )


def test_unresolved_disagreements_widen_the_recall_interval():
    plain = read(said=((90, 90), (90, 90)))
    present, absent = plain.present.copy(), plain.absent.copy()
    present[COUNT_AS_PRESENT, 0] += 10  # present cells that one of the two missed,
    absent[COUNT_AS_ABSENT, 0] += 10  # or absent ones that one of the two called present
    narrow, wide = recall(500, 4000, plain), recall(500, 4000, replace(plain, present=present, absent=absent))
    assert wide.low[0] < narrow.low[0] - 0.03 and wide.high[0] >= narrow.high[0] - 0.01
    assert wide.estimate[0] == narrow.estimate[0] == 1.0 and COUNT_AS_LABELED == 0


def test_recall_is_unknown_without_labels_by_several_annotators():
    found = recall(500, 4000, read(asked=((0, 0), (0, 0)), said=((0, 0), (0, 0))))
    assert np.isnan(found.estimate[0]) and found.low[0] < 0.01 and found.high[0] == 1.0


def allow(present: int, absent: int, **more) -> tuple[str, Bounds]:
    """Recall of a complete project with one class, allowing for mistakes."""
    repeats = more.pop("repeats", RepeatedAnswers())
    certified, labels = complete(present, absent)
    cells = np.array([present]), np.array([absent])
    basis, allowed = select_allowed_mistakes(repeats, None, *cells)
    return basis, allow_for_mistakes(certified, replace(labels, **more), cells[1], NONE, allowed)


def test_assumed_mistakes_lower_recall_of_a_complete_project_by_missed_labels_and_false_alarms():
    basis, found = allow(1000, 0)
    # Of 1,000 found at least 20.4 were missed on average. 31 or more: probability 0.025 (negative binomial).
    missed = nbinom.ppf(0.975, 1001, 0.98)
    assert basis == ASSUMED_RATES and found.estimate[0] == pytest.approx(0.98)
    assert found.low[0] == pytest.approx(1000 / (1000 + missed), abs=0.002) and found.high[0] == 1.0
    with_alarms = allow(1000, 5000)[1]
    assert with_alarms.low[0] < found.low[0], "of fewer right labels, how many are missed is less sure"


def test_labels_of_a_rare_class_count_only_once_a_second_look_has_confirmed_them():
    single, confirmed = allow(6, 1500)[1], allow(6, 1500, confirmed=np.array([6]), is_confirmed=np.array([True]))[1]
    assert single.low[0] == 0.0, "30 false alarms among 1,500 explain six labels"
    assert confirmed.low[0] > 0.3 and confirmed.high[0] == 1.0


def test_repeated_answers_replace_the_assumption_when_enough_or_when_they_refute_it():
    enough, few = ENOUGH_REPEATS, ENOUGH_REPEATS - 1
    assert 1 - 0.025 ** (1 / enough) <= 0.02 < 1 - 0.025 ** (1 / few), "without a mistake, they show 1 in 50"
    basis, measured = allow(5000, 5000, repeats=RepeatedAnswers(enough, 0, enough, 0))
    assert basis == REPEATED_ANSWERS and measured.low[0] == pytest.approx(allow(5000, 5000)[1].low[0], abs=0.01)
    assert allow(5000, 5000, repeats=RepeatedAnswers(few, 0, few, 0))[0] == ASSUMED_RATES
    basis, found = allow(5000, 5000, repeats=RepeatedAnswers(20, 8, 20, 0))
    assert basis == REPEATED_ANSWERS and found.low[0] < 0.5, "8 of 20 are not 1 in 50"
    # In a rare class most labels may be false alarms, which 1 wrong answer in 50 explains.
    assert allow(50, 5000, repeats=RepeatedAnswers(20, 12, 20, 0))[0] == ASSUMED_RATES


def test_interval_ends_of_all_looks_together_have_the_error_probability_of_one_look():
    assert compute_tail(np.arange(1, 60)).sum() == pytest.approx(compute_tail(0)) == pytest.approx(0.025)
    drawn = np.random.default_rng(0).normal(size=(200_000, 2))
    low, high = (compute(drawn, np.array([0, 2])) for compute in (compute_lower_end, compute_upper_end))
    assert low == pytest.approx(norm.ppf([0.025, 0.00625]), abs=0.03) and high == pytest.approx(-low, abs=0.05)


def test_second_looks_go_to_the_rarest_classes_first_and_not_to_common_ones():
    present, absent = np.array([40, 3, 300, 12]), np.array([900, 1000, 700, 900])
    assert allocate_second_looks(present, absent, 100).tolist() == [40, 3, 0, 12]
    assert allocate_second_looks(present, absent, 20).tolist() == [5, 3, 0, 12]
    assert allocate_second_looks(present, absent, 0).tolist() == [0, 0, 0, 0]
