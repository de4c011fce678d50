"""Honest numbers where images come in events: audits, trainings, splits and comparisons."""

import json

import numpy as np
import pytest
from benchmarks.certificate_coverage import (
    EVENT_CONDITIONS,
    PROMISED_FIGURES,
    WHOLE_EVENT_CONDITIONS,
    measure_coverage,
)
from conftest import draw
from harness.audit_answers import answer, say
from harness.feature_shards import add_features
from harness.in_events import in_events

from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import open_data_set
from annotator.exchange.project_setup import add_folder
from annotator.quality import audit_sampling
from annotator.quality.certification import compute_certificate
from annotator.store.events import project_events
from annotator.store.features.feature_cache import open_features
from annotator.store.labels import decisions
from annotator.store.upkeep import consistency
from annotator.worker.adapting import adaptation_plan
from annotator.worker.duties.event_refresher import EventRefresher
from annotator.worker.features.worker_context import WorkerContext
from annotator.worker.training import train
from spmll.ensemble.stacking import AnsweredImages, fit_stacked
from spmll.labels import ABSENT, PRESENT
from spmll.methods.auto import Auto
from spmll.statistics.event_totals import OPEN_STATE, EventSample, certify_events, count_events
from spmll.statistics.paired_bootstrap import compare_scorings
from spmll.statistics.stratified_sampling import NO_STRATUM
from spmll.trainers import make_trainer

PROJECTS = 30


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (number % 5 > 0)) for number, name in enumerate(EVENT_CONDITIONS)],
)
def test_certificate_intervals_cover_the_truth_for_images_grouped_in_events(name):
    found = measure_coverage(EVENT_CONDITIONS[name], PROJECTS, seed=5)
    assert min(found[kind] for kind in PROMISED_FIGURES) >= 0.87 and min(found["classes"], found["events"]) >= 0.93, (
        found
    )


def test_class_intervals_undercover_when_whole_audited_events_count_as_single_images():
    assert measure_coverage(WHOLE_EVENT_CONDITIONS["events of 1 to 30, drawn whole"], PROJECTS, seed=5)["classes"] < 0.8


def test_event_whose_images_changed_after_audit_sampling_counts_as_unsampled():
    states, strata = np.full(9, OPEN_STATE), np.array([0, 0, 0, 0, 0, 0, 1, NO_STRATUM, 0], np.uint8)
    sample = EventSample(strata, np.arange(4), np.arange(4), np.ones(4, bool))
    states[:4] = ABSENT
    found = count_events(sample, states, np.array([0, 0, 1, 1, 2, 2, 3, 3, 3]))
    assert (found["code"].tolist(), found["size"].tolist(), found["drawn"].tolist()) == (
        [0, NO_STRATUM],
        [3, 1],
        [2, 0],
    )
    # The second sampled event was joined with one that was not sampled, and the first has an image that was added.
    found = count_events(sample, states, np.array([0, 0, 1, 1, 1, 1, 3, 0, 2]))
    assert (found["code"].tolist(), found["drawn"].tolist()) == ([0, 1, NO_STRATUM], [0, 0, 0])
    assert found["size"].sum() == 4


def test_event_totals_are_exact_when_every_image_is_answered():
    events = np.repeat(np.arange(40), 5)
    states = np.where((events < 7) & (np.arange(200) % 5 < 3), PRESENT, ABSENT)
    totals = certify_events([count_events(EventSample.empty(200), states, events)], np.array([7]))
    for bounds, value in ((totals.recall, 1.0), (totals.missing, 0.0)):
        assert bounds.low[0] == bounds.high[0] == bounds.estimate[0] == value


