"""Audits: published whole or not at all, asked in random order, and what the certificate estimates from the answers."""

import json
import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness import bulk, projects
from harness.audit_answers import answer, say, truth
from harness.published_runs import publish

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export_writer import export_data_set
from annotator.quality import audit_sampling
from annotator.quality.audit_sampling import load_samples
from annotator.quality.certificate_records import describe_repeats, estimate_overlooked
from annotator.quality.certificate_strata import CellPopulation, build_strata
from annotator.quality.certification import compute_certificate, estimate_seconds_per_tile
from annotator.quality.evidence import (
    Interval,
    describe_share,
    explain_hidden_precision,
    explain_hidden_recall,
    format_search_time,
)
from annotator.quality.shortfall import list_shortfalls
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.labels import audits, decisions
from spmll.statistics.allowed_mistakes import RepeatedAnswers
from spmll.statistics.stratified_sampling import CONFIRM_PRESENT, LOOK_PRESENT


def positives(class_id: int) -> int:
    return sum(truth(image_id, class_id) == 1 for image_id in range(1, 25))


def test_audit_sample_has_equally_many_unanswered_labels_per_class_and_a_tenth_answered(db):
    say(db, [(image_id, 1) for image_id in range(1, 13)])
    drawn = audit_sampling.draw_audit(db, 20, seed=1)
    cells = audit_sampling.load_open_cells(db)
    assert drawn.cells == len(cells) == 20
    relabels = [cell for cell in cells if cell.class_id == 1 and cell.image_id <= 12]
    assert len(relabels) == 2  # a tenth
    assert sorted(sum(cell.class_id == c for cell in cells if cell not in relabels) for c in (1, 2, 3)) == [6, 6, 6]
    assert audit_sampling.load_open_cells(db, 2) == [one for one in cells if one.class_id == 2]


def test_answered_audit_label_leaves_the_list_of_unanswered_ones_until_undo(db):
    audit_sampling.draw_audit(db, 9, seed=2)
    before = audit_sampling.load_open_cells(db)
    decisions.save(db, [Decision("a", "label", "Ann", "audit", before[0].image_id, before[0].class_id, 1)])
    assert audit_sampling.load_open_cells(db) == before[1:]
    decisions.undo(db, "Ann")
    assert audit_sampling.load_open_cells(db) == before


def test_unanswered_labels_of_the_newest_audit_precede_those_of_older_audits(db):
    audit_sampling.draw_audit(db, 9, seed=2)
    older = audit_sampling.load_open_cells(db)
    audit_sampling.draw_audit(db, 6, seed=3)
    cells = audit_sampling.load_open_cells(db)
    assert [one.audit_id for one in cells[:6]] == [2] * 6 and {one.audit_id for one in cells[6:]} == {1}
    asked = {(one.image_id, one.class_id) for one in cells}
    assert len(asked) == len(cells) and asked >= {(one.image_id, one.class_id) for one in older}
    assert compute_certificate(db).overall.waiting == len(cells)


def test_audit_labels_carry_the_score_of_the_current_model(db):
    rising = np.linspace(0.02, 0.98, 24)
    run = publish(db, np.stack([rising, rising, np.full(24, np.nan)], 1))
    assert audit_sampling.draw_audit(db, 60, seed=3).run_id == run
    for one in audit_sampling.load_open_cells(db):
        assert one.run_id == run
        expected = None if one.class_id == 3 else pytest.approx(rising[one.image_id - 1], abs=1e-3)
        assert one.score == expected
    strata = audits.load_population(db, 1).strata
    assert (np.diff(strata[:, 0].astype(int)) >= 0).all() and len(set(strata[:, 0])) == 2
    assert len(set(strata[:, 2])) == 1


