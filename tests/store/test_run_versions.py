"""Versions of a run: decisions reach the probabilities and the queues without a training, whole or not at all."""

import signal
import subprocess
import sys
import uuid

import numpy as np
import pytest
from harness.answers import answer_cell
from harness.served import until
from harness.short_forms import mark_slow_after
from harness.trained_projects import KILLED, cache_of, trained

from annotator.errors import DiskFull
from annotator.queues import grid_queue, image_queue
from annotator.records import ABSENT, PRESENT, Decision, SuggestionFilter, WantedGrids, WantedImages
from annotator.snapshot import rankings, suggestions
from annotator.snapshot.run_predictions import load_rankings, open_arrays, read_predictions
from annotator.snapshot.snapshot import read_snapshot
from annotator.store.classes import classes
from annotator.store.database import heartbeat, jobs
from annotator.store.images import selections
from annotator.store.labels import decisions
from annotator.store.runs import runs
from annotator.worker.process import Worker
from annotator.worker.training.incremental_update import Updater
from annotator.worker.training.update_thread import UpdateThread

__all__ = ["trained"]  # a fixture


def undo(db) -> None:
    decisions.save(db, [Decision(str(uuid.uuid4()), "undo", "Ann", "click")])


def test_model_update_uses_new_decisions_and_changes_only_predictions_of_their_classes(trained):
    before = np.array(read_predictions(trained).probabilities)
    answer_cell(trained, 20, 1, ABSENT)
    answer_cell(trained, 22, 1, ABSENT)
    run = Updater().update(trained, cache_of(trained))
    assert (run.id, run.version, run.last_decision_id) == (1, 1, decisions.get_newest_decision_id(trained))
    assert run.trained_decision_id == run.last_decision_id - 2
    predictions = read_predictions(trained)
    assert (predictions.probabilities[[19, 21], 0] < before[[19, 21], 0]).all()
    assert np.array_equal(predictions.probabilities[:, 1:], before[:, 1:])
    assert Updater().update(trained, cache_of(trained)) is None, "there is nothing new to see"


def test_several_small_model_updates_yield_the_same_predictions_as_one_update(trained):
    one, cache = Updater(), cache_of(trained)
    for image_id, class_id, state in ((13, 1, 1), (14, 2, -1), (15, 1, 0), (16, 3, 1), (3, 1, -1)):
        answer_cell(trained, image_id, class_id, state)
        one.update(trained, cache)
    stepwise = np.array(read_predictions(trained).probabilities)
    decisions.save(trained, [Decision(str(uuid.uuid4()), "done", "Ann", "done", image_id=18)])
    undo(trained)
    run = Updater().update(trained, cache)
    predictions = read_predictions(trained)
    assert run.version == 6 and np.array_equal(stepwise, predictions.probabilities)
    again = rankings.build(
        trained, run.last_decision_id, predictions.image_ids, predictions.class_ids, predictions.probabilities
    )
    for name, kept in vars(load_rankings(trained, predictions)).items():
        assert np.array_equal(kept, getattr(again, name)), name
    kept = {place.name for place in trained.paths.run(1).iterdir() if place.is_dir()}
    assert {"v5", "v6"} <= kept and not kept & {"v1", "v2", "v3", "v4"}


def test_model_update_reverts_an_undone_answer_and_ignores_a_skip(trained):
    first, cache, updater = np.array(read_predictions(trained).probabilities), cache_of(trained), Updater()
    answer_cell(trained, 20, 2)
    updater.update(trained, cache)
    assert not np.array_equal(read_predictions(trained).probabilities, first)
    undo(trained)
    assert updater.update(trained, cache).version == 2
    assert np.abs(read_predictions(trained).probabilities.astype(float) - first.astype(float)).max() < 1e-3
    decisions.save(trained, [Decision(str(uuid.uuid4()), "skip", "Ann", "click", image_id=22)])
    run = updater.update(trained, cache)
    assert run.version == 2 and run.last_decision_id == decisions.get_newest_decision_id(trained)


def queues(db, *, selection: str) -> dict[str, set[tuple[int, int]]]:
    """The cells that every queue offers to somebody who has just come, by its name."""
    everything = WantedImages("review", uuid.uuid4().hex, "Bob", (), 24, SuggestionFilter(low=0.0))
    review = image_queue.lease_next_work(db, everything)
    offered = {"review": {(one.image_id, one.class_id) for item in review.items for one in item.suggestions}}
    image_queue.lease_next_work(db, WantedImages("review", everything.holder, "Bob", (), 0))  # lets go of them
    for name, chosen in (("grid", ""), ("selection", selection)):
        for class_id in (1, 2, 3):
            wanted = WantedGrids(uuid.uuid4().hex, "Bob", class_id, 24, (), 1, selection=chosen)
            tiles = [
                tile
                for one in grid_queue.lease_next_grids(db, wanted).items
                for tile in one.tiles
                if tile.state is None
            ]
            offered.setdefault(name, set()).update((tile.image.id, class_id) for tile in tiles)
            grid_queue.lease_next_grids(db, WantedGrids(wanted.holder, "Bob", class_id, 24, (), 0))
    offered["likeliest"] = {(one.image_id, one.class_id) for one in suggestions.find_missing_positives(db)}
    return offered


