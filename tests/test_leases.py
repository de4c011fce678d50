"""Pages that show whole images and grids that show cells never hand the same thing to two people."""

import pytest

from annotator.store import leases


def test_two_grids_of_one_class_never_share_a_cell_and_grids_of_two_classes_may_share_an_image(db):
    cells = [(image, 1) for image in range(1, 9)]
    first = leases.take_cells(db, "a", "Ann", cells, 5)
    assert first == cells[:5]
    assert leases.take_cells(db, "b", "Bob", cells, 5) == cells[5:]
    other = [(image, 2) for image in range(1, 9)]
    assert leases.take_cells(db, "c", "Cid", other, 8) == other


def test_an_image_with_a_cell_open_elsewhere_is_not_shown_whole(db):
    [cell] = leases.take_cells(db, "grid", "Ann", [(1, 2)], 1)
    assert leases.take(db, "review", "Bob", [1, 2, 3], 2) == [2, 3]
    assert 1 not in leases.take_next(db, "annotate", "Cid", [], 24)
    assert leases.held_by_others(db, "annotate") == 3, "one in the grid, two in review"
    leases.hold_cells(db, "grid", "Ann", [])
    assert leases.take(db, "another", "Bob", [cell[0]], 1) == [1]


def test_no_cell_of_an_image_that_is_open_elsewhere_comes_into_a_grid(db):
    leases.take(db, "review", "Ann", [1, 2], 2)
    assert leases.take_cells(db, "grid", "Bob", [(1, 1), (2, 3), (3, 1)], 3) == [(3, 1)]
    assert leases.take_cells(db, "review", "Ann", [(1, 1)], 1) == [(1, 1)], "its own image keeps nobody from it"


def test_held_by_others_counts_an_image_with_several_cells_open_once(db):
    leases.take_cells(db, "grid", "Ann", [(1, 1), (1, 2), (1, 3), (2, 1)], 4)
    assert leases.held_by_others(db, "me") == 2
    assert leases.held_by_others(db, "grid") == 0


def test_what_a_grid_lets_go_of_is_free_at_once_and_the_rest_stays(db):
    leases.take_cells(db, "a", "Ann", [(1, 1), (2, 1), (3, 1)], 3)
    leases.hold_cells(db, "a", "Ann", [(2, 1)])
    assert leases.take_cells(db, "b", "Bob", [(1, 1), (2, 1), (3, 1)], 3) == [(1, 1), (3, 1)]


def test_a_reloaded_grid_takes_over_what_it_held(db):
    leases.take_cells(db, "before", "Ann", [(1, 1), (2, 1)], 2)
    leases.take_over(db, "after", "before")
    leases.hold_cells(db, "before", "Ann", [])
    assert leases.take_cells(db, "b", "Bob", [(1, 1), (2, 1)], 2) == []
    assert leases.take_cells(db, "after", "Ann", [(1, 1), (2, 1)], 2) == [(1, 1), (2, 1)]


@pytest.mark.parametrize("theirs", [(1, 0), (1, 1)])
def test_a_lease_that_ran_out_is_not_renewed_once_somebody_else_has_the_cell(db, theirs):
    leases.take_cells(db, "slept", "Ann", [(1, 1), (2, 1)], 2)
    with db.writing() as sql:
        sql.execute("UPDATE lease SET until = 0")
    leases.hold(db, "somebody", "Bob", [])
    take = leases.take if theirs[1] == 0 else leases.take_cells
    assert take(db, "awake", "Bob", [theirs[0] if theirs[1] == 0 else theirs], 1)
    leases.hold_cells(db, "slept", "Ann", [(1, 1), (2, 1)])
    rows = db.rows("SELECT image_id, class_id, holder FROM lease ORDER BY image_id")
    assert [(row["image_id"], row["class_id"], row["holder"]) for row in rows] == [
        (*theirs, "awake"),
        (2, 1, "slept"),
    ]
