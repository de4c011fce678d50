"""Fixed shares: images or classes that belong to some people are asked of nobody else."""

import numpy as np
import pytest
from harness.blind_answers import given, name_of
from harness.published_runs import publish

from annotator.errors import AnnotatorError
from annotator.queues import grid_queue, image_queue
from annotator.queues.autopilot import planner
from annotator.records import SuggestionFilter, WantedActions, WantedGrids, WantedImages
from annotator.store.people import assignment

ALL = set(range(1, 25))


@pytest.fixture
def db(db):
    """24 images, the first six in a folder."""
    publish(db, np.full((24, 3), 0.6))
    with db.writing() as sql:
        sql.execute("UPDATE file SET path = 'north/' || path WHERE image_id <= 6")
    return db


def autopilot(db, who: str, times: int = 12) -> set[int]:
    """The images that Autopilot asks a person about in a while."""
    shown: set[int] = set()
    for number in range(times):
        work = planner.lease_next_actions(db, WantedActions(f"p {who}", who, (), 1, passed=[(999, number)] * number))
        for action in work.items:
            shown |= {tile.image.id for tile in action.grid.tiles} if action.grid else {action.item.image.id}
    planner.lease_next_actions(db, WantedActions(f"p {who}", who, (), 0))
    return shown


def test_assignees_of_a_folder_get_only_its_images_and_others_get_the_rest(db):
    assignment.assign_folder(db, "Ann", "north/")
    assert given(db, "Ann") == set(range(1, 7)) and autopilot(db, "Ann") <= set(range(1, 7)) != set()
    assert given(db, "Ben") == set(range(7, 25)) and autopilot(db, "Ben") <= set(range(7, 25))
    assignment.assign_folder(db, "Ben", "north")
    assert given(db, "Ben") == set(range(1, 7))
    assert given(db, "Cid") == set(range(7, 25))


def test_image_list_assignment_restricts_queues_until_it_is_removed(db):
    share = assignment.assign_images(db, "Ann", "hard ones", [name_of(db, 3), name_of(db, 20), name_of(db, 20)])
    assert given(db, "Ann") == {3, 20} and given(db, "Ben") == ALL - {3, 20}
    assert [(one.annotator, one.what, one.images) for one in assignment.load_assignments(db)] == [
        ("Ann", "hard ones", 2)
    ]
    assignment.remove_assignment(db, share)
    assert given(db, "Ann") == given(db, "Ben") == ALL
    with pytest.raises(AnnotatorError, match="taken it back already"):
        assignment.remove_assignment(db, share)


def test_images_added_later_to_an_assigned_folder_belong_to_the_assignment(db):
    assignment.assign_folder(db, "Ann", "north")
    assert 24 not in given(db, "Ann")
    with db.writing() as sql:
        folder = sql.execute("SELECT min(folder_id) FROM file").fetchone()[0]
        sql.execute(
            "INSERT INTO file (folder_id, path, bytes, modified_ns, image_id) VALUES (?, 'north/new.jpg', 1, 1, 24)",
            [folder],
        )
    assert 24 in given(db, "Ann") and 24 not in given(db, "Ben")


def test_assignees_of_a_class_get_only_its_labels_and_others_get_the_rest(db):
    assignment.assign_class(db, "Ann", 2)

    def classes_of(who: str) -> set[int]:
        grids = {c for c in (1, 2, 3) if grid_queue.lease_next_grids(db, WantedGrids("g", who, c, 24, (), 1)).items}
        grid_queue.lease_next_grids(db, WantedGrids("g", who, 1, 24, (), 0))
        work = image_queue.lease_next_work(db, WantedImages("review", "r", who, (), 24, SuggestionFilter(low=0.0)))
        image_queue.lease_next_work(db, WantedImages("review", "r", who, (), 0))
        suggested = {chip.class_id for item in work.items for chip in item.suggestions}
        assert grids == suggested, who
        return grids

    assert classes_of("Ann") == {2} and classes_of("Ben") == {1, 3}
    assert image_queue.lease_next_work(db, WantedImages("annotate", "a", "Ann", (), 5)).next_pages == (
        "grid",
        "autopilot",
    )
    actions = [planner.lease_next_actions(db, WantedActions("p", "Ann", (), 1)).items for _ in range(5)]
    assert {(one.kind, one.grid.class_id) for items in actions for one in items} == {("grid", 2)}


def test_assignment_refuses_empty_folders_unknown_classes_and_empty_lists(db):
    with pytest.raises(AnnotatorError, match=r"No image lies in a folder 'nort'.*north"):
        assignment.assign_folder(db, "Ann", "nort")
    with pytest.raises(AnnotatorError, match="no class 9"):
        assignment.assign_class(db, "Ann", 9)
    with pytest.raises(AnnotatorError, match="names no image"):
        assignment.assign_images(db, "Ann", "empty", [])
    assert assignment.load_assignments(db) == [] and given(db, "Ann") == ALL
