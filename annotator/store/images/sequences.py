"""Images in order of name or capture time (unknown last): incomplete ones, neighbors, annotators' progress."""

from collections.abc import Collection, Iterator

import sqlite_utils

from annotator.roles import Right
from annotator.store.database.database import Database

BY_NAME, BY_TIME = "name", "time"
SEQUENCES = (BY_NAME, BY_TIME)

_SORT_KEYS_SQL = {BY_NAME: "name_key, id", BY_TIME: "time_key, name_key, id"}
# a folder's images lie together
_FOLDER_SORT_KEYS_SQL = {BY_NAME: "name_key, id", BY_TIME: "folder_key, time_key, name_key, id"}
_IS_READABLE_SQL = "problem = ''"
# as the indexes have it; a skipped image (1) comes after all others
_IS_OPEN_SQL = f"stage IN (0, 2) AND {_IS_READABLE_SQL}"


def find_next_open(
    sql: sqlite_utils.Database, sequence: str, after: int, taken: Collection[int], want: int
) -> list[int]:
    """Return up to `want` unskipped images with an open class, wrapping around `after`.

    Args:
        sequence: One of SEQUENCES.
        after: Image id, 0 for the start.
    """
    chosen: list[int] = []
    if want <= 0:
        return chosen
    for image_id in _iterate_open(sql, sequence, after):
        if image_id not in taken:
            chosen.append(image_id)
            if len(chosen) == want:
                break
    return chosen


def find_neighbors(db: Database, image_id: int, sequence: str) -> tuple[int | None, int | None]:
    """Return the previous and next image in the folder, or None at an end."""
    keys = _FOLDER_SORT_KEYS_SQL[sequence]
    rows = db.tuples(f"SELECT folder_key, {keys} FROM image WHERE id = ?", [image_id])
    if not rows:
        return None, None
    folder, *place = rows[0]

    def nearest(sign: str, way: str) -> int | None:
        [found] = db.tuples(
            f"""SELECT id, folder_key FROM image INDEXED BY image_by_{sequence}
            WHERE {_IS_READABLE_SQL} AND ({keys}) {sign} ({_build_placeholders(keys)})
            ORDER BY {keys.replace(",", f" {way},")} {way} LIMIT 1""",
            place,
        ) or [(None, folder)]
        return found[0] if found[1] == folder else None

    return nearest("<", "DESC"), nearest(">", "ASC")


def get_reached(db: Database, annotator: str, sequence: str) -> int:
    """Return the last image of a sequence that the annotator left, or 0."""
    statement = "SELECT image_id FROM reached WHERE annotator = ? AND sequence = ?"
    return db.value(statement, [annotator, sequence]) or 0


def set_reached(db: Database, annotator: str, sequence: str, image_id: int) -> None:
    """Store the last image that the annotator left (0 deletes it)."""
    if get_reached(db, annotator, sequence) == image_id:
        return
    with db.writing(durable=False, right=Right.ANSWER) as sql:
        if image_id == 0:
            sql.execute("DELETE FROM reached WHERE annotator = ? AND sequence = ?", [annotator, sequence])
        else:
            sql.execute(
                """INSERT INTO reached SELECT ?, ?, id FROM image WHERE id = ?
                ON CONFLICT (annotator, sequence) DO UPDATE SET image_id = excluded.image_id""",
                [annotator, sequence, image_id],
            )


def _iterate_open(sql: sqlite_utils.Database, sequence: str, after: int) -> Iterator[int]:
    keys = _SORT_KEYS_SQL[sequence]
    start = sql.execute(f"SELECT {keys} FROM image WHERE id = ?", [after]).fetchone()
    ranges = [f"({keys}) {sign} ({_build_placeholders(keys)})" for sign in (">", "<=")] if start else ["true"]
    for range_ in ranges:
        rows = sql.execute(
            # Skipped with answers on them: their last decision is the skip. They come after all others, too.
            f"""SELECT id FROM image INDEXED BY image_open_by_{sequence} WHERE {_IS_OPEN_SQL} AND {range_}
            AND NOT EXISTS (SELECT 1 FROM decision d WHERE d.id = stage_decision AND action = 'skip')
            ORDER BY {keys}""",
            start or (),
        )
        yield from (image_id for (image_id,) in rows)


def _build_placeholders(keys: str) -> str:
    return ", ".join("?" for _ in keys.split(","))
