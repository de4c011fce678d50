"""Answers to cells that a model chose, with their predicted probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotator.store.database.database import Database
from annotator.store.database.decision_sql import NEWEST_DECISION_ID_SQL, NOT_UNDONE_SQL
from annotator.store.labels.sources import format_source_list

MAX_ANSWERS = 20_000  # answers that are read at most
MAX_DECISIONS_SEARCHED = 200_000  # newest decisions searched for answers


@dataclass(frozen=True, eq=False)
class ScoredAnswers:
    """Answers to cells chosen by a model, (n,) each, oldest first.

    Attributes:
        class_id: int64.
        score: Displayed probability, float64 in [0, 1].
        present: False also for unsure.
        in_grid: Whether asked in a one-class grid.
    """

    class_id: np.ndarray
    score: np.ndarray
    present: np.ndarray
    in_grid: np.ndarray

    @classmethod
    def from_rows(cls, rows: Sequence[tuple[Any, ...]]) -> "ScoredAnswers":
        """Build from rows (class id, score, present, in grid)."""
        columns = np.array(rows, np.float64).reshape(-1, 4).T
        return cls(columns[0].astype(np.int64), columns[1], columns[2] > 0, columns[3] > 0)

    def extend_with(self, later: "ScoredAnswers") -> "ScoredAnswers":
        """Return these answers followed by `later` ones, limited to the newest MAX_ANSWERS."""
        mine, theirs = vars(self), vars(later)
        return ScoredAnswers(**{name: np.concatenate([mine[name], theirs[name]])[-MAX_ANSWERS:] for name in mine})


@dataclass(frozen=True)
class OutcomesSince:
    """Answers to cells chosen by a model, given after some decision.

    Attributes:
        relabels: Previous state -> (answers asked again, changed answers among them).
        audited: The same two numbers of answers asked again by audits, which the model did not choose.
    """

    newest: int
    answers: ScoredAnswers
    relabels: dict[int, tuple[int, int]]
    taken_back: bool = False
    audited: tuple[int, int] = (0, 0)


def load_since(db: Database, newest: int) -> OutcomesSince:
    """Return outcomes after decision `newest`, searching at most MAX_DECISIONS_SEARCHED decisions."""
    with db.reading():
        last = db.value(f"SELECT {NEWEST_DECISION_ID_SQL}")
        if last <= newest:
            return OutcomesSince(last, ScoredAnswers.from_rows([]), {})
        after = max(newest, last - MAX_DECISIONS_SEARCHED)
        taken_back = bool(db.value("SELECT count(*) FROM decision WHERE id > ? AND action = 'undo'", [after]))
        rows = db.tuples(
            f"""SELECT class_id, score, state = 1, source IN {format_source_list(timed="grid")} FROM decision d
            WHERE id > ? AND action = 'label' AND source IN {format_source_list(scored=True, chosen_by="model")}
                AND score BETWEEN 0 AND 1 AND {NOT_UNDONE_SQL}
            ORDER BY id DESC LIMIT ?""",
            [after, MAX_ANSWERS],
        )
        relabels = db.tuples(
            f"""SELECT source, before, count(*), sum(state != before) FROM (
                SELECT d.source, d.state, (SELECT b.state FROM decision b WHERE b.image_id = d.image_id AND b.id < d.id
                    AND b.class_id = d.class_id AND b.action = 'label' ORDER BY b.id DESC LIMIT 1) AS before
                FROM decision d WHERE d.id > ? AND d.action = 'label' AND d.source IN ('relabel', 'audit')
                AND {NOT_UNDONE_SQL})
            WHERE before IN (1, -1) AND state IN (1, -1) GROUP BY 1, 2""",
            [after],
        )
    again = {state: (asked, changed) for source, state, asked, changed in relabels if source == "relabel"}
    audits = [row[2:] for row in relabels if row[0] == "audit"]
    audited = (sum(asked for asked, _ in audits), sum(changed for _, changed in audits))
    return OutcomesSince(last, ScoredAnswers.from_rows(rows[::-1]), again, taken_back, audited)


def count_absent_by_source(db: Database, class_ids: Sequence[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Count absent answers per class, on unusual images chosen by the model and on random images.

    Args:
        class_ids: Classes without positives, as all their cells are read.
    """
    rows = db.tuples(
        f"""SELECT l.class_id, sum(d.source = 'search'),
            sum(d.source IN {format_source_list(chosen_by="chance", is_vote=False)})
        FROM label l JOIN decision d ON d.id = l.decision_id
        WHERE l.class_id IN ({",".join("?" * len(class_ids))}) AND l.state = -1 GROUP BY 1""",
        class_ids,
    )
    return {row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows}
