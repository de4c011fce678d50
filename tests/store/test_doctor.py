"""`annotator doctor`: what is wrong is named, and a repair changes only what follows from decisions."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from harness.answers import answer_cell
from harness.later_step import add_later_step

from annotator.errors import AnnotatorError
from annotator.store.database import database_copies, upgrading
from annotator.store.database.database import Database
from annotator.store.features.shards import write_shard
from annotator.store.upkeep import consistency, health


def change(project, statement: str) -> None:
    """What another program may do to the file."""
    with closing(sqlite3.connect(project / "project.db")) as sql, sql:
        sql.execute(statement)


def test_doctor_reports_no_findings_for_an_intact_project(annotator, project):
    answer_cell(Database(project), 1, 1)
    assert "Nothing is wrong" in annotator("doctor", project).stdout
    told = json.loads(annotator("doctor", project, "--json").stdout)
    assert told["findings"] == [] and told["versions"]["schema"] >= "step_001"


def test_doctor_repair_rebuilds_derived_tables_and_keeps_a_copy_of_the_old_database(annotator, project):
    db = Database(project)
    answer_cell(db, 1, 1), answer_cell(db, 2, 2, -1), answer_cell(db, 3, 1)
    before = [db.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in ("decision", "label", "image", "tally")]
    db.close()
    change(project, "DELETE FROM label WHERE image_id = 1")
    change(project, "UPDATE image SET stage = 3 WHERE id = 2")
    change(project, "UPDATE tally SET n = n + 5 WHERE kind = 'source'")
    told = annotator("doctor", project, code=1).stdout
    assert "label: (1, 1, 1, 1) is missing" in told and "stage: (2, 3)" in told and "--repair" in told
    assert "Repaired: " in annotator("doctor", project, "--repair").stdout
    db = Database(project)
    after = [db.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in ("decision", "label", "image", "tally")]
    assert after == [rows if number != 3 else after[3] for number, rows in enumerate(before)]
    assert consistency.find_problems(db) == []
    [kept] = (project / "copies").glob("repair-*.db")
    with closing(sqlite3.connect(kept)) as sql:
        assert sql.execute("SELECT count(*) FROM label WHERE image_id = 1").fetchone() == (0,), "as it was before"


def test_doctor_reports_missing_files_stale_workers_and_loose_permissions(db, project, photos):
    (photos / "00.jpg").unlink()
    with db.writing() as sql:
        sql.execute(
            "INSERT INTO run (id, method, parameters, backbone, class_ids, images, last_decision_id, epochs, "
            "seconds, loss, threshold, finished_at, trained_decision_id, published) "
            "VALUES (7, 'auto', '{}', 'b', '[1]', 24, 0, 1, 1, '[]', 0.5, 1, 0, 1)"
        )
        sql.execute("UPDATE worker SET state = 'training', pid = 999999999")
    (project / "secret").write_text("x")
    (project / "secret").chmod(0o644)
    told = " ".join(finding.what for finding in health.examine(project).findings)
    for words in ("1 images have no file", "00.jpg", "run 7", "'training' and is gone", "permissions 644"):
        assert words in told, words


def test_doctor_reports_a_damaged_database_and_leaves_it_untouched(annotator, project):
    content = bytearray((project / "project.db").read_bytes())
    content[4096 * 3 : 4096 * 6] = b"\xff" * (4096 * 3)
    (project / "project.db").write_bytes(content)
    told = annotator("doctor", project, "--repair", code=1).stdout
    assert "annotator restore" in told and not (project / "copies").exists()


def test_doctor_refuses_a_folder_without_a_project(tmp_path):
    with pytest.raises(AnnotatorError, match="no project"):
        health.examine(tmp_path / "nothing")


def test_number_of_database_copies_kept_by_repairs_is_limited(db, project):
    assert not db.read_only
    for _ in range(database_copies.COPIES_PER_REASON + 2):
        newest = database_copies.keep_copy(project / "project.db", "repair")
    kept = sorted((project / "copies").iterdir())
    assert len(kept) == database_copies.COPIES_PER_REASON and newest in kept


def test_doctor_names_a_damaged_embedding_shard(annotator, db, project):
    folder = db.paths.features("net")
    folder.mkdir(parents=True)
    features, regions = np.ones((2, 4), np.float16), np.ones((2, 9, 4), np.float16)
    whole = write_shard(folder, np.array([1, 2]), np.zeros((2, 8)), features, regions)
    assert health.examine(project).findings == []
    whole.write_bytes(whole.read_bytes()[:-4])
    (found,) = health.examine(project).findings
    assert "1 of 1 files of features cannot be used" in found.what and whole.name[:16] in found.what


def test_long_schema_upgrade_logs_its_progress(db, project, monkeypatch, caplog):
    db.close()
    monkeypatch.setattr(upgrading, "MIN_LOGGED_BYTES", 0)
    # a sign of life at every look at the clock, which is after
    monkeypatch.setattr(upgrading, "LOG_INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr(upgrading, "_INSTRUCTIONS_PER_CALL", 20)
    with add_later_step():
        Database(project).close()
    told = [record.getMessage() for record in caplog.records if record.name == "annotator.upgrade"]
    assert told[1] == "Step 1 of 1 (step_900)" and "up to date: 1 to do" in told[0] and "is up to date" in told[-1]
    assert set(told[2:-1]) == {"Step 1 of 1 (step_900): 0 s so far"}
