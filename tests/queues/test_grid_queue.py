"""Grids: one class, likeliest first, never an answered cell, never the same cell for two people."""

import threading
import uuid

import numpy as np
import pytest
from harness.answers import answer_cell
from harness.grid_requests import shown_tiles, wanted
from harness.published_runs import publish

from annotator.errors import AnnotatorError
from annotator.queues import grid_queue
from annotator.records import Batch, Decision, WantedImages
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import selections
from annotator.store.labels import decisions, label_cells


@pytest.fixture
def predicted(db) -> np.ndarray:
    """(24, 3): the first class grows likelier from image to image, the second less likely, the third has no model."""
    rising = np.linspace(0.02, 0.98, 24)
    probabilities = np.stack([rising, rising[::-1] / 2, np.full(24, np.nan)], 1)
    publish(db, probabilities)
    return probabilities


def test_grid_shows_the_most_probable_unanswered_images_of_its_class(db, predicted):
    answer_cell(db, 24, 1, -1)
    answer_cell(db, 22, 1, 0)
    answer_cell(db, 21, 2)
    first, second = grid_queue.lease_next_grids(db, wanted(want=2)).items
    assert [tile.image.id for tile in first.tiles] == [23, 21, 20, 19, 18, 17]
    assert [tile.image.id for tile in second.tiles] == [16, 15, 14, 13, 12, 11]
    assert first.tiles[0].probability == pytest.approx(predicted[22, 0], abs=1e-3)
    assert first.expected_share == pytest.approx(predicted[[22, 20, 19, 18, 17, 16], 0].mean(), abs=1e-3)
    assert (first.start, second.start) == ("yes", "yes")
    assert first.id != second.id


def test_grid_with_few_expected_positives_starts_with_all_tiles_set_to_no(db, predicted):
    first_grid = grid_queue.lease_next_grids(db, wanted(class_id=2)).items[0]
    assert first_grid.expected_share < 0.5 and first_grid.start == "no"


def test_grid_of_a_class_without_predictions_is_shuffled_and_starts_with_all_tiles_no(db, predicted):
    answer_cell(db, 5, 3, 1)
    first_grid = grid_queue.lease_next_grids(db, wanted(class_id=3, size=24)).items[0]
    assert (first_grid.run_id, first_grid.expected_share, first_grid.start) == (None, None, "no")
    assert {tile.image.id for tile in first_grid.tiles} == set(range(1, 25)) - {5}
    assert [tile.image.id for tile in first_grid.tiles] != sorted(tile.image.id for tile in first_grid.tiles)


def test_class_with_the_fewest_answers_is_offered_first_before_the_first_training(db):
    answer_cell(db, 1, 1)
    answer_cell(db, 2, 2)
    assert grid_queue.lease_next_grids(db, wanted(class_id=None)).items[0].class_id == 3
    assert grid_queue.find_best_class(db) == 3


def test_grids_on_two_pages_share_no_label_but_may_share_images_for_other_classes(db, predicted):
    ann = shown_tiles(grid_queue.lease_next_grids(db, wanted("ann", want=2)))
    bob = shown_tiles(grid_queue.lease_next_grids(db, wanted("bob", annotator="Bob", want=2)))
    other = shown_tiles(grid_queue.lease_next_grids(db, wanted("cy", class_id=2, annotator="Cy", want=4)))
    assert (len(ann), len(bob), len(other)) == (12, 12, 24)
    assert not set(ann) & set(bob)


def test_grid_excludes_images_open_on_another_page(db, predicted):
    from annotator.queues import image_queue

    held = [
        item.image.id for item in image_queue.lease_next_work(db, WantedImages("review", "bob", "Bob", (), 3)).items
    ]
    assert held and not set(held) & {
        image_id for image_id, _ in shown_tiles(grid_queue.lease_next_grids(db, wanted(size=24)))
    }


def test_next_grid_skips_images_that_the_page_has_loaded_or_already_shown(db, predicted):
    first = shown_tiles(grid_queue.lease_next_grids(db, wanted()))
    second = shown_tiles(grid_queue.lease_next_grids(db, wanted(have=first)))
    third = shown_tiles(grid_queue.lease_next_grids(db, wanted(have=second, passed=first)))
    assert len({*first, *second, *third}) == 18


def test_answered_grid_is_not_offered_again_until_undone(db, predicted):
    first = shown_tiles(grid_queue.lease_next_grids(db, wanted()))
    batch = Batch("a-grid-of-mine", "Ann", "grid", [(image, of, 1, 0.5) for image, of in first])
    assert decisions.save(db, [batch]).saved == ["a-grid-of-mine"]
    assert not set(first) & set(shown_tiles(grid_queue.lease_next_grids(db, wanted(size=24))))
    decisions.save(db, [Decision("undo-of-mine", "undo", "Ann", "click", undoes="a-grid-of-mine:0")])
    assert shown_tiles(grid_queue.lease_next_grids(db, wanted())) == first


