"""The tables of a project: each says what a row is, and a later step upgrades a project completely or not at all."""

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sqlite_utils
from harness.later_step import add_later_step
from harness.short_forms import mark_slow_after

from annotator.errors import AnnotatorError, DiskFull, UnsupportedVersion
from annotator.records import Decision
from annotator.store import schema
from annotator.store.database import database_copies
from annotator.store.database.database import Database
from annotator.store.gallery.image_columns import load_stamp
from annotator.store.images import images
from annotator.store.labels import decisions

SCHEMA_FOLDER = Path(schema.__file__).parent


@pytest.fixture
def older(db, project) -> Path:
    """A project of today with two decisions, closed: a later version has to upgrade it."""
    decisions.save(db, [Decision(f"decision-{n}", "label", "Ann", "click", n, 1, 1) for n in (1, 2)])
    db.close()
    return project


def read_all(project: Path) -> list[str]:
    """The whole database, as SQL."""
    with closing(sqlite3.connect(project / "project.db")) as sql:
        return list(sql.iterdump())


def read_steps(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as sql:
        return [name for (name,) in sql.execute("SELECT name FROM _sqlite_migrations ORDER BY id")]


def test_sql_comment_of_each_table_and_view_describes_its_rows():
    texts = "".join(
        path.read_text() for path in sorted([*SCHEMA_FOLDER.glob("*_tables.py"), *SCHEMA_FOLDER.glob("step_*.py")])
    )
    created = re.findall(r"((?:^-- .*\n)*)^CREATE (?:TABLE|VIEW) (\w+)", texts, re.MULTILINE)
    with closing(sqlite3.connect(":memory:")) as sql:
        schema.MIGRATIONS.apply(sqlite_utils.Database(sql))
        query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE '%sqlite_%'"
        assert {name for _, name in created} == {name for (name,) in sql.execute(query)}
    silent = [name for comment, name in created if not re.match(r"-- (One row per|The only row)", comment)]
    assert not silent


def test_new_project_records_all_schema_steps_and_keeps_no_database_copy(tmp_path):
    Database(tmp_path / "new", create=True).close()
    assert read_steps(tmp_path / "new" / "project.db") == schema.STEP_NAMES == sorted(schema.STEP_NAMES)
    assert schema.STEP_NAMES[0] == "step_001" and not (tmp_path / "new" / "copies").exists()


def test_schema_upgrade_applies_its_step_once_and_keeps_one_copy_of_the_old_database(older):
    before = read_all(older)
    with add_later_step():
        for _ in range(2):
            db = Database(older)
            assert db.tuples("SELECT text FROM remark ORDER BY 1") == [("decision-1",), ("decision-2",)]
            assert db.value("PRAGMA foreign_keys") == 1 and db.rows("PRAGMA foreign_key_check") == []
            db.close()
    assert read_steps(older / "project.db") == [*schema.STEP_NAMES, "step_900"]
    [kept] = (older / "copies").iterdir()
    kept.rename(older / "project.db")
    assert read_all(older) == before
    Database(older).close()
    assert read_all(older) == before


def test_schema_upgrade_is_refused_without_disk_space_for_the_database_copy(older, monkeypatch):
    before = read_all(older)
    monkeypatch.setattr(database_copies, "RESERVED_BYTES", 10**18)
    with add_later_step(), pytest.raises(DiskFull, match="before the upgrade"):
        Database(older)
    assert read_all(older) == before


def test_schema_upgrade_refuses_rows_with_broken_foreign_keys_and_changes_nothing(older):
    with closing(sqlite3.connect(older / "project.db")) as sql, sql:
        sql.execute("INSERT INTO label VALUES (999, 1, 1, 1)")
    before = read_all(older)
    match = r"1 rows point at rows that are not there.*label.*Nothing was changed"
    with add_later_step(), pytest.raises(AnnotatorError, match=match):
        Database(older)
    assert read_all(older) == before


KILLED_UPGRADE = """
import os, sys
from pathlib import Path
from annotator.store.database.database import Database
from annotator.store.schema import add_step
from harness.later_step import step_900

class Doomed(Database):
    def _connect(self):
        sql = super()._connect()
        sql.conn.set_trace_callback(lambda text: sys.argv[2] in text and os.kill(os.getpid(), 9))
        return sql

add_step(step_900)
Doomed(Path(sys.argv[1]))
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "statement", mark_slow_after(1, ["INTO remark", "ADD COLUMN aperture", "TRIGGER image_changed", "COMMIT"])
)
def test_killed_schema_upgrade_leaves_the_project_unchanged_and_can_be_repeated(older, statement):
    before = read_all(older)
    words = [sys.executable, "-c", KILLED_UPGRADE, str(older), statement]
    assert subprocess.run(words, check=False, timeout=300, cwd=Path(__file__).resolve().parents[1]).returncode == -9
    assert read_all(older) == before
    with add_later_step():
        assert Database(older).value("SELECT count(*) FROM remark") == 2


def test_older_version_refuses_an_upgraded_project_and_changes_nothing(older):
    with add_later_step():
        Database(older).close()
    after = read_all(older)
    with pytest.raises(UnsupportedVersion, match=r"newer annotator \(step step_900; this one knows step_\d+\)"):
        Database(older)
    assert read_all(older) == after


def count_changes(db: Database) -> int:
    return db.value("SELECT count(*) FROM image_change")


def test_image_change_log_records_updates_of_a_column_added_by_a_schema_upgrade(older):
    with add_later_step():
        db = Database(older)
        before = load_stamp(db)
        with db.writing() as sql:
            sql.execute("UPDATE image SET aperture = 'f/8' WHERE id = 3")
        assert load_stamp(db).change == before.change + 1
        assert db.value("SELECT image_id FROM image_change ORDER BY id DESC") == 3


def test_image_change_log_records_each_column_update_once_except_for_progress_columns(db):
    work = {"stage", "stage_decision", "problem", "capture_read"}
    columns = {row[1]: row[2] for row in db.tuples("PRAGMA table_info(image)") if row[1] != "id"}
    assert work < columns.keys() and {"name", "camera", "bands"} < columns.keys()
    for name, kind in columns.items():
        before = count_changes(db)
        for _ in range(2):  # the second time nothing changes
            with db.writing() as sql:
                sql.execute(f"UPDATE image SET {name} = ? WHERE id = 24", ["other" if kind == "TEXT" else 7])
        assert count_changes(db) == before + (name not in work), name


def test_image_change_log_ignores_decisions_and_unreadable_files(db):
    before = count_changes(db)
    decisions.save(db, [Decision("a", "label", "Ann", "click", 1, 1, 1), Decision("b", "skip", "Ann", "click", 2)])
    decisions.undo(db)
    images.mark_problem(db, 3, "gone")
    assert count_changes(db) == before
