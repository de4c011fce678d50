"""The heartbeat of a worker whose main loop computes, waits for a disk, or has ended."""

import pytest
from harness.served import until
from harness.stalled import stalled
from harness.worker_runs import start

from annotator.settings import WORKER_HUNG_SECONDS, WORKER_TIMEOUT_SECONDS
from annotator.snapshot.project_status import collect_status
from annotator.store.database import heartbeat
from annotator.store.database.heartbeat import WorkerCondition
from annotator.worker.features.heartbeat_thread import keep_heartbeat
from annotator.worker.features.worker_context import WorkerContext


def test_computing_main_loop_stays_alive_becomes_slow_and_at_last_hung(db):
    context = WorkerContext(db)
    context.report_state("training", 3, 10)

    def load_condition() -> WorkerCondition:
        return heartbeat.load_worker_state(db).condition

    with keep_heartbeat(context, seconds=0.01):
        for seconds, condition in (
            (0, WorkerCondition.RUNNING),
            (WORKER_TIMEOUT_SECONDS, WorkerCondition.SLOW),
            (WORKER_HUNG_SECONDS, WorkerCondition.HUNG),
        ):
            context.progress_at -= seconds
            before = heartbeat.load_worker_state(db).heartbeat_at
            until(lambda before=before: heartbeat.load_worker_state(db).heartbeat_at > before)
            until(lambda condition=condition: load_condition() is condition)
        context.report_state("drawing heat maps")
        until(lambda: load_condition() is WorkerCondition.RUNNING)
    assert heartbeat.load_worker_state(db).state == "drawing heat maps"


@pytest.mark.slow
@pytest.mark.process
def test_worker_that_waits_for_a_stalled_disk_is_alive_and_slow_until_it_is_killed(
    db, project, photos, processes, monkeypatch
):
    monkeypatch.setattr(heartbeat, "WORKER_TIMEOUT_SECONDS", 3.0)  # of this process, which reads
    with stalled([*photos.glob("*.jpg"), *photos.glob("deep/*.png")]) as waited_for:
        worker = start(project, processes)
        until(waited_for)
        slow = until(lambda: collect_status(db)["worker"]["condition"] == "slow" and collect_status(db)["worker"])
        assert slow["alive"] and slow["delay"] and slow["pid"] == worker.pid
        worker.kill()
        worker.wait()
        assert heartbeat.load_worker_state(db).condition is WorkerCondition.GONE
