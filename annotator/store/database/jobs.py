"""Requests to the worker, as rows that survive a crash."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from annotator.roles import Right
from annotator.settings import KEPT_RUN_COUNT
from annotator.store.database.database import Database

MAX_ATTEMPTS = 3
# Later than all others, also after a clock that was ahead was set right: the newest is the one somebody waits for.
_NEXT_ASKED_AT_SQL = "max(?, (SELECT coalesce(max(asked_at), 0) + 0.001 FROM job))"


@dataclass(frozen=True)
class Job:
    """A request to the worker, of kind "train" or "heatmap"."""

    id: int
    kind: str
    run_id: int | None = None
    image_id: int | None = None
    class_id: int | None = None


def request_training(db: Database) -> None:
    with db.writing(right=Right.REVIEW) as sql:
        sql.execute(f"INSERT INTO job (kind, asked_at) VALUES ('train', {_NEXT_ASKED_AT_SQL})", [time.time()])


def request_heatmap(db: Database, run_id: int, image_id: int, class_id: int) -> None:
    """Request a heat map, or move a repeated request to the front."""
    with db.writing(right=Right.LOOK) as sql:
        sql.execute(
            f"""INSERT INTO job (kind, run_id, image_id, class_id, asked_at) VALUES ('heatmap', ?, ?, ?,
                {_NEXT_ASKED_AT_SQL})
            ON CONFLICT DO UPDATE SET asked_at = excluded.asked_at""",
            [run_id, image_id, class_id, time.time()],
        )


def is_training_requested(db: Database) -> bool:
    """Return whether a requested training has not started."""
    return bool(db.value("SELECT 1 FROM job WHERE kind = 'train' AND state = 'waiting'"))


def claim(db: Database, kind: str, limit: int = 8) -> list[Job]:
    """Reserve up to `limit` waiting jobs of one kind for this worker, newest request first."""
    if not db.value("SELECT 1 FROM job WHERE kind = ? AND state = 'waiting'", [kind]):
        return []
    with db.writing() as sql:
        rows = list(
            sql.query(
                """SELECT id, kind, run_id, image_id, class_id FROM job
                WHERE kind = ? AND state = 'waiting' ORDER BY asked_at DESC LIMIT ?""",
                [kind, limit],
            )
        )
        sql.conn.executemany(
            "UPDATE job SET state = 'running', attempts = attempts + 1 WHERE id = ?", [(row["id"],) for row in rows]
        )
    return [Job(**row) for row in rows]


def finish(db: Database, job: Job) -> None:
    with db.writing() as sql:
        sql.execute("DELETE FROM job WHERE id = ?", [job.id])


def release(db: Database, jobs: Sequence[Job]) -> None:
    """Return reserved jobs to the queue without counting the attempt."""
    with db.writing() as sql:
        sql.conn.executemany(
            "UPDATE job SET state = 'waiting', attempts = attempts - 1 WHERE id = ?", [(job.id,) for job in jobs]
        )


def fail(db: Database, job: Job, error: str) -> None:
    """Record why a job failed."""
    with db.writing() as sql:
        sql.execute("UPDATE job SET state = 'failed', error = ? WHERE id = ?", [error, job.id])


def requeue_interrupted(db: Database) -> None:
    """Requeue jobs that a killed worker was running, or fail them after MAX_ATTEMPTS attempts."""
    with db.writing() as sql:
        sql.execute(
            "UPDATE job SET state = 'waiting' WHERE state = 'running' AND attempts < ?",
            [MAX_ATTEMPTS],
        )
        sql.execute(
            "UPDATE job SET state = 'failed', error = 'the worker died over it three times' WHERE state = 'running'"
        )


def delete_stale_heatmaps(db: Database) -> None:
    """Delete heat map requests for runs that are no longer kept."""
    with db.writing() as sql:
        sql.execute(
            """DELETE FROM job WHERE kind = 'heatmap' AND run_id NOT IN
            (SELECT id FROM run WHERE published = 1 ORDER BY id DESC LIMIT ?)""",
            [KEPT_RUN_COUNT],
        )


def get_heatmap_error(db: Database, run_id: int, image_id: int, class_id: int) -> str | None:
    """Return why this heat map failed, or None."""
    return db.value(
        """SELECT error FROM job WHERE kind = 'heatmap' AND state = 'failed'
        AND run_id = ? AND image_id = ? AND class_id = ?""",
        [run_id, image_id, class_id],
    )
