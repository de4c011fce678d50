"""What a run leaves for the page: orders as a full sort would give them, as of the decisions the run had seen."""

import uuid

import numpy as np
import pytest
from harness.answers import answer_cell
from harness.feature_shards import add_features
from harness.made_rankings import CLASSES, IMAGES, answers, made_up

from annotator.queues import grid_queue
from annotator.records import Decision, WantedGrids
from annotator.snapshot import rankings, suggestions
from annotator.snapshot.run_predictions import load_rankings, read_predictions
from annotator.store.classes import classes
from annotator.store.database import arrays
from annotator.store.features.feature_cache import open_features
from annotator.store.labels import decisions
from annotator.store.runs import runs
from annotator.worker.training.train import train


def built(db, chances: np.ndarray, newest: int | None = None) -> rankings.Rankings:
    newest = decisions.get_newest_decision_id(db) if newest is None else newest
    return rankings.build(db, newest, np.arange(1, IMAGES + 1), np.arange(1, CLASSES + 1), chances)


def best_first(chances: np.ndarray) -> list[int]:
    """Rows by a plain sort: largest first, equal ones by row; nan is left out."""
    return sorted((row for row in range(len(chances)) if chances[row] >= 0), key=lambda row: (-chances[row], row))


def test_suggestion_rankings_equal_a_full_sort_by_class_and_by_image(db):
    chances, states = made_up(), answers(db)
    ranked = built(db, chances)
    still_open = np.where(np.isnan(states), chances.astype(float), np.nan)
    for column in range(CLASSES):
        order = best_first(still_open[:, column])
        assert ranked.by_class[column].tolist() == order + [-1] * (IMAGES - len(order))
        assert ranked.scores[column, : len(order)].tolist() == still_open[order, column].tolist()
    likeliest = np.nanmax(np.concatenate([still_open, np.full((IMAGES, 1), -1.0)], 1), 1)
    order = best_first(likeliest)
    assert ranked.by_image[: len(order)].tolist() == order and set(ranked.by_image[len(order) :]) <= {-1}
    assert ranked.expected == pytest.approx(np.nansum(still_open, 0))


def test_rankings_of_a_training_ignore_decisions_newer_than_its_data(db):
    answers(db, 10)
    seen = decisions.get_newest_decision_id(db)
    before = built(db, made_up())
    cells = {(image_id, class_id) for image_id, class_id, _ in decisions.load_label_cells(db)[0]}
    open_cell = next(
        (image_id, class_id) for image_id in range(1, 25) for class_id in (1, 2) if (image_id, class_id) not in cells
    )
    answer_cell(db, *open_cell)
    after = built(db, made_up(), seen)
    assert after.by_class.tolist() == before.by_class.tolist() and after.expected.tolist() == before.expected.tolist()


def test_likely_mistakes_rank_answers_by_distance_from_the_prediction_and_exclude_unsure(db):
    chances, states = made_up(), answers(db)
    apart = np.where(np.isin(states, (1, -1)), np.abs(chances.astype(float) - (states == 1)), np.nan)
    expected = sorted(
        (-apart[row, column], row, column)
        for row, column in np.argwhere(apart >= rankings.MIN_DOUBTFUL_DIFFERENCE).tolist()
    )
    assert built(db, chances).disagreements.tolist() == [[row, column] for _, row, column in expected]
    assert len(expected) > 3


def test_cooccurrence_counts_classes_present_on_the_same_image(db):
    states = answers(db, 60)
    present = (states == 1).astype(int)
    together = built(db, made_up()).cooccurrence
    assert together.tolist() == (present.T @ present).tolist()
    assert together.sum() > np.trace(together)


def test_ranking_over_its_limit_keeps_the_most_probable_images_and_samples_the_rest(db, monkeypatch):
    monkeypatch.setattr(rankings, "MAX_RANKED_PER_CLASS", 10)
    chances = made_up()
    ranked = built(db, chances)
    order = best_first(chances[:, 0].astype(float))
    kept = ranked.by_class[0].tolist()
    assert kept[:8] == order[:8] and kept[-1] == order[-1] and len(set(kept)) == 10
    assert rankings.get_gapless_length(ranked) == 8


