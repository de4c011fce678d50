"""What the worker's row says of its process and of its main loop."""

import os
import time

from harness.tables import over

from annotator.queues.image_queue import format_worker_line
from annotator.settings import WORKER_HUNG_SECONDS, WORKER_TIMEOUT_SECONDS
from annotator.store.database import heartbeat
from annotator.store.database.heartbeat import WorkerCondition

NO_PROCESS = 999_999_999
OLD, HUNG = WORKER_TIMEOUT_SECONDS + 1, WORKER_HUNG_SECONDS + 1


# state, process, seconds since the heartbeat, seconds without progress before it -> condition
@over(
    state__pid__silence__stall__condition=[
        ("not started", None, None, None, WorkerCondition.NOT_STARTED),
        ("stopped", os.getpid(), 0, 0, WorkerCondition.STOPPED),
        ("training", os.getpid(), 0, 0, WorkerCondition.RUNNING),
        ("training", os.getpid(), 0, None, WorkerCondition.RUNNING),  # of an earlier version
        ("training", os.getpid(), 0, OLD, WorkerCondition.SLOW),
        ("training", os.getpid(), 0, HUNG, WorkerCondition.HUNG),
        ("training", os.getpid(), OLD, 0, WorkerCondition.GONE),
        ("training", os.getpid(), -OLD, 0, WorkerCondition.GONE),  # the clock was set back
        ("training", NO_PROCESS, 0, 0, WorkerCondition.GONE),
        ("training", NO_PROCESS, None, None, WorkerCondition.GONE),
    ]
)
def test_worker_condition_follows_from_its_process_its_heartbeat_and_its_progress(
    db, state, pid, silence, stall, condition
):
    beat = None if silence is None else time.time() - silence
    progress = None if beat is None or stall is None else beat - stall
    with db.writing() as sql:
        sql.execute(
            "UPDATE worker SET state = ?, pid = ?, heartbeat_at = ?, progress_at = ?", [state, pid, beat, progress]
        )
    found = heartbeat.load_worker_state(db)
    assert found.condition is condition
    assert found.alive == (condition in (WorkerCondition.RUNNING, WorkerCondition.SLOW))


def test_worker_line_calls_a_living_worker_slow_and_a_hanging_one_hung(db):
    heartbeat.report_state(db, "training", 3, 10)
    assert format_worker_line(db, None) == "Training 3 of 10"
    heartbeat.beat(db, silent_seconds=OLD)
    assert format_worker_line(db, None) == "Training 3 of 10 (slow: the machine is busy)"
    heartbeat.beat(db, silent_seconds=1200)
    assert format_worker_line(db, None) == "Worker hangs (training, no progress for 20 minutes). Restart the app."
    heartbeat.report_state(db, "training", 4, 10)
    assert format_worker_line(db, None) == "Training 4 of 10"


def test_worker_line_shows_the_exception_of_a_stopped_worker_and_not_its_traceback(db):
    try:
        raise ValueError("12 rows, but 13 labels")
    except ValueError as error:
        heartbeat.record_error(db, heartbeat.describe_exception(error))
    heartbeat.report_state(db, "stopped")
    assert format_worker_line(db, None) == "Worker not running: ValueError: 12 rows, but 13 labels"
    assert "Traceback" in heartbeat.load_worker_state(db).last_error
