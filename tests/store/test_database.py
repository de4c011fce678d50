"""Opening a project: at once from several processes, of a newer version, of no version at all."""

import subprocess
import sys

import pytest

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database


@pytest.mark.slow
@pytest.mark.process
def test_four_processes_can_open_a_new_project_simultaneously(tmp_path):
    script = (
        "import sys; from pathlib import Path; from annotator.store.database.database import Database;"
        "db = Database(Path(sys.argv[1]), create=True); assert db.value('SELECT count(*) FROM worker') == 1"
    )
    for attempt in range(3):
        place = str(tmp_path / f"project{attempt}")
        openers = [subprocess.Popen([sys.executable, "-c", script, place]) for _ in range(4)]
        assert [opener.wait(60) for opener in openers] == [0, 0, 0, 0]


def test_project_of_a_newer_version_is_refused_with_advice_to_upgrade(db, project):
    with db.writing() as sql:
        sql.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('annotator', 'step_999', '2030')"
        )
    match = r"newer annotator \(step step_999; this one knows step_\d+\)(.|\n)*Upgrade"
    with pytest.raises(AnnotatorError, match=match):
        Database(project)


def test_opening_a_missing_project_suggests_init_and_creates_no_folder(tmp_path):
    with pytest.raises(AnnotatorError, match="annotator init"):
        Database(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_file_that_is_not_a_database_is_refused(tmp_path):
    (tmp_path / "project.db").write_text("this is not a database, it is a letter " * 100)
    with pytest.raises(AnnotatorError, match="cannot be read as a project"):
        Database(tmp_path)


def test_failed_transaction_is_rolled_back(db):
    with pytest.raises(RuntimeError), db.writing() as sql:
        sql.execute("INSERT INTO folder (path) VALUES ('/nowhere')")
        raise RuntimeError
    assert db.value("SELECT count(*) FROM folder WHERE path = '/nowhere'") == 0


def test_database_uses_wal_with_full_synchronous_writes(db):
    """FULL: what was acknowledged survives a power cut, not only a killed process."""
    assert db.value("PRAGMA synchronous") == 2
    assert db.value("PRAGMA journal_mode") == "wal"


def test_durable_transaction_is_refused_inside_a_nondurable_one(db):
    with db.writing(durable=False), pytest.raises(RuntimeError), db.writing():
        pass
    with db.writing(), db.writing(durable=False), db.writing():
        db.set_setting("kept", 1)
    assert db.get_setting("kept") == 1


def test_foreign_key_violation_raises_an_error(db):
    with pytest.raises(AnnotatorError, match="FOREIGN KEY"), db.writing() as sql:
        sql.execute("INSERT INTO label (image_id, class_id, state, decision_id) VALUES (999, 1, 1, 1)")
