"""What a person says of one image of an event is said of the others, too: what is stored, left out, and taken back."""

import csv
import json
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow.parquet as pq
import pytest
from harness.asked import asked
from harness.audit_answers import truth
from harness.grid_requests import wanted
from harness.published_runs import publish
from hypothesis import given, settings
from hypothesis import strategies as st

from annotator.errors import AnnotatorError
from annotator.exchange.project_setup import set_up_project
from annotator.quality import audit_sampling
from annotator.quality.certification import compute_certificate
from annotator.queues import grid_queue
from annotator.records import Batch, Decision
from annotator.store.database.database import Database
from annotator.store.events import project_events, stored_events
from annotator.store.events.event_answers import EventBatch
from annotator.store.gallery.image_history import load_image_history
from annotator.store.labels import decisions, image_overlap
from annotator.store.people import assignment, leases, others_images
from annotator.store.upkeep import consistency

FOX, HERON, DEER = 1, 2, 3


def with_events(project: Path) -> Database:
    """The 24 images of the project, a photo each 10 seconds, four to an event."""
    db = Database(project)
    with db.writing() as sql:
        sql.execute("UPDATE image SET captured_at = 1.7e9 + 10 * id + 100 * ((id - 1) / 4)")
        sql.execute("INSERT INTO attribute (image_id, name, value) SELECT id, 'camera', 'one' FROM image")
    project_events.find_and_save(db)
    return db


@pytest.fixture
def burst(project) -> Database:
    return with_events(project)


def answer(db: Database, image: int, class_id: int, state: int = 1, by: str = "Ann") -> None:
    saved = decisions.save(db, [Decision(str(uuid.uuid4()), "label", by, "click", image, class_id, state)])
    assert not saved.refused


def whole(db: Database, copies: list[tuple[int, int, int, int]], by: str = "Ann", **more) -> EventBatch:
    batch = EventBatch(str(uuid.uuid4()), by, "event", more.pop("cells", ()), copies=copies, **more)
    assert decisions.save(db, [batch]).saved == [batch.uuid]
    return batch


def of(db: Database, image: int) -> list[tuple[int, int, str, str]]:
    return sorted((one.class_id, one.state, one.source, one.annotator) for one in decisions.load_labels(db, [image]))


def test_event_answer_is_stored_as_one_batch_and_undone_in_one_step(burst):
    answer(burst, 2, FOX)
    answer(burst, 2, DEER, -1)
    answer(burst, 3, DEER, 1, by="Ben")
    batch = whole(
        burst, [(image, class_id, state, 2) for image in (1, 3) for class_id, state in ((FOX, 1), (DEER, -1))]
    )
    assert of(burst, 1) == [(FOX, 1, "event", "Ann"), (DEER, -1, "event", "Ann")]
    assert of(burst, 3) == [(FOX, 1, "event", "Ann"), (DEER, 1, "click", "Ben")], "Ben's answer stays"
    assert of(burst, 4) == [], "an exception"
    assert burst.tuples("SELECT d.image_id, d.class_id FROM event_answer e JOIN decision d ON d.id = from_id") == [
        (2, FOX), (2, DEER), (2, FOX)
    ]  # fmt: skip
    [*_, step] = decisions.load_undoable(burst, "Ann", 9, 99)
    assert isinstance(step, EventBatch) and step.uuid == batch.uuid and not step.cells
    assert step.copies == [(1, FOX, 1, 2), (1, DEER, -1, 2), (3, FOX, 1, 2)]
    assert decisions.save(burst, [batch]).saved == [batch.uuid] and len(of(burst, 1)) == 2, "sent again"
    name = burst.value("SELECT name FROM image WHERE id = 2")
    assert {(one.source, one.front) for one in load_image_history(burst, 1)} == {("event", name)}
    assert len(decisions.undo(burst, "Ann")) == 3
    assert of(burst, 1) == [] and of(burst, 3) == [(DEER, 1, "click", "Ben")] and len(of(burst, 2)) == 2
    assert consistency.find_problems(burst) == []


