"""The thread of the app that keeps a worker running, and what it says of one that ended."""

import sys
from collections.abc import Callable, Iterator

import pytest
from harness.served import until
from harness.tables import over

from annotator.queues.image_queue import format_worker_line
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.ui.serving import worker_failure
from annotator.ui.serving.worker_watch import WorkerWatch

GIGABYTE = 10**9


@pytest.fixture
def watch(db) -> Iterator[WorkerWatch]:
    watch = WorkerWatch(db)
    yield watch
    watch.stop()


def block_log(db: Database, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    """A worker.log that cannot be opened, as on a disk without free inodes. Returns what mends it."""
    db.paths.worker_log.mkdir()
    return db.paths.worker_log.rmdir


def block_start(db: Database, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    """A Python that the system does not start. Returns what mends it."""
    program, python = db.paths.project.parent / "python", sys.executable
    program.write_text("not a program")
    monkeypatch.setattr(sys, "executable", str(program))
    return lambda: monkeypatch.setattr(sys, "executable", python)


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("block", [block_log, block_start])
def test_worker_that_cannot_be_started_is_started_once_the_cause_is_gone(db, watch, monkeypatch, block):
    mend = block(db, monkeypatch)
    watch.start()
    until(lambda: "could not be started" in format_worker_line(db, None))
    mend()
    until(lambda: heartbeat.load_worker_state(db).alive, 60)
    assert "could not be started" not in format_worker_line(db, None)


@pytest.mark.process
def test_worker_starts_once_training_is_installed(db, watch, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torchvision", None)  # as if it were not installed
        watch.start()
        until(lambda: "Training is not installed (missing: torchvision)" in caplog.text, 30)
        assert format_worker_line(db, None) == "Training is not installed (missing: torchvision)."
        assert not db.paths.worker_log.exists()
    until(db.paths.worker_log.exists, 60)
    assert "not installed" not in format_worker_line(db, None)


@pytest.mark.process
def test_reason_for_a_missing_worker_is_shown_when_the_database_cannot_store_it(db, watch):
    db.paths.worker_log.mkdir()
    with db.writing() as sql:
        sql.execute(
            "CREATE TRIGGER full BEFORE UPDATE ON worker BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
    watch.start()
    line = until(lambda: "could not be started" in format_worker_line(db, None) and format_worker_line(db, None))
    assert "worker.log" in line and not Database(db.paths.project).value("SELECT last_error FROM worker")


@pytest.mark.slow
@pytest.mark.process
def test_worker_starts_once_a_moved_project_is_back(db, watch, tmp_path, caplog):
    db.paths.project.rename(tmp_path / "elsewhere")
    watch.start()
    until(lambda: "was moved" in caplog.text)
    (tmp_path / "elsewhere").rename(db.paths.project)
    until(lambda: heartbeat.load_worker_state(db).alive, 60)


@pytest.mark.slow
@pytest.mark.process
def test_page_shows_the_exception_that_ended_the_worker_and_what_to_do(db, watch):
    db.paths.features("").write_text("a file in place of the folder")
    watch.start()
    line = until(lambda: "not running" in format_worker_line(db, None) and format_worker_line(db, None), 120)
    assert "features" in line and "status" not in line and "signal" not in line
    assert "try again" in heartbeat.load_worker_state(db).advice


TRACEBACK = """Traceback (most recent call last):
  File "process.py", line 3, in run
    raise ValueError("3 rows, but 4 labels")
ValueError: 3 rows, but 4 labels"""
OWN_ERROR = "Error: birds/project.db is locked.\n    Close the other program."
ABORT = "Fatal Python error: _enter_buffered_busy: could not acquire lock for <_io.BufferedReader name='<stdin>'>"


@over(
    status__log__free__reason__advice=[
        (1, TRACEBACK, GIGABYTE, "ValueError: 3 rows, but 4 labels", "report"),
        (
            1,
            f"{TRACEBACK}\n\nDuring handling of it another one:\n\n{TRACEBACK[:-6]}cells",
            None,
            "3 rows, but 4 cells",
            "report",
        ),
        (1, OWN_ERROR, GIGABYTE, "birds/project.db is locked.", "Close the other program."),
        (1, "", GIGABYTE, "The worker ended with status 1", "starts it again"),
        (1, "", 0, "The worker ended with status 1", "The disk is full (0 MB free)"),
        (-9, TRACEBACK, GIGABYTE, "The worker was killed by signal 9 (SIGKILL)", "out of memory"),
        (-6, f"{TRACEBACK}\n{ABORT}", GIGABYTE, "6 (SIGABRT), after ValueError: 3 rows, but 4 labels", "report"),
        (-6, f"{ABORT}\nCurrent thread:", GIGABYTE, f"signal 6 (SIGABRT), after {ABORT}", "report"),
        (-99, "", GIGABYTE, "The worker was killed by signal 99", "report"),
    ]
)
def test_end_of_a_worker_is_described_by_its_reason_and_what_to_do(status, log, free, reason, advice):
    first, _, rest = worker_failure.describe_end(status, log, free).partition("\n")
    assert first.endswith(reason) and "Traceback" not in first
    assert advice in rest.partition("\n\n")[0]
