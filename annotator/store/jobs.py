"""Work asked of the worker, as rows: a crash leaves them waiting, and the next worker goes on."""

import time

from annotator.records import Job
from annotator.settings import RUNS_KEPT
from annotator.store.database import Database

ATTEMPTS = 3


def ask_training(db: Database) -> None:
    """Ask for a run now, even when nothing is newer or little is known."""
    with db.writing() as sql:
        sql.execute("INSERT INTO job (kind, asked_at) VALUES ('train', ?)", [time.time()])


def ask_heatmap(db: Database, run_id: int, image_id: int, class_id: int) -> None:
    """Ask for one heat map; asking twice is asking once, asking after a failure tries again."""
    with db.writing() as sql:
        sql.execute(
            """INSERT INTO job (kind, run_id, image_id, class_id, asked_at) VALUES ('heatmap', ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET asked_at = excluded.asked_at""",
            [run_id, image_id, class_id, time.time()],
        )


def training_asked(db: Database) -> bool:
    """Whether somebody asked for a run that has not started."""
    return bool(db.value("SELECT 1 FROM job WHERE kind = 'train' AND state = 'waiting'"))


def claim(db: Database, kind: str, limit: int = 8) -> list[Job]:
    """Take waiting jobs of one kind, newest asked first: what a person looks at now comes before what they left."""
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


def fail(db: Database, job: Job, error: str) -> None:
    """Note why it failed: a heat map is tried again when asked again, three times in all."""
    with db.writing() as sql:
        sql.execute("UPDATE job SET state = 'failed', error = ? WHERE id = ?", [error, job.id])


def requeue(db: Database) -> None:
    """What a killed worker had in hand waits again; what three workers died over is given up."""
    with db.writing() as sql:
        sql.execute(
            "UPDATE job SET state = 'waiting' WHERE state = 'running' AND attempts < ?",
            [ATTEMPTS],
        )
        sql.execute(
            "UPDATE job SET state = 'failed', error = 'the worker died over it three times' WHERE state = 'running'"
        )


def forget_heatmaps(db: Database) -> None:
    """Drop what was asked of runs whose heat maps are not kept any more."""
    with db.writing() as sql:
        sql.execute(
            """DELETE FROM job WHERE kind = 'heatmap' AND run_id NOT IN
            (SELECT id FROM run WHERE published = 1 ORDER BY id DESC LIMIT ?)""",
            [RUNS_KEPT],
        )


def heatmap_error(db: Database, run_id: int, image_id: int, class_id: int) -> str | None:
    """Why this heat map could not be made, None while nothing went wrong."""
    return db.value(
        """SELECT error FROM job WHERE kind = 'heatmap' AND state = 'failed'
        AND run_id = ? AND image_id = ? AND class_id = ?""",
        [run_id, image_id, class_id],
    )
