"""The certificate by a fact: what it says of the images of each place, and that its intervals hold the truth."""

import json
import re

import numpy as np
import pytest
from benchmarks.certified_groups import GROUP_CONDITIONS, WHOLE_EVENT_CONDITION, measure_group_coverage
from harness.audit_answers import answer, say
from harness.image_fields import give
from harness.in_events import in_events
from harness.page_scripts import fine, shown, words
from streamlit.testing.v1 import AppTest

from annotator.quality import audit_sampling
from annotator.quality.certificate_groups import compute_certificate_by
from annotator.quality.certification import compute_certificate
from annotator.snapshot import fact_groups, image_facts
from annotator.store.database.database import Database

PROJECTS = 40


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (number % 4 > 0)) for number, name in enumerate(GROUP_CONDITIONS)],
)
def test_certificate_intervals_of_groups_cover_the_true_values(name):
    found = measure_group_coverage(GROUP_CONDITIONS[name], PROJECTS, seed=5)
    assert min(found["recall"], found["shown"], found["precision"]) >= 0.95, found
    assert found["worst"] >= 0.87, "in every group, the smallest included, but for the chance of 40 projects"


@pytest.mark.slow
def test_group_recall_intervals_undercover_when_event_images_count_as_independent():
    assert measure_group_coverage(WHOLE_EVENT_CONDITION, PROJECTS, seed=5)["recall"] < 0.9, (
        "then the tests above could not fail"
    )


@pytest.fixture
def places(db: Database) -> Database:
    """24 images of two places, a few of none; 12 of 24 foxes are decided and an audit of all else is answered."""
    give(db, "site", {image_id: "pond" if image_id <= 14 else "wood" for image_id in range(1, 23)})
    say(db, [(image_id, 1) for image_id in range(1, 13)])
    audit_sampling.draw_audit(db, 60, seed=1)
    answer(db)
    return db


def test_groups_sum_to_the_certificate_and_contain_each_image_once(places):
    whole, parts = compute_certificate(places).overall, compute_certificate_by(places, "column:site").groups
    assert {group.name for group in parts} == {"pond", "wood", "not known"}
    assert [sum(getattr(group, name) for group in parts) for name in ("people", "accepted", "unknown", "audited")] == [
        whole.people,
        whole.accepted,
        whole.unknown,
        whole.audited,
    ]
    assert sum(group.images for group in parts) == 24
    assert all(group.audited_images <= group.images for group in parts)


def test_group_without_audit_answers_has_no_recall(db):
    give(db, "site", {image_id: "pond" if image_id <= 12 else "wood" for image_id in range(1, 25)})
    say(db, [(image_id, class_id) for image_id in range(1, 12) for class_id in (1, 2, 3)])
    groups = {group.name: group for group in compute_certificate_by(db, "site").groups}
    assert {group.recall.reason for group in groups.values()} == {"not measured"}
    nothing = dict.fromkeys(("estimate", "low", "high")) | {"reason": "not measured"}
    assert groups["pond"].as_json()["recall"] == nothing


def test_group_with_every_label_answered_has_full_recall_without_an_audit(db):
    give(db, "site", {image_id: "pond" if image_id <= 12 else "wood" for image_id in range(1, 25)})
    say(db, [(image_id, class_id) for image_id in range(1, 13) for class_id in (1, 2, 3)])
    pond, wood = compute_certificate_by(db, "site").groups
    assert (pond.name, pond.recall.low, pond.recall.high, pond.recall.reason) == ("pond", 1, 1, "")
    assert 0.7 < pond.recall_allowing.low < 0.95 and pond.recall_allowing.high == 1, "two of 18 may be missed"
    assert (wood.name, wood.recall.reason, wood.precision.reason) == (
        "wood",
        "not measured",
        "not measured (no labels yet)",
    )


def test_relabels_lower_the_precision_of_their_own_group_only(db):
    give(db, "site", {image_id: "pond" if image_id <= 12 else "wood" for image_id in range(1, 25)})
    cells = [(image_id, class_id) for image_id in range(1, 25) for class_id in (1, 2, 3)]
    say(db, cells, states=[1] * len(cells))
    audit_sampling.draw_audit(db, 72, seed=1)
    asked = [(one.image_id, one.class_id) for one in audit_sampling.load_open_cells(db)]
    say(db, asked, "audit", states=[-1 if image_id <= 12 else 1 for image_id, _ in asked])
    precision = {group.name: group.precision for group in compute_certificate_by(db, "site").groups}
    assert precision["wood"].low > 0.75 > precision["pond"].high


