"""From folders of classes to a project, out in every format, and into a new project: the same answers everywhere."""

import shutil
import uuid
from collections import Counter
from dataclasses import replace

import pytest
from conftest import CLASSES, draw
from harness.named_images import bring
from harness.short_forms import mark_slow_after

from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.export_writer import export_data_set
from annotator.exchange.formats import FORMATS
from annotator.exchange.formats.shared.times import format_iso_time
from annotator.records import ABSENT, PRESENT, UNSURE, Decision
from annotator.store.classes import class_changes, classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.imports import past_imports
from annotator.store.labels import decisions

OUT_AND_IN = [name for name, format_ in FORMATS.items() if format_.read and format_.write]


def labels_of(project) -> dict[tuple[str, str], int]:
    """(sha256 of the image, class) -> state."""
    db = Database(project)
    rows = db.tuples(
        """SELECT i.sha256, c.name, l.state FROM label l JOIN image i ON i.id = l.image_id
        JOIN class c ON c.id = l.class_id"""
    )
    return {(sha256, name): state for sha256, name, state in rows}


@pytest.fixture
def folders(tmp_path):
    """Six images in the folders of three classes, in two splits; one of them is in two folders."""
    root = tmp_path / "animals"
    for number in range(6):
        split = "train" if number < 4 else "val"
        draw(root / split / CLASSES[number % 3] / f"{number}.jpg", (CLASSES[number % 3],), seed=number)
    shutil.copy(root / "train/fox/0.jpg", root / "train/heron/again.jpg")
    return root


def test_imagefolder_import_leaves_other_labels_unanswered_and_can_be_undone(tmp_path, folders):
    plan = bring(tmp_path / "project", folders)
    assert plan.format.name == "imagefolder"
    assert plan.done
    assert plan.done.imported.answers == plan.preview.answers_new == 7
    db = Database(tmp_path / "project")
    assert [class_.name for class_ in classes.load_active_classes(db)] == sorted(CLASSES)
    labels = labels_of(db.paths.project)
    assert len(labels) == 7
    assert set(labels.values()) == {PRESENT}
    of_image: dict[str, set[str]] = {}
    for sha256, name in labels:
        of_image.setdefault(sha256, set()).add(name)
    assert len(of_image) == 6
    assert sorted(map(len, of_image.values())) == [1, 1, 1, 1, 1, 2]
    assert {"fox", "heron"} in of_image.values()
    facts = db.tuples("SELECT value, count(*) FROM attribute WHERE name = 'split' GROUP BY value")
    assert [tuple(row) for row in facts] == [("train", 4), ("val", 2)]
    assert not bring(db.paths.project, folders).preview.has_changes
    past_imports.undo(db, plan.done.imported.id, "Ann")
    assert not labels_of(db.paths.project)


@pytest.fixture
def answered(tmp_path, folders):
    """The project of these folders, with answers of every kind."""
    bring(tmp_path / "project", folders)
    db = Database(tmp_path / "project")
    ids, named = sorted(images.load_ids_by_name(db).values()), classes.load_classes_by_name(db)
    for number, (image_id, class_, state) in enumerate(
        [(ids[0], "deer", ABSENT), (ids[1], "fox", UNSURE), (ids[2], "deer", PRESENT), (ids[3], "fox", ABSENT)]
    ):
        decision = Decision(
            str(uuid.UUID(int=number)),
            "label",
            "Ann",
            "click",
            image_id=image_id,
            class_id=named[class_].id,
            state=state,
        )
        decisions.save(db, [decision])
    return db


@pytest.mark.parametrize("name", mark_slow_after(4, OUT_AND_IN))
def test_export_and_import_into_a_new_project_keep_every_label_of_the_format(tmp_path, folders, answered, name):
    target = tmp_path / "out" / f"labels{FORMATS[name].ending}"
    target.parent.mkdir()
    export_data_set(answered, target, name, lossy=True)
    lost = FORMATS[name].lost
    gone = {state for state, is_lost in ((UNSURE, lost.unsure), (ABSENT, lost.absent)) if is_lost}
    expected = {cell: state for cell, state in labels_of(answered.paths.project).items() if state not in gone}
    assert len(set(expected.values())) >= (1 if lost.absent else 2)
    for beside in target.parent.rglob("*provenance.csv"):
        if name != "csv":  # of which it is a part
            beside.unlink()  # what is read must come from the format itself
    plan = bring(tmp_path / "again", target, images=None if name == "yolo-cls" else folders)
    assert labels_of(tmp_path / "again") == expected
    assert plan.preview.images_unknown.count == 0 or lost.absent  # then images without a present class are not written
    done = bring(answered.paths.project, target).done
    assert done
    assert done.imported.answers == 0