def test_certificate_adds_recall_of_events_without_changing_its_image_figures(db, annotator):
    say(db, [(image_id, 3) for image_id in (1, 2, 3, 5)])
    audit_sampling.draw_audit(db, 60, seed=4, class_ids=[3])
    answer(db, 4)
    plain = json.dumps(compute_certificate(db).as_json())
    assert "event" not in plain
    in_events(db, 2)
    both = compute_certificate(db).as_json()
    of_events = [row.pop("events") for row in (*both["classes"], both["overall"])]
    assert both.pop("events") == 12 and 0 < of_events[2]["found"] < 9 and not of_events[2]["audited"]
    assert json.dumps(both) == plain, "figures of images do not depend on events"
    answer(db)
    assert "Recall of events is not measured yet: start an audit that draws events." in compute_certificate(db).lacks
    decisions.undo(db, "Ann")

    drawn = audit_sampling.draw_audit(db, 12, seed=4, class_ids=[3], by_event=True)
    asked = {one.image_id for one in audit_sampling.load_open_cells(db) if one.audit_id == drawn.id}
    answered = {row[0] for row in db.tuples("SELECT image_id FROM label WHERE class_id = 3")}
    events = {(image_id - 1) // 2 for image_id in asked}
    assert asked == {image_id for image_id in range(1, 25) if (image_id - 1) // 2 in events} - answered
    say(db, [(image_id, 3) for image_id in asked], "audit")
    found = compute_certificate(db)
    of_class = found.classes[2].events
    assert of_class.audited == len(events) and of_class.found == 9 and of_class.recall.low == 1.0
    assert drawn.id in {one.id for one in found.audits}
    told = annotator("certificate", db.paths.project).stdout
    assert "recall of events" in told and "24 images in 12 events. 9 pairs of an event and a class found" in told


def test_event_audit_is_refused_without_events(db, annotator):
    assert "no events to draw" in annotator("audit", db.paths.project, "--events", code=1).stderr


# ---- one side of every split


def test_stacking_halves_keep_events_together_and_are_random_without_events():
    features, labels = np.ones((60, 3), np.float32), np.zeros((60, 1), np.int8)
    rows, none = np.arange(60), np.zeros((60, 1), bool)
    events = np.arange(60) // 4 * 4
    halves = fit_stacked(
        Auto(), AnsweredImages(features, None, rows, labels, unbiased=none, groups=events)
    )._halves_of_images.reshape(-1, 4)
    assert (halves == halves[:, :1]).all() and set(halves.ravel()) == {0, 1}
    plain = fit_stacked(Auto(), AnsweredImages(features, None, rows, labels, unbiased=none))._halves_of_images
    assert plain.tolist() == np.random.default_rng(0).integers(0, 2, 60).tolist()


def test_project_training_keeps_events_together(db, monkeypatch):
    rng = np.random.default_rng(0)
    add_features(db, "x", np.arange(1, 25), rng.random((24, 8), np.float32), np.zeros((24, 9, 8)))
    say(db, [(image_id, class_id) for image_id in range(1, 25) for class_id in (1, 2, 3)])
    seen = []
    monkeypatch.setattr(
        train, "make_trainer", lambda *given, **more: seen.append(given[2]) or make_trainer(*given, **more)
    )
    for size in (None, 4):
        if size:
            in_events(db, size)
        train.train(db, open_features(db, "x"), "gr", {}, "x")
    assert seen[0].groups is None and seen[1].groups.tolist() == [(row // 4) * 4 + 1 for row in range(24)]


def test_held_out_images_of_a_backbone_adaptation_are_whole_events(db):
    ids = np.arange(1, 25)
    alone = adaptation_plan._choose_held_out(db, ids)
    in_events(db, 3)
    assert adaptation_plan._choose_held_out(db, ids).tolist() == np.repeat(alone[::3], 3).tolist()


def test_model_comparison_interval_ignores_copies_of_an_image_within_its_event():
    rng = np.random.default_rng(0)
    labels = np.where(rng.random((30, 1)) < 0.4, 1, -1).astype(np.int8)
    one, two = (np.clip(0.5 + 0.2 * labels + rng.normal(0, 0.3, labels.shape), 0.01, 0.99) for _ in range(2))
    copies = np.repeat(np.arange(30), 8)
    plain = compare_scorings(one, two, labels).log_loss
    copied = compare_scorings(one[copies], two[copies], labels[copies]).log_loss
    grouped = compare_scorings(one[copies], two[copies], labels[copies], groups=copies).log_loss
    assert copied.high - copied.low < 0.6 * (plain.high - plain.low), "eight copies of an image are no more evidence"
    assert (grouped.low, grouped.high) == pytest.approx((plain.low, plain.high), abs=1e-6)


def test_export_keeps_each_event_in_one_split_with_and_without_a_split_field(db):
    say(db, [(image_id, class_id) for image_id in range(1, 25) for class_id in (1, 2)])

    def split_of(split_by: str = "") -> np.ndarray:
        with open_data_set(db, Choices(splits="train=0.6,val=0.4", split_by=split_by)) as data:
            return np.array([split for block in data.view.blocks() for split in block.splits])

    plain = split_of()
    in_events(db, 4)
    together = split_of()
    assert (together.reshape(6, 4) == together[::4, None]).all() and not (plain.reshape(6, 4) == plain[::4, None]).all()
    with db.writing() as sql:
        sql.execute("INSERT INTO attribute (image_id, name, value) SELECT id, 'site', (id - 1) / 6 FROM image")
    by_site = split_of(split_by="site")
    assert len(set(by_site[:12])) == 1 and len(set(by_site)) == 2, "of two sites, because an event is of both"


# ---- found again, and examined


def test_worker_regroups_events_after_new_images_only_in_projects_with_events(db, photos):
    duty = EventRefresher(WorkerContext(db))
    assert not duty.find_if_due() and not db.tuples("SELECT 1 FROM image_event")
    project_events.find_and_save(db)
    assert not duty.find_if_due(), "nothing has changed"
    draw(photos / "late.jpg", seed=200)
    add_folder(db, photos)
    assert duty.find_if_due() and db.value("SELECT count(*) FROM image_event") == 25
    assert not duty.find_if_due()


@pytest.mark.parametrize("is_asked", [True, False])
def test_doctor_reports_inconsistent_event_and_near_duplicate_rows(db, is_asked):
    if is_asked:
        project_events.find_and_save(db)
    assert consistency.find_problems(db) == []
    with db.writing() as sql:
        sql.execute("INSERT OR REPLACE INTO image_event VALUES (2, 1, 1)")
        sql.execute("INSERT INTO twin (image_id, first_id) VALUES (3, 4)")
    found = consistency.find_differences(db)
    assert "event: (2, 1, 1) follows from nothing" in found.derived
    assert "twins: image 3 is of a group of no image" in found.derived
    assert ("event: (2, 2, 0) is missing" in found.derived) == is_asked
    consistency.repair(db, found.images)
    assert consistency.find_problems(db) == [] and db.value("SELECT count(*) FROM image_event") == 24 * is_asked