def test_groups_ignore_answers_of_event_audits(db):
    in_events(db, 4)
    give(db, "site", {image_id: "pond" if image_id <= 12 else "wood" for image_id in range(1, 25)})
    say(db, [(image_id, 1) for image_id in range(1, 13)])
    audit_sampling.draw_audit(db, 30, seed=1, by_event=True)
    answer(db)
    assert {group.audited for group in compute_certificate_by(db, "site").groups} == {0}


def test_groups_beyond_the_limit_are_combined_as_other(db):
    give(db, "site", {image_id: f"site {image_id // 2}" for image_id in range(1, 25)})
    names = [group.name for group in compute_certificate_by(db, "site", max_groups=5).groups]
    assert len(names) == 5 and "other (9 values)" in names


def test_group_certificate_states_that_each_interval_has_its_own_confidence(places):
    found = compute_certificate_by(places, "site")
    told = " ".join(found.format_sentences())
    assert len(found.measured_groups) > 1 and "95 % confidence on its own" in told and "by chance" in told
    assert found.as_json()["simultaneous"] is False


def test_certificate_command_prints_every_group_and_matches_its_json(places, annotator):
    project = places.paths.project
    text = annotator("certificate", project, "--by", "site").stdout
    titles = ("recall if people's answers are right", "recall if 1 answer in 50 is wrong")
    assert all(name in text for name in ("site", "pond", "wood", "not known", *titles))
    found = json.loads(annotator("certificate", project, "--by", "site", "--json").stdout)
    assert found == compute_certificate_by(places, "site").as_json()
    assert "There is no fact 'lens'" in annotator("certificate", project, "--by", "lens", code=1).stderr
    assert "Camera is known of none of 24 images" in annotator("certificate", project, "--by", "camera", code=1).stderr


def test_certificate_page_charts_the_groups_of_a_field_sorted_by_recall_or_by_name(places):
    test = shown(places)
    assert not any(one.proto.id.endswith("chart_by_fact") for one in test.get("arrow_vega_lite_chart"))
    test = fine(test.selectbox(key="certificate_fact").set_value("column:site").run())
    found = compute_certificate_by(places, "site")
    assert all(sentence in words(test) for sentence in found.format_sentences())
    assert names_in(test) == [group.name for group in found.groups]
    test = fine(test.segmented_control(key="certificate_order").set_value("By name").run())
    assert names_in(test) == ["pond", "wood", "not known"]


def names_in(test: AppTest) -> list[str]:
    """The groups in the table of groups."""
    [table] = [one.proto.body for one in test.get("html") if "group by group" in one.proto.body]
    return re.findall(r'scope="row"[^>]*>(.*?)<', table)


def test_number_fields_group_into_quartiles_and_times_into_days_months_or_years():
    number, time = (
        image_facts.Fact(
            "n",
            "N",
            image_facts.FactKind.NUMBER,
            image_facts.make_measure_reader("sharpness"),
            image_facts.format_number,
        ),
        image_facts.FACTS_BY_NAME["captured"],
    )
    quarters = fact_groups.group_values(number, np.array([*range(8), np.nan]), 9)
    assert np.bincount(quarters.codes[:8]).tolist() == [2, 2, 2, 2] and quarters.codes[8] == -1
    assert fact_groups.group_values(number, np.ones(3), 9).labels == ["1"], "of one value there is one group"
    seconds = np.array(["2026-01-31", "2026-02-01", "2026-02-28"], "datetime64[s]").astype(float)
    for most, labels in ((60, "2026-01-31"), (9, "2026-01"), (1, "2026")):
        assert fact_groups.group_values(time, seconds, most).labels[0] == labels
    months = fact_groups.group_values(time, np.append(seconds, np.nan), 9)
    assert months.codes.tolist() == [0, 1, 1, -1]
    assert months.filter_values == ["2026-01-01..2026-01-31", "2026-02-01..2026-02-28"]
    ages = np.array(["1949-07-01", "1987-01-01", "2026-05-05"], "datetime64[s]").astype(float)
    assert fact_groups.group_values(time, ages, 9).labels[::8] == ["1940 to 1949", "2020 to 2029"]
