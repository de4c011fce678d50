"""Project-wide counts for `status`, the Progress page and empty states.

Triggers maintain the tallies, so counts cost the same at any project size.
"""

from collections import Counter
from typing import Any

from annotator.records import ABSENT, PRESENT, STATE_NAMES, UNSURE, list_sources
from annotator.store.database.database import Database
from annotator.store.database.decision_sql import NEWEST_DECISION_ID_SQL, NOT_UNDONE_SQL, build_not_undone_sql
from annotator.store.images import excluded_images
from annotator.store.images.stages import COMPLETE, EXCLUDED, LABELED, SKIPPED, UNTOUCHED
from annotator.store.labels import blind_visibility

SCORE_BIN_COUNT = 20  # bins of scores, as in the schema's view `counted`
MAX_CHARTED_DECISIONS = 20_000  # decisions read one by one for a chart by the minute
VOTE_SOURCES = list_sources(is_vote=True)
MINUTE_CHART_SECONDS = 4 * 3600  # seconds; longer spans are shown by the hour

_SOURCE_OR_ACTION_SQL = "CASE WHEN action IN ('skip', 'flag', 'clear', 'comment') THEN action ELSE source END"
# INDEXED BY: otherwise SQLite would walk all decisions from the newest on, because of the order.
_FLAGGED_IMAGES_SQL = f"""FROM decision d INDEXED BY decision_flag
    WHERE action = 'flag' AND note != '' AND {NOT_UNDONE_SQL} AND NOT EXISTS (
    SELECT 1 FROM decision later WHERE later.action = 'flag' AND later.image_id = d.image_id AND later.id > d.id
    AND {build_not_undone_sql("later.id")})"""


def count_images_by_stage(db: Database, *, include_blind: bool | None = None) -> dict[str, int]:
    """Count images by progress: all, without_decision, skipped, incomplete, complete.

    Excluded images count only as `set_aside`. With `include_blind`, images that wait for blind answers count at
    their true stage. None follows the member's rights.
    """
    stages = {row["stage"]: row["n"] for row in db.rows("SELECT one AS stage, n FROM tally WHERE kind = 'stage'")}
    if not (blind_visibility.can_see_all(db) if include_blind is None else include_blind):
        for stage, images in blind_visibility.load_hidden_stage_counts(db).items():
            stages[stage] = stages.get(stage, 0) - images
            stages[UNTOUCHED] = stages.get(UNTOUCHED, 0) + images
    return {
        "all": sum(images for stage, images in stages.items() if stage != EXCLUDED),
        "without_decision": stages.get(UNTOUCHED, 0) + stages.get(SKIPPED, 0),
        "skipped": stages.get(SKIPPED, 0),
        "incomplete": stages.get(LABELED, 0),
        "complete": stages.get(COMPLETE, 0),
    } | ({"set_aside": stages[EXCLUDED]} if stages.get(EXCLUDED) else {})


def has_answers(db: Database) -> bool:
    """Return whether any answer exists, even imported or hidden."""
    return bool(db.value("SELECT EXISTS (SELECT 1 FROM tally WHERE kind = 'label' AND n > 0)"))


def count_decisions_by_source(db: Database) -> dict[str, int]:
    """Count the active decisions by decision source, such as "grid", "skip" or "flag"."""
    rows = db.rows("SELECT one AS source, n FROM tally WHERE kind = 'source' AND n > 0 ORDER BY one")
    return {row["source"]: row["n"] for row in rows}


def count_labels_by_state(db: Database) -> dict[str, int]:
    """Count present, absent and unsure cells."""
    counts = _load_visible_label_counts(db)
    return {name: sum(n for (_, of), n in counts.items() if of == state) for state, name in STATE_NAMES.items()}


def list_label_counts_by_class(db: Database) -> list[dict[str, Any]]:
    """Return one dict per class: class (name), present, absent, unsure."""
    counts = count_labels_by_class(db)
    names = db.rows("SELECT id, name FROM class WHERE archived = 0 ORDER BY id")
    return [{"class": row["name"], **dict(zip(STATE_NAMES.values(), counts[row["id"]], strict=True))} for row in names]