def test_event_answer_copies_only_answers_of_the_same_annotator_within_the_same_event(burst):
    answer(burst, 2, FOX, by="Ben")
    answer(burst, 2, HERON)
    whole(burst, [(1, FOX, 1, 2), (1, HERON, 1, 2), (1, DEER, 1, 2), (5, HERON, 1, 2)])
    assert of(burst, 1) == [(HERON, 1, "event", "Ann")] and of(burst, 5) == []
    project_events.split_event(burst, 4, "Ben")
    whole(burst, [(4, HERON, 1, 2), (3, HERON, 1, 2)])
    assert of(burst, 4) == [] and of(burst, 3) == [(HERON, 1, "event", "Ann")], "no longer of the event"
    alone = Decision(str(uuid.uuid4()), "label", "Ann", "event", 7, FOX, 1)
    assert "names an image in front" in decisions.save(burst, [alone]).refused[alone.uuid]


def test_event_answer_skips_images_open_on_other_pages_or_awaiting_blind_answers(burst):
    answer(burst, 1, FOX)
    leases.renew_images(burst, "page", "Ben", [2])
    with asked(burst.paths.project) as app:
        told = app.post("/api/event", {"image": 1})[1]
        assert (told["event"], told["images"], told["first"]) == (1, 4, 0)
        assert [(one["id"], one["labels"], one["away"]) for one in told["frames"]] == [
            (1, [FOX], False), (2, [], True), (3, [], False), (4, [], False)
        ]  # fmt: skip
        batch = {"uuid": "an-event-1", "action": "batch", "source": "event", "cells": []}
        batch["copies"] = [[image, FOX, 1, 1] for image in (2, 3)]
        assert app.post("/api/decisions", {"decisions": [batch]})[1]["saved"] == ["an-event-1"]
        assert (of(burst, 2), of(burst, 3)) == ([], [(FOX, 1, "event", "Ann")])
        told = app.post("/api/recent", {})[1]["decisions"][-1]
        assert (told["source"], told["cells"], told["copies"]) == ("event", [], [[3, FOX, 1, 1]])
        blind = batch | {"uuid": "an-event-2", "source": "reading"}
        assert "blind" in app.post("/api/decisions", {"decisions": [blind]})[1]["refused"]["an-event-2"]
        assert app.post("/api/event", {"image": 99})[1]["event"] is None
    image_overlap.set_overlap(burst, 2, 1.0)
    answer(burst, 6, FOX)
    whole(burst, [(5, FOX, 1, 6)])
    assert of(burst, 5) == [], "two people answer it blind"


def test_event_answer_skips_excluded_images(burst):
    answer(burst, 1, FOX)
    decisions.save(burst, [Decision("aside", "flag", "Ann", "aside", 2, note="blurred")])
    whole(burst, [(image, FOX, 1, 1) for image in (2, 3)])
    assert [len(of(burst, image)) for image in (2, 3)] == [0, 1]


def test_event_answer_skips_images_assigned_to_another_annotator(burst):
    answer(burst, 1, FOX)
    assignment.assign_images(burst, "Ben", "his", [burst.value("SELECT name FROM image WHERE id = 3")])
    assert others_images.find_unavailable_images(burst, "Ann", [1, 2, 3, 4]) == {3}
    whole(burst, [(image, FOX, 1, 1) for image in (2, 3, 4)], away={3})
    assert [len(of(burst, image)) for image in (1, 2, 3, 4)] == [1, 1, 0, 1]


def test_load_event_limits_a_long_event_to_the_images_around_the_given_one(burst):
    project_events.set_gap(burst, 1000, "Ann")
    assert stored_events.load_event(burst, 13, 5) == stored_events.StoredEvent(1, 24, 10, (11, 12, 13, 14, 15))
    assert stored_events.load_event(burst, 24, 5).image_ids == (20, 21, 22, 23, 24)
    assert stored_events.load_event(burst, 1, 99).image_ids == tuple(range(1, 25))
    assert stored_events.load_event_rows(burst, [24, 99, 2]).tolist() == [[1, 23, 24], [0, 0, 0], [1, 1, 24]]