def test_answered_suggestion_leaves_every_queue_before_and_after_the_next_model_update(trained):
    cache, updater = cache_of(trained), Updater()
    picked = selections.save(trained, np.arange(1, 25))
    for step, state in enumerate((PRESENT, ABSENT, 0)):
        cell = suggestions.find_missing_positives(trained)[0]
        cell = (cell.image_id, cell.class_id)
        assert all(cell in offered for offered in queues(trained, selection=picked).values())
        answer_cell(trained, *cell, state)
        assert not [name for name, offered in queues(trained, selection=picked).items() if cell in offered]
        assert updater.update(trained, cache).version == step + 1
        assert not [name for name, offered in queues(trained, selection=picked).items() if cell in offered]
        assert not read_snapshot(trained).delta.changed_image_count, "the rankings know by themselves"
    undo(trained)
    updater.update(trained, cache)
    assert all(cell in offered for offered in queues(trained, selection=picked).values()), "it is open again"


def test_image_and_grid_queues_report_the_current_model_version(trained):
    wanted = WantedImages("review", "tab", "Ann", (), 0)
    assert image_queue.lease_next_work(trained, wanted).model_version == "1.0"
    answer_cell(trained, 20, 1)
    Updater().update(trained, cache_of(trained))
    assert image_queue.lease_next_work(trained, wanted).model_version == "1.1"
    assert grid_queue.lease_next_grids(trained, WantedGrids("tab", "Ann", 1, 6, (), 0)).model_version == "1.1"


class Interrupted(Worker):
    """A worker in the middle of whose training somebody answers four cells, each when the one before is published."""

    seen: list

    def _report_and_serve(self, state, done, of):
        super()._report_and_serve(state, done, of)
        if state == "training" and len(self.seen) < 4:
            answer_cell(self.db, 15 + len(self.seen), 1, PRESENT)
            newest = decisions.get_newest_decision_id(self.db)
            run = until(lambda: (run := runs.load_current_run(self.db)).last_decision_id >= newest and run)
            self.seen.append((run.id, run.version))


def test_model_updates_are_published_during_a_training_without_restarting_it(trained):
    answer_cell(trained, 14, 2)
    worker = Interrupted(trained.paths.project)
    worker.seen, updates = [], UpdateThread(trained, worker.context.get_features)
    updates.start()
    try:
        worker.training.train_or_record_error()
        assert [run for run, _ in worker.seen] == [1] * 4 and len(set(worker.seen)) == 4, "one training, four versions"
        newest = decisions.get_newest_decision_id(trained)
        run = until(lambda: (run := runs.load_current_run(trained)).last_decision_id >= newest and run)
        assert (run.id, run.version) == (2, 1)
        assert run.trained_decision_id == run.last_decision_id - 4 < run.last_decision_id
        assert not worker.training.is_due(), "four answers are no reason for another one at once"
        jobs.request_training(trained)
        worker.training.schedule.last_end = 0.0
        assert worker.training.is_due()
    finally:
        updates.close()
        worker.close()


def test_training_is_due_after_20_decisions_or_the_first_present_label_of_a_class(trained):
    classes.add_classes(trained, [("lynx", "")])
    worker = Worker(trained.paths.project)
    try:
        worker.train()
        worker.training.schedule.last_end = 0.0
        for number in range(19):
            answer_cell(trained, 13 + number % 12, 1 + number % 3, ABSENT if number % 2 else PRESENT)
            assert not worker.training.is_due()
        answer_cell(trained, 1, 4, ABSENT)
        assert worker.training.is_due()
        worker.train()
        worker.training.schedule.last_end = 0.0
        assert not worker.training.is_due()
        answer_cell(trained, 2, 4, PRESENT)
        assert worker.training.is_due(), "updates can say nothing of a class without a model"
    finally:
        worker.close()


def test_failed_model_update_is_reported_and_retried_only_after_a_new_decision(trained):
    cache, way = cache_of(trained), trained.paths.run(1, 1)
    updates = UpdateThread(trained, lambda: cache)
    answer_cell(trained, 20, 1)
    way.write_text("in the way of the folder")
    with pytest.raises(DiskFull):
        Updater().update(trained, cache)
    assert (
        updates.publish_pending_update() is None
        and "could not be written" in heartbeat.load_worker_state(trained).last_error
    )
    assert runs.load_current_run(trained).version == 0 and suggestions.find_missing_positives(trained)
    way.unlink()
    assert updates.publish_pending_update() is None, "twenty times a second would be no help"
    answer_cell(trained, 21, 1)
    assert updates.publish_pending_update().version == 1 and np.isfinite(open_arrays(trained, 1, 1)[1]).all()
    assert not heartbeat.load_worker_state(trained).last_error


@pytest.mark.process
@pytest.mark.parametrize("files", mark_slow_after(1, [1, 5, 8]))
def test_killed_model_update_keeps_the_old_version_and_the_next_worker_completes_it(trained, files):
    answer_cell(trained, 20, 1)
    Updater().update(trained, cache_of(trained))
    before = np.array(read_predictions(trained).probabilities)
    answer_cell(trained, 21, 1, ABSENT)
    words = [sys.executable, "-c", KILLED, str(trained.paths.project), str(files)]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert runs.load_current_run(trained).version == 1
    assert len(list(trained.paths.run(1, 2).glob("*.npy"))) == files - 1, "it was in the middle"
    predictions = read_predictions(trained)
    assert np.array_equal(predictions.probabilities, before) and load_rankings(trained, predictions) is not None
    assert (21, 1) not in {(one.image_id, one.class_id) for one in suggestions.find_missing_positives(trained)}
    worker = Worker(trained.paths.project)
    try:
        assert UpdateThread(trained, worker.context.get_features).publish_pending_update().version == 2
        assert not list(trained.paths.run(1).rglob(".*.part"))
    finally:
        worker.close()