@pytest.fixture
def rich(answered):
    """The same with answers of several people and sources, notes, facts, and classes that people have changed."""
    classes.add_classes(answered, [("class", "a word of tables"), ("state", ""), ('labels, "x"', ""), ("=Fox", "")])
    ids, named = sorted({*images.load_ids_by_name(answered).values()}), classes.load_classes_by_name(answered)
    notes = [("Bob, Jr.", "audit", "label", "", "class", PRESENT), ("\U0001f98a", "grid", "label", "", "=Fox", UNSURE)]
    notes += [("Ann", "click", "flag", "dark,\n|", "", None), ("=Cy", "click", "comment", "=1", "", None)]
    for number, image_id in enumerate(ids):
        for place, (by, source, action, note, class_, state) in enumerate(notes):
            class_id = named[class_].id if class_ else None
            one = Decision(str(uuid.UUID(int=100 + 10 * number + place)), action, by, source, image_id, class_id, state)
            assert not decisions.save(answered, [replace(one, note=note)]).refused
    with answered.writing() as sql:
        for name, value in (("location", "place | 1"), ("=odd", "a,b")):
            sql.execute("INSERT INTO attribute (image_id, name, value) SELECT id, ?, ? FROM image", [name, value])
    decisions.save(answered, [Decision(str(uuid.UUID(int=99)), "done", "Bob, Jr.", "done", image_id=ids[0])])
    fox = {"synonyms": ["vulpes", "a, b"], "key": "z", "heading": "Mammals", "colour": "#112233", "description": "red"}
    class_changes.edit(answered, "Ann", {named["fox"].id: fox | {"examples": ids[:2]}})
    class_changes.reorder(answered, "Ann", [named["=Fox"].id, named["deer"].id])
    return answered


def everything(project) -> dict[str, object]:
    """All that people know of the project, by contents of images and names; of imported answers their origin."""
    db = Database(project)
    who = """coalesce(o.source, d.source), coalesce(o.annotator, d.annotator), coalesce(o.decided_at, d.decided_at)
        FROM decision d LEFT JOIN origin o ON o.decision_id = d.id JOIN image i ON i.id = d.image_id"""
    cells = f"""SELECT i.sha256, c.name, l.state, {who} JOIN label l ON l.decision_id = d.id
        JOIN class c ON c.id = l.class_id"""
    notes = f"SELECT i.sha256, d.action, d.note, {who} WHERE d.action IN ('flag', 'comment')"
    known, sha256 = classes.load_ordered_classes(db), dict(db.tuples("SELECT id, sha256 FROM image"))
    return {
        "cells": {row[:2]: (*row[2:-1], format_iso_time(row[-1])) for row in db.tuples(cells)},
        "notes": Counter((*row[:3], *row[4:-1], format_iso_time(row[-1])) for row in db.tuples(notes)),
        "facts": set(db.tuples("SELECT i.sha256, a.name, a.value FROM attribute a JOIN image i ON i.id = a.image_id")),
        "columns": [class_.name for class_ in classes.load_active_classes(db)],
        "classes": [
            (one.name, one.description, one.key, one.heading, one.colour, one.synonyms, *map(sha256.get, one.examples))
            for one in known
        ],
    }


@pytest.mark.parametrize("name", mark_slow_after(3, OUT_AND_IN))
def test_export_with_its_companion_files_restores_everything_in_a_new_project(tmp_path, folders, rich, name):
    target = tmp_path / "out" / f"labels{FORMATS[name].ending}"
    target.parent.mkdir()
    with_images = not FORMATS[name].ending  # then they are all that the new project has, under other names
    chosen = Choices(images="copy" if with_images else "", splits="existing")
    export_data_set(rich, target, name, chosen, lossy=True)
    bring(tmp_path / "again", target, images=None if with_images else folders)
    assert everything(tmp_path / "again") == everything(rich.paths.project)
    bring(rich.paths.project, target)
    assert everything(tmp_path / "again") == everything(rich.paths.project)
