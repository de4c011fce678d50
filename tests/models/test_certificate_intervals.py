"""The certificate's intervals hold the truth, widen where little is known, and close when all is known."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.certificate_coverage import (
    ERRING_CONDITIONS,
    FAULTLESS_CONDITIONS,
    OVERLOOKED_CONDITIONS,
    PROMISED_FIGURES,
    measure_coverage,
)
from scipy.stats import hypergeom

from spmll.statistics.certified_recall import LabelTotals, Strata, certify, count_strata
from spmll.statistics.stratified_sampling import (
    ACCEPTED_PRESENT,
    NO_STRATUM,
    UNKNOWN_CELL,
    allocate,
    draw_sample,
    find_usable_cells,
)

PROJECTS = 30


def strata(*rows: dict) -> Strata:
    nothing = dict.fromkeys(Strata.__dataclass_fields__, 0)
    return Strata(**{name: np.array([(nothing | row)[name] for row in rows]) for name in nothing})


def labels(*present: int, **more) -> LabelTotals:
    none = np.zeros(len(present), int)
    given = {name: np.array(value) for name, value in more.items() if name not in ("relabeled", "relabeled_wrong")}
    base = LabelTotals(np.array(present), none, none, np.full(len(present), np.nan), none, none)
    return replace(base, **given, **{name: more[name] for name in ("relabeled", "relabeled_wrong") if name in more})


def exact_limits(positives: int, drawn: int, population: int, miss: float = 0.025) -> tuple[int, int]:
    """The fewest and most positives of a population whose sample is no rarer than `miss` (Buonaccorsi 1987)."""
    totals = np.arange(positives, population - (drawn - positives) + 1)
    many = hypergeom.sf(positives - 1, population, totals, drawn) > miss
    few = hypergeom.cdf(positives, population, totals, drawn) > miss
    return int(totals[many].min()), int(totals[few].max())


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (number % 4 > 0))
        for number, name in enumerate(FAULTLESS_CONDITIONS)
    ],
)
def test_certificate_intervals_cover_the_true_values_of_simulated_projects(name):
    found = measure_coverage(FAULTLESS_CONDITIONS[name], PROJECTS, seed=5)
    # 0.93 is promised of 1,000 projects (annotator bench certificate). Of 30, three may miss the sum of all classes:
    # with a true coverage of 0.95 more do so one time in 16, and not with this seed.
    assert min(found[kind] for kind in PROMISED_FIGURES if kind in found) >= 0.87, found
    assert found["classes"] >= 0.93, found


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (number % 4 > 0)) for number, name in enumerate(ERRING_CONDITIONS)],
)
def test_certificate_intervals_cover_the_truth_when_annotators_make_mistakes(name):
    found = measure_coverage(ERRING_CONDITIONS[name], PROJECTS, seed=5)
    assert found["overall"] >= 0.87 and found["classes"] >= 0.93, found


def test_certificate_intervals_miss_the_truth_for_positives_every_annotator_overlooks():
    (condition,) = OVERLOOKED_CONDITIONS.values()
    assert measure_coverage(condition, PROJECTS, seed=5)["overall"] < 0.9, "then README and the page need not say so"


def test_missing_label_interval_of_one_stratum_matches_the_exact_interval():
    row = {"size": 400, "drawn": 60, "positives": 3, "present": 3, "absent": 57}
    found = certify(strata(row), labels(3), draws=40_000).missing
    low, high = exact_limits(3, 60, 400)
    assert found.low[0] == pytest.approx(low - 3, abs=1) and found.high[0] == pytest.approx(high - 3, abs=2)
    assert found.estimate[0] == pytest.approx(400 * 3 / 60 - 3)


def test_intervals_have_zero_width_when_every_label_is_answered():
    row = {"size": 100, "drawn": 20, "positives": 2, "present": 9, "absent": 91}
    found = certify(strata(row), labels(9))
    for one, value in ((found.recall, 1.0), (found.precision, 1.0), (found.missing, 0.0)):
        assert (one.estimate[0], one.low[0], one.high[0]) == (value, value, value)


def test_recall_without_an_audit_has_only_certain_bounds_and_no_estimate():
    row = {"code": NO_STRATUM, "size": 70}
    found = certify(strata(row), labels(30))
    assert np.isnan(found.recall.estimate[0])
    assert (found.recall.low[0], found.recall.high[0]) == (0.3, 1.0)
    assert (found.missing.low[0], found.missing.high[0]) == (0, 70)


def test_class_without_positives_has_no_recall_estimate_but_a_bound_on_missing_labels():
    found = certify(strata({"size": 1000, "drawn": 100, "absent": 100}), labels(0))
    assert np.isnan(found.recall.estimate[0]) and np.isnan(found.precision.estimate[0])
    assert (found.recall.low[0], found.recall.high[0]) == (0, 1)
    assert 20 <= found.missing.high[0] <= 40


def test_positives_found_after_the_audit_reduce_the_missing_labels():
    before = {"size": 500, "drawn": 100, "positives": 20, "present": 20, "absent": 80}
    after = before | {"present": 90, "absent": 300}
    was, now = (certify(strata(row), labels(row["present"])).missing for row in (before, after))
    assert was.estimate[0] - now.estimate[0] == pytest.approx(70)
    assert now.high[0] <= was.high[0] - 60


def test_unsure_answers_widen_the_interval_on_both_sides():
    sure = {"size": 500, "drawn": 100, "positives": 20, "present": 20, "absent": 80}
    doubtful = sure | {"unsure": 20, "absent": 60}
    narrow, wide = (certify(strata(row), labels(20)).missing for row in (sure, doubtful))
    assert wide.high[0] > narrow.high[0] + 50 and wide.low[0] <= narrow.low[0] + 3


def test_relabels_and_disagreements_lower_certified_precision_and_recall():
    row = {"size": 500, "drawn": 100, "positives": 20, "present": 20, "absent": 80}
    plain = certify(strata(row), labels(100))
    looked = certify(strata(row), labels(100, relabeled=50, relabeled_wrong=2))
    assert plain.precision.low[0] == 1.0
    assert looked.precision.estimate[0] == pytest.approx(0.96)
    assert 0.85 < looked.precision.low[0] < 0.9 and 0.98 < looked.precision.high[0] < 1.0
    disputed = certify(strata(row), labels(100, disagreed_present=[10], disagreed_absent=[5]))
    assert disputed.precision.low[0] == pytest.approx(0.9) and disputed.precision.high[0] == 1.0
    assert disputed.recall.low[0] < plain.recall.low[0] and disputed.missing.high[0] == plain.missing.high[0] + 5


def test_precision_of_auto_accepted_labels_follows_their_audit_sample():
    filled = {"code": ACCEPTED_PRESENT, "size": 300, "drawn": 60, "positives": 57, "present": 57, "absent": 3}
    filled["accepted"] = 240
    rest = {"size": 500, "drawn": 100, "absent": 100}
    found = certify(strata(filled, rest), labels(57, accepted=[240]))
    low, high = (one - 57 for one in exact_limits(57, 60, 300))
    assert found.precision.low[0] == pytest.approx((57 + low) / 297, abs=0.01)
    assert found.precision.high[0] == pytest.approx((57 + high) / 297, abs=0.01)


def test_labels_auto_accepted_after_the_audit_count_with_their_guaranteed_precision():
    row = {"size": 500, "drawn": 100, "positives": 60, "present": 60, "absent": 40, "accepted": 100}
    without, with_one = (certify(strata(row), labels(60, accepted=[100], guaranteed=[one])) for one in (0.0, 0.97))
    assert without.precision.low[0] < 0.5
    assert with_one.precision.low[0] == pytest.approx(157 / 160) and with_one.precision.high[0] == 1.0


def test_certificate_is_reproducible_with_the_same_seed():
    row = {"size": 500, "drawn": 50, "positives": 5, "present": 5, "absent": 45}
    one, same = (certify(strata(row), labels(5), seed=3).recall.low for _ in range(2))
    assert one.tolist() == same.tolist()


def test_audit_draws_every_label_of_a_stratum_with_equal_probability():
    rng = np.random.default_rng(0)
    scores = np.r_[np.full(80, 0.02), np.full(20, 0.6)]
    times = np.zeros(100)
    for _ in range(2000):
        drawn = draw_sample(np.full(100, UNKNOWN_CELL), scores, 24, rng)
        times[drawn.rows] += 1
    for stratum in np.unique(drawn.strata):
        share = times[drawn.strata == stratum] / 2000
        assert share.std() < 3 * np.sqrt(share.mean() * (1 - share.mean()) / 2000)


def test_audit_sample_without_a_model_has_one_stratum_and_excludes_answered_labels():
    kinds = np.r_[np.full(10, -1), np.full(30, UNKNOWN_CELL)]
    drawn = draw_sample(kinds, np.full(40, np.nan), 12, np.random.default_rng(1))
    assert set(drawn.strata[:10]) == {NO_STRATUM} and len(set(drawn.strata[10:])) == 1
    assert len(drawn.rows) == 12 == len(set(drawn.rows)) and drawn.rows.min() >= 10


def test_audit_sample_allocation_sums_to_the_total_and_respects_stratum_limits():
    assert allocate(10, np.array([1.0, 1.0, 2.0]), np.array([100, 1, 100]), 1).tolist() == [3, 1, 6]
    assert allocate(7, np.array([0.0, 5.0]), np.array([4, 3]), 3).tolist() == [4, 3]
    assert allocate(0, np.array([1.0]), np.array([5])).tolist() == [0]


def test_certificate_uses_audit_answers_only_up_to_the_first_unanswered_label():
    places = np.arange(8)
    answered = np.array([1, 1, 1, 1, 0, 1, 1, 0], bool)
    in_audit = np.array([1, 0, 1, 0, 0, 1, 1, 0], bool)
    assert find_usable_cells(places, answered, in_audit).tolist() == [True] * 3 + [False] * 5
    assert find_usable_cells(places, np.ones(8, bool), in_audit).all()
    assert not find_usable_cells(places, answered, np.zeros(8, bool)).any()


def test_label_whose_answer_was_undone_after_the_audit_counts_as_not_sampled():
    drawn = np.array([NO_STRATUM, 0, 0, 0], np.uint8)
    found = count_strata(drawn, np.array([2, 1, -1, 2]), np.zeros(4, bool), np.array([1, 2]), np.ones(2, bool))
    assert found["code"].tolist() == [0, NO_STRATUM]
    assert found["size"].tolist() == [3, 1] and found["drawn"].tolist() == [2, 0]
    assert found["positives"].tolist() == [1, 0] and found["absent"].tolist() == [1, 0]
