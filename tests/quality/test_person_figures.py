"""What `annotator people` says of each person."""

import csv
import json
import math
import uuid
from datetime import UTC, datetime

import numpy as np
import pytest
from harness.answers import say

from annotator.quality.annotator_figures import compute_annotator_figures
from annotator.records import Batch, Decision
from annotator.store.labels import decisions
from spmll.statistics import intervals


def test_annotator_figures_reveal_a_careless_annotator_and_count_changes_by_others(db, project, annotator, tmp_path):
    assert "Nobody" in annotator("people", project).stdout
    for image_id in range(1, 13):
        say(db, "A+", "b+", "c-" if image_id <= 6 else "c+", image_id=image_id)
        say(db, "A-", "b-", "c-", image_id=image_id, class_id=2)
    say(db, "B+", image_id=1)
    for image_id in range(2, 7):
        say(db, "C-", image_id=image_id)  # knowing what the others said
    ann, bob, cid = compute_annotator_figures(db)
    assert cid.classes[0].sensitivity.value < 0.8 < ann.classes[0].sensitivity.value
    assert math.isnan(cid.classes[1].sensitivity.value)  # nobody ever saw one
    assert (ann.compared, ann.same.value, cid.same.value) == (48, 0.875, 0.75)
    assert (ann.changed, ann.shared, bob.changed, cid.changed) == (5, 24, 5, 1)
    found = json.loads(annotator("people", project, "--json", "--csv", tmp_path / "p.csv").stdout)
    assert [row["name"] for row in found] == ["Ann", "Bob", "Cid"]
    rows = list(csv.DictReader((tmp_path / "p.csv").open()))
    assert [row["by"] for row in rows] == ["all", "class", "class", "week"] * 3
    assert float(rows[9]["sensitivity_low"]) < 0.6 and rows[9]["same"] == "0.5"


def test_annotator_figures_have_no_classes_without_another_annotator_to_compare(db, project, annotator):
    say(db, "A+", "I-")
    (ann,) = compute_annotator_figures(db)  # a file is not a person
    assert ann.answers == 1 and ann.compared == 0 and ann.classes == []
    assert annotator("people", project).stdout.count("nothing says how often") == 1


def test_annotator_figures_report_pace_agreement_and_changes_by_class_and_week(
    db, monkeypatch, annotator, project, tmp_path
):
    monday = datetime(2026, 3, 2, 0, 30, tzinfo=UTC).timestamp()

    def at(seconds: float) -> None:
        monkeypatch.setattr(decisions.time, "time", lambda: monday + seconds)

    def click(image_id: int, milliseconds: int) -> None:
        one = Decision(str(uuid.uuid4()), "label", "Ann", "click", image_id, 1, 1, milliseconds=milliseconds)
        assert not decisions.save(db, [one]).refused

    at(0)
    for image_id, milliseconds in enumerate((1000, 2000, 3000, 4000, 5000, 60_000, 6000), 1):
        click(image_id, milliseconds)
    at(7 * 86400)
    click(8, 9000)
    cells = [(image_id, 2, -1, None) for image_id in (9, 10, 11, 12)]
    assert not decisions.save(db, [Batch("a-grid", "Ann", "grid", cells, None, 6000)]).refused
    at(8 * 86400)
    for image_id in (1, 2, 8):
        say(db, "b-", "B-", image_id=image_id)  # in the week after, blind and then knowing what Ann said
    say(db, "b-", image_id=9, class_id=2)
    ann = compute_annotator_figures(db)[0]
    first, second = ann.weeks
    assert (first.monday, first.timed, first.seconds.value, first.seconds.low) == ("2026-03-02", 7, 4.0, 1.0)
    assert (second.timed, second.seconds.value, math.isnan(second.seconds.low)) == (1, 9.0, True)
    assert [(week.compared, week.same.value, week.shared, week.changed) for week in ann.weeks] == [
        (2, 0.0, 2, 2),
        (2, 0.5, 2, 1),
    ]
    fox, heron = ann.classes
    assert (fox.compared, fox.same.value, fox.changed, fox.timed) == (3, 0.0, 3, 0)
    assert (heron.same.value, heron.changed, heron.timed, heron.seconds.value) == (1.0, 0, 1, 1.5)
    assert heron.same.low < 0.5 and fox.changed_share.low < fox.changed_share.value == 1.0
    assert (ann.timed, ann.compared, ann.changed) == (8, first.compared + second.compared, 3)
    shown = annotator("people", project, "--csv", tmp_path / "p.csv").stdout
    assert "2026-03-09" in shown and "3 of 3" in shown
    rows = [row for row in csv.DictReader((tmp_path / "p.csv").open()) if row["person"] == "Ann"]
    assert [(row["by"], row["of"], row["seconds_of"], row["seconds"]) for row in rows] == [
        ("all", "", "click", "4.5"),
        ("class", "fox", "grid cell", ""),
        ("class", "heron", "grid cell", "1.5"),
        ("week", "2026-03-02", "click", "4.0"),
        ("week", "2026-03-09", "click", "9.0"),
    ]


@pytest.mark.parametrize("count", [6, 15, 60])
def test_median_interval_covers_the_true_median_at_its_confidence_level(count):
    """1,000 samples of a skewed distribution whose median is 1: at least 95 %, less 2.5 sigma."""
    rng = np.random.default_rng(0)
    found = [intervals.estimate_median(rng.lognormal(0, 1, count).tolist()) for _ in range(1000)]
    assert sum(one.low <= 1 <= one.high for one in found) >= 933
    assert math.isnan(intervals.estimate_median([1.0] * 5).low) and math.isnan(intervals.estimate_median([]).value)


def test_annotator_agreement_is_computed_against_each_other_annotator_of_a_label(db):
    say(db, "A+", "b+", "c-")
    assert [(person.compared, person.same.value) for person in compute_annotator_figures(db)] == [
        (2, 0.5),
        (2, 0.5),
        (2, 0.0),
    ]
