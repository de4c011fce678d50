"""Pages that show whole images and grids that show cells never hand the same thing to two people."""

import time

import pytest

from annotator.settings import LEASE_SECONDS
from annotator.store.people import leases
from annotator.store.people.leases import LeaseRequest


def test_two_pages_never_lease_the_same_label_but_may_lease_two_classes_of_an_image(db):
    cells = [(image, 1) for image in range(1, 9)]
    first = leases.lease_cells(db, "a", "Ann", cells, 5)
    assert first == cells[:5]
    assert leases.lease_cells(db, "b", "Bob", cells, 5) == cells[5:]
    other = [(image, 2) for image in range(1, 9)]
    assert leases.lease_cells(db, "c", "Cid", other, 8) == other


def test_image_with_a_label_leased_by_a_grid_is_not_leased_as_a_whole_image(db):
    [cell] = leases.lease_cells(db, "grid", "Ann", [(1, 2)], 1)
    assert leases.lease_images(db, "review", "Bob", [1, 2, 3], 2) == [2, 3]
    assert 1 not in leases.lease_next_images(db, LeaseRequest("annotate", "Cid", [], 24))
    assert leases.count_held_by_others(db, "annotate") == 3, "one in the grid, two in review"
    leases.renew_cells(db, "grid", "Ann", [])
    assert leases.lease_images(db, "another", "Bob", [cell[0]], 1) == [1]


def test_grid_leases_no_label_of_an_image_leased_by_another_page(db):
    leases.lease_images(db, "review", "Ann", [1, 2], 2)
    assert leases.lease_cells(db, "grid", "Bob", [(1, 1), (2, 3), (3, 1)], 3) == [(3, 1)]
    assert leases.lease_cells(db, "review", "Ann", [(1, 1)], 1) == [(1, 1)], "its own image keeps nobody from it"


def test_count_held_by_others_counts_an_image_with_several_leased_labels_once(db):
    leases.lease_cells(db, "grid", "Ann", [(1, 1), (1, 2), (1, 3), (2, 1)], 4)
    assert leases.count_held_by_others(db, "me") == 2
    assert leases.count_held_by_others(db, "grid") == 0


def test_renewing_leases_of_some_grid_labels_releases_the_others_immediately(db):
    leases.lease_cells(db, "a", "Ann", [(1, 1), (2, 1), (3, 1)], 3)
    leases.renew_cells(db, "a", "Ann", [(2, 1)])
    assert leases.lease_cells(db, "b", "Bob", [(1, 1), (2, 1), (3, 1)], 3) == [(1, 1), (3, 1)]


def test_reloaded_grid_page_takes_over_the_label_leases_it_had_before_the_reload(db):
    leases.lease_cells(db, "before", "Ann", [(1, 1), (2, 1)], 2)
    leases.take_over(db, "after", "before")
    leases.renew_cells(db, "before", "Ann", [])
    assert leases.lease_cells(db, "b", "Bob", [(1, 1), (2, 1)], 2) == []
    assert leases.lease_cells(db, "after", "Ann", [(1, 1), (2, 1)], 2) == [(1, 1), (2, 1)]


@pytest.mark.parametrize("theirs", [(1, 0), (1, 1)])
def test_expired_lease_is_not_renewed_after_another_annotator_leased_the_label(db, theirs):
    leases.lease_cells(db, "slept", "Ann", [(1, 1), (2, 1)], 2)
    with db.writing() as sql:
        sql.execute("UPDATE lease SET until = 0")
    leases.renew_images(db, "somebody", "Bob", [])
    take = leases.lease_images if theirs[1] == 0 else leases.lease_cells
    assert take(db, "awake", "Bob", [theirs[0] if theirs[1] == 0 else theirs], 1)
    leases.renew_cells(db, "slept", "Ann", [(1, 1), (2, 1)])
    rows = db.rows("SELECT image_id, class_id, holder FROM lease ORDER BY image_id")
    assert [(row["image_id"], row["class_id"], row["holder"]) for row in rows] == [
        (*theirs, "awake"),
        (2, 1, "slept"),
    ]