def test_grid_tile_stands_for_the_images_of_an_event_only_if_their_predictions_agree(burst):
    chances = np.full((24, 3), np.nan)
    chances[:, 0] = np.repeat([0.9, 0.8, 0.7, 0.2, 0.1, 0.05], 4) + np.arange(24) / 1000
    chances[5, 0] = 0.4  # of the second event: the model contradicts itself
    publish(burst, chances)
    answer(burst, 4, FOX)
    leases.renew_images(burst, "other page", "Ben", [10])

    def tiles(want: int = 1, have=()) -> list[tuple[int, list[int]]]:
        asked_for = wanted(size=6, want=want, have=have)
        return [
            (tile.image.id, [id_ for id_, _, _ in tile.others])
            for one in grid_queue.lease_next_grids(burst, asked_for).items
            for tile in one.tiles
        ]

    first = tiles()
    assert first == [(3, [2, 1]), (8, []), (7, []), (5, []), (12, [11, 9]), (6, [])]
    assert leases.find_taken_by_others(burst, "a third page", [(2, FOX), (11, FOX)]) == [(2, FOX), (11, FOX)]
    have = [(image, FOX) for one, others in first for image in (one, *others)]
    assert tiles(have=have) == [(16, [15, 14, 13]), (20, [19, 18, 17]), (24, [23, 22, 21])]

    cells_, copies = [(3, FOX, 1, 0.9)], [(2, FOX, 1, 3), (1, FOX, 1, 3), (4, FOX, 1, 3)]
    decisions.save(burst, [EventBatch("a-grid-of-one", "Ann", "grid", cells_, copies=copies)])
    assert [of(burst, image) for image in (1, 2, 3, 4)] == [
        [(FOX, 1, source, "Ann")] for source in ("event", "event", "grid", "click")
    ]
    assert len(decisions.undo(burst, "Ann")) == 3 and of(burst, 3) == []


def test_exports_name_the_event_per_image_and_the_provenance_of_event_answers(burst, tmp_path, annotator):
    answer(burst, 6, FOX)
    whole(burst, [(7, FOX, 1, 6)])
    name = burst.value("SELECT name FROM image WHERE id = 7")

    def export(path: str, *words: str) -> Path:
        annotator("export", burst.paths.project, tmp_path / path, *words)
        return tmp_path / path

    lines = map(json.loads, export("labels.jsonl", "--format", "jsonl").read_text().splitlines())
    line = next(line for line in lines if line["image"] == name)
    assert (line["event"], line["frame"], line["provenance"]["fox"]["source"]) == ("event-5", 3, "event")
    assert f"{name},event-5,3,1" in export("labels.csv", "--columns", "image,event,frame,fox").read_text().splitlines()
    rows = pq.read_table(export("labels.parquet", "--format", "parquet")).to_pylist()
    assert next((row["event"], row["frame"]) for row in rows if row["image"] == name) == ("event-5", 3)
    images = json.loads(export("coco.json", "--format", "coco").read_text())["images"]
    [image] = [image for image in images if image["file_name"] == name]
    assert (image["seq_id"], image["frame_num"], image["seq_num_frames"]) == ("event-5", 3, 4)
    table = csv.DictReader((export("trap", "--format", "camtrap-dp") / "observations.csv").open())
    assert {row["eventID"] for row in table if row["mediaID"] == "7"} == {"event-5"}
    copy = tmp_path / "copy"
    annotator("init", copy, "--images", tmp_path / "photos")
    for path in ("labels.jsonl", "labels.parquet", "coco.json"):
        annotator("import", copy, tmp_path / path, "--yes")
    held = [(one.image_id, one.state) for one in decisions.load_all_labels(Database(copy))]
    assert len(held) == 2, "read back, with nothing taken for a class"
    assert burst.tuples("SELECT name FROM class ORDER BY id") == Database(copy).tuples(
        "SELECT name FROM class ORDER BY id"
    )


