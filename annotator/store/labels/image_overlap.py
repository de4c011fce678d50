"""Overlap: images that several annotators label completely, blind to each other.

No other queue shows a waiting image, and annotators get no image whose answers they have seen. Answers never change
another annotator's label.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import sqlite_utils

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.database.decision_sql import NOT_UNDONE_SQL
from annotator.store.labels import answer_exposure

OVERLAP_SOURCE = "reading"  # source of overlap decisions
MAX_PEOPLE_PER_IMAGE = 20
_HASH_RANGE = 16**8
_IMAGES_PER_QUERY = 2000  # images whose answers are read at once
_COUNT_PEOPLE_SQL = f"""count(DISTINCT annotator) AS n,
    count(DISTINCT iif({answer_exposure.IS_BLIND_DECISION_SQL}, annotator, NULL)) AS blind"""


@dataclass(frozen=True)
class Overlap:
    """The settings of overlap: how many annotators answer each chosen image, and the share of images to choose."""

    people: int
    share: float


@dataclass(frozen=True)
class OverlapProgress:
    """Counts of the overlap's progress."""

    # chosen images
    images: int
    # chosen images with answers missing
    waiting: int
    # annotators who answered an image blind, summed over chosen images
    answers: int


def load_overlap(db: Database) -> Overlap | None:
    """Return the overlap settings (several annotators per image), or None for one annotator per image."""
    rows = db.tuples("SELECT people, below FROM overlap")
    return Overlap(rows[0][0], limit_to_share(rows[0][1])) if rows else None


def set_overlap(db: Database, people: int, share: float) -> None:
    """Have a random share of unanswered images answered by `people` annotators each.

    Images started in other queues could wait forever, so they are not chosen.

    Args:
        share: 0 to 1, where 0 ends the overlap. A larger share includes a smaller one.

    Raises:
        AnnotatorError: A number is out of bounds.
    """
    if not 1 <= people <= MAX_PEOPLE_PER_IMAGE:
        raise AnnotatorError(f"Images can be answered by 1 to {MAX_PEOPLE_PER_IMAGE} people each, not {people}.")
    if not 0 <= share <= 1:
        raise AnnotatorError(f"The share of the images must lie between 0 and 1 (100 %), not at {share}.")
    with db.writing() as sql:
        begun: list[tuple[int]] = sql.execute(
            """SELECT image_id FROM reading WHERE EXISTS (
            SELECT 1 FROM decision d WHERE d.image_id = reading.image_id AND action IN ('label', 'clear', 'done')
            AND source != 'import')"""
        ).fetchall()
        sql.execute("DELETE FROM overlap")
        sql.execute("DELETE FROM reading")
        sql.execute("UPDATE reading_version SET n = n + 1")
        if people < 2 or share == 0:
            answer_exposure.record_for_everybody(sql, [image_id for (image_id,) in begun])
            return
        below = "g" if share == 1 else f"{round(share * _HASH_RANGE):08x}"  # "g" sorts after every digit
        sql.execute("INSERT INTO overlap (one, people, below) VALUES (1, ?, ?)", [people, below])
        sql.execute(
            f"""INSERT INTO reading (image_id, had, due)
            SELECT id, coalesce(blind, 0), CASE WHEN EXISTS (
                SELECT 1 FROM revealed WHERE image_id = id AND annotator = ?
            ) THEN 0 ELSE max(0, ? - coalesce(n, 0)) END FROM image LEFT JOIN (
                SELECT image_id, {_COUNT_PEOPLE_SQL} FROM decision d WHERE source = ? AND action = 'label'
                AND {NOT_UNDONE_SQL} GROUP BY image_id
            ) ON image_id = id WHERE substr(sha256, 9, 8) < ? AND (n > 0 OR NOT EXISTS (
                SELECT 1 FROM decision d WHERE d.image_id = image.id AND d.action IN ('label', 'done')
                AND d.source != 'import' AND {NOT_UNDONE_SQL}))""",
            [answer_exposure.EVERYBODY, people, OVERLAP_SOURCE, below],
        )
        chosen = "SELECT image_id FROM reading"
        answer_exposure.record_earlier_answers(sql, chosen)
        still = set(sql.execute(chosen).fetchall()) if begun else ()
        answer_exposure.record_for_everybody(sql, [row[0] for row in begun if row not in still])


def limit_to_share(below: str) -> float:
    """Convert a hash limit (hexadecimal text of the table `overlap`) to the share of images below it."""
    return 1.0 if below == "g" else int(below, 16) / _HASH_RANGE


