"""A project of an older version is brought up to date: nothing lost, whatever kills it on the way."""

import subprocess
import sys

import numpy as np
import pytest
import sqlite_utils
from test_trigger_counts import counted, kept

from annotator.errors import AnnotatorError, DiskFull
from annotator.records import Decision
from annotator.settings import DEFAULT_BACKBONE
from annotator.store.classes import classes
from annotator.store.database import database_copies
from annotator.store.database.database import Database
from annotator.store.labels import decisions, project_counts
from annotator.store.networks import configuration
from annotator.store.schema import MIGRATIONS

DECISIONS = (
    "id, uuid, action, image_id, class_id, state, undoes, source, annotator, batch, run_id, score, milliseconds, "
    "decided_at"
)


@pytest.fixture
def old(tmp_path):
    """project.db as the first version made it, with 40 classes, decisions of every kind and a lease."""
    (tmp_path / "old").mkdir()
    db = sqlite_utils.Database(tmp_path / "old" / "project.db")
    db.conn.execute("PRAGMA foreign_keys = ON")
    MIGRATIONS.apply(db, stop_before="m002")
    with db.conn:
        for number in range(1, 41):
            db["class"].insert({"name": f"class {number}", "since_decision": 0})
            stage = {1: 2, 2: 3, 3: 1}.get(number, 0)
            db["image"].insert(
                {"name": f"{number}.jpg", "sha256": f"{number:064}", "width": 9, "height": 9, "stage": stage}
            )
        shared = {"annotator": "Ann", "source": "click", "decided_at": 1.7e9}
        rows = [
            {"uuid": "one", "action": "label", "image_id": 1, "class_id": 1, "state": 1, "milliseconds": 812},
            {"uuid": "two", "action": "label", "image_id": 1, "class_id": 2, "state": -1, "source": "suggestion"},
            {"uuid": "three", "action": "done", "image_id": 2, "source": "done"},
            {"uuid": "four", "action": "skip", "image_id": 3},
            {"uuid": "five", "action": "label", "image_id": 4, "class_id": 1, "state": 0, "batch": "grid", "run_id": 3},
            {"uuid": "six", "action": "undo", "image_id": 4, "undoes": 5},
            {"uuid": "seven", "action": "label", "image_id": 1, "class_id": 3, "state": 1, "source": "import"},
        ]
        rows[1] |= {"run_id": 3, "score": 0.81}
        for row in rows:
            db["decision"].insert(shared | row)
        answers = [(1, 1, 1, 1), (1, 2, -1, 2), (1, 3, 1, 7), *((2, one, -1, 3) for one in range(1, 41))]
        db.conn.executemany("INSERT INTO label VALUES (?, ?, ?, ?)", answers)
        db["lease"].insert({"image_id": 9, "holder": "tab", "annotator": "Ann", "until": 9e9})
    db.close()
    return tmp_path / "old"


def contents(place) -> dict[str, list[tuple]]:
    db = sqlite_utils.Database(place / "project.db")
    tables = ("label", "run", "job", "folder", "file")
    found = {table: db.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables}
    image = "id, name, sha256, width, height, stage, stage_decision, problem"
    found["image"] = db.execute(f"SELECT {image} FROM image ORDER BY id").fetchall()
    found["decision"] = db.execute(f"SELECT {DECISIONS} FROM decision ORDER BY id").fetchall()
    found["class"] = db.execute("SELECT id, name, description, since_decision FROM class").fetchall()
    found["lease"] = db.execute("SELECT image_id, holder, annotator, until FROM lease").fetchall()
    db.close()
    return found


def test_upgraded_project_keeps_every_row_and_gets_keys_and_counts(old):
    before = contents(old)
    raw = sqlite_utils.Database(old / "project.db")
    names = {row[0] for row in raw.execute("SELECT name FROM sqlite_master").fetchall()}
    raw.close()
    db = Database(old)
    assert contents(old) == before
    assert names <= {row["name"] for row in db.rows("SELECT name FROM sqlite_master")}, "an index is missing"
    assert [one.key for one in classes.load_active_classes(db)] == [
        *classes.DEFAULT_KEYS,
        *[""] * (40 - len(classes.DEFAULT_KEYS)),
    ]
    assert kept(db) == counted(db)
    assert project_counts.count_images_by_stage(db) == {
        "all": 40,
        "without_decision": 38,
        "skipped": 1,
        "incomplete": 1,
        "complete": 1,
    }
    assert db.value("SELECT class_id FROM lease") == 0
    assert db.value("PRAGMA foreign_keys") == 1 and db.rows("PRAGMA foreign_key_check") == []


def test_upgrade_keeps_one_copy_of_the_old_database_and_a_new_project_none(old, tmp_path):
    before = contents(old)
    Database(old).close()
    Database(old).close()
    [kept] = (old / "copies").iterdir()
    (tmp_path / "put back").mkdir()
    kept.rename(tmp_path / "put back" / "project.db")
    raw = sqlite_utils.Database(tmp_path / "put back" / "project.db")
    assert [step.name for step in MIGRATIONS.applied(raw)] == ["m001"]
    raw.close()
    Database(tmp_path / "put back").close()
    assert contents(tmp_path / "put back") == before, "the copy is whole"
    Database(tmp_path / "new", create=True).close()
    assert not (tmp_path / "new" / "copies").exists()


