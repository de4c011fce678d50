"""Images that are set aside with a reason: out of queues, training, counts and exports, until they come back."""

import numpy as np
from made_features import add_features
from test_audit import answer, say
from test_grid import publish, wanted
from test_grid import shown as shown_tiles

from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import data_set
from annotator.quality import audit
from annotator.quality.certificate import certificate
from annotator.queues import annotate, grid
from annotator.records import Decision, Wanted
from annotator.snapshot import gallery
from annotator.snapshot.filters import GalleryFilter
from annotator.snapshot.gallery import Sorting
from annotator.snapshot.progress import progress_of
from annotator.store.features.cache import open_features
from annotator.store.images import set_aside
from annotator.store.labels import cells, counts, decisions
from annotator.store.upkeep import consistency
from annotator.worker.training.training_set import training_set


def put_aside(db, *image_ids: int, reason: str = "blurred", batch: str = "aside") -> None:
    flags = [
        Decision(f"{batch}-{image_id}", "flag", "Ann", "aside", image_id, note=reason, batch=batch)
        for image_id in image_ids
    ]
    assert not decisions.decide(db, flags).refused


def shown(db, **given) -> list[int]:
    return gallery.listing(db, GalleryFilter.build(**given), Sorting()).ids(0, 100)


def exported(db, **chosen) -> tuple[int, list[str]]:
    with data_set(db, Choices(**chosen)) as data:
        return data.view.images, data.said


def test_an_image_is_out_of_everything_while_it_is_set_aside_and_comes_back_as_it_was(db):
    say(db, [(image_id, class_id) for image_id in (1, 2, 3, 4) for class_id in (1, 2, 3)])
    say(db, [(5, 1)])
    add_features(db, "x", np.arange(1, 25), np.ones((24, 8), np.float32), np.zeros((24, 9, 8)))
    cache = open_features(db, "x")
    before = counts.image_counts(db), progress_of(db), counts.count_open(db), exported(db)
    assert "set_aside" not in before[0] and before[3] == (24, [])

    put_aside(db, 4, 5, 6)
    assert counts.image_counts(db) == {
        "all": 21, "without_decision": 18, "skipped": 0, "incomplete": 0, "complete": 3, "set_aside": 3,
    }  # fmt: skip
    progress = progress_of(db)
    assert (progress.pairs, progress.pairs_answered, progress.images_complete) == (63, 9, 3)
    assert counts.count_open(db) == 54 == progress.pairs_open
    assert counts.count_unanswered(db, 1) == 18
    assert cells.unreadable(db, [3, 4, 5, 6, 7]) == {4, 5, 6}
    assert 6 not in cells.open_images(db, 1, 100) and len(cells.open_images(db, 1, 100)) == 18
    known = training_set(db, cache)
    assert known.rows.tolist() == [0, 1, 2, 3, 4, 5] and known.odd == 0
    assert (
        known.labels[:3].all() and not known.labels[3:].any() and known.mask.any(1).tolist() == [True] * 3 + [False] * 3
    )
    assert not known.unknown(24)[3:6].any(), "they are no unlabeled images either"
    assert shown(db, aside=True) == [4, 5, 6] and len(shown(db, aside=False)) == 21
    assert exported(db) == (21, ["3 images set aside, left out (blurred: 3)."])
    assert exported(db, set_aside=True) == (24, ["3 images set aside, in the export, as chosen (blurred: 3)."])
    assert consistency.problems(db) == []

    decisions.undo(db, "Ann")
    assert before == (counts.image_counts(db), progress_of(db), counts.count_open(db), exported(db))
    assert set(training_set(db, cache).rows) == {0, 1, 2, 3, 4} and shown(db, aside=True) == []
    assert consistency.problems(db) == []


def test_audits_and_the_certificate_are_of_the_images_that_are_not_set_aside(db):
    audit.draw(db, 60, seed=4, class_ids=[1])
    drawn = audit.open_cells(db)[0].image_id
    put_aside(db, drawn, 3 if drawn != 3 else 5)
    assert drawn not in {one.image_id for one in audit.open_cells(db)}
    answer(db)
    found = certificate(db)
    assert found.images == 22 and found.set_aside == 2
    assert found.classes[0].people + found.classes[0].unknown <= 22 and found.overall.waiting == 0
    assert found.as_json()["set_aside"] == 2 and "without 2 images set aside" in found.sentence()
    audit.draw(db, 66, seed=1)
    assert not {drawn} & {one.image_id for one in audit.open_cells(db)}


def test_the_newest_flag_of_a_person_counts_and_answers_that_come_later_do_not_bring_the_image_back(db):
    put_aside(db, 1, reason="too dark")
    say(db, [(1, 1)])
    assert set_aside.image_ids(db) == {1}
    decisions.decide(db, [Decision("look", "flag", "Bob", "click", 1, note="odd")])
    assert set_aside.image_ids(db) == set() and counts.image_counts(db)["incomplete"] == 1
    decisions.decide(db, [Decision("undo-look", "undo", "Bob", "click", undoes="look")])
    assert set_aside.image_ids(db) == {1} and set_aside.reasons(db) == [("too dark", 1)]
    decisions.decide(db, [Decision("empty", "flag", "Ann", "gallery", 1, note="")])
    assert set_aside.image_ids(db) == set() and consistency.problems(db) == []
    put_aside(db, 2, reason="twin of a.jpg", batch="one")
    put_aside(db, 3, reason="twin of b.jpg", batch="two")
    assert set_aside.reasons(db) == [("twin of another image", 2)]


def test_no_queue_asks_for_an_image_that_is_set_aside(db):
    rising = np.linspace(0.2, 0.98, 24)
    publish(db, np.stack([rising, rising, rising], 1))
    say(db, [(image_id, 1) for image_id in (20, 21)])

    def asked() -> set[int]:
        tiles = {image_id for image_id, _ in shown_tiles(grid.next_grids(db, wanted("grid", size=24, want=9)))}
        modes = {mode: annotate.next_work(db, Wanted(mode, mode, "Ann", (), 200)) for mode in ("annotate", "review")}
        return tiles | {item.image.id for work in modes.values() for item in work.items}

    before = asked()
    with db.writing() as sql:
        sql.execute("DELETE FROM lease")
    put_aside(db, 20, 23, 24)
    assert {20, 23, 24} <= before and not {20, 23, 24} & asked()
