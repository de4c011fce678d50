"""Agreement of people in a project: whose answers count, and what the command says of them."""

import csv
import json
import math
import uuid
from datetime import UTC, datetime

import pytest
from harness.answers import say
from streamlit.testing.v1 import AppTest

from annotator.quality.annotator_agreement import compute_agreement
from annotator.quality.annotator_figures import compute_annotator_figures
from annotator.records import Decision
from annotator.store.labels import decisions, disagreed_cells
from annotator.ui.access import served_project

PAGE = """
from annotator.ui.pages.agreement import agreement_page
agreement_page.page()
"""


@pytest.mark.parametrize(
    ("words", "counted"),
    [
        ("A+ b+", (1, 0)),
        ("A+ b-", (1, 1)),
        ("A+ B+", (0, 0)),  # Bob was shown what Ann had said
        ("A+ B-", (0, 0)),  # had he left it, nothing would be stored: his change alone says nothing of how they agree
        ("A+ B- b+", (0, 0)),  # he knows it by then
        ("A+ b- B+", (1, 1)),  # what Bob says now he may have learned from Ann
        ("A+ b- C+", (1, 1)),  # a settlement changes nobody's first answer
        ("A+ B- c+", (1, 0)),  # Cid knows of neither, Ann had nothing to see
        ("A+ b?", (0, 0)),
        ("A+ b? b+", (1, 0)),
        ("A+ B? b+", (0, 0)),  # unsure about an answer that he was shown
        ("A+ I-", (0, 0)),  # a file is not a person
        ("I- A+ b+", (0, 0)),  # Ann changed what a file said
        ("I- a+ b+", (1, 0)),
        ("A. B.", (0, 0)),  # nothing here: Bob was shown it
        ("A. b+", (1, 1)),
        ("A+ A.", (0, 0)),
        ("A+ B.", (0, 0)),  # the class that Ann answered was no longer open to Bob
    ],
)
def test_agreement_counts_the_first_blind_answer_of_each_annotator_per_label(db, words, counted):
    say(db, *words.split())
    overall = compute_agreement(db).overall
    assert (overall.cells, overall.differ) == counted


def test_agreement_ignores_answers_given_after_seeing_the_label_of_another_annotator(db):
    """Bob sees twelve answers of Ann and changes three; blind, he says the same as she of six in eight."""
    for image_id in range(1, 21):
        say(db, "A+" if image_id % 2 else "A-", image_id=image_id)
    for image_id in (1, 2, 3):
        say(db, "B-" if image_id % 2 else "B+", image_id=image_id)
    assert compute_agreement(db).overall.cells == 0, "three of twelve would be no agreement at all"
    for image_id in range(13, 21):
        same = image_id not in (14, 19)
        say(db, "b+" if (image_id % 2 == 1) == same else "b-", image_id=image_id)
    measured = compute_agreement(db)
    assert (measured.overall.cells, measured.overall.differ, measured.overall.raw.value) == (8, 2, 0.75)
    [pair] = measured.pairs
    assert pair.kappa.value == pytest.approx((0.75 - 0.5) / 0.5)  # both say present of half
    ann, bob = compute_annotator_figures(db)
    assert (ann.compared, ann.same.value, bob.same.value) == (8, 0.75, 0.75)
    # Where Bob was shown an answer only his changes are known, so they have no share; in audits the newest holds.
    assert (ann.changed, ann.changed_shared, ann.shared, ann.changes_description) == (3, 0, 8, "0 of 8, and 3 more")


def test_agreement_ignores_undone_answers_and_those_given_before_a_label_was_cleared(db):
    say(db, "A+")
    slip = Decision(str(uuid.uuid4()), "label", "Bob", "audit", 1, 1, -1)
    decisions.save(db, [slip])
    assert compute_agreement(db).overall.differ == 1
    decisions.save(db, [Decision(str(uuid.uuid4()), "undo", "Bob", "audit", undoes=slip.uuid)])
    assert compute_agreement(db).overall.cells == 0
    say(db, "b-")
    decisions.save(db, [Decision(str(uuid.uuid4()), "clear", "Ann", "click", 1, 1)])
    assert compute_agreement(db).overall.cells == 0
    say(db, "A-", "b-")
    assert compute_agreement(db).overall.cells == 0, "after a blind answer that he took back Bob is blind there no more"
    say(db, "c-")
    assert (compute_agreement(db).overall.cells, compute_agreement(db).overall.differ) == (1, 0)


