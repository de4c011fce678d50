"""Answer times and outcomes, the measurements behind the time model."""

from dataclasses import dataclass, field

from annotator.records import SOURCES, list_sources
from annotator.store.database.database import Database
from annotator.store.database.decision_sql import NEWEST_DECISION_ID_SQL
from annotator.store.labels import blind_visibility
from annotator.store.labels.sources import format_source_list

MAX_DECISIONS_SEARCHED = 200_000  # newest decisions searched for answers of one kind, so that no page reads a million
UNREACHABLE_PROBABILITY = 2.0  # above any probability
# mean probability of a grid up to which it surely started as absent, and from 1 - this on as present
GRID_START_MARGIN = 0.35
MAX_ANSWER_MILLISECONDS = 600_000  # milliseconds; after a longer time the person was away


@dataclass(frozen=True)
class TimedAnswer:
    """The measured time of one answer to one or several cells.

    Attributes:
        kind: "grid", "image" (several classes at once) or "click".
        changes: Estimated clicks besides the saving one.
        seconds: From display to answer.
        at: Unix seconds.
        class_id: None for several classes.
    """

    kind: str
    cells: int
    changes: int
    seconds: float
    at: float = field(default=0.0, compare=False)
    class_id: int | None = field(default=None, compare=False)


# The number of presses. The initial state of a cell is known where the model's probability was logged: a grid starts
# with the state expected for most of its tiles, guessed classes of an image (snapshot/preset_threshold.py) start as
# present, a random sample and an audit as absent. A grid without probabilities is assumed to have started with the
# state of most of its answers, and so is one whose probabilities do not tell: Autopilot corrects them before it chooses
# the start. Unsure takes one more press.
_COUNT_PRESSES_SQL = f"""sum(state = 0) + CASE
    WHEN source IN {format_source_list(timed="image", chosen_by="model")} OR source = 'exploration'
    THEN sum((state = 1) != (coalesce(score, 0) >= ?))
    WHEN source IN {format_source_list(chosen_by="chance")} THEN sum(state = 1)
    WHEN avg(score) >= {1 - GRID_START_MARGIN} THEN sum(state != 1)
    WHEN avg(score) < {GRID_START_MARGIN} THEN sum(state != -1)
    ELSE min(sum(state != 1), sum(state != -1)) END"""


def load_newest_answers(
    db: Database, annotator: str, decisions: int, answers: int = -1, guessed_from: float | None = None
) -> list[TimedAnswer]:
    """Return timed answers among the newest decisions, newest first, without the speed test.

    Args:
        annotator: "" selects all, except hidden blind answers.
        guessed_from: Probability from which classes were preset as present, or None.
    """
    left_out = list_sources(timed="")
    if not annotator and not blind_visibility.can_see_all(db):
        left_out += list_sources(is_vote=True)
    rows = db.tuples(
        # Older versions stored any number; a sum of the largest would overflow.
        f"""SELECT source, count(*), {_COUNT_PRESSES_SQL}, sum(milliseconds) AS taken, max(decided_at),
            CASE WHEN min(class_id) = max(class_id) THEN max(class_id) END FROM (
            SELECT id, source, batch, uuid, state, score, action, class_id, decided_at,
                max(0, min(milliseconds, ?)) AS milliseconds
            FROM decision WHERE {"annotator = ?" if annotator else "? = ''"} ORDER BY id DESC LIMIT ?)
        WHERE action = 'label' AND milliseconds IS NOT NULL AND source NOT IN ({",".join("?" * len(left_out))})
            -- a single suggestion of Review is neither of these
            AND (batch IS NOT NULL OR source IN {format_source_list(timed="click")})
        GROUP BY source, coalesce(batch, uuid) HAVING taken BETWEEN 1 AND ?
        ORDER BY max(id) DESC LIMIT ?""",
        [
            *(UNREACHABLE_PROBABILITY if guessed_from is None else guessed_from, MAX_ANSWER_MILLISECONDS + 1),
            *(annotator, decisions, *left_out, MAX_ANSWER_MILLISECONDS, answers),
        ],
    )
    return [
        TimedAnswer(SOURCES[source].timed, cells, changes, taken / 1000, at, class_id)
        for source, cells, changes, taken, at, class_id in rows
    ]


def get_newest_own_decision_id(db: Database, annotator: str) -> int:
    """Return the id of this annotator's newest decision (of all annotators for ""), or 0."""
    if not annotator:
        return db.value(f"SELECT {NEWEST_DECISION_ID_SQL}")
    return db.value("SELECT coalesce(max(id), 0) FROM decision WHERE annotator = ?", [annotator])


def load_whole_image_answers(db: Database, decisions: int) -> list[tuple[int, bool]]:
    """Return (classes answered, any present) of images whose classes were answered together, newest first."""
    counted = (
        format_source_list(timed="image")
        if blind_visibility.can_see_all(db)
        else format_source_list(timed="image", is_vote=False)
    )
    rows = db.tuples(
        f"""SELECT count(*), max(state = 1) FROM (
            SELECT batch, state FROM decision
            WHERE id > {NEWEST_DECISION_ID_SQL} - ?
            AND source IN {counted} AND action = 'label' AND batch IS NOT NULL ORDER BY id DESC LIMIT ?)
        GROUP BY batch""",
        [MAX_DECISIONS_SEARCHED, decisions],
    )
    return [(classes, bool(present)) for classes, present in rows]


def load_positive_flags(db: Database, classes: int, decisions: int, images: int) -> list[bool]:
    """Return whether the newest answered images have a present label, newest first, without hidden answers."""
    whole = (
        format_source_list(timed="image")
        if blind_visibility.can_see_all(db)
        else format_source_list(timed="image", is_vote=False)
    )
    rows = db.tuples(
        f"""SELECT EXISTS (SELECT 1 FROM label l WHERE l.image_id = d.image_id AND l.state = 1)
        FROM (SELECT * FROM decision d WHERE {blind_visibility.build_visible_condition(db)} ORDER BY id DESC LIMIT ?) d
        WHERE source IN ('click', 'done') AND batch IS NULL OR source IN {whole} AND batch IS NOT NULL
        GROUP BY CASE WHEN batch IS NULL THEN image_id ELSE batch END
        HAVING batch IS NULL OR count(*) >= ?
        ORDER BY max(id) DESC LIMIT ?""",
        [decisions, classes, images],
    )
    return [bool(found) for (found,) in rows]


def find_cells_answered_twice(
    db: Database, cells: list[tuple[int, int]], *, relabels: bool = False
) -> set[tuple[int, int]]:
    """Return the cells (image id, class id) with several answers, without imports (`relabels`: also repeated ones)."""
    ids = list({image_id for image_id, _ in cells})
    rows = db.tuples(
        f"""SELECT image_id, class_id FROM decision
        WHERE image_id IN ({",".join("?" * len(ids))}) AND action = 'label' AND source != 'import'
        GROUP BY image_id, class_id HAVING count(*) > 1 OR (? AND max(source = 'relabel'))""",
        [*ids, relabels],
    )
    return {(image_id, class_id) for image_id, class_id in rows} & set(cells)
