"""Decisions that were lost with the write-ahead log are reported, and nothing else is."""

import gc
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.answers import answer_cell
from harness.short_forms import mark_slow_after

from annotator.settings import Paths
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.upkeep import backup, health, restoring

pytestmark = pytest.mark.process

SAVE = """
import os, sys
from pathlib import Path
from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.labels import decisions
db = Database(Path(sys.argv[1]))
for number in range(int(sys.argv[2])):
    newest = decisions.get_newest_decision_id(db)
    decisions.save(db, [Decision(f"d{os.getpid()}-{number}", "label", "Ann", "click", 1 + newest, 1, 1)])
os._exit(0)  # without a checkpoint: what is new is in the log alone
"""


def save_without_checkpoint(project: Path, count: int) -> None:
    """Save decisions in a process that ends as by a kill."""
    subprocess.run([sys.executable, "-c", SAVE, str(project), str(count)], check=True)


def remove_log(project: Path) -> None:
    for ending in ("-wal", "-shm"):
        project.joinpath(f"project.db{ending}").unlink()


def find_losses(project: Path) -> list[str]:
    found = health.examine(project).findings
    gc.collect()  # closes its connections, which would hold a log that is removed later
    return [finding.what for finding in found if "lacks" in finding.what]


@pytest.fixture
def unopened(project, tmp_path) -> Path:
    """A copy of a project with two decisions that no process has open."""
    db = Database(project)
    answer_cell(db, 23, 1), answer_cell(db, 24, 1)
    db.close()
    return shutil.copytree(project, tmp_path / "unopened")


@pytest.mark.slow
def test_doctor_reports_how_many_stored_decisions_were_lost_with_the_log(unopened, annotator):
    save_without_checkpoint(unopened, 5)
    assert find_losses(unopened) == []
    save_without_checkpoint(unopened, 3)
    assert find_losses(unopened) == []
    save_without_checkpoint(unopened, 4)
    remove_log(unopened)
    said = annotator("doctor", unopened, code=1).stdout
    assert "project.db lacks 4 stored decisions: the newest stored one had the number 14" in said
    assert "annotator restore" in said


@pytest.mark.slow
def test_lost_decisions_are_reported_after_newer_ones_until_a_repair(unopened, annotator):
    save_without_checkpoint(unopened, 5)
    remove_log(unopened)
    save_without_checkpoint(unopened, 9)  # more than were lost
    Database(unopened).close()
    assert find_losses(unopened)
    assert "lacks 5 stored decisions" in annotator("doctor", unopened, "--repair", code=1).stdout
    assert "Nothing is wrong" in annotator("doctor", unopened).stdout


def put_older_content(project: Path) -> None:
    older = (project / "project.db").read_bytes()
    save_without_checkpoint(project, 5)
    Database(project).close()
    save_without_checkpoint(project, 5)
    remove_log(project)
    (project / "project.db").write_bytes(older)


def put_older_file(project: Path) -> None:
    shutil.copy2(project / "project.db", project / "older.db")
    save_without_checkpoint(project, 5)
    remove_log(project)
    (project / "older.db").replace(project / "project.db")


def keep_log(project: Path) -> None:
    save_without_checkpoint(project, 5)


def copy_without_log(project: Path) -> None:
    save_without_checkpoint(project, 5)
    copy = shutil.copytree(project, project.with_name("copy"))
    remove_log(copy)
    shutil.rmtree(project)
    shutil.copytree(copy, project)  # where the system may give the same inodes again


def restore_backup(project: Path) -> None:
    backup.create_backup(project, project.with_name("kept"))
    save_without_checkpoint(project, 5)
    shutil.rmtree(project)
    restoring.restore(project.with_name("kept"), project)


def checkpoint_first(project: Path) -> None:
    save_without_checkpoint(project, 5)
    Database(project).close()
    (project / "project.db-wal").unlink(missing_ok=True)


def tear_record(project: Path) -> None:
    save_without_checkpoint(project, 5)
    record = Paths(project).decision_record
    content = record.read_bytes()
    record.write_bytes(content[:12] + b"9" + content[13:])
    remove_log(project)


def empty_record(project: Path) -> None:
    save_without_checkpoint(project, 5)
    Paths(project).decision_record.write_bytes(b"")
    remove_log(project)


def keep_older_record(project: Path) -> None:
    """As after a power cut: the record is not synced."""
    save_without_checkpoint(project, 1)
    older = Paths(project).decision_record.read_bytes()
    save_without_checkpoint(project, 5)
    Paths(project).decision_record.write_bytes(older)


@pytest.mark.parametrize(
    "change",
    mark_slow_after(
        3,
        [
            keep_log,
            put_older_content,
            put_older_file,
            copy_without_log,
            restore_backup,
            checkpoint_first,
            tear_record,
            empty_record,
            keep_older_record,
        ],
    ),
)
def test_doctor_reports_no_lost_decisions_after(unopened, change: Callable[[Path], None]):
    change(unopened)
    assert find_losses(unopened) == []


def test_decisions_are_stored_where_the_record_cannot_be_written(unopened):
    Paths(unopened).decision_record.unlink()
    Paths(unopened).decision_record.mkdir()
    db = Database(unopened)
    answer_cell(db, 1, 1)
    assert decisions.get_newest_decision_id(db) == 3 and not any(Paths(unopened).decision_record.iterdir())
