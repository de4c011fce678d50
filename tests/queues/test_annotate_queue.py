"""Which image a person gets next: never one that somebody else has open, skipped ones last, leases that run out."""

import time
import uuid

import numpy as np
from harness.projects import publish_run

from annotator.queues import image_queue, query_order
from annotator.records import Decision, WantedImages
from annotator.store.images import images
from annotator.store.labels import decisions, label_cells, project_counts
from annotator.store.people import leases
from annotator.store.people.leases import LeaseRequest


def wanted(holder: str, *, have=(), want=8, mode="annotate", **more) -> WantedImages:
    return WantedImages(mode, holder, more.pop("annotator", "Ann"), have, want, **more)


def ids(work: image_queue.LeasedWork) -> list[int]:
    return [item.image.id for item in work.items]


def decide(db, action: str, image_id: int, class_id: int | None = None) -> None:
    one = Decision(str(uuid.uuid4()), action, "Ann", "click", image_id=image_id, class_id=class_id, state=1)
    assert not decisions.save(db, [one]).refused


def test_image_queue_never_leases_an_image_to_two_annotators(db):
    ann = ids(image_queue.lease_next_work(db, wanted("tab-ann")))
    bob = ids(image_queue.lease_next_work(db, wanted("tab-bob", annotator="Bob")))
    more = ids(image_queue.lease_next_work(db, wanted("tab-ann", have=ann)))
    assert ann and bob and more
    assert len({*ann, *bob, *more}) == len(ann) + len(bob) + len(more)


def test_one_image_queue_request_leases_at_most_half_of_the_images_left(db):
    assert len(ids(image_queue.lease_next_work(db, wanted("tab-ann", want=200)))) == 12
    assert len(ids(image_queue.lease_next_work(db, wanted("tab-bob", want=200)))) == 6


def test_reloaded_page_takes_over_the_image_leases_it_had_before_the_reload(db):
    before = ids(image_queue.lease_next_work(db, wanted("tab-ann")))
    assert ids(image_queue.lease_next_work(db, wanted("tab-ann-2", instead="tab-ann")))[: len(before)] == before
    # What the page says on its way out may come late; it frees nothing that the new one holds.
    image_queue.lease_next_work(db, wanted("tab-ann", want=0))
    assert not set(ids(image_queue.lease_next_work(db, wanted("tab-bob", want=200)))) & set(before)


def test_image_lease_expires_unless_its_page_renews_it(db):
    ann = ids(image_queue.lease_next_work(db, wanted("tab-ann")))
    with db.writing() as sql:
        sql.execute("UPDATE lease SET until = ?", [time.monotonic() + 1])
    image_queue.lease_next_work(db, wanted("tab-ann", have=ann[:1], want=0))
    with db.writing() as sql:  # as if the others' second had passed
        sql.execute("UPDATE lease SET until = until - 2")
    bob = ids(image_queue.lease_next_work(db, wanted("tab-bob", want=200)))
    assert ann[0] not in bob
    assert set(ann[1:]) & set(bob)


def test_image_released_by_a_page_is_free_immediately(db):
    ann = ids(image_queue.lease_next_work(db, wanted("tab-ann")))
    image_queue.lease_next_work(db, wanted("tab-ann", have=ann[1:], want=0))
    assert ids(image_queue.lease_next_work(db, wanted("tab-bob", want=1))) == ann[:1]


def test_page_renews_its_expired_image_leases_except_those_taken_by_another_page(db):
    ann = ids(image_queue.lease_next_work(db, wanted("tab-ann")))
    with db.writing() as sql:
        sql.execute("UPDATE lease SET until = 0")
    bob = ids(image_queue.lease_next_work(db, wanted("tab-bob", want=1)))
    assert bob == ann[:1]
    image_queue.lease_next_work(db, wanted("tab-ann", have=ann, want=0))
    assert not set(ids(image_queue.lease_next_work(db, wanted("tab-cy", want=200)))) & set(ann)
    assert db.value("SELECT holder FROM lease WHERE image_id = ?", bob) == "tab-bob"


def test_skipped_image_returns_only_after_all_other_images(db):
    first = ids(image_queue.lease_next_work(db, wanted("tab-ann")))[0]
    decide(db, "skip", first)
    assert first not in ids(image_queue.lease_next_work(db, wanted("tab-ann", want=200)))
    for image in images.load_all_images(db):
        if image.id != first:
            decide(db, "label", image.id, 1)
    assert ids(image_queue.lease_next_work(db, wanted("tab-ann")))[0] == first


def answer(db, image_id: int, *class_ids: int) -> None:
    for class_id in class_ids:
        decide(db, "label", image_id, class_id)


def test_image_queue_offers_unlabeled_images_first_unless_ordered_by_incomplete(db):
    for image in images.load_all_images(db):
        answer(
            db, image.id, *((1, 2, 3) if image.id > 4 else (1, 2) if image.id == 2 else (1,) if image.id > 1 else ())
        )
    everything = {"have": (), "want": 24}
    assert ids(image_queue.lease_next_work(db, wanted("a", **everything))) == [1, 3]  # half of what is free
    assert ids(image_queue.lease_next_work(db, wanted("b", **everything))) == [4], "the fewest answers first"
    assert ids(image_queue.lease_next_work(db, wanted("a", have=[1, 3]))) == [2]
    for holder in "ab":
        image_queue.lease_next_work(db, wanted(holder, want=0))
    assert ids(image_queue.lease_next_work(db, wanted("a", order="incomplete"))) == [3, 4]
    assert ids(image_queue.lease_next_work(db, wanted("a", order="incomplete", have=[3, 4]))) == [2, 1]
    work = image_queue.lease_next_work(db, wanted("a"))
    progress = work.progress
    assert (progress.images_labeled, progress.images_complete, progress.images) == (23, 20, 24)