def count_labels_by_class(db: Database) -> dict[int, tuple[int, int, int]]:
    """Return class id -> image counts (present, absent, unsure)."""
    counts = _load_visible_label_counts(db)
    ids: list[int] = [row["id"] for row in db.rows("SELECT id FROM class WHERE archived = 0 ORDER BY id")]
    of = counts.get
    return {id_: (of((id_, PRESENT), 0), of((id_, ABSENT), 0), of((id_, UNSURE), 0)) for id_ in ids}


def count_unanswered_images(db: Database, class_id: int) -> int:
    """Count readable images of this class without an answer, also not accepted or implied."""
    return db.value(
        f"""SELECT (SELECT sum(n) FROM tally WHERE kind = 'stage' AND one != {EXCLUDED})
            - (SELECT count(*) FROM image WHERE problem != '' AND stage != {EXCLUDED})
            - (SELECT count(*) FROM label l JOIN image i ON i.id = l.image_id
                WHERE l.class_id = ?1 AND i.problem = '' AND i.stage != {EXCLUDED})
            - (SELECT count(*) FROM accepted a JOIN image i ON i.id = a.image_id
                WHERE a.class_id = ?1 AND i.problem = '' AND i.stage != {EXCLUDED}
                AND NOT EXISTS (SELECT 1 FROM label WHERE image_id = i.id AND class_id = ?1))""",
        [class_id],
    )


def count_open_cells(db: Database) -> int:
    """Count cells of readable images that are neither answered nor auto-accepted."""
    with db.reading():
        images = db.value(f"SELECT coalesce(sum(n), 0) FROM tally WHERE kind = 'stage' AND one != {EXCLUDED}")
        unreadable = db.value(f"SELECT count(*) FROM image WHERE problem != '' AND stage != {EXCLUDED}")
        classes = db.value("SELECT count(*) FROM class WHERE archived = 0")
        settled = db.value(
            """SELECT coalesce(sum(n), 0) FROM tally WHERE kind IN ('label', 'accepted')
            AND one IN (SELECT id FROM class WHERE archived = 0)"""
        ) - sum(excluded_images.count_settled_cells(db))
        count = images * classes - settled
        if not unreadable or count > unreadable * classes:  # more than all pairs of unreadable images: no need to look
            return count - unreadable * classes
        return count - db.value(
            f"""SELECT count(*) FROM image i CROSS JOIN class c
            WHERE i.problem != '' AND i.stage != {EXCLUDED} AND c.archived = 0
            AND NOT EXISTS (SELECT 1 FROM label WHERE image_id = i.id AND class_id = c.id)
            AND NOT EXISTS (SELECT 1 FROM accepted WHERE image_id = i.id AND class_id = c.id)"""
        )


def count_open_cells_by_class(db: Database) -> dict[int, int]:
    """Return class id -> images without an answer, also not accepted or implied. Unreadable images count."""
    with db.reading():
        images = count_images_by_stage(db)["all"]
        settled = Counter[int](dict(db.tuples("SELECT one, sum(n) FROM tally WHERE kind = 'accepted' GROUP BY 1")))
        labels = count_labels_by_class(db)
    settled.update({class_id: sum(states) for class_id, states in labels.items()})
    return {class_id: max(0, images - settled[class_id]) for class_id in labels}


def _load_visible_label_counts(db: Database) -> dict[tuple[int, int], int]:
    counts = {(row["one"], row["two"]): row["n"] for row in db.rows("SELECT one, two, n FROM tally WHERE kind='label'")}
    away = {} if blind_visibility.can_see_all(db) else blind_visibility.load_hidden_label_counts(db)
    return {cell: n - away.get(cell, 0) for cell, n in counts.items()}


def count_decisions_over_time(db: Database, seconds: int) -> list[dict[str, Any]]:
    """Count active decisions by time step and source: at (Unix seconds), source, decisions.

    Imports and hidden blind answers are left out.

    Args:
        seconds: Time step. Whole hours count all decisions, other steps the newest MAX_CHARTED_DECISIONS.
    """
    rows = _count_over_time(db, seconds)
    if blind_visibility.can_see_all(db):
        return rows
    return [row for row in rows if row["source"] not in VOTE_SOURCES]