def test_grid_never_contains_labels_answered_before_it_during_concurrent_decisions(db, predicted):
    wrong, over = [], threading.Event()

    def decide() -> None:
        for image_id in range(24, 0, -1):
            answer_cell(db, image_id, 1)
        over.set()

    deciding = threading.Thread(target=decide)
    deciding.start()
    while not over.is_set():
        before = label_cells.load_states(db, 1, range(1, 25))
        given = shown_tiles(grid_queue.lease_next_grids(db, wanted(size=2, want=2)))
        wrong += [image_id for image_id, _ in given if image_id in before]
    deciding.join()
    assert not wrong
    assert not grid_queue.lease_next_grids(db, wanted(size=24)).items


def test_best_class_is_the_one_whose_next_grid_has_most_expected_positives(db, predicted):
    assert grid_queue.find_best_class(db, 6) == 1
    assert grid_queue.lease_next_grids(db, wanted(class_id=None, but=1)).items[0].class_id == 2
    for image_id in range(7, 25):
        answer_cell(db, image_id, 1)
    assert grid_queue.find_best_class(db, 6) == 2, "what is left of the first class is unlikely"


def test_best_class_stays_the_same_while_the_page_has_its_grids_loaded(db, predicted):
    first = shown_tiles(grid_queue.lease_next_grids(db, wanted(class_id=None, size=12)))
    second = shown_tiles(grid_queue.lease_next_grids(db, wanted(class_id=None, size=12, have=first)))
    assert {of for _, of in first + second} == {1}, "the second half of class 1 is less likely than class 2"
    assert {
        of for _, of in shown_tiles(grid_queue.lease_next_grids(db, wanted(class_id=None, have=second, passed=first)))
    } == {2}


def test_class_counts_report_answered_labels_and_expected_positives(db, predicted):
    for image_id, state in ((24, 1), (23, -1), (22, 0)):
        answer_cell(db, image_id, 1, state)
    first, second, third = grid_queue.load_class_counts(db)
    assert (first.present, first.absent, first.unsure, first.unknown) == (1, 1, 1, 21)
    assert first.expected_positives == pytest.approx(predicted[:21, 0].sum(), abs=0.02)
    assert second.expected_positives == pytest.approx(predicted[:, 1].sum(), abs=0.02)
    assert (third.expected_positives, third.unknown) == (None, 24)
    decisions.undo(db, "Ann")
    assert grid_queue.load_class_counts(db)[0].expected_positives == pytest.approx(predicted[:22, 0].sum(), abs=0.02)


def test_grid_of_a_selection_shows_unanswered_images_first_then_answered_ones(db, predicted):
    answer_cell(db, 20, 1, -1)
    selection = selections.save(db, np.array([3, 20, 9, 15]))
    tiles = grid_queue.lease_next_grids(db, wanted(selection=selection)).items[0].tiles
    assert [(tile.image.id, tile.state) for tile in tiles] == [(15, None), (9, None), (3, None), (20, -1)]
    assert [tile.annotator for tile in tiles] == [None, None, None, "Ann"]
    assert grid_queue.lease_next_grids(db, wanted(class_id=None, selection=selection)).items[0].class_id == 2
    have = [(tile.image.id, 1) for tile in tiles]
    done = grid_queue.lease_next_grids(db, wanted(selection=selection, passed=have))
    assert not done.items and "selection" in done.empty_reason


def test_selection_grid_works_before_the_first_training(db):
    selection = selections.save(db, np.array([3, 20]))
    first_grid = grid_queue.lease_next_grids(db, wanted(class_id=None, selection=selection)).items[0]
    assert {tile.image.id for tile in first_grid.tiles} == {3, 20}


def test_grid_queue_refuses_an_unknown_class_or_a_deleted_selection(db):
    with pytest.raises(AnnotatorError, match="no class 9"):
        grid_queue.lease_next_grids(db, wanted(class_id=9))
    with pytest.raises(AnnotatorError, match="is gone"):
        grid_queue.lease_next_grids(db, wanted(selection="abc"))


def test_empty_grid_queue_states_the_reason_and_links_to_other_pages_when_complete(db, predicted):
    everything = [(image_id, 1) for image_id in range(1, 25)]
    assert "another class" in grid_queue.lease_next_grids(db, wanted(passed=everything)).empty_reason
    grid_queue.lease_next_grids(db, wanted("bob", size=24, annotator="Bob"))
    assert "open elsewhere" in grid_queue.lease_next_grids(db, wanted()).empty_reason
    for image_id in range(1, 25):
        one = Decision(str(uuid.uuid4()), "done", "Ann", "done", image_id)
        decisions.save(db, [one])
    complete = grid_queue.lease_next_grids(db, wanted("cy"))
    assert complete.empty_reason.startswith("Every image is complete") and complete.next_pages == (
        "review",
        "certificate",
        "export",
    )
    empty = Database(db.paths.project.parent / "empty", create=True)
    assert "No images yet" in grid_queue.lease_next_grids(empty, wanted(class_id=None)).empty_reason
    assert classes.load_active_classes(empty) == []
