"""A project that may not be written is read all the same: nothing is written, and what cannot be read says why.

Root is not bound by permission bits, so as root the commands run without the capabilities that make it so.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness.published_runs import publish

from annotator.records import Decision
from annotator.store.database.database import Database
from annotator.store.labels import decisions

pytestmark = pytest.mark.process

# All commands in one process, each as `annotator` would run it.
SCRIPT = """
import json, sys
from typer.testing import CliRunner
from annotator.cli import app
from annotator.errors import AnnotatorError

for words in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, words)
    failed = done.exception if isinstance(done.exception, AnnotatorError) else None
    print(json.dumps([done.exit_code, done.output, str(failed or done.exception or "")]))
"""


def bound_by_permissions() -> None:
    """As root: give up CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, for good, before the program starts."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (1, 2):
            if libc.prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
                raise OSError(ctypes.get_errno(), "prctl")


def run(*commands: list) -> list[tuple[int, str, str]]:
    """Exit status, output and error of each command, run by somebody whom permissions bind."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=bound_by_permissions,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def lock(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def unlock(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def contents(folder: Path) -> dict:
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def medium(db, tmp_path):
    """A copy of a closed project with a run, on a folder that may not be written."""
    publish(db, np.tile(np.linspace(0.02, 0.98, 24)[:, None], 3))
    decisions.save(db, [Decision("a", "label", "Ann", "click", 1, 1, 1)])
    db.sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.sql.close()
    # A name that has to be quoted in an address.
    shutil.copytree(db.paths.project, tmp_path / "CD #1?%20", ignore=shutil.ignore_patterns("*-wal", "*-shm"))
    lock(tmp_path / "CD #1?%20")
    yield tmp_path / "CD #1?%20"
    unlock(tmp_path / "CD #1?%20")


def test_read_only_project_allows_reading_commands_and_refuses_writing_ones(medium, tmp_path):
    before = contents(medium)
    target = tmp_path / "labels.csv"
    told = run(
        ["status", medium, "--json"],
        ["suggest", medium, "--json", "--limit", 3],
        ["certificate", medium],
        ["methods"],
        ["accept", medium, "--list"],
        ["pace", medium],
        ["export", medium, target, "--unknown", "model"],
        ["backup", medium, tmp_path / "backup"],
        ["doctor", medium],
        ["decide", medium, "01.jpg", "fox", "absent"],
        ["worker", medium, "--once"],
        ["serve", medium, "--no-browser"],
        ["link", medium],
        ["doctor", medium, "--repair"],
        ["export", medium, medium / "exports" / "labels.csv"],
    )
    assert [code for code, *_ in told] == [0] * 8 + [1] * 7, told
    assert "may not be written" in told[8][1] and "Free some space" not in told[8][1] and "Copy the whole" in told[8][1]
    assert json.loads(told[0][1])["labels"]["present"] == 1 and len(json.loads(told[1][1])) == 3
    assert "Not measured yet. An audit tells how many labels are missing." in told[2][1]
    assert target.read_text().startswith("image,fox")
    assert all("may not be written" in error for _, _, error in told[9:])
    assert all("Copy the whole folder" in error for _, _, error in told[9:14])
    assert contents(medium) == before and not list(medium.glob("*-wal")) and not list(medium.glob("*-shm"))


def test_read_only_project_reads_pending_wal_changes_or_refuses_with_a_reason(db, tmp_path):
    decisions.save(db, [Decision("a", "label", "Ann", "click", 1, 1, 1)])
    with_index, without = tmp_path / "with", tmp_path / "without"
    shutil.copytree(db.paths.project, with_index)
    shutil.copytree(db.paths.project, without, ignore=shutil.ignore_patterns("*-shm"))
    empty = tmp_path / "empty"
    db.sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copytree(db.paths.project, empty, ignore=shutil.ignore_patterns("*-shm"))
    assert (without / "project.db-wal").stat().st_size and not (empty / "project.db-wal").stat().st_size
    folders = (with_index, without, empty)
    for folder in folders:
        lock(folder)
    read, refused, nothing_pending = run(*(["status", folder, "--json"] for folder in folders))
    for folder in folders:
        unlock(folder)
    assert [json.loads(one[1])["labels"]["present"] for one in (read, nothing_pending)] == [1, 1]
    assert refused[0] == 1 and "project.db-wal holds changes" in refused[2]


def test_read_only_project_of_an_older_version_is_refused_with_a_reason(medium):
    unlock(medium)
    older = Database(medium)
    with older.writing() as sql:
        sql.execute("DELETE FROM _sqlite_migrations WHERE name = (SELECT max(name) FROM _sqlite_migrations)")
    older.sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    older.sql.close()
    lock(medium)
    [(code, _, error)] = run(["status", medium])
    assert code == 1 and "is from an older annotator" in error and "may not be written" in error


def test_read_only_project_of_a_development_version_is_refused_with_the_conversion_script(medium):
    unlock(medium)
    db = Database(medium)
    with db.writing() as sql:
        sql.execute("DELETE FROM _sqlite_migrations WHERE name != 'step_001'")
        sql.execute("UPDATE _sqlite_migrations SET name = 'm014'")
    db.sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.sql.close()
    lock(medium)
    [(code, _, error)] = run(["status", medium])
    assert code == 1 and "from before 2026-12 (step m014)" in error and "convert_project.py" in error


def test_project_without_read_permission_is_refused_with_a_reason(medium):
    (medium / "project.db").chmod(0o000)
    [unreadable] = run(["status", medium])
    medium.chmod(0o444)
    [closed] = run(["status", medium])
    medium.chmod(0o755)
    assert unreadable[0] == closed[0] == 1, (unreadable, closed)
    assert "cannot be opened" in unreadable[2] and "Check the rights" in unreadable[2]
    assert "may not be opened" in closed[2]
