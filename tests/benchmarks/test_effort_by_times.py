"""`bench effort --times`: sets of times are read whole or not at all, and every policy is costed by the same person."""

import json

import numpy as np
import pytest
from harness.photo_truth import small_set

from annotator.benchmark import simulated_people
from annotator.benchmark.effort import by_times, curves
from annotator.benchmark.effort.effort_measurement import EffortOptions
from annotator.benchmark.effort.play import Play
from annotator.benchmark.effort.time_sets import SHIPPED_TIME_SETS, read_time_sets
from annotator.errors import AnnotatorError
from annotator.snapshot.time_model import DEFAULT_TIMES, TIME_PARTS, TimeModel


def point(recall: float, **parts: float) -> dict:
    scores = {"recall": recall, "precision": 1.0, "micro_f1": recall}
    counts = dict.fromkeys(TIME_PARTS, 0.0) | parts
    seconds = sum(count * getattr(DEFAULT_TIMES, part) for part, count in counts.items())
    return {"actions": 10, "seconds": seconds, "parts": counts, "decided": scores, "filled": scores}


@pytest.mark.parametrize("name", SHIPPED_TIME_SETS)
def test_shipped_files_of_action_times_load_and_name_their_source(name):
    sets = read_time_sets(name)
    assert sets[0].times == DEFAULT_TIMES and all(one.source for one in sets)
    assert len({one.times for one in sets}) == len(sets) > 3


def test_published_action_times_name_every_changed_time_in_their_source():
    for one in read_time_sets("published"):
        changed = [part for part in TIME_PARTS if getattr(one.times, part) != getattr(DEFAULT_TIMES, part)]
        sentence = one.source.partition("ixes ")[2]
        assert all(part in sentence for part in changed), one
        assert bool(changed) == bool(sentence), one


def test_empty_or_missing_column_of_an_action_time_file_uses_the_default_time(tmp_path):
    path = tmp_path / "times.csv"
    path.write_text("tile,name,people\n1.7,Ann,\n,Bob,12\n")
    ann, bob = read_time_sets(str(path))
    assert ann.times == TimeModel(tile=1.7) and ann.people is None
    assert bob.times == DEFAULT_TIMES and bob.people == 12


def test_time_file_errors_are_listed_together_with_their_lines(tmp_path):
    path = tmp_path / "times.csv"
    path.write_text(
        "name,tiles,click,people,check\n"
        "Ann,1,-2,3,0.5\n"
        ",1,2,3,0.5\n"
        "Bob,1,soon,few,nan\n"
        "Ann,1,2,3,0\n"
        "Eve,1,2,3,0.5,6\n"
        "Max,1,1e9,,\n"
    )
    with pytest.raises(AnnotatorError) as caught:
        read_time_sets(str(path))
    told = str(caught.value).splitlines()[1:]
    expected = (
        ("line 1", "'tiles'"),
        ("line 2", "click is '-2'"),
        ("line 3", "no name"),
        ("line 4", "people is 'few'"),
        ("line 4", "check is 'nan'"),
        ("line 4", "click is 'soon'"),
        ("line 5", "check is '0'"),
        ("line 5", "line 2"),
        ("line 6", "more cells"),
        ("line 7", "click is '1e9'"),
    )
    assert len(told) == len(expected)
    for text, words in zip(told, expected, strict=True):
        assert all(word in text for word in words), (text, words)


@pytest.mark.parametrize(
    ("text", "words"), [("", "'name' is missing"), ("name,click\n", "no set"), ("name,name\nAnn,Bob\n", "2 times")]
)
def test_time_file_without_a_set_or_with_a_duplicate_column_is_refused(tmp_path, text, words):
    path = tmp_path / "times.csv"
    path.write_text(text)
    with pytest.raises(AnnotatorError, match=words):
        read_time_sets(str(path))


