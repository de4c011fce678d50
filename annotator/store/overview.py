"""Counts over the whole project, for `status`, the Progress page and empty states."""

from annotator.records import STATE_NAMES
from annotator.store.database import Database
from annotator.store.decisions import COMPLETE, SKIPPED, UNTOUCHED

_ACTIVE = "NOT EXISTS (SELECT 1 FROM decision u WHERE u.undoes = d.id)"


def image_counts(db: Database) -> dict[str, int]:
    """images: in all, without_decision, skipped, complete, unreadable."""
    stages = {row["stage"]: row["n"] for row in db.rows("SELECT stage, count(*) AS n FROM image GROUP BY stage")}
    return {
        "all": sum(stages.values()),
        "without_decision": stages.get(UNTOUCHED, 0) + stages.get(SKIPPED, 0),
        "skipped": stages.get(SKIPPED, 0),
        "complete": stages.get(COMPLETE, 0),
    }


def decisions_by_source(db: Database) -> dict[str, int]:
    """Decisions that still hold, by source (undos and what they took back are not counted; skips count as skip)."""
    return {
        row["source"]: row["n"]
        for row in db.rows(
            f"""SELECT CASE action WHEN 'skip' THEN 'skip' ELSE source END AS source, count(*) AS n
            FROM decision d WHERE action != 'undo' AND {_ACTIVE} GROUP BY 1 ORDER BY 1"""
        )
    }


def labels_by_state(db: Database) -> dict[str, int]:
    """How many cells are present, absent, unsure."""
    counts = {row["state"]: row["n"] for row in db.rows("SELECT state, count(*) AS n FROM label GROUP BY state")}
    return {name: counts.get(state, 0) for state, name in STATE_NAMES.items()}


def labels_by_class(db: Database) -> list[dict]:
    """Per class: class, present, absent, unsure, in the order of the classes."""
    return db.rows(
        """SELECT c.name AS class, coalesce(sum(l.state = 1), 0) AS present, coalesce(sum(l.state = -1), 0) AS absent,
        coalesce(sum(l.state = 0), 0) AS unsure
        FROM class c LEFT JOIN label l ON l.class_id = c.id GROUP BY c.id ORDER BY c.id"""
    )


def decisions_over_time(db: Database, seconds: int) -> list[dict]:
    """Decisions that still hold, per `seconds` of time and source: at (unix seconds), source, decisions."""
    return db.rows(
        f"""SELECT CAST(decided_at / ? AS INTEGER) * ? AS at, source, count(*) AS decisions FROM decision d
        WHERE action IN ('label', 'done') AND {_ACTIVE} GROUP BY 1, 2 ORDER BY 1""",
        [seconds, seconds],
    )


def decisions_newer_than(db: Database, decision_id: int) -> int:
    """How many decisions came after this one."""
    return db.value("SELECT count(*) FROM decision WHERE id > ?", [decision_id])


def decided_by(db: Database, annotator: str) -> int:
    """How many decisions of this person hold."""
    return db.value(
        f"SELECT count(*) FROM decision d WHERE annotator = ? AND action IN ('label', 'done') AND {_ACTIVE}",
        [annotator],
    )