@pytest.fixture(scope="module")
def eight(tmp_path_factory, drawn_photos) -> Path:
    """A project of eight images in two events, which each example copies."""
    folder = tmp_path_factory.mktemp("eight")
    (folder / "photos").mkdir()
    for number, path in enumerate(sorted(drawn_photos.glob("*.jpg"))[:8]):
        shutil.copy(path, folder / "photos" / f"{number}.jpg")
    (folder / "classes.txt").write_text("fox\nheron\n")
    set_up_project(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
    db = Database(folder / "project")
    with db.writing() as sql:
        sql.execute("UPDATE image SET captured_at = 1.7e9 + 10 * id + 100 * ((id - 1) / 4)")
    project_events.find_and_save(db)
    db.close()
    return folder / "project"


PEOPLE, IMAGES, STATES = st.sampled_from(["Ann", "Ben"]), st.integers(1, 8), st.sampled_from([1, 1, -1, 0])
STEP = st.one_of(
    st.tuples(st.just("answer"), PEOPLE, IMAGES, st.sampled_from([FOX, HERON]), STATES),
    st.tuples(st.just("event"), PEOPLE, IMAGES, st.sets(IMAGES, max_size=2)),
    st.tuples(st.just("event"), PEOPLE, IMAGES, st.just(set())),
    st.tuples(st.just("undo"), PEOPLE),
    st.tuples(st.just("again")),
    st.tuples(st.just("split"), IMAGES),
    st.tuples(st.just("merge"), IMAGES),
    st.tuples(st.just("undo of events")),
)


class Book:
    """Answers as a list of steps; labels are what the newest step that holds says of a cell."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, dict[tuple[int, int], int]]] = []

    def labels(self) -> dict[tuple[int, int], tuple[int, str]]:
        return {cell: (state, by) for by, cells in self.steps for cell, state in cells.items()}

    def give(self, by: str, cells: dict[tuple[int, int], int]) -> None:
        if cells:
            self.steps.append((by, cells))

    def undo(self, by: str) -> None:
        mine = [place for place, (who, _) in enumerate(self.steps) if who == by]
        if mine:
            self.steps.pop(mine[-1])


@settings(max_examples=40, deadline=None)
@given(st.lists(STEP, max_size=25))
def test_stored_labels_equal_a_replay_after_any_sequence_of_answers_undos_and_event_edits(eight, steps):
    with TemporaryDirectory() as folder:
        db, book, sent = Database(shutil.copytree(eight, Path(folder) / "project")), Book(), []
        for kind, *what in steps:
            if kind == "answer":
                by, image, class_id, state = what
                answer(db, image, class_id, state, by)
                book.give(by, {(image, class_id): state})
            elif kind == "event":
                by, front, exceptions = what
                known, event = book.labels(), stored_events.load_event(db, front, 99)
                own = {
                    class_id: state for (image, class_id), (state, who) in known.items() if (image, who) == (front, by)
                }
                asked_for = [(i, c, s, front) for i in range(1, 9) if i not in exceptions for c, s in own.items()]
                if asked_for:
                    sent.append(whole(db, asked_for, by))
                book.give(by, {
                    (i, c): s for i, c, s, _ in asked_for if i in event.image_ids and (i, c) not in known
                })  # fmt: skip
            elif kind == "undo":
                with suppress(AnnotatorError):
                    decisions.undo(db, *what)
                book.undo(*what)
            elif kind == "again" and sent and db.value("SELECT 1 FROM decision WHERE batch = ?", [sent[-1].uuid]):
                assert decisions.save(db, [sent[-1]]).saved == [sent[-1].uuid]
            else:
                with suppress(AnnotatorError):
                    {"split": project_events.split_event, "merge": project_events.merge}.get(
                        kind, lambda db, by: project_events.undo(db, by)
                    )(db, *what, "Ann") if kind != "again" else None
        held = {(one.image_id, one.class_id): (one.state, one.annotator) for one in decisions.load_all_labels(db)}
        assert held == book.labels()
        assert consistency.find_problems(db) == []
        assert not db.tuples(
            """SELECT d.id FROM decision d LEFT JOIN event_answer e ON e.decision_id = d.id
            LEFT JOIN decision f ON f.id = e.from_id WHERE d.source = 'event' AND d.action = 'label'
            AND (f.id IS NULL OR f.class_id != d.class_id OR f.annotator != d.annotator OR f.image_id = d.image_id)"""
        )
        db.close()


def test_audit_detects_mistakes_in_labels_copied_to_an_event(burst):
    classes, present, right = (FOX, HERON, DEER), 0, 0
    for front in range(1, 25, 4):
        for class_id in classes:
            answer(burst, front, class_id, truth(front, class_id))
        others = range(front + 1, front + 4)
        whole(burst, [(image, class_id, truth(front, class_id), front) for image in others for class_id in classes])
    for image, class_id, state in decisions.load_label_cells(burst)[0]:
        present += state == 1
        right += state == 1 and truth(image, class_id) == 1
    assert compute_certificate(burst).overall.precision.high == 1, "nobody has looked again"
    audit_sampling.draw_audit(burst, 72, seed=3)
    copied = {(image, class_id) for image, class_id in burst.tuples(
        "SELECT d.image_id, d.class_id FROM event_answer e JOIN decision d ON d.id = decision_id")}  # fmt: skip
    asked_again = [(one.image_id, one.class_id) for one in audit_sampling.load_open_cells(burst)]
    assert copied & set(asked_again), "copies are asked again as other answers are"
    cells = [(*cell, truth(*cell), None) for cell in asked_again]
    assert decisions.save(burst, [Batch("audit", "Ben", "audit", cells)]).saved
    found = compute_certificate(burst)
    assert found.relabels.mistaken > 0
    assert found.overall.precision.low <= right / present <= found.overall.precision.high < 1
