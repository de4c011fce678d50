"""Which image a person gets next: never one that somebody else has open, skipped ones last, leases that run out."""

import time
import uuid

from annotator.engine import worklist
from annotator.records import Decision, Wanted
from annotator.store import decisions, images, leases, overview


def wanted(holder: str, *, have=(), want=8, mode="annotate", **more) -> Wanted:
    return Wanted(mode, holder, more.pop("annotator", "Ann"), have, want, **more)


def ids(work: worklist.Work) -> list[int]:
    return [item.image.id for item in work.items]


def decide(db, action: str, image_id: int, class_id: int | None = None) -> None:
    one = Decision(str(uuid.uuid4()), action, "Ann", "click", image_id=image_id, class_id=class_id, state=1)
    assert not decisions.decide(db, [one]).refused


def test_two_people_never_hold_the_same_image(db):
    ann = ids(worklist.next_work(db, wanted("tab-ann")))
    bob = ids(worklist.next_work(db, wanted("tab-bob", annotator="Bob")))
    more = ids(worklist.next_work(db, wanted("tab-ann", have=ann)))
    assert ann and bob and more
    assert len({*ann, *bob, *more}) == len(ann) + len(bob) + len(more)


def test_the_first_to_come_does_not_take_everything(db):
    assert len(ids(worklist.next_work(db, wanted("tab-ann", want=200)))) == 12
    assert len(ids(worklist.next_work(db, wanted("tab-bob", want=200)))) == 6


def test_a_reloaded_page_gets_back_what_it_held(db):
    before = ids(worklist.next_work(db, wanted("tab-ann")))
    assert ids(worklist.next_work(db, wanted("tab-ann-2", instead="tab-ann")))[: len(before)] == before
    # What the page says on its way out may come late; it frees nothing that the new one holds.
    worklist.next_work(db, wanted("tab-ann", want=0))
    assert not set(ids(worklist.next_work(db, wanted("tab-bob", want=200)))) & set(before)


def test_a_lease_runs_out_by_itself_and_is_renewed_while_the_page_is_open(db):
    ann = ids(worklist.next_work(db, wanted("tab-ann")))
    with db.writing() as sql:
        sql.execute("UPDATE lease SET until = ?", [time.monotonic() + 1])
    worklist.next_work(db, wanted("tab-ann", have=ann[:1], want=0))
    with db.writing() as sql:  # as if the others' second had passed
        sql.execute("UPDATE lease SET until = until - 2")
    bob = ids(worklist.next_work(db, wanted("tab-bob", want=200)))
    assert ann[0] not in bob
    assert set(ann[1:]) & set(bob)


def test_what_a_page_has_let_go_of_is_free_at_once(db):
    ann = ids(worklist.next_work(db, wanted("tab-ann")))
    worklist.next_work(db, wanted("tab-ann", have=ann[1:], want=0))
    assert ids(worklist.next_work(db, wanted("tab-bob", want=1))) == ann[:1]


def test_a_page_that_slept_too_long_gets_back_what_nobody_took_meanwhile(db):
    ann = ids(worklist.next_work(db, wanted("tab-ann")))
    with db.writing() as sql:
        sql.execute("UPDATE lease SET until = 0")
    bob = ids(worklist.next_work(db, wanted("tab-bob", want=1)))
    assert bob == ann[:1]
    worklist.next_work(db, wanted("tab-ann", have=ann, want=0))
    assert not set(ids(worklist.next_work(db, wanted("tab-cy", want=200)))) & set(ann)
    assert db.value("SELECT holder FROM lease WHERE image_id = ?", bob) == "tab-bob"


def test_skipped_images_come_back_last_and_at_once_when_nothing_else_is_left(db):
    first = ids(worklist.next_work(db, wanted("tab-ann")))[0]
    decide(db, "skip", first)
    assert first not in ids(worklist.next_work(db, wanted("tab-ann", want=200)))
    for image in images.all_images(db):
        if image.id != first:
            decide(db, "label", image.id, 1)
    assert ids(worklist.next_work(db, wanted("tab-ann"))) == [first]


def test_the_order_is_not_the_order_of_the_folder(db):
    order = leases.take_next(db, "tab", "Ann", (), 24)
    assert sorted(order) == list(range(1, 25))
    assert order != sorted(order)


def test_an_empty_page_says_what_to_do_next(db):
    assert "label about 20 more images" in worklist.next_work(db, wanted("tab", mode="review")).empty
    for image in images.all_images(db):
        decide(db, "label", image.id, 1)
    assert "Review page" in worklist.next_work(db, wanted("tab")).empty
    assert "first training is on its way" in worklist.next_work(db, wanted("tab", mode="review")).empty


def test_a_page_is_told_that_the_last_images_are_open_elsewhere(db):
    for image in images.all_images(db)[1:]:
        decide(db, "label", image.id, 1)
    assert len(ids(worklist.next_work(db, wanted("tab-bob")))) == 1
    assert "open on other pages" in worklist.next_work(db, wanted("tab-ann")).empty


def test_counts_follow_the_decisions(db):
    decide(db, "label", 1, 1)
    decide(db, "skip", 2)
    work = worklist.next_work(db, wanted("tab"))
    assert (work.left, work.mine) == (23, 1)
    assert overview.image_counts(db) == {"all": 24, "without_decision": 23, "skipped": 1, "complete": 0}
