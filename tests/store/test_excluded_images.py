"""Images that are set aside with a reason: out of queues, training, counts and exports, until they come back."""

import numpy as np
from harness.answers import put_aside
from harness.audit_answers import answer, say
from harness.feature_shards import add_features
from harness.grid_requests import shown_tiles, wanted
from harness.published_runs import publish

from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import open_data_set
from annotator.quality import audit_sampling
from annotator.quality.certification import compute_certificate
from annotator.queues import grid_queue, image_queue
from annotator.records import Decision, WantedImages
from annotator.snapshot import gallery_listing
from annotator.snapshot.filters import GalleryFilter
from annotator.snapshot.gallery_listing import Sorting
from annotator.snapshot.project_progress import load_progress
from annotator.store.features.feature_cache import open_features
from annotator.store.images import browser_copies, excluded_images
from annotator.store.labels import auto_accepted, decisions, label_cells, project_counts
from annotator.store.labels.auto_accepted import NewAcceptance
from annotator.store.relations import declared_relations
from annotator.store.relations.relation_edits import IS_A, Declaration
from annotator.store.upkeep import consistency
from annotator.worker.training.training_set import load_training_set


def shown(db, **given) -> list[int]:
    return gallery_listing.get_listing(db, GalleryFilter.build(**given), Sorting()).get_ids(0, 100)


def exported(db, **chosen) -> tuple[int, list[str]]:
    with open_data_set(db, Choices(**chosen)) as data:
        return data.view.images, data.sentences


def test_excluded_image_leaves_counts_training_and_exports_until_undo(db):
    say(db, [(image_id, class_id) for image_id in (1, 2, 3, 4) for class_id in (1, 2, 3)])
    say(db, [(5, 1)])
    add_features(db, "x", np.arange(1, 25), np.ones((24, 8), np.float32), np.zeros((24, 9, 8)))
    cache = open_features(db, "x")
    before = (
        project_counts.count_images_by_stage(db),
        load_progress(db),
        project_counts.count_open_cells(db),
        exported(db),
    )
    assert "set_aside" not in before[0] and before[3] == (24, [])

    put_aside(db, 4, 5, 6)
    assert project_counts.count_images_by_stage(db) == {
        "all": 21, "without_decision": 18, "skipped": 0, "incomplete": 0, "complete": 3, "set_aside": 3,
    }  # fmt: skip
    progress = load_progress(db)
    assert (progress.pairs, progress.pairs_answered, progress.images_complete) == (63, 9, 3)
    assert project_counts.count_open_cells(db) == 54 == progress.pairs_open
    assert project_counts.count_unanswered_images(db, 1) == 18
    assert label_cells.find_unaskable_images(db, [3, 4, 5, 6, 7]) == {4, 5, 6}
    assert 6 not in label_cells.find_open_images(db, 1, 100) and len(label_cells.find_open_images(db, 1, 100)) == 18
    known = load_training_set(db, cache)
    assert known.rows.tolist() == [0, 1, 2, 3, 4, 5] and known.invalid_count == 0
    assert (
        known.labels[:3].all() and not known.labels[3:].any() and known.mask.any(1).tolist() == [True] * 3 + [False] * 3
    )
    assert not known.make_unknown_mask(24)[3:6].any(), "they are no unlabeled images either"
    assert shown(db, aside=True) == [4, 5, 6] and len(shown(db, aside=False)) == 21
    assert exported(db) == (21, ["3 images set aside, left out (blurred: 3)."])
    assert exported(db, set_aside=True) == (24, ["3 images set aside, in the export, as chosen (blurred: 3)."])
    assert consistency.find_problems(db) == []

    decisions.undo(db, "Ann")
    assert before == (
        project_counts.count_images_by_stage(db),
        load_progress(db),
        project_counts.count_open_cells(db),
        exported(db),
    )
    assert set(load_training_set(db, cache).rows) == {0, 1, 2, 3, 4} and shown(db, aside=True) == []
    assert consistency.find_problems(db) == []


