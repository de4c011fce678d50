"""`bench certificate`: intervals that allow for wrong answers hold the truth where the old ones do not."""

import json

import numpy as np
import pytest

from annotator.benchmark.certificate.coverage_measurement import (
    MISTAKE_SHARES,
    build_coverage_report,
    list_failures,
    measure_certificates,
)
from annotator.benchmark.certificate.simulated_projects import PROJECT_KINDS, ErringProject
from spmll.statistics.allowed_mistakes import RepeatedAnswers


@pytest.mark.slow
def test_certificate_benchmark_shows_that_old_intervals_miss_the_truth_and_new_ones_do_not():
    result = measure_certificates(("rare, early, good model",), projects=8, seed=1)
    by_share = {row["mistakes"]: row for row in result["rows"]}
    assert tuple(by_share) == MISTAKE_SHARES
    assert by_share[0.02]["old"]["coverage"] <= 0.5 < by_share[0.02]["new"]["coverage"] == 1.0
    assert by_share[0.0]["new"]["width"] >= by_share[0.0]["old"]["width"]
    report = build_coverage_report(result)
    assert len(report.tables[0].rows) == 4 and "8 simulated projects" in report.description[0]


def test_certificate_benchmark_fails_only_beyond_chance():
    row = {"kind": "k", "mistakes": 0.0}
    below, chance = ({"coverage": 0.8, "coverage_limits": [0.7, high]} for high in (0.94, 0.97))
    assert list_failures({"rows": [row | {"new": below}, row | {"new": chance}]}) == ["k, 0% wrong: 80.0%"]


def test_simulated_project_with_wrong_answers_repeats_labels_and_confirms_present_ones():
    project = ErringProject(np.random.default_rng(0), PROJECT_KINDS["few images"], 0.05)
    looks = list(project.answer_audits())
    first, last = looks[0], looks[-1]
    assert first.repeats.present + first.repeats.absent <= 10 and last.repeats.present > 0
    assert last.labels.looks.tolist() == [1] * 5 and last.labels.is_confirmed.all() and last.labels.confirmed.sum() > 0
    assert np.nanmax(last.recall) <= 1.0 and (last.strata.drawn.sum() == last.answered.drawn.sum())
    right = ErringProject(np.random.default_rng(0), PROJECT_KINDS["few images"], 0.0)
    *_, end = right.answer_audits()
    assert (end.repeats.mistaken, end.repeats.missed) == (0, 0) != RepeatedAnswers()


@pytest.mark.slow
@pytest.mark.process
def test_bench_certificate_command_prints_coverage_and_refuses_an_unknown_kind(annotator):
    found = json.loads(annotator("bench", "certificate", "--kind", "few images", "--projects", 1, "--json").stdout)
    assert [row["mistakes"] for row in found["rows"]] == [0.0, 0.01, 0.02, 0.05] and found["projects"] == 1
    assert "Unknown kind of project 'x'" in annotator("bench", "certificate", "--kind", "x", code=1).stderr
