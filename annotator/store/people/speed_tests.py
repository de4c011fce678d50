"""Times of short annotation tasks, measured by the speed test."""

import time

from annotator.errors import AnnotatorError
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.store.labels.answer_times import MAX_ANSWER_MILLISECONDS, TimedAnswer

TASK_KINDS = ("grid", "image", "click")
MAX_CELLS = 1000


def load_newest_round(db: Database, annotator: str) -> tuple[int, dict[int, str]]:
    """Return the number of an annotator's newest test round (0 if none) and its task -> kind."""
    round_ = db.value("SELECT coalesce(max(round), 0) FROM speed_test WHERE annotator = ?", [annotator])
    tasks = db.tuples("SELECT task, kind FROM speed_test WHERE annotator = ? AND round = ?", [annotator, round_])
    return round_, dict(tasks)


def store(db: Database, annotator: str, place: tuple[int, int], answer: TimedAnswer) -> None:
    """Store a task's time once. `place` is (round, task number in it). Raises AnnotatorError for an impossible task."""
    taken = round(answer.seconds * 1000)
    possible = (
        1 <= answer.cells <= MAX_CELLS
        and 0 <= answer.changes <= 3 * answer.cells
        and 1 <= taken <= MAX_ANSWER_MILLISECONDS
    )
    if answer.kind not in TASK_KINDS or not possible:
        raise AnnotatorError(
            f"A task of the speed test cannot be: {answer}. Kinds are {', '.join(TASK_KINDS)}, with 1 to {MAX_CELLS:,} "
            f"cells and at most {MAX_ANSWER_MILLISECONDS // 1000} s."
        )
    with db.writing(right=Right.ANSWER) as sql:
        sql.execute(
            "INSERT OR IGNORE INTO speed_test VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [annotator, *place, answer.kind, answer.cells, answer.changes, taken, time.time()],
        )


def load_newest_tests(db: Database, annotator: str, tasks: int) -> list[TimedAnswer]:
    """Return the newest `tasks` task times ("" for all annotators)."""
    rows = db.tuples(
        """SELECT kind, cells, changes, milliseconds FROM speed_test
        WHERE ? IN ('', annotator) ORDER BY tested_at DESC LIMIT ?""",
        [annotator, tasks],
    )
    return [TimedAnswer(kind, cells, changes, taken / 1000) for kind, cells, changes, taken in rows]


def count_tests(db: Database, annotator: str) -> int:
    """Count the timed tasks ("" for all annotators)."""
    return db.value("SELECT count(*) FROM speed_test WHERE ? IN ('', annotator)", [annotator])