def test_upgrade_is_refused_without_disk_space_for_the_copy(old, monkeypatch):
    monkeypatch.setattr(database_copies, "RESERVED_BYTES", 10**18)
    with pytest.raises(DiskFull, match="before the upgrade"):
        Database(old)
    raw = sqlite_utils.Database(old / "project.db")
    assert [step.name for step in MIGRATIONS.applied(raw)] == ["m001"]
    raw.close()


def test_upgraded_project_has_the_schema_of_a_new_one(old, tmp_path):
    def shape(db: Database) -> dict:
        return {row["name"]: row["sql"] for row in db.rows("SELECT name, sql FROM sqlite_master")}

    assert shape(Database(old)) == shape(Database(tmp_path / "new", create=True))


def test_upgraded_project_ignores_known_uuids_saves_decisions_and_undoes_old_ones(old):
    db = Database(old)
    assert decisions.save(db, [Decision("one", "label", "Ann", "click", 1, 1, 1)]).saved == ["one"]
    assert decisions.get_newest_decision_id(db) == 7, "a uuid from before is known still"
    decisions.save(db, [Decision("flag-one", "flag", "Ann", "click", 1, note="odd")])
    assert decisions.get_newest_decision_id(db) == 8
    decisions.undo(db)
    [undone] = decisions.undo(db)
    assert undone["action"] == "skip", "the newest of before that still holds"
    assert kept(db) == counted(db)


def test_upgrade_computes_the_same_disagreements_as_a_new_project(tmp_path):
    new = Database(tmp_path / "new", create=True)
    classes.add_classes(new, [("fox", ""), ("heron", ""), ("deer", "")])
    rng = np.random.default_rng(5)
    with new.writing() as sql:
        rows = [(number, f"{number}.jpg", f"{number:064}", 9, 9) for number in range(1, 41)]
        sql.conn.executemany("INSERT INTO image (id, name, sha256, width, height) VALUES (?, ?, ?, ?, ?)", rows)
    for number in range(1200):
        person, image = str(rng.choice(["Ann", "Bob", "Cy"])), int(rng.integers(1, 41))
        kind = rng.choice(["label", "import", "done", "undo"], p=[0.8, 0.05, 0.1, 0.05])
        if kind == "undo" and number:
            decisions.undo(new)
            continue
        action, source = ("done", "done") if kind == "done" else ("label", "import" if kind == "import" else "click")
        cell = {} if action == "done" else {"class_id": int(rng.integers(1, 4)), "state": int(rng.integers(-1, 2))}
        saved = decisions.save(new, [Decision(str(number), action, person, source, image, **cell)])
        assert not saved.refused
        if number == 600:
            classes.add_classes(new, [("wolf", "")])
    (tmp_path / "old").mkdir()
    old = sqlite_utils.Database(tmp_path / "old" / "project.db")
    old.conn.execute("PRAGMA foreign_keys = OFF")
    MIGRATIONS.apply(old, stop_before="m003")
    with old.conn:
        for table in ("image", "class", "decision", "label"):
            columns = [row[1] for row in old.execute(f"PRAGMA table_info({table})").fetchall()]
            rows = new.tuples(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1, 2")
            old.conn.executemany(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", rows
            )
    old.close()
    expected = new.tuples("SELECT * FROM contradiction ORDER BY 1, 2")
    assert len(expected) > 20
    assert Database(tmp_path / "old").tuples("SELECT * FROM contradiction ORDER BY 1, 2") == expected


@pytest.mark.parametrize("chosen", [None, "efficientnet_lite0"])
def test_upgraded_project_keeps_the_backbone_of_its_embeddings(old, tmp_path, chosen):
    if chosen:
        before = sqlite_utils.Database(old / "project.db")
        before["setting"].insert({"key": "backbone", "value": f'"{chosen}"'})
        before.close()
    assert configuration.get_backbone(Database(old)) == (chosen or "efficientnet_lite2")
    assert (
        configuration.get_backbone(Database(tmp_path / "new", create=True)) == DEFAULT_BACKBONE != "efficientnet_lite2"
    )


KILLED = """
import os, sys
from pathlib import Path
from annotator.store.database.database import Database

class Doomed(Database):
    def _connect(self):
        sql = super()._connect()
        sql.conn.set_trace_callback(lambda text: sys.argv[2] in text and os.kill(os.getpid(), 9))
        return sql

Doomed(Path(sys.argv[1]))
"""


@pytest.mark.process
@pytest.mark.parametrize("statement", ["DROP TABLE decision", "ALTER TABLE lease_new", "TRIGGER decision_undone"])
def test_killed_upgrade_leaves_the_old_project_unchanged(old, statement):
    before = contents(old)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(old), statement], check=False, timeout=60)
    assert killed.returncode == -9
    assert contents(old) == before
    assert kept(db := Database(old)) == counted(db)
    assert contents(old) == before


def test_upgrade_refuses_a_project_with_dangling_references_and_changes_nothing(old):
    raw = sqlite_utils.Database(old / "project.db")
    with raw.conn:
        raw.execute("INSERT INTO label VALUES (999, 1, 1, 1)")
    raw.close()
    before = contents(old)
    with pytest.raises(AnnotatorError, match=r"1 rows point at rows that are not there.*label.*Nothing was changed"):
        Database(old)
    assert contents(old) == before
