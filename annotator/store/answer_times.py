"""Times of answers and how answers turned out: the measurements behind the time model."""

from dataclasses import dataclass

from annotator.store.database import Database
from annotator.store.sources import in_sql

LOOKED_AT = 200_000  # newest decisions searched for answers of one kind, so that no page reads a million
LONGEST = 600_000  # milliseconds; after a longer time the person was away


@dataclass(frozen=True)
class Answer:
    """One answer, of one cell or of many at once.

    source     of the decisions, one that is timed (records.SOURCES)
    together   whether it was a batch
    cells      how many cells it decided, and `present` how many of them as present
    seconds    from being on screen to the answer
    """

    source: str
    together: bool
    cells: int
    present: int
    seconds: float


def newest_answers(db: Database, annotator: str, decisions: int) -> list[Answer]:
    """The timed answers among the newest `decisions` decisions of a person.

    annotator    "" for everybody
    """
    rows = db.tuples(
        # Older versions stored any number; the largest of them are out of reach of a sum.
        f"""SELECT source, batch IS NOT NULL, count(*), sum(state = 1), sum(milliseconds) AS taken FROM (
            SELECT source, batch, uuid, state, max(0, min(milliseconds, ?)) AS milliseconds, action FROM decision
            WHERE {"annotator = ?" if annotator else "? = ''"} ORDER BY id DESC LIMIT ?)
        WHERE action = 'label' AND milliseconds IS NOT NULL AND source NOT IN {in_sql(timed="")}
        GROUP BY source, coalesce(batch, uuid) HAVING taken BETWEEN 1 AND ?""",
        [LONGEST + 1, annotator, decisions, LONGEST],
    )
    return [Answer(source, bool(batch), cells, present, ms / 1000) for source, batch, cells, present, ms in rows]


def image_answers(db: Database, decisions: int) -> list[tuple[int, bool]]:
    """The newest images whose open classes were answered in one batch: (classes answered, any of them present).

    decisions    how many of the newest such answers are read
    """
    rows = db.tuples(
        f"""SELECT count(*), max(state = 1) FROM (
            SELECT batch, state FROM decision
            WHERE id > (SELECT coalesce(max(id), 0) FROM decision) - ?
            AND source IN {in_sql(timed="image")} AND action = 'label' AND batch IS NOT NULL ORDER BY id DESC LIMIT ?)
        GROUP BY batch""",
        [LOOKED_AT, decisions],
    )
    return [(classes, bool(present)) for classes, present in rows]


def relabel_counts(db: Database, decisions: int) -> dict[int, tuple[int, int]]:
    """How often answered cells were answered again, and how often the answer changed.

    decisions    how many of the newest answers in grids are read
    returns      the state before -> (answered again, changed)
    """
    rows = db.tuples(
        f"""SELECT before, count(*), sum(state != before) FROM (
            SELECT d.state, (SELECT b.state FROM decision b WHERE b.image_id = d.image_id AND b.id < d.id
                AND b.class_id = d.class_id AND b.action = 'label' ORDER BY b.id DESC LIMIT 1) AS before
            FROM decision d WHERE d.id > (SELECT coalesce(max(id), 0) FROM decision) - ?
            AND d.action = 'label' AND d.source IN {in_sql(timed="grid")} AND d.batch IS NOT NULL
            ORDER BY d.id DESC LIMIT ?)
        WHERE before IN (1, -1) AND state IN (1, -1) GROUP BY before""",
        [LOOKED_AT, decisions],
    )
    return {state: (relabeled, changed) for state, relabeled, changed in rows}


def answered_twice(db: Database, cells: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """The cells (image id, class id) of `cells` that people have answered more than once."""
    ids = list({image_id for image_id, _ in cells})
    rows = db.tuples(
        f"""SELECT image_id, class_id FROM decision
        WHERE image_id IN ({",".join("?" * len(ids))}) AND action = 'label' AND source != 'import'
        GROUP BY image_id, class_id HAVING count(*) > 1""",
        ids,
    )
    return {(image_id, class_id) for image_id, class_id in rows} & set(cells)
