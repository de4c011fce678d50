"""Comments on images, which change no labels."""

from typing import Any

from annotator.store.database.database import Database
from annotator.store.database.decision_sql import NOT_UNDONE_SQL
from annotator.store.labels import blind_visibility

_VALID_COMMENT_SQL = f"action = 'comment' AND {NOT_UNDONE_SQL}"


def load_comments(db: Database, limit: int | None = None) -> list[dict[str, Any]]:
    """Return comments, newest first: image id, image, note, annotator, at (Unix seconds)."""
    # INDEXED BY: the index holds only comments; without it, SQLite would walk all decisions by id.
    return db.rows(
        f"""SELECT d.image_id AS id, (SELECT name FROM image WHERE id = d.image_id) AS image, d.note,
        coalesce(nullif(o.annotator, ''), d.annotator) AS annotator, coalesce(o.decided_at, d.decided_at) AS at
        FROM decision d INDEXED BY decision_comment LEFT JOIN origin o ON o.decision_id = d.id
        WHERE {_VALID_COMMENT_SQL} ORDER BY d.id DESC LIMIT ?""",
        [-1 if limit is None else limit],
    )


def count_comments_by_image(db: Database, image_ids: list[int]) -> dict[int, int]:
    """Return image id -> number of comments, if any."""
    marks = ",".join("?" * len(image_ids))
    rows = db.tuples(
        f"""SELECT image_id, count(*) FROM decision d INDEXED BY decision_comment
        WHERE {_VALID_COMMENT_SQL} AND image_id IN ({marks}) GROUP BY image_id""",
        image_ids,
    )
    return dict(rows)


def count_comments(db: Database) -> int:
    """Count the comments visible to the current member."""
    return db.value(
        f"SELECT count(*) FROM decision d INDEXED BY decision_comment WHERE {_VALID_COMMENT_SQL} AND "
        f"{blind_visibility.build_visible_condition(db)}"
    )