def update_answer_count(sql: sqlite_utils.Database, image_id: int) -> None:
    """Update the number of annotators who answered a chosen image. If all have seen its labels, it stops waiting."""
    sql.execute(
        f"""UPDATE reading SET had = blind, due = CASE WHEN EXISTS (
            SELECT 1 FROM revealed v WHERE v.image_id = reading.image_id AND v.annotator = ?
        ) THEN 0 ELSE max(0, people - n) END FROM overlap, (
            SELECT {_COUNT_PEOPLE_SQL} FROM decision d WHERE image_id = ? AND source = ?
            AND action = 'label' AND {NOT_UNDONE_SQL}
        ) WHERE image_id = ?""",
        [answer_exposure.EVERYBODY, image_id, OVERLAP_SOURCE, image_id],
    )


def find_next_images(db: Database, annotator: str, excluded: Collection[int], limit: int) -> list[int]:
    """Return waiting images that this annotator can answer blind, most answered first."""
    rows = db.tuples(
        """SELECT r.image_id FROM reading r CROSS JOIN image i ON i.id = r.image_id
        WHERE r.due > 0 AND i.problem = '' AND i.stage < 4 -- 4: set aside
        AND NOT EXISTS (SELECT 1 FROM revealed v WHERE v.image_id = r.image_id AND v.annotator IN (?, ?))
        ORDER BY r.had DESC, r.image_id DESC LIMIT ?""",
        [annotator, answer_exposure.EVERYBODY, limit + len(excluded)],
    )
    return [image_id for (image_id,) in rows if image_id not in excluded][:limit]


def load_waiting_image_ids(db: Database) -> np.ndarray:
    """Return the images that wait for blind answers of further annotators, (n,) int64."""
    return db.integer_rows("SELECT image_id FROM reading WHERE due > 0")[:, 0]


def leaves_untouched_images(db: Database) -> bool:
    """Return whether a readable unanswered image needs one annotator only, and so does not wait for overlap answers."""
    statement = """SELECT EXISTS (SELECT 1 FROM image i WHERE stage < 2 AND problem = ''
        AND NOT EXISTS (SELECT 1 FROM reading r WHERE r.image_id = i.id AND r.due > 0))"""
    return bool(db.value(statement))


def find_waiting_images(db: Database, image_ids: Collection[int]) -> set[int]:
    marks = ",".join("?" * len(image_ids))
    rows = db.tuples(f"SELECT image_id FROM reading WHERE due > 0 AND image_id IN ({marks})", list(image_ids))
    return {image_id for (image_id,) in rows}


def find_chosen_images(db: Database, image_ids: Collection[int]) -> set[int]:
    marks = ",".join("?" * len(image_ids))
    return {row[0] for row in db.tuples(f"SELECT image_id FROM reading WHERE image_id IN ({marks})", list(image_ids))}


def load_progress(db: Database) -> OverlapProgress:
    rows = db.tuples("SELECT count(*), coalesce(sum(due > 0), 0), coalesce(sum(had), 0) FROM reading")
    return OverlapProgress(*rows[0])


def iterate_first_answers(db: Database, people: Sequence[str]) -> Iterator[np.ndarray]:
    """Yield the first blind overlap answers of `people`, a few thousand images at a time.

    Yields:
        (n, 6) int64: image id, class id, index into `people`, first answer (1 or -1), current label (0 if none
            or unsure), 1 for an unresolved disagreement.
    """
    found = db.integer_rows(
        "SELECT DISTINCT image_id FROM decision WHERE source = ? ORDER BY image_id", [OVERLAP_SOURCE]
    )[:, 0]
    names = ", ".join(["(?, ?)"] * len(people))
    numbered = [value for number, name in enumerate(people) for value in (name, number)]
    for first in range(0, len(found) if people else 0, _IMAGES_PER_QUERY):
        some = found[first : first + _IMAGES_PER_QUERY]
        # Of rows with the same min(id), SQLite takes the other columns from that row.
        yield db.integer_rows(
            f"""WITH person (name, number) AS (VALUES {names})
            SELECT d.image_id, d.class_id, p.number, d.state, coalesce(l.state, 0), c.image_id IS NOT NULL FROM (
                SELECT image_id, class_id, annotator, state, min(id) FROM decision d
                WHERE image_id BETWEEN ? AND ? AND source = ? AND action = 'label' AND state != 0
                AND {answer_exposure.IS_BLIND_DECISION_SQL}
                AND {NOT_UNDONE_SQL}
                GROUP BY image_id, class_id, annotator
            ) d JOIN person p ON p.name = d.annotator
            LEFT JOIN label l ON l.image_id = d.image_id AND l.class_id = d.class_id
            LEFT JOIN contradiction c ON c.image_id = d.image_id AND c.class_id = d.class_id""",
            [*numbered, int(some[0]), int(some[-1]), OVERLAP_SOURCE],
        )