def test_excluded_image_is_never_the_cover_of_a_project(db):
    assert browser_copies.find_cover_image(db)
    say(db, [(7, 1)])
    say(db, [(8, class_id) for class_id in (1, 2, 3)])
    say(db, [(9, class_id) for class_id in (1, 2, 3)])
    put_aside(db, 9)
    assert browser_copies.find_cover_image(db) == 8
    put_aside(db, 8, batch="more")
    assert browser_copies.find_cover_image(db) == 7
    put_aside(db, *(image_id for image_id in range(1, 25) if image_id not in (8, 9)), batch="rest")
    assert browser_copies.find_cover_image(db) is None


def test_count_of_unanswered_images_leaves_out_accepted_and_implied_labels(db):
    given = [
        Decision(f"d{image_id}", "label", "Ann", "click", image_id, class_id, 1)
        for image_id, class_id in ((1, 1), (2, 3))
    ]
    assert not decisions.save(db, given).refused
    put_aside(db, 3)
    accepted = NewAcceptance(1, -1, 0, 0.1, 0.99, 0.95, 9, 0, np.array([1, 2, 3, 4]), np.full(4, 0.01))
    assert auto_accepted.accept(db, "b", accepted)
    declared_relations.declare(db, [Declaration(IS_A, (3, 2))], "Ann")
    for class_id, open_ in ((1, 20), (2, 22), (3, 22)):
        assert project_counts.count_unanswered_images(db, class_id) == open_
        assert len(label_cells.find_open_images(db, class_id, 100)) == open_


def test_audit_and_certificate_ignore_excluded_images(db):
    audit_sampling.draw_audit(db, 60, seed=4, class_ids=[1])
    drawn = audit_sampling.load_open_cells(db)[0].image_id
    put_aside(db, drawn, 3 if drawn != 3 else 5)
    assert drawn not in {one.image_id for one in audit_sampling.load_open_cells(db)}
    answer(db)
    found = compute_certificate(db)
    assert found.images == 22 and found.set_aside == 2
    assert found.classes[0].people + found.classes[0].unknown <= 22 and found.overall.waiting == 0
    assert found.as_json()["set_aside"] == 2 and "without 2 images set aside" in found.sentence()
    audit_sampling.draw_audit(db, 66, seed=1)
    assert not {drawn} & {one.image_id for one in audit_sampling.load_open_cells(db)}


def test_newest_flag_decides_exclusion_and_later_answers_do_not_end_it(db):
    put_aside(db, 1, reason="too dark")
    say(db, [(1, 1)])
    assert excluded_images.load_image_ids(db) == {1}
    decisions.save(db, [Decision("look", "flag", "Bob", "click", 1, note="odd")])
    assert excluded_images.load_image_ids(db) == set() and project_counts.count_images_by_stage(db)["incomplete"] == 1
    decisions.save(db, [Decision("undo-look", "undo", "Bob", "click", undoes="look")])
    assert excluded_images.load_image_ids(db) == {1} and excluded_images.count_by_reason(db) == [("too dark", 1)]
    decisions.save(db, [Decision("empty", "flag", "Ann", "gallery", 1, note="")])
    assert excluded_images.load_image_ids(db) == set() and consistency.find_problems(db) == []
    put_aside(db, 2, reason="twin of a.jpg", batch="one")
    put_aside(db, 3, reason="twin of b.jpg", batch="two")
    assert excluded_images.count_by_reason(db) == [("twin of another image", 2)]


def test_no_queue_offers_an_excluded_image(db):
    rising = np.linspace(0.2, 0.98, 24)
    publish(db, np.stack([rising, rising, rising], 1))
    say(db, [(image_id, 1) for image_id in (20, 21)])

    def asked() -> set[int]:
        tiles = {
            image_id for image_id, _ in shown_tiles(grid_queue.lease_next_grids(db, wanted("grid", size=24, want=9)))
        }
        modes = {
            mode: image_queue.lease_next_work(db, WantedImages(mode, mode, "Ann", (), 200))
            for mode in ("annotate", "review")
        }
        return tiles | {item.image.id for work in modes.values() for item in work.items}

    before = asked()
    with db.writing() as sql:
        sql.execute("DELETE FROM lease")
    put_aside(db, 20, 23, 24)
    assert {20, 23, 24} <= before and not {20, 23, 24} & asked()