def test_interrupted_audit_sampling_leaves_no_visible_audit_and_the_next_one_deletes_it(db, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(audits, "save_array", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            audit_sampling.draw_audit(db, 9)
    assert audits.load_audits(db) == [] and audit_sampling.load_open_cells(db) == []
    with db.writing() as sql:
        sql.execute("UPDATE audit SET drawn_at = 0")
    assert audit_sampling.draw_audit(db, 9).cells == 9
    assert db.value("SELECT count(*) FROM audit") == 1


def test_audit_draw_deletes_audits_beyond_the_kept_limit(db):
    for seed in range(audits.MAX_KEPT_AUDITS + 2):
        audit_sampling.draw_audit(db, 3, seed=seed)
    kept = {path.name for path in db.paths.audits.iterdir()}
    assert kept == {str(one.id) for one in audits.load_audits(db)} and len(kept) == audits.MAX_KEPT_AUDITS
    compute_certificate(db)


def test_audit_draw_refuses_zero_labels_no_images_and_unknown_classes(db, tmp_path):
    with pytest.raises(AnnotatorError, match=r"1 or more image-class pairs, such as 200, not 0"):
        audit_sampling.draw_audit(db, 0)
    empty = Database(tmp_path / "empty", create=True)
    with pytest.raises(AnnotatorError, match="no images"):
        audit_sampling.draw_audit(empty)
    with pytest.raises(AnnotatorError, match=r"no classes \[7\]"):
        audit_sampling.draw_audit(db, class_ids=[7])
    assert compute_certificate(empty).lacks == ["No classes yet. Add some on the Classes page."]


def test_certificate_without_an_audit_reports_what_is_missing_and_no_recall(db):
    say(db, [(image_id, 1) for image_id in range(1, 9)])
    found = compute_certificate(db)
    fox = found.classes[0]
    assert (fox.people, fox.unknown, fox.audited, fox.recall.estimate, fox.seconds) == (4, 16, 0, None, None)
    assert (fox.recall.low, fox.recall.high) == (0.2, 1.0)
    assert (fox.missing.low, fox.missing.high) == (0, 16)
    assert found.find_reached_classes() == [] and found.sentence().startswith("Not measured yet.")
    assert found.lacks[0].startswith("Start an audit: 64 unanswered pairs may hide labels")


def test_certificate_after_an_audit_bounds_recall_and_missing_labels(db):
    audit_sampling.draw_audit(db, 60, seed=4, class_ids=[1])
    answer(db, 16)
    found = compute_certificate(db).classes[0]
    assert found.audited == 0 and found.waiting == 8, "an audit is one look, after its last answer to the class"
    assert found.recall.reason == found.recall_allowing.reason == "not measured"
    answer(db)
    found = compute_certificate(db)
    fox = found.classes[0]
    assert fox.audited == 24 and fox.recall.low == fox.recall.high == 1.0
    # Two of 24 answers may be wrong, so that one of 13 foxes or two of 14 may be missed: 12 of 14 is below the target.
    assert fox.recall_allowing.low == pytest.approx(12 / 14, abs=0.01) and fox.recall_allowing.high == 1.0
    assert found.find_reached_classes() == [] and found.find_reached_classes(0.8) == [1]
    assert found.sentence(0.8) == (
        "80 % recall reached for 1 of 3 classes. With 95 % confidence at all looks together, if 1 answer in 50 is "
        "wrong; 2 not measured. Precision: not measured (people's labels assumed to be right)"
    )
    assert "These classes have no audit answers yet: heron, deer." in found.lacks


def test_audit_of_half_the_images_bounds_recall_and_missing_labels(db):
    audit_sampling.draw_audit(db, 12, seed=4, class_ids=[1])
    answer(db)
    found = compute_certificate(db).classes[0]
    assert found.audited == 12 and 0 < found.people < positives(1)
    assert found.recall.low <= found.people / positives(1) <= found.recall.high
    assert found.recall_allowing.low <= found.recall.low and found.recall_allowing.high >= found.recall.high
    assert found.missing.low <= positives(1) - found.people <= found.missing.high


def test_certificate_counts_each_answered_audit_of_a_class_as_one_look(db):
    looks = []
    for seed in (1, 2):
        audit_sampling.draw_audit(db, 12, seed=seed, class_ids=[1])
        answer(db)
        _, _, counts, _ = build_strata(
            [one for audit in audits.load_audits(db) for one in load_samples(db, audit, audits.load_cells(db, audit))],
            CellPopulation(db, audits.load_readable_image_ids(db), np.arange(1, 4), None),
            [],
        )
        looks.append(counts.audits.tolist())
    assert looks == [[1, 0, 0], [2, 0, 0]]


def test_present_answer_of_an_audit_gets_a_second_look_that_confirms_it(db):
    audit_sampling.draw_audit(db, 24, seed=4, class_ids=[1])
    answer(db)
    again = audit_sampling.load_open_cells_for(db, "Ann")
    found = {(one.class_id, one.image_id) for one in again}
    assert found == {(1, image_id) for image_id in range(1, 25) if truth(image_id, 1) == 1}, "Ann is alone"
    assert audits.load_confirmed_cells(db).tolist() == []
    say(db, [(one.image_id, 1) for one in again[:5]], "audit")
    assert {*map(tuple, audits.load_confirmed_cells(db).tolist())} == {(1, one.image_id) for one in again[:5]}
    say(db, [(again[5].image_id, 2)], by="Bob")
    assert audit_sampling.load_open_cells_for(db, "Ann") == [], "another person is there to give the second looks"
    assert len(audit_sampling.load_open_cells_for(db, "Bob")) == 7


def test_audit_gives_present_labels_of_rare_classes_a_second_look(db):
    rare = [(image_id, 1) for image_id in range(1, 25)]
    say(db, rare, states=[1 if image_id in (3, 9) else -1 for image_id, _ in rare])
    drawn = audit_sampling.draw_audit(db, 30, seed=2)
    cells = audits.load_cells(db, drawn)
    confirms = cells.stratum == CONFIRM_PRESENT
    relabeled = {*cells.image_id[(cells.class_id == 1) & (cells.stratum == LOOK_PRESENT)].tolist()}
    assert {*cells.image_id[confirms].tolist()} | relabeled == {3, 9} and len(cells.stratum) == 30
    assert not audit_sampling.load_cells_to_repeat(db, "Ann"), "nothing is answered"
    answer(db)
    seen = audits.load_confirmed_cells(db)
    assert {3, 9} == {*seen[seen[:, 0] == 1, 1].tolist()}, "a relabel is a second look, too"
    assert {one.image_id for one in audit_sampling.load_cells_to_repeat(db, "Ann") if one.class_id == 1} == set()


def test_positives_found_outside_the_audit_raise_recall_but_not_estimated_missing_labels(db):
    audit_sampling.draw_audit(db, 36, seed=5)
    say(db, [(image_id, 1) for image_id in range(1, 25) if truth(image_id, 1) == 1])
    found = compute_certificate(db).classes[0]
    assert found.people == 12 and found.audited == 0
    answer(db)
    found = compute_certificate(db).classes[0]
    assert found.audited == 12
    assert found.recall.low <= 1.0 == found.recall.high and found.missing.low == 0


def test_certificate_with_every_label_answered_has_recall_intervals_of_zero_width(db):
    audit_sampling.draw_audit(db, 30, seed=6)
    answer(db)
    every = [(image_id, class_id) for image_id in range(1, 25) for class_id in (1, 2, 3)]
    say(db, every)
    found = compute_certificate(db).overall
    assert (found.recall.low, found.recall.high, found.missing.high, found.unknown) == (1, 1, 0, 0)


def test_wrong_answers_found_by_repeated_answers_in_the_audit_lower_precision(db):
    every = [(image_id, class_id) for image_id in range(1, 25) for class_id in (1, 2, 3)]
    say(db, every, states=[1] * len(every))
    audit_sampling.draw_audit(db, 60, seed=5)
    assert {one.class_id for one in audit_sampling.load_open_cells(db)} == {1, 2, 3}
    cells = answer(db)
    found = compute_certificate(db)
    assert len(cells) == found.relabels.present == 30, "half of an audit where nothing is open"
    assert found.relabels.mistaken == sum(truth(*cell) == -1 for cell in cells) > 0
    assert found.overall.precision.low < 0.5 < found.overall.precision.high <= 1


def test_annotator_disagreements_widen_the_certificate_intervals(db):
    every = [(image_id, 1) for image_id in range(1, 25)]
    say(db, every)
    for image_id, state in ((1, -1), (2, 1)):
        decisions.save(db, [Decision(f"b{image_id}", "label", "Bob", "click", image_id, 1, state)])
    found = compute_certificate(db).classes[0]
    assert found.people == 12 and found.precision.low == pytest.approx(11 / 12, abs=1e-3)
    assert found.missing.high == 1 and found.recall.low == pytest.approx(11 / 12, abs=1e-3)


def test_certificate_counts_and_reports_images_added_after_the_audit(db, photos):
    from conftest import draw as paint

    from annotator.exchange.project_setup import set_up_project

    audit_sampling.draw_audit(db, 60, seed=8, class_ids=[1])
    answer(db)
    assert compute_certificate(db).classes[0].missing.high == 0
    for number in range(3):
        paint(photos / f"new{number}.jpg", ("fox",), seed=100 + number)
    set_up_project(db.paths.project, images_folder=photos)
    found = compute_certificate(db)
    assert found.classes[0].missing.high == 3 and any("3 images were added" in one for one in found.lacks)


def test_certificate_time_estimate_follows_the_answer_times_of_the_project(db):
    usual = estimate_seconds_per_tile(db)
    publish(db, np.tile(np.linspace(0.02, 0.98, 24)[:, None], 3))
    audit_sampling.draw_audit(db, 30, seed=9)
    answer(db)
    before = compute_certificate(db).overall
    for _ in range(6):
        say(db, [(1, 1), (2, 1)], "grid", milliseconds=60_000)
    assert estimate_seconds_per_tile(db) > 3 * usual
    assert compute_certificate(db).overall.seconds > 2 * before.seconds > 0


def test_export_writes_its_certificate_as_a_data_card(db, tmp_path):
    say(db, [(image_id, 1) for image_id in range(1, 25)])
    audit_sampling.draw_audit(db, 20, seed=10)
    answer(db)
    _, written = export_data_set(db, tmp_path / "labels.csv", "csv", Choices(unknown="absent"))
    assert [path.name for path in written[-2:]] == ["labels.card.md", "labels.card.json"]
    card = json.loads((tmp_path / "labels.card.json").read_text())
    assert card["files"] == ["labels.csv", "labels.provenance.csv", "labels.notes.csv"]
    fox = card["classes"][0]
    every = {"estimate": 1.0, "low": 1.0, "high": 1.0}
    assert fox["certificate"]["recall"] == every | {"assuming": "if people's answers are right"}
    allowing = fox["certificate"]["recall_allowing"]
    assert allowing["assuming"] == card["certificate"]["assuming"] == "if 1 answer in 50 is wrong"
    assert allowing["low"] < 0.9 < allowing["high"] == 1.0
    assert sum(cell["cells"] for one in card["classes"] for cell in one["cells"]) == 72
    text = (tmp_path / "labels.card.md").read_text()
    for expected in ("| fox | 12 | 0 | 100 % (100 %) |", "Audit 1: 20 pairs", "| absent | assumed |"):
        assert expected in text, expected
    assert all(sentence in text for sentence in card["assumed"] + card["limits"])


def test_recall_without_an_audit_is_shown_with_the_assumption_that_answers_are_right(db, tmp_path, annotator):
    every = [(image_id, class_id) for image_id in range(1, 25) for class_id in (1, 2, 3)]
    say(db, every)
    found = compute_certificate(db)
    condition = "if people's answers are right"
    assert found.overall.recall.estimate == 1 and not found.overall.audited
    assert found.overall.recall_allowing.low < 0.95 and "for 0 of 3 classes" in found.sentence()
    assert "if 1 answer in 50 is wrong" in found.sentence() and condition not in found.sentence()
    assert found.overall.as_json()["recall"]["assuming"] == found.overall.as_json()["missing"]["assuming"] == condition
    export_data_set(db, tmp_path / "labels.csv", "csv")
    text = (tmp_path / "labels.card.md").read_text()
    assert f"| recall {condition} |" in text and "Every pair has an answer and no audit has checked them" in text
    told = " ".join(annotator("certificate", db.paths.project).stdout.split())
    assert f"If {condition[3:]}: every pair has one, and no audit has checked them." in told and "recall if" in told


def test_data_card_mentions_a_random_sample_only_after_an_audit(db, tmp_path):
    def card() -> dict:
        export_data_set(db, tmp_path / "x.csv", "csv", overwrite=True)
        return json.loads((tmp_path / "x.card.json").read_text())

    say(db, [(image_id, 1) for image_id in range(1, 9)])
    told = card()
    assert "sample was drawn" not in told["how_audits_are_drawn"] and "no random sample" in told["how_audits_are_drawn"]
    assert not any("audit saw" in one for one in told["assumed"]) and not any("95 %" in one for one in told["limits"])
    assert "What is known without an audit:" in (tmp_path / "x.card.md").read_text()
    audit_sampling.draw_audit(db, 20, seed=10)
    assert "20 drawn pairs wait" in card()["how_audits_are_drawn"], "drawn, and nothing answered"
    answer(db)
    told = card()
    assert "simple random sample was drawn" in told["how_audits_are_drawn"]
    assert "by the model" not in told["how_audits_are_drawn"] and "auto-accepted" not in told["how_audits_are_drawn"]
    assert any("audit saw" in one for one in told["assumed"]) and any("95 %" in one for one in told["limits"])


@pytest.mark.process
def test_audit_and_certificate_commands_draw_an_audit_and_show_the_certificate(annotator, project: Path):
    told = annotator("audit", project, "--cells", 30).stdout
    assert "30 pairs to check" in told and "audit grid on the Grid page" in told
    text = annotator("certificate", project).stdout
    assert "Not measured yet. An audit tells how many labels are missing" in text and "Check 30 pairs" in text
    found = json.loads(annotator("certificate", project, "--target", 0.5, "--json").stdout)
    assert found["overall"]["waiting"] == 30 and found["reached"]["target"] == 0.5
    assert [one["name"] for one in found["classes"]] == ["fox", "heron", "deer"]


def test_precision_without_relabels_is_reported_as_not_measured(db, tmp_path):
    say(db, [(image_id, 1) for image_id in range(1, 9)])
    reason = "not measured (people's labels assumed to be right)"
    found = compute_certificate(db)
    assert found.classes[0].precision.reason == found.overall.precision.reason == reason
    assert found.sentence() == "Not measured yet. An audit tells how many labels are missing"
    assert any("Precision is not measured" in one for one in found.lacks)
    export_data_set(db, tmp_path / "labels.csv", "csv")
    card = json.loads((tmp_path / "labels.card.json").read_text())
    nothing = {"estimate": None, "low": None, "high": None}
    assert card["certificate"]["overall"]["precision"] == nothing | {"reason": reason}
    assert card["classes"][0]["certificate"]["recall"] == nothing | {"reason": "not measured"}
    row = f"| fox | 4 | 0 | not measured | not measured | {reason} | not measured | 0 |"
    assert row in (tmp_path / "labels.card.md").read_text()


@pytest.mark.parametrize(
    ("one", "answers", "told"),
    [
        (Interval(1.0, 0.012, 1.0), 2, "too few answers (2)"),
        (Interval(0.9, 0.3, 1.0), 1_200, "too few answers (1,200)"),
        (Interval(None, 0.0, 1.0), 5, "too few answers (5)"),
        (Interval(0.97, 0.5, 1.0), 6, "97.0 % (50 % to 100 %)"),
        (Interval(0.9996, 0.9951, 1.0), 900, "99.9 % (99.5 % to 100 %)"),
        (Interval(1.0, 0.0, 1.0), 0, "not measured"),
    ],
)
def test_certificate_shows_a_reason_instead_of_an_uninformative_interval(one, answers, told):
    assert describe_share(replace(one, reason=explain_hidden_recall(one, 10, 50, answers))) == told


def test_certificate_reason_for_a_missing_figure_depends_on_the_number_of_checked_labels():
    wide, narrow = Interval(1.0, 0.158, 1.0), Interval(0.99, 0.9, 1.0)
    assert explain_hidden_precision(wide, 40, 0, 0, 2) == "too few answers (2)"
    assert explain_hidden_precision(narrow, 40, 0, 0, 30) == explain_hidden_precision(narrow, 0, 800, 300, 0) == ""
    assert explain_hidden_precision(narrow, 40, 800, 300, 0) == "not measured (people's labels assumed to be right)"
    assert (
        explain_hidden_precision(narrow, 0, 0, 300, 9)
        == explain_hidden_recall(narrow, 0, 9, 300)
        == "not measured (no labels yet)"
    )
    assert explain_hidden_recall(wide, 3, 0, 0) == "", "everything is answered: there is nothing to measure"
    assert (
        format_search_time(None) == "not measured"
        and format_search_time(0.0) == "none expected"
        and format_search_time(0.2) == "1 s"
    )


def test_certificate_with_two_audit_answers_gives_no_time_estimate(db):
    publish(db, np.tile(np.linspace(0.02, 0.98, 24)[:, None], 3))
    audit_sampling.draw_audit(db, 2, seed=9)
    answer(db)
    found = compute_certificate(db).overall
    assert found.seconds is None and found.missing.reason == "too few answers (2)"


@pytest.mark.slow
def test_audit_draw_of_a_large_project_stays_within_the_memory_limit(tmp_path):
    images, classes_ = 30_000, 150
    (tmp_path / "images").mkdir()
    db = projects.make_empty_project(tmp_path, classes_)
    bulk.add_images(db, tmp_path, range(1, images + 1))
    bulk.insert_clicks(db, np.arange(1, 3001), np.arange(3000) % classes_ + 1)
    tracemalloc.start()
    try:
        audit_sampling.draw_audit(db, 3000, seed=1)
        assert tracemalloc.get_traced_memory()[1] < 3 * images * classes_, "a byte a cell for its strata, and few more"
    finally:
        tracemalloc.stop()


def test_audit_of_a_complete_project_is_counted_in_certificate_command_and_card(db, tmp_path, annotator):
    every = [(image_id, class_id) for image_id in range(1, 25) for class_id in (1, 2, 3)]
    wrong = {every[0], every[4]}  # fox on image 1 is missed, heron on image 2 too
    say(db, every, states=[-truth(*cell) if cell in wrong else truth(*cell) for cell in every])
    audit_sampling.draw_audit(db, 72, seed=5)
    asked = answer(db)
    again = Counter(-truth(*cell) if cell in wrong else truth(*cell) for cell in asked)
    found = compute_certificate(db)
    assert [drawn.cells for drawn in found.audits] == [len(asked)], "it was asked about answered labels only"
    assert found.overall.audit_answers == len(asked) and not found.overall.audited
    assert found.overall.asked_again == found.relabels
    assert (found.relabels.present, found.relabels.absent) == (again[1], again[-1])
    assert found.relabels.missed == len(wrong & set(asked)) > 0 == found.relabels.mistaken
    assert sum(row.asked_again.total for row in found.classes) == len(asked)
    rest = sum(truth(*cell) == -1 for cell in every) - again[-1] + found.relabels.missed
    assert found.overall.overlooked.high <= rest
    told = describe_repeats(found.relabels)
    assert told.startswith(f"{len(asked)} answers asked again, blind: of {again[1]} present labels, 0 wrong (0 % to ")
    assert f"of {again[-1]} absent labels, {found.relabels.missed} missed (" in told
    printed = " ".join(annotator("certificate", db.paths.project).stdout.split())
    assert told in printed and "no audit has checked them" not in printed
    row = json.loads(annotator("certificate", db.paths.project, "--json").stdout)["overall"]
    assert row["audit_answers"] == len(asked) and row["asked_again"]["missed"] == found.relabels.missed
    export_data_set(db, tmp_path / "labels.csv", "csv")
    text = (tmp_path / "labels.card.md").read_text()
    assert told in text and f"Audit 1: {len(asked)} pairs" in text and "no audit has checked them" not in text
    assert "unanswered pairs were divided" not in text, "there were none"


@pytest.mark.parametrize(
    ("counts", "labeled_absent", "interval"),
    [
        (RepeatedAnswers(absent=100), 8000, (0.0, 0.0, 290.0)),
        (RepeatedAnswers(absent=100, missed=1), 7999, (79.0, 1.0, 435.0)),
        (RepeatedAnswers(absent=40), 40, (0.0, 0.0, 0.0)),
        (RepeatedAnswers(absent=2, missed=2), 5, (5.0, 0.0, 5.0)),
        (RepeatedAnswers(present=9), 30, (None, 0.0, 30.0)),
    ],
)
def test_overlooked_labels_are_bounded_by_the_absent_labels_asked_again(counts, labeled_absent, interval):
    found = estimate_overlooked(counts, labeled_absent)
    assert (found.estimate, found.low, found.high) == interval
    assert bool(found.reason) == (counts.absent == 0)


@pytest.fixture
def half_labeled(tmp_path) -> Database:
    """A project of 400 images and 3 classes, with 458 labels present and 150 absent."""
    db = projects.make_project(tmp_path, 400, 3)
    cells = [(image_id, class_id) for class_id in (1, 2, 3) for image_id in range(1, 201)]
    for class_id in (1, 2, 3):
        of_class = [cell for cell in cells if cell[1] == class_id]
        say(db, of_class, states=[1 if image_id <= 150 else -1 for image_id, _ in of_class])
    return db


def test_certificate_names_more_than_500_audit_answers_before_an_audit_starts(half_labeled, annotator):
    found = compute_certificate(half_labeled)
    # 458 labels allow 24.1 missing ones, of which wrong answers may miss 16.2: ln(80) x 592 / 7.9 = 328 answers.
    # With 96 % they allow 19.1, of which 2.9 are left: 884 answers, more than the 592 that are open.
    assert list_shortfalls(found, 0.95) == found.lacks and not any("audit answers, if" in one for one in found.lacks)
    [effort] = [one for one in list_shortfalls(found, 0.96) if "audit answers, if" in one]
    assert effort == "96 % recall of all classes together takes about 592 audit answers, if they find nothing new."
    text = " ".join(annotator("certificate", half_labeled.paths.project, "--target", 0.96).stdout.split())
    assert effort in text


def test_certificate_states_that_98_percent_cannot_be_shown_while_1_answer_in_50_may_be_wrong(half_labeled):
    told = " ".join(list_shortfalls(compute_certificate(half_labeled), 0.98))
    assert "98 % recall cannot be shown if 1 answer in 50 is wrong" in told and "183 or more labels" in told
