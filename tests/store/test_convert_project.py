"""Projects of development versions are refused until they are converted, and a conversion loses nothing.

earlier_projects/ has three, made by the code of the commits whose newest step was m003 (64533ae6), m014 (3327bf68) and
m024 (2fc4a695): eight images, labels, undos, skips, flags, a disagreement, a grid and a run. The later two also have
comments, members, imports, merged and archived classes, blind answers and assignments, the last relations and events.
"""

import csv
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sqlite_utils
from convert_project import convert_project, main, read_schema
from earlier_schema import EARLIER_MIGRATIONS
from filelock import FileLock
from harness.random_decisions import counted, kept
from harness.short_forms import mark_slow_after
from safetensors.numpy import load_file, save_file

from annotator.errors import AlreadyRunning, AnnotatorError, DiskFull, UnsupportedVersion
from annotator.exchange.exports.export_writer import export_data_set
from annotator.records import Decision
from annotator.store.classes import classes
from annotator.store.database import database_copies
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import open_features
from annotator.store.labels import decisions, project_counts
from annotator.store.upkeep import consistency, health

TESTS = Path(__file__).resolve().parents[1]
NEWEST_STEPS = ("m003", "m014", "m024")
# What a conversion may change: counts and stamps that follow from the rest, and which files are read again.
DERIVED_TABLES = {"_sqlite_migrations", "tally", "image_change", "sqlite_sequence"}
DERIVED_COLUMNS = {"capture_read"}


@pytest.fixture
def earlier(tmp_path, request) -> Path:
    """A project as it was when the step of this name was the newest; m003 where a test names none."""
    return write_earlier(tmp_path / "earlier", getattr(request, "param", "m003"))


def write_earlier(project: Path, step: str) -> Path:
    project.mkdir()
    with closing(sqlite3.connect(project / "project.db")) as sql:
        sql.execute("PRAGMA journal_mode = WAL")
        sql.executescript((TESTS / "earlier_projects" / f"{step}.sql").read_text())
    return project


def read_all(project: Path) -> list[str]:
    with closing(sqlite3.connect(project / "project.db")) as sql:
        return list(sql.iterdump())