def test_unknown_time_file_error_suggests_the_shipped_files(annotator):
    told = annotator("bench", "effort", "--times", "publisht", code=1).stderr
    assert "Did you mean 'published'?" in told and "kinds" in told


def test_replace_seconds_changes_only_the_seconds_of_a_learning_curve(tmp_path):
    curve = [point(0.0), point(0.5, click=4), point(1.0, click=4, begin=1, submit=1, tile=24, change=2)]
    slow = curves.replace_seconds(curve, TimeModel(tile=2.0))
    assert [one["seconds"] for one in slow] == [0, 10, 10 + TimeModel(tile=2.0).estimate_grid_seconds(24, 2)]
    assert [one["actions"] for one in slow] == [one["actions"] for one in curve]


def test_work_offered_by_autopilot_is_counted_per_ten_minute_window():
    first = {"click": 100.0, "begin": 10.0, "submit": 10.0, "tile": 240.0, "change": 236.0}
    assert point(0.5, **first)["seconds"] == 600
    second = first | {"look": 10.0, "check": 100.0, "begin": 20.0, "tile": 340.0, "change": 491.0}
    assert point(0.9, **second)["seconds"] == 990
    curve = [point(0.0), point(0.5, **first), point(0.9, **second)]
    played = {Play("autopilot", "perfect", 0): curve, Play("form", "perfect", 0): curve}
    before, after = by_times.count_handed_out(played)
    assert before == {"policy": "autopilot", "window": [0, 600]} | {"grids": 10, "images": 0, "clicks": 100, "whole": 0}
    assert after == {"policy": "autopilot", "window": [600, 1200]} | {
        "grids": 10, "images": 10, "clicks": 0, "whole": 0.5
    }  # fmt: skip
    # no work was left
    assert by_times.count_handed_out({Play("autopilot", "perfect", 0): curve[:2]})[1]["whole"] is None


def test_random_action_times_of_a_simulated_annotator_have_the_configured_mean():
    rng = np.random.default_rng(0)
    drawn = np.array([simulated_people.draw_seconds(rng, 10.0, paused=0.0) for _ in range(4000)])
    assert drawn.mean() == pytest.approx(10.0, rel=0.03) and np.log(drawn).std() == pytest.approx(0.5, rel=0.05)


@pytest.mark.slow
@pytest.mark.training
def test_every_policy_is_timed_with_each_set_of_action_times(tmp_path, photos):
    path = tmp_path / "times.csv"
    path.write_text("name,check,tile\nours,,\nslow,7,3.5\n")
    result = by_times.measure_by_times(
        read_time_sets(str(path)),
        photos,
        small_set(tmp_path, photos),
        EffortOptions(
            ["form", "grid-only", "autopilot", "autopilot-known"],
            work=tmp_path / "work",
            backbone="efficientnet_lite0",
        ),
    )
    json.dumps(result)
    at = {(row["set"], row["policy"]): row for row in result["costs"] if row["goal"] == 0.95}
    assert len(result["costs"]) == 2 * 4 * 4 and all(row["reached"] for row in result["costs"])
    for policy in ("form", "grid-only"):
        assert at["ours", policy]["actions"] == at["slow", policy]["actions"]
        assert at["ours", policy]["seconds"]["mean"] < at["slow", policy]["seconds"]["mean"]
    for row in result["costs"]:
        ours = at[row["set"], "autopilot"]["seconds"]["mean"]
        if row["goal"] == 0.95:
            assert row["ratio"]["mean"] == pytest.approx(row["seconds"]["mean"] / ours, abs=0.01)
    report = by_times.build_times_report(result, "annotator bench effort")
    tables = {table.title: table.rows for table in report.tables}
    assert len(tables["Minutes to recall (times Autopilot's)"]) == 8
    assert [row[0] for row in tables[by_times.HANDED_OUT_TITLE]] == ["ours", "slow"]
    assert "ours: no source is named." in report.explanations[1]