def test_find_first_below_returns_the_position_of_the_first_lower_score():
    scores = np.array([0.9, 0.5, 0.5, 0.2], np.float16)
    assert [rankings.find_first_below(scores, low) for low in (1.0, 0.9, 0.5, 0.3, 0.0)] == [0, 0, 3, 3, 4]


def test_training_stores_rankings_that_load_unchanged(db):
    add_features(db, "x", np.arange(1, 25), np.eye(24), np.zeros((24, 9, 24)))
    cache = open_features(db, "x")
    answers(db, 40)
    classes.add_classes(db, [("owl", "")])
    run = train(db, cache, "an", {}, "x")
    predictions = read_predictions(db)
    kept = rankings.load(db.paths.run(run.id))
    again = rankings.build(
        db, run.last_decision_id, predictions.image_ids, predictions.class_ids, predictions.probabilities
    )
    for name in vars(again):
        assert np.array_equal(getattr(kept, name), getattr(again, name)), name
    assert kept.expected[3] == 0 and set(kept.by_class[3].tolist()) == {-1}, "nobody has seen an owl yet"
    assert grid_queue.load_class_counts(db)[3].expected_positives is None


def test_unpublished_model_of_a_killed_worker_is_not_used(db):
    def begin() -> int:
        facts = {"method": "gr", "parameters": {}, "backbone": "x", "class_ids": [1, 2, 3], "images": 24}
        run_id = runs.begin(db, **facts, last_decision_id=0, threshold=0.5)
        arrays.save_array(db.paths.run(run_id) / "image_ids.npy", np.arange(1, 25))
        arrays.save_array(db.paths.run(run_id) / "probabilities.npy", made_up(run_id))
        return run_id

    first = begin()
    rankings.save(db.paths.run(first), built(db, made_up(first)))
    runs.publish(db, first, epochs=1, seconds=0.1, loss=[0.5])
    begin()  # all arrays, no rankings, not published
    half = db.paths.run(begin()) / "by_class.npy"
    half.write_bytes(b"half a")
    predictions = read_predictions(db)
    assert predictions.run.id == first
    assert load_rankings(db, predictions).by_class.tolist() == built(db, made_up(first)).by_class.tolist()
    tiles = grid_queue.lease_next_grids(db, WantedGrids("tab", "Ann", 1, 12, (), 1)).items[0].tiles
    assert [tile.image.id - 1 for tile in tiles] == best_first(made_up(first)[:, 0].astype(float))[:12]


def test_new_run_deletes_leftover_files_of_an_earlier_run_with_the_same_id(db):
    left = [db.paths.heatmap(1, 3, 2), db.paths.run(1, 4) / "probabilities.npy", db.paths.run(1) / "by_class.npy"]
    others = [db.paths.heatmap(2, 3, 2), db.paths.run(12) / "probabilities.npy"]
    for path in left + others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"of other images")
    facts = {"method": "gr", "parameters": {}, "backbone": "x", "class_ids": [1, 2, 3], "images": 24}
    assert runs.begin(db, **facts, last_decision_id=0, threshold=0.5) == 1
    assert not any(path.exists() for path in left) and all(path.exists() for path in others)


def test_suggestions_from_rankings_equal_those_from_all_probabilities(db):
    chances = made_up()
    facts = {"method": "gr", "parameters": {}, "backbone": "x", "class_ids": [1, 2, 3], "images": 24}
    run_id = runs.begin(db, **facts, last_decision_id=0, threshold=0.5)
    arrays.save_array(db.paths.run(run_id) / "image_ids.npy", np.arange(1, 25))
    arrays.save_array(db.paths.run(run_id) / "probabilities.npy", chances)
    rankings.save(db.paths.run(run_id), built(db, chances))
    runs.publish(db, run_id, epochs=1, seconds=0.1, loss=[0.5])
    answers(db, 12)
    decisions.save(db, [Decision(str(uuid.uuid4()), "done", "Ann", "click", image_id=7)])
    decisions.undo(db, "Ann")
    decisions.undo(db, "Ann")
    for class_id in (None, 1, 2, 3):
        everything = suggestions.find_missing_positives(db, class_id, limit=None)
        for limit in (0, 1, 7):
            assert suggestions.find_missing_positives(db, class_id, limit) == everything[:limit]