def read_tables(project: Path, columns: dict[str, list[str]] | None = None) -> tuple[dict, dict]:
    """All rows that are not derived, by table, and the columns that were read; of an earlier version where given."""
    with closing(sqlite3.connect(project / "project.db")) as sql:
        if columns is None:
            names = [name for (name,) in sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            columns = {
                name: [row[1] for row in sql.execute(f"PRAGMA table_info({name})") if row[1] not in DERIVED_COLUMNS]
                for name in names
                if name not in DERIVED_TABLES
            }
        quoted = {name: ", ".join(f'"{column}"' for column in of) for name, of in columns.items()}
        return {name: sorted(sql.execute(f"SELECT {of} FROM {name}"), key=repr) for name, of in quoted.items()}, columns


def read_schema_of(project: Path) -> dict[str, str]:
    with closing(sqlite3.connect(project / "project.db")) as sql:
        assert sql.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return read_schema(sql)


def convert(project: Path) -> list[str]:
    return list(convert_project(project))


@pytest.mark.parametrize("earlier", NEWEST_STEPS, indirect=True)
def test_opening_a_project_of_a_development_version_is_refused_and_changes_nothing(earlier, annotator):
    before = read_all(earlier)
    for refuse in (Database, health.examine):
        with pytest.raises(UnsupportedVersion, match=r"before 2026-12 \(step m0\d\d\)(.|\n)*convert_project.py"):
            refuse(earlier)
    assert "convert_project.py" in annotator("status", earlier, code=1).stderr
    assert read_all(earlier) == before and not (earlier / "copies").exists()


@pytest.mark.parametrize("earlier", NEWEST_STEPS, indirect=True)
def test_conversion_keeps_every_row_and_yields_the_schema_of_a_new_project(earlier, tmp_path):
    before, columns = read_tables(earlier)
    assert len(before["decision"]) >= 14 and len(before["label"]) >= 9
    told = convert(earlier)
    after, _ = read_tables(earlier, columns)
    assert set(before.pop("setting")) <= set(after.pop("setting"))
    assert after == before
    Database(tmp_path / "new", create=True).close()
    assert read_schema_of(earlier) == read_schema_of(tmp_path / "new")
    assert f"{len(before['decision'])} rows of decision" in told[-1]
    assert consistency.find_problems(Database(earlier)) == []


@pytest.mark.parametrize("earlier", NEWEST_STEPS, indirect=True)
def test_converted_project_accepts_new_decisions_undo_and_export(earlier, tmp_path):
    convert(earlier)
    db = Database(earlier)
    newest = decisions.get_newest_decision_id(db)
    assert decisions.save(db, [Decision("a1", "label", "Ann", "click", 1, 2, 1)]).saved == ["a1"]
    assert decisions.get_newest_decision_id(db) == newest, "a uuid from before is known"
    assert decisions.save(db, [Decision("new", "label", "Ann", "click", 3, 2, 1)]).saved == ["new"]
    assert decisions.get_newest_decision_id(db) == newest + 1
    decisions.undo(db)
    decisions.save(db, [Decision("newer", "label", "Ann", "click", 3, 1, 1)])
    assert consistency.find_problems(db) == []
    export_data_set(db, tmp_path / "labels.csv", "csv")
    with (tmp_path / "labels.csv").open(newline="") as file:
        present = {row["image"] for row in csv.DictReader(file) if row["fox"] == "1"}
    assert {"day/0.jpg", "day/4.jpg"} <= present  # images 1 and 3


@pytest.mark.parametrize("earlier", NEWEST_STEPS, indirect=True)
def test_second_conversion_changes_nothing(earlier):
    convert(earlier)
    after = read_all(earlier)
    assert convert(earlier) == [f"{earlier / 'project.db'} has the schema of today already."]
    assert read_all(earlier) == after and len(list((earlier / "copies").glob("conversion-*"))) == 1


def test_copy_kept_by_a_conversion_equals_the_unconverted_project(earlier, tmp_path):
    before = read_all(earlier)
    convert(earlier)
    [copy] = (earlier / "copies").glob("conversion-*.db")
    (tmp_path / "back").mkdir()
    copy.rename(tmp_path / "back" / "project.db")
    assert read_all(tmp_path / "back") == before
    assert len(convert(tmp_path / "back")) == 3


KILLED_CONVERSION = """
import os, sqlite3, sys
from pathlib import Path

connect = sqlite3.connect

def connect_traced(*given, **options):
    sql = connect(*given, **options)
    sql.set_trace_callback(lambda text: sys.argv[2] in text and os.kill(os.getpid(), 9))
    return sql

sqlite3.connect = connect_traced
from convert_project import convert_project
list(convert_project(Path(sys.argv[1])))
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "statement",
    mark_slow_after(
        1, ["DROP TABLE decision", "INTO revealed", "DELETE FROM _sqlite_migrations", "foreign_key_check", "COMMIT"]
    ),
)
def test_killed_conversion_leaves_the_project_unchanged_and_can_be_repeated(earlier, statement):
    before = read_all(earlier)
    words = [sys.executable, "-c", KILLED_CONVERSION, str(earlier), statement]
    assert subprocess.run(words, check=False, timeout=300, cwd=TESTS).returncode == -9
    assert read_all(earlier) == before
    with pytest.raises(UnsupportedVersion):
        Database(earlier)
    convert(earlier)
    assert consistency.find_problems(Database(earlier)) == []


@pytest.mark.process
def test_conversion_script_converts_a_project(earlier):
    command = [sys.executable, TESTS / "convert_project.py", earlier]
    environment = os.environ | {"PYTHONPATH": str(TESTS.parent)}
    done = subprocess.run(command, check=True, timeout=300, capture_output=True, text=True, env=environment)
    assert "m004, m005" in done.stdout and "14 rows of decision" in done.stdout


def test_conversion_script_reports_a_missing_argument_or_project(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["convert_project.py"])
    assert main() == 2 and "convert_project.py PROJECT" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["convert_project.py", str(tmp_path / "nothing")])
    assert main() == 1 and "There is no project" in capsys.readouterr().err
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("count", mark_slow_after(5, range(1, 25)))
def test_conversion_from_any_earlier_schema_step_yields_the_schema_of_a_new_project(tmp_path, count):
    project = write_steps(tmp_path / "earlier", f"m{count + 1:03}")
    convert(project)
    Database(project).close()
    Database(tmp_path / "new", create=True).close()
    assert read_schema_of(project) == read_schema_of(tmp_path / "new")


def write_steps(project: Path, stop_before: str) -> Path:
    """A project without rows of people, and without this earlier step and all later ones."""
    project.mkdir()
    with closing(sqlite3.connect(project / "project.db", isolation_level=None)) as sql:
        sql.execute("PRAGMA foreign_keys = OFF")
        EARLIER_MIGRATIONS.apply(sqlite_utils.Database(sql), stop_before=stop_before)
    return project


def test_conversion_refuses_a_database_schema_that_was_changed_manually(earlier):
    with closing(sqlite3.connect(earlier / "project.db")) as sql, sql:
        sql.execute("CREATE INDEX my_index ON image (width)")
    before = read_all(earlier)
    with pytest.raises(AnnotatorError, match=r"nothing was changed: .*index my_index"):
        convert(earlier)
    assert read_all(earlier) == before


def test_conversion_refuses_rows_with_broken_foreign_keys_and_changes_nothing(earlier):
    with closing(sqlite3.connect(earlier / "project.db")) as sql, sql:
        sql.execute("INSERT INTO label VALUES (999, 1, 1, 1)")
    before = read_all(earlier)
    with pytest.raises(AnnotatorError, match="1 rows point at rows that do not exist"):
        convert(earlier)
    assert read_all(earlier) == before


def test_conversion_is_refused_without_disk_space_or_while_a_server_runs(earlier, monkeypatch):
    before = read_all(earlier)
    with FileLock(earlier / "server.lock"), pytest.raises(AlreadyRunning, match="Stop its server"):
        convert(earlier)
    monkeypatch.setattr(database_copies, "RESERVED_BYTES", 10**18)
    with pytest.raises(DiskFull, match="before the conversion"):
        convert(earlier)
    assert read_all(earlier) == before


def test_conversion_leaves_a_project_with_the_current_schema_unchanged(db, project):
    db.close()
    before = read_all(project)
    assert len(convert(project)) == 1 and read_all(project) == before


def test_conversion_from_the_first_schema_step_assigns_class_keys_and_counts_labels(tmp_path):
    project = write_steps(tmp_path / "earlier", "m002")
    sql = sqlite_utils.Database(project / "project.db")
    with sql.conn:
        for number in range(1, 41):
            stage = {1: 2, 2: 3, 3: 1}.get(number, 0)
            sql["class"].insert({"name": f"class {number}", "since_decision": 0})
            image = {"name": f"{number}.jpg", "sha256": f"{number:064}", "width": 9, "height": 9, "stage": stage}
            sql["image"].insert(image)
        rows = [
            ("one", "label", 1, 1, 1, "click"),
            ("two", "done", 2, None, None, "done"),
            ("3", "skip", 3, None, None, "click"),
        ]
        sql.conn.executemany(
            """INSERT INTO decision (uuid, action, image_id, class_id, state, source, annotator, decided_at)
            VALUES (?, ?, ?, ?, ?, ?, 'Ann', 1.7e9)""",
            rows,
        )
        sql.conn.executemany("INSERT INTO label VALUES (2, ?, -1, 2)", [(number,) for number in range(1, 41)])
        sql.execute("INSERT INTO label VALUES (1, 1, 1, 1)")
        sql["lease"].insert({"image_id": 9, "holder": "tab", "annotator": "Ann", "until": 9e9})
    sql.close()
    convert(project)
    db = Database(project)
    assert [one.key for one in classes.load_active_classes(db)][:37] == [*classes.DEFAULT_KEYS, ""]
    assert kept(db) == counted(db) and db.value("SELECT class_id FROM lease") == 0
    counts = project_counts.count_images_by_stage(db)
    assert counts == {"all": 40, "without_decision": 38, "skipped": 1, "incomplete": 1, "complete": 1}


@pytest.mark.slow
def test_conversion_from_the_second_schema_step_derives_all_annotator_disagreements(tmp_path):
    new = Database(tmp_path / "new", create=True)
    classes.add_classes(new, [("fox", ""), ("heron", ""), ("deer", "")])
    rng = np.random.default_rng(5)
    with new.writing() as sql:
        rows = [(number, f"{number}.jpg", f"{number:064}", 9, 9) for number in range(1, 41)]
        sql.conn.executemany("INSERT INTO image (id, name, sha256, width, height) VALUES (?, ?, ?, ?, ?)", rows)
    for number in range(600):
        person, image = str(rng.choice(["Ann", "Bob", "Cy"])), int(rng.integers(1, 41))
        kind = rng.choice(["label", "import", "done", "undo"], p=[0.8, 0.05, 0.1, 0.05])
        if kind == "undo" and number:
            decisions.undo(new)
            continue
        action, source = ("done", "done") if kind == "done" else ("label", "import" if kind == "import" else "click")
        cell = {} if action == "done" else {"class_id": int(rng.integers(1, 4)), "state": int(rng.integers(-1, 2))}
        assert not decisions.save(new, [Decision(str(number), action, person, source, image, **cell)]).refused
        if number == 300:
            classes.add_classes(new, [("wolf", "")])
    project = write_steps(tmp_path / "earlier", "m003")
    with closing(sqlite3.connect(project / "project.db")) as earlier, earlier:
        for table in ("image", "class", "decision", "label"):
            columns = ", ".join(row[1] for row in earlier.execute(f"PRAGMA table_info({table})"))
            marks = ", ".join("?" * (columns.count(",") + 1))
            rows = new.tuples(f"SELECT {columns} FROM {table} ORDER BY 1, 2")
            earlier.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)
    expected = new.tuples("SELECT * FROM contradiction ORDER BY 1, 2")
    assert len(expected) >= 20
    convert(project)
    assert Database(project).tuples("SELECT * FROM contradiction ORDER BY 1, 2") == expected


def test_conversion_adds_content_hashes_to_shards_and_deletes_shards_without_regions(earlier):
    folder = earlier / "features" / "net"
    folder.mkdir(parents=True)
    features = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float16)
    first = {"image_ids": np.array([1, 2, 5]), "features": features, "regions": np.repeat(features[:, None], 9, 1)}
    save_file(first, folder / f"{'0' * 32}.safetensors")
    save_file({"image_ids": np.array([3]), "features": features[:1]}, folder / f"{'1' * 32}.safetensors")
    (folder / f"{'2' * 32}.safetensors").write_bytes(b"damaged")
    told = convert(earlier)
    assert "1 files of features were written again" in told[-2] and "1 files" in told[-1] and "deleted" in told[-1]
    db = Database(earlier)
    cache = open_features(db, "net")
    order = np.argsort(cache.image_ids)
    assert cache.image_ids[order].tolist() == [1, 2, 5] and np.array_equal(cache.features[order], features)
    [shard] = folder.glob("*.safetensors")
    sha256 = db.value("SELECT sha256 FROM image WHERE id = 2")
    assert load_file(shard)["contents"][1].tobytes() == bytes.fromhex(sha256[:16])
    assert len(convert(earlier)) == 1