def test_agreement_is_counted_per_class_and_per_annotator_pair(db):
    for image_id in range(1, 11):
        say(db, "A+" if image_id % 2 else "A-", image_id=image_id)
        say(db, "b+" if image_id % 2 else "b-", image_id=image_id)
    for image_id in (1, 2):
        say(db, "c-", image_id=image_id)
    say(db, "A+", "b-", class_id=2)
    measured = compute_agreement(db)
    first, second = measured.classes
    assert (first.name, first.cells, first.differ) == ("fox", 10, 1) and first.alpha.value > 0.8
    assert first.alpha.low < first.alpha.value <= first.alpha.high
    assert (second.name, second.cells, second.differ, second.raw.value) == ("heron", 1, 1, 0.0)
    assert [(pair.first, pair.second, pair.cells, pair.differ) for pair in measured.pairs] == [
        ("Ann", "Bob", 11, 1),
        ("Ann", "Cid", 2, 1),
        ("Bob", "Cid", 2, 1),
    ]
    by_class = [(pair.name, pair.first, pair.second, pair.cells, pair.differ) for pair in measured.pairs_by_class]
    assert by_class == [
        ("fox", "Ann", "Bob", 10, 0),
        ("fox", "Ann", "Cid", 2, 1),
        ("fox", "Bob", "Cid", 2, 1),
        ("heron", "Ann", "Bob", 1, 1),
    ]
    assert [math.isnan(pair.kappa.value) for pair in measured.pairs_by_class] == [False, True, True, True]  # too few
    assert measured.overall.cells == 11 and math.isnan(measured.overall.alpha.value)


def test_agreement_command_shows_figures_or_how_to_collect_answers(db, project, annotator, tmp_path):
    assert "assign overlap" in annotator("agreement", project).stdout
    say(db, "A+", "b+")
    shown = annotator("agreement", project).stdout
    assert "fox" in shown and "Ann, Bob" in shown and "100.0 %" in shown
    found = json.loads(annotator("agreement", project, "--json", "--csv", tmp_path / "a.csv").stdout)
    rows = [(row["by"], row["class"], row["other"], row["same"]) for row in csv.DictReader((tmp_path / "a.csv").open())]
    assert rows == [
        ("class", "fox", "", "1.0"),
        ("class", "all classes", "", "1.0"),
        ("pair", "all classes", "Bob", "1.0"),
        ("class and pair", "fox", "Bob", "1.0"),
        ("week", "all classes", "", "1.0"),
    ]
    assert found["classes"][0]["alpha"]["value"] is None and found["classes"][0]["raw"]["low"] < 0.9


def test_agreement_counts_a_label_in_the_week_of_its_second_answer(db, monkeypatch, annotator, project):
    monday = datetime(2026, 3, 2, 0, 30, tzinfo=UTC).timestamp()
    for words, at in (("A+", monday - 3600), ("b+", monday), ("c-", monday + 8 * 86400)):
        monkeypatch.setattr(decisions.time, "time", lambda at=at: at)
        say(db, words)
    say(db, "A+", "c-", image_id=2)
    weeks = [(week.monday, week.cells, week.differ) for week in compute_agreement(db).weeks]
    assert weeks == [("2026-03-02", 1, 1), ("2026-03-09", 1, 1)]
    assert [week.alpha.value for week in compute_agreement(db).weeks] == [0.0, 0.0]
    assert annotator("agreement", project).stdout.count("2026-03-") == 2


def test_resolving_a_disagreement_leaves_agreement_unchanged(db):
    say(db, "A+", "b-", "A+", "B+", image_id=2)
    say(db, "A+", "b-", image_id=1)
    before = compute_agreement(db).as_json()
    settled = Decision("settles-it", "label", "Rita", "settlement", 1, 1, 1)
    assert decisions.save(db, [settled]).saved == ["settles-it"] and disagreed_cells.count(db) == 0
    assert compute_agreement(db).as_json() == before


def test_agreement_page_filters_pairs_by_class_and_shows_alpha_per_week(db, project):
    for image_id in range(1, 11):
        say(db, "A+" if image_id % 2 else "A-", "b+" if image_id % 3 else "b-", image_id=image_id)
    say(db, "A+", "c-", class_id=2)
    served_project.open_project(project)
    page = AppTest.from_string(PAGE, default_timeout=120).run()

    def table(label: str) -> str:
        return next(html.proto.body for html in page.get("html") if f'aria-label="{label}"' in html.proto.body)

    assert "Ann, Bob" in table("Agreement by pair of people") and "Ann, Cid" in table("Agreement by pair of people")
    page.selectbox[0].select("heron").run()
    assert not page.exception
    assert "Ann, Bob" not in table("Agreement by pair of people")
    assert "too few" in table("Agreement by pair of people")
    week = compute_agreement(db).weeks[0]
    assert f'<td dir="auto">{week.alpha.value:.2f}</td>' in table("Agreement by week")