@pytest.mark.parametrize("days", [-2, 2])
def test_system_clock_change_neither_keeps_an_image_leased_nor_leases_it_twice(db, monkeypatch, days):
    ann = leases.lease_next_images(db, LeaseRequest("ann", "Ann", [], 12))
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + days * 86_400)
    bob = leases.lease_next_images(db, LeaseRequest("bob", "Bob", [], 12))
    assert len({*ann, *bob}) == 24
    assert leases.find_taken_by_others(db, "ann", ann) == []
    leases.renew_images(db, "ann", "Ann", [])  # and set right again, with nobody left to renew what Bob held
    monkeypatch.undo()
    assert leases.count_held_by_others(db, "cy") == 12
    with db.writing() as sql:
        sql.execute("UPDATE lease SET until = until - ?", [LEASE_SECONDS])
    assert len(leases.lease_next_images(db, LeaseRequest("cy", "Cy", [], 24))) == 24


@pytest.mark.parametrize(
    "until", [9e9, 1.8e9, time.monotonic() + 2 * 86_400, 0.0], ids=["far", "a wall clock's", "in two days", "begin"]
)
def test_lease_with_an_expiry_impossible_since_boot_is_ignored(db, until):
    leases.lease_cells(db, "before", "Ann", [(image, 1) for image in range(1, 9)], 8)
    leases.lease_images(db, "before", "Ann", range(9, 25), 16)
    with db.writing() as sql:
        sql.execute("UPDATE lease SET until = ?", [until])
    assert leases.count_held_by_others(db, "bob") == 0
    assert leases.load_leases_of_others(db, "bob") == []
    assert len(leases.lease_cells(db, "cells", "Bob", [(1, 1), (9, 2)], 2)) == 2
    assert len(leases.lease_next_images(db, LeaseRequest("bob", "Bob", [], 24))) == 22


def test_page_cannot_lease_more_than_the_limit_per_page(db, monkeypatch):
    monkeypatch.setattr(leases, "MAX_LEASES_PER_PAGE", 8)
    everything = list(range(1, 25))
    own = leases.lease_images(db, "greedy", "Eve", [3, 4, 5], 3)
    for _ in range(3):
        leases.renew_images(db, "greedy", "Eve", everything)
        leases.lease_next_images(db, LeaseRequest("greedy", "Eve", everything, 24))
        leases.lease_images(db, "greedy", "Eve", everything, 24)
        leases.lease_cells(db, "greedy", "Eve", [(image, of) for image in everything for of in (1, 2)], 48)
    held = {image for image, _ in leases.load_leases_of_others(db, "")}
    assert len(leases.load_leases_of_others(db, "")) == 8
    assert held >= set(own), "what it was given stays its own"
    assert len(set(leases.lease_next_images(db, LeaseRequest("bob", "Bob", [], 24))) - held) == 8, (
        "the others are there for others"
    )


def test_find_taken_by_others_returns_images_that_another_page_leased_after_their_release(db):
    ann = leases.lease_next_images(db, LeaseRequest("ann", "Ann", [], 4))
    leases.renew_images(db, "ann", "Ann", ann[:1])  # the others rest: she has pressed no key for a while
    bob = leases.lease_images(db, "bob", "Bob", ann[2:3], 1)
    leases.renew_images(db, "ann", "Ann", ann)
    assert leases.find_taken_by_others(db, "ann", ann) == bob
    assert leases.find_taken_by_others(db, "ann", [(image, 1) for image in ann]) == [(bob[0], 1)]
    assert leases.find_taken_by_others(db, "bob", ann) == [ann[0], ann[1], ann[3]]


def test_find_opened_by_others_returns_who_else_has_the_given_images_open(db):
    leases.lease_images(db, "anns review", "Ann", [1, 2], 2)
    leases.lease_cells(db, "bobs grid", "Bob", [(3, 2)], 1)
    assert leases.find_opened_by_others(db, [1, 2, 3, 4], "Ann") == {3: "Bob"}
    assert leases.find_opened_by_others(db, [2, 3, 99], "Bob") == {2: "Ann"}
    assert leases.find_opened_by_others(db, [], "Bob") == {}