def _count_over_time(db: Database, seconds: int) -> list[dict[str, Any]]:
    if seconds % 3600 == 0:
        return db.rows(
            """SELECT one * 3600 / ? * ? AS at, two AS source, sum(n) AS decisions FROM tally
            WHERE kind = 'hour' AND n > 0 GROUP BY 1, 2 ORDER BY 1""",
            [seconds, seconds],
        )
    return db.rows(
        f"""SELECT CAST(decided_at / ? AS INTEGER) * ? AS at, {_SOURCE_OR_ACTION_SQL} AS source, count(*) AS decisions
            FROM decision d
        WHERE id > {NEWEST_DECISION_ID_SQL} - ? AND action != 'undo' AND source != 'import' AND {NOT_UNDONE_SQL}
        GROUP BY 1, 2 ORDER BY 1""",
        [seconds, seconds, MAX_CHARTED_DECISIONS],
    )


def get_last_answer_time(db: Database) -> float | None:
    """Return the hour of the last answer in Unix seconds, or None."""
    last = db.value("SELECT max(one) FROM tally WHERE kind = 'hour' AND n > 0")
    return None if last is None else last * 3600.0


def get_chart_time_step(db: Database) -> int:
    """Return the chart's time step in seconds: 60 or 3600."""
    first, last = db.tuples("SELECT min(one), max(one) FROM tally WHERE kind = 'hour' AND n > 0")[0]
    return 60 if first is None or (last - first) * 3600 < MINUTE_CHART_SECONDS else 3600


def count_answers_by_score(db: Database) -> list[dict[str, Any]]:
    """Count answers to suggestions per bin of probability: low, high, present, absent, unsure."""
    rows = db.rows("SELECT one, two, n FROM tally WHERE kind = 'score'")
    counts = {(row["one"], row["two"]): row["n"] for row in rows}
    return [
        {"low": step / SCORE_BIN_COUNT, "high": (step + 1) / SCORE_BIN_COUNT}
        | {name: counts.get((step, state), 0) for state, name in STATE_NAMES.items()}
        for step in range(SCORE_BIN_COUNT)
    ]


def count_decisions_after(db: Database, decision_id: int) -> int:
    """Count the decisions after `decision_id` that the member may see."""
    if not blind_visibility.can_see_all(db):
        marks = ",".join("?" * len(VOTE_SOURCES))
        statement = f"SELECT count(*) FROM decision WHERE id > ? AND source NOT IN ({marks})"
        return db.value(statement, [decision_id, *VOTE_SOURCES])
    # Ids have no gaps: decisions are never deleted, and a rolled back decision leaves none.
    return max(0, db.value(f"SELECT {NEWEST_DECISION_ID_SQL}") - decision_id)


def list_annotators(db: Database) -> list[str]:
    """Return all annotators with an active decision, sorted."""
    return list(count_decisions_by_annotator(db))


def count_decisions_by_annotator(db: Database) -> dict[str, int]:
    """Count active decisions by annotator, including imports."""
    return dict(db.tuples("SELECT one, n FROM tally WHERE kind = 'annotator' AND n > 0 ORDER BY one"))


def load_flagged_images(db: Database, limit: int | None = None) -> list[dict[str, Any]]:
    """Return flagged images, newest first: id, image (name), note, original annotator, at (Unix seconds)."""
    return db.rows(
        f"""SELECT d.image_id AS id, (SELECT name FROM image WHERE id = d.image_id) AS image, note,
        coalesce((SELECT nullif(o.annotator, '') FROM origin o WHERE o.decision_id = d.id), annotator) AS annotator,
        coalesce((SELECT o.decided_at FROM origin o WHERE o.decision_id = d.id), decided_at) AS at {_FLAGGED_IMAGES_SQL}
        ORDER BY d.id DESC LIMIT ?""",
        [-1 if limit is None else limit],
    )


def count_flagged_images(db: Database) -> int:
    """Count the flagged images visible to the member."""
    return db.value(f"SELECT count(*) {_FLAGGED_IMAGES_SQL} AND {blind_visibility.build_visible_condition(db)}")


def load_flag_notes(db: Database, image_ids: list[int]) -> dict[int, str]:
    marks = ",".join("?" * len(image_ids))
    rows = db.rows(f"SELECT image_id, note {_FLAGGED_IMAGES_SQL} AND d.image_id IN ({marks})", image_ids)
    return {row["image_id"]: row["note"] for row in rows}