def test_completed_image_leaves_the_queue_until_undo_and_skipped_image_moves_last(db):
    for image in images.load_all_images(db):
        answer(db, image.id, *((1,) if image.id < 5 else (1, 2, 3)))
    decide(db, "skip", 1)
    decide(db, "done", 2)
    answer(db, 3, 2)
    assert [ids(image_queue.lease_next_work(db, wanted("a", want=1, have=have))) for have in ([], [4], [4, 3])] == [
        [4],
        [3],
        [1],
    ]
    undone = db.value("SELECT uuid FROM decision WHERE action = 'done'")
    decisions.save(db, [Decision(str(uuid.uuid4()), "undo", "Ann", "click", undoes=undone)])
    assert ids(image_queue.lease_next_work(db, wanted("a", want=1, have=[4]))) == [2], "taken back, it is open again"
    answer(db, 1, 2)  # no longer passed by
    decide(db, "skip", 3)
    assert ids(image_queue.lease_next_work(db, wanted("a", want=1, have=[4, 2]))) == [1]


def test_repeatedly_skipped_images_do_not_block_incomplete_images(db):
    for image in images.load_all_images(db)[1:]:
        answer(db, image.id, 1)
    decide(db, "skip", 1)
    assert ids(image_queue.lease_next_work(db, wanted("a", want=1))) == [1]
    decide(db, "skip", 1)
    assert ids(image_queue.lease_next_work(db, wanted("a", want=1))) == [2]
    for image in images.load_all_images(db)[2:]:
        answer(db, image.id, 2, 3)
    decide(db, "skip", 2)
    decide(db, "skip", 1)
    assert [ids(image_queue.lease_next_work(db, wanted("a", want=1, have=have))) for have in ([], [2])] == [[2], [1]]


def test_image_queue_of_many_incomplete_images_uses_the_order_stored_by_the_training(db, monkeypatch):
    monkeypatch.setattr(label_cells, "MAX_IMAGES_COUNTED", 3)
    for image in images.load_all_images(db):
        answer(db, image.id, *((1,) if image.id > 20 else (1, 2)))
    assert ids(image_queue.lease_next_work(db, wanted("a", want=2))) == [1, 2], "the longest without a decision"
    labels = np.array([[1, 1, 0]] * 20 + [[1, 0, 0]] * 4, np.int8)
    order = query_order.build(db, np.arange(1, 25), None, None, labels, 0)["incomplete"].tolist()
    assert (set(order[:4]), set(order)) == ({21, 22, 23, 24}, set(range(1, 25)))
    run = publish_run(db, np.full((24, 3), 0.5))
    query_order.save(db.paths.run(run), {"incomplete": np.array(order)})
    answer(db, order[0], 2)
    assert ids(image_queue.lease_next_work(db, wanted("b", want=2))) == sorted(order[1:3]), "counted once more"


def test_image_queue_offers_images_in_shuffled_instead_of_folder_order(db):
    order = leases.lease_next_images(db, LeaseRequest("tab", "Ann", (), 24))
    assert sorted(order) == list(range(1, 25))
    assert order != sorted(order)


def test_empty_image_queue_states_the_reason_and_the_next_pages(db):
    assert "Label about 20 more images" in image_queue.lease_next_work(db, wanted("tab", mode="review")).empty_reason
    for image in images.load_all_images(db):
        decide(db, "label", image.id, 1)
    review = image_queue.lease_next_work(db, wanted("tab", mode="review"))
    assert "first training starts soon" in review.empty_reason and review.next_pages == ("autopilot", "annotate")
    for image in images.load_all_images(db):
        decide(db, "done", image.id)
    work = image_queue.lease_next_work(db, wanted("tab"))
    assert "Every image is complete" in work.empty_reason and work.next_pages == ("review", "certificate", "export")
    assert image_queue.lease_next_work(db, wanted("tab", mode="review")).next_pages == ("autopilot", "certificate")


def test_empty_image_queue_reports_images_open_on_other_pages(db):
    for image in images.load_all_images(db)[1:]:
        decide(db, "done", image.id)
    assert len(ids(image_queue.lease_next_work(db, wanted("tab-bob")))) == 1
    [last] = ids(image_queue.lease_next_work(db, wanted("tab-bob")))
    assert "Saving" in image_queue.lease_next_work(db, wanted("tab-bob", have=[last])).empty_reason, (
        "answered, and on its way"
    )
    work = image_queue.lease_next_work(db, wanted("tab-ann"))
    assert "1 image is open elsewhere" in work.empty_reason and "autopilot" in work.next_pages


def test_progress_and_stage_counts_update_after_a_label_and_a_skip(db):
    decide(db, "label", 1, 1)
    decide(db, "skip", 2)
    work = image_queue.lease_next_work(db, wanted("tab"))
    assert (work.progress.images_labeled, work.progress.pairs_answered) == (1, 1)
    assert project_counts.count_images_by_stage(db) == {
        "all": 24,
        "without_decision": 23,
        "skipped": 1,
        "incomplete": 1,
        "complete": 0,
    }
