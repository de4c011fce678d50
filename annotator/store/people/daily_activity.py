"""An annotator's work since midnight, for the activity line."""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import sqlite_utils

from annotator.store.database.database import Database, get_newest_decision_id
from annotator.store.database.decision_sql import NOT_UNDONE_SQL
from annotator.store.labels.answer_times import MAX_ANSWER_MILLISECONDS
from annotator.store.labels.sources import format_source_list

MAX_CACHED_DAYS = 50  # days kept in memory, one for each person
MAX_NEWER_DECISIONS = 20_000  # largest number of newer decisions; with more, the whole day is read again
IDS_PER_QUERY = 5000  # ids in one SELECT

_IS_OWN_DECISION_SQL = f"d.annotator = ? AND d.action != 'undo' AND d.source IN {format_source_list(claimable=True)}"
# A batch has one time, divided among its cells.
_SUM_TIME_SQL = f"""SELECT coalesce(sum(taken), 0) FROM (
    SELECT sum(max(0, min(d.milliseconds, {MAX_ANSWER_MILLISECONDS + 1}))) AS taken FROM decision d WHERE %s
    GROUP BY coalesce(d.batch, d.uuid) HAVING taken <= {MAX_ANSWER_MILLISECONDS})"""


@dataclass(frozen=True)
class DailyActivity:
    """An annotator's work today, without undone decisions."""

    # decision time without long absences
    milliseconds: int
    # answered images
    images: int
    # present labels
    labels: int
    # id of the newest counted decision. Of two results, the one with the larger id is more recent
    newest: int = field(default=0, compare=False)
    # start of the day, Unix seconds
    midnight: float = field(default=0.0, compare=False)


def load_daily_activity(db: Database, annotator: str, midnight: float | None = None) -> DailyActivity:
    """Return an annotator's work since midnight (Unix seconds, None for the last)."""
    if midnight is None:
        midnight = _get_midnight(0)
    classes = db.value("SELECT changes FROM class_version")  # archiving a class removes labels without a decision
    day = db.caches.get(
        "today", (annotator, midnight, classes), lambda: _DayCounter(annotator, midnight), MAX_CACHED_DAYS
    )
    return day.read(db)


def get_seconds_until_midnight() -> float:
    return _get_midnight(1) - time.time()


def _get_midnight(days: int) -> float:
    begins = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=days)
    return begins.astimezone().timestamp()  # with the UTC offset of that day, which may differ


class _DayCounter:
    """Return the images hidden from an annotator among those that the SQL `which`, with parameters `ids`, selects."""

    def __init__(self, annotator: str, midnight: float):
        self._annotator, self._midnight = annotator, midnight
        self._lock = threading.Lock()
        self._first: int | None = None  # this person's decisions of today have larger ids
        self._newest = 0
        self._milliseconds = 0
        self._labels: dict[int, int] = {}  # image id -> labels

    def read(self, db: Database) -> DailyActivity:
        with self._lock, db.reading() as sql:
            newest = get_newest_decision_id(sql)
            if self._first is None or newest - self._newest > MAX_NEWER_DECISIONS:
                self._read_all(sql, newest)
            elif newest > self._newest:
                self._read_newer(sql, newest)
            self._newest = newest
            return DailyActivity(
                self._milliseconds, len(self._labels), sum(self._labels.values()), newest, self._midnight
            )

    def _read_all(self, sql: sqlite_utils.Database, newest: int) -> None:
        before = sql.execute(
            """SELECT id FROM decision INDEXED BY decision_annotator WHERE annotator = ? AND decided_at < ?
            ORDER BY id DESC LIMIT 1""",
            [self._annotator, self._midnight],
        ).fetchone()
        self._first = before[0] if before else 0
        own = f"{_IS_OWN_DECISION_SQL} AND d.id > ? AND {NOT_UNDONE_SQL}"
        given = [self._annotator, self._first]
        self._milliseconds = sql.execute(_SUM_TIME_SQL % own, given).fetchone()[0]
        rows = sql.execute(f"SELECT DISTINCT image_id FROM decision d WHERE {own}", given).fetchall()
        self._labels = {}
        self._count(sql, (row[0] for row in rows))

    def _read_newer(self, sql: sqlite_utils.Database, newest: int) -> None:
        rows = sql.execute(
            "SELECT image_id, annotator FROM decision WHERE id > ? AND id <= ? AND image_id NOT NULL",
            [self._newest, newest],
        ).fetchall()
        # Another person's answer may replace one of this person's.
        self._count(sql, {image for image, annotator in rows if annotator == self._annotator or image in self._labels})
        given = sql.execute(
            _SUM_TIME_SQL % f"{_IS_OWN_DECISION_SQL} AND d.id > ?", [self._annotator, self._newest]
        ).fetchone()[0]
        undone = (
            f"{_IS_OWN_DECISION_SQL} AND d.id > ? AND d.id IN (SELECT undoes FROM decision WHERE id > ? AND undoes NOT "
            "NULL)"
        )
        taken_back = sql.execute(_SUM_TIME_SQL % undone, [self._annotator, self._first, self._newest]).fetchone()[0]
        self._milliseconds += given - taken_back

    def _count(self, sql: sqlite_utils.Database, image_ids: Iterable[int]) -> None:
        ids = list(image_ids)
        for start in range(0, len(ids), IDS_PER_QUERY):
            some = ids[start : start + IDS_PER_QUERY]
            marks = ",".join("?" * len(some))
            # INDEXED BY: read the decisions of these images, not all of the person's.
            answered = sql.execute(
                f"""SELECT DISTINCT d.image_id FROM decision d INDEXED BY decision_image
                WHERE d.image_id IN ({marks}) AND d.id > ? AND {_IS_OWN_DECISION_SQL} AND d.action IN ('label',
                'clear', 'done')
                AND {NOT_UNDONE_SQL}""",
                [*some, self._first, self._annotator],
            ).fetchall()
            labels = sql.execute(
                f"""SELECT l.image_id, count(*) FROM label l JOIN decision d ON d.id = l.decision_id
                WHERE l.image_id IN ({marks}) AND l.state = 1 AND d.id > ? AND {_IS_OWN_DECISION_SQL} GROUP BY
                l.image_id""",
                [*some, self._first, self._annotator],
            ).fetchall()
            for image_id in some:
                self._labels.pop(image_id, None)
            self._labels |= {image_id: 0 for (image_id,) in answered} | dict(labels)
