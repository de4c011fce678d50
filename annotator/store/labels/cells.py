"""Labels of given cells and images: for the queues, for incomplete images, and as columns for the map.

Queries use an index and read given images, one class or the newest decisions, so none reads a million labels.
Exceptions are `answers`, `untouched` and `incomplete`, which the worker calls once per run, and a person's first call
of `images_of`. Of incomplete images, answers are counted for a window only (`fewest_answers`).
"""

import json
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

import numpy as np
import sqlite_utils

from annotator.indexing import positions
from annotator.records import ABSENT, OF_A_CELL, PRESENT, UNSURE
from annotator.store.database.database import Database, newest_decision
from annotator.store.database.invalid_rows import STATES
from annotator.store.images import images
from annotator.store.images.stages import ASIDE, COMPLETE, LABELED, SKIPPED, UNTOUCHED
from annotator.store.labels import blind_tallies as apart
from annotator.store.labels import implied
from annotator.store.labels.sources import in_sql

AT_ONCE = 10_000  # ids in one SELECT
NEWEST = 5000  # positives of a class among which examples are looked for
WINDOW = 256  # largest number of images counted, each of the worker's order and of those longest undecided
ORDER_AT_ONCE = 1000  # images of an order looked at in one SELECT

# Neither answered nor auto-accepted; with the class id twice.
_OPEN_CELL = """NOT EXISTS (SELECT 1 FROM label WHERE image_id = image.id AND class_id = ?)
        AND NOT EXISTS (SELECT 1 FROM accepted WHERE image_id = image.id AND class_id = ?)"""
# Without images whose last decision was a skip: they come last (skipped_again).
_OPEN = """SELECT i.id, i.stage_decision FROM image i LEFT JOIN decision d ON d.id = i.stage_decision
    WHERE {stage} = ? AND i.problem = '' AND d.action IS NOT 'skip'"""


def answers(db: Database, class_id: int, newest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of one class from decisions up to `newest`: image ids (n,) int64, states (n,) int8."""
    labels = db.numbers(
        f"SELECT image_id, state FROM label WHERE class_id = ? AND decision_id <= ? AND state {STATES}",
        [class_id, newest],
    )
    return labels[:, 0], labels[:, 1].astype(np.int8)


def training_cells(db: Database) -> tuple[np.ndarray, int, int]:
    """Return the labels for a training, the number of invalid rows left out, and the newest decision included.

    All are read at one moment. Images that are set aside are left out. Implied cells are among the labels, as biased
    ones: they follow from answers, and are no sample.

    Returns:
        (n, 4) int64 of image_id, class_id, state and unbiased; the number of invalid rows (invalid_rows.py); and the id
        of the newest decision.
        state: UNSURE also where people disagree and nobody has settled it: in simulations that trained better than
            using the label (docs/team.md). quality/differing.py estimates the probability of such cells.
        unbiased: 1 where the choice of the cell did not depend on its answer: for the unbiased sources of
            records.SOURCES, and for every cell of an image that somebody has called complete.
    """
    with db.reading() as sql:
        newest = newest_decision(sql)
        cells = db.numbers(
            f"""SELECT l.image_id, l.class_id, l.state, d.source NOT IN {in_sql(unbiased=False)} OR i.stage = ?
            FROM label l JOIN decision d ON d.id = l.decision_id JOIN image i ON i.id = l.image_id
            WHERE l.state {STATES} AND l.class_id IN (SELECT id FROM class) AND i.stage != {ASIDE}""",
            [COMPLETE],
        )
        aside = f"SELECT count(*) FROM image i CROSS JOIN label l ON l.image_id = i.id WHERE i.stage = {ASIDE}"
        every, aside = (sql.execute(query).fetchone()[0] for query in ("SELECT count(*) FROM label", aside))
        odd = every - aside - len(cells)
        if len(follow := implied.cells(db)):
            out = db.numbers("SELECT id FROM image WHERE stage = ?", [ASIDE])[:, 0]
            follow = follow[~np.isin(follow[:, 0], out)]
            cells = np.concatenate([cells, np.c_[follow[:, :3], np.zeros(len(follow), np.int64)]])
        differ = db.numbers("SELECT image_id, class_id FROM contradiction")
    if len(differ):  # matched here, because a join would look up every label for a few rows
        wide = 1 + max(int(cells[:, 1].max(initial=0)), int(differ[:, 1].max()))
        cells[np.isin(cells[:, 0] * wide + cells[:, 1], differ[:, 0] * wide + differ[:, 1]), 2] = UNSURE
    return cells, odd, newest


def changed_since(db: Database, after: int) -> tuple[list[int], int]:
    """Return the images whose labels may have changed after decision `after`, and the newest decision.

    Both are read at the same moment.
    """
    with db.reading() as sql:
        newest = newest_decision(sql)
        if newest <= after:
            return [], newest
        # Without DISTINCT, for which SQLite would walk an index of all decisions instead of the newest ones.
        rows = sql.execute(
            """SELECT image_id FROM decision
            WHERE id > ? AND action IN ('label', 'clear', 'done', 'undo') AND image_id NOT NULL""",
            [after],
        ).fetchall()
    return list(dict.fromkeys(row[0] for row in rows)), newest


def changed_classes(db: Database, after: int) -> tuple[set[int] | None, int]:
    """Return the classes whose labels may have changed after decision `after`, and the newest decision.

    The set is None where all classes may have changed.
    """
    with db.reading() as sql:
        newest = newest_decision(sql)
        rows = sql.execute(
            """SELECT DISTINCT coalesce(u.action, d.action), coalesce(u.class_id, d.class_id)
            FROM decision d LEFT JOIN decision u ON u.id = d.undoes WHERE d.id > ?""",
            [after],
        ).fetchall()
        if any(action == "done" for action, _ in rows):
            return None, newest
        return implied.with_implied(sql, (class_id for action, class_id in rows if action in OF_A_CELL)), newest


def sure_between(db: Database, class_id: int, after: int, newest: int, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return present and absent cells of a class from decisions in (after, newest], at most `limit` of each state.

    Returns:
        Image ids (n,) int64 and states (n,) int8.
    """
    rows = [
        row
        for state in (PRESENT, ABSENT)
        for row in db.tuples(
            """SELECT image_id, state FROM label WHERE class_id = ? AND state = ? AND decision_id > ?
            AND decision_id <= ? ORDER BY decision_id DESC LIMIT ?""",
            [class_id, state, after, newest, limit],
        )
    ]
    labels = np.array(rows, np.int64).reshape(-1, 2)
    return labels[:, 0], labels[:, 1].astype(np.int8)


def answered(db: Database, image_ids: Sequence[int]) -> dict[int, dict[int, int]]:
    """Return the answered cells of these images: image id -> class id -> id of the decision behind the label."""
    result: dict[int, dict[int, int]] = {}
    for ids in _parts(image_ids):
        for image_id, class_id, decision_id in db.tuples(
            f"SELECT image_id, class_id, decision_id FROM label WHERE image_id IN ({_marks(ids)})", ids
        ):
            result.setdefault(image_id, {})[class_id] = decision_id
    return result


def states(db: Database, class_id: int, image_ids: Sequence[int]) -> dict[int, int]:
    """Return the labels of one class on these images: image id -> state; open cells are left out."""
    result: dict[int, int] = {}
    for ids in _parts(image_ids):
        result |= db.tuples(
            f"SELECT image_id, state FROM label WHERE class_id = ? AND image_id IN ({_marks(ids)})", [class_id, *ids]
        )
    return result


def labels_with_annotators(db: Database, asked: Sequence[tuple[int, int]]) -> dict[tuple[int, int], tuple[int, str]]:
    """Return the label and annotator of each cell: (image id, class id) -> (state, name); open cells are left out."""
    result: dict[tuple[int, int], tuple[int, str]] = {}
    for start in range(0, len(asked), AT_ONCE):
        some = asked[start : start + AT_ONCE]
        for image_id, class_id, state, annotator in db.tuples(
            f"""WITH asked (image_id, class_id) AS (VALUES {",".join(["(?, ?)"] * len(some))})
            SELECT l.image_id, l.class_id, l.state, d.annotator FROM asked a
            CROSS JOIN label l ON l.image_id = a.image_id AND l.class_id = a.class_id
            JOIN decision d ON d.id = l.decision_id""",
            [number for cell in some for number in cell],
        ):
            result[image_id, class_id] = (state, annotator)
    return result


def unreadable(db: Database, image_ids: Sequence[int]) -> set[int]:
    """Return the ids of images that are not asked: unknown ids, unreadable files, and images that are set aside."""
    readable: set[int] = set()
    for ids in _parts(image_ids):
        rows = db.tuples(
            f"SELECT id FROM image WHERE problem = '' AND +stage != {ASIDE} AND id IN ({_marks(ids)})", ids
        )
        readable |= {row[0] for row in rows}
    return set(image_ids) - readable


def confirmed(db: Database, class_id: int, limit: int) -> list[int]:
    """Return the images with the newest positives of this class, newest first, as far as the member may see them.

    For members who may not see blind answers (blind_tallies.py), only the newest max(limit, NEWEST) positives are
    searched.
    """
    rows = db.tuples(
        f"""SELECT image_id FROM (SELECT image_id, decision_id FROM label WHERE class_id = ? AND state = 1
        ORDER BY decision_id DESC LIMIT ?) d WHERE {apart.visible_condition(db)} ORDER BY decision_id DESC LIMIT ?""",
        [class_id, limit if apart.sees_all(db) else max(limit, NEWEST), limit],
    )
    return [image_id for (image_id,) in rows]


def open_images(db: Database, class_id: int, limit: int, least: int = UNTOUCHED) -> list[int]:
    """Return images on which this class is open, in working order: untouched, skipped, then labeled images.

    Args:
        db: The project's database.
        class_id: The id of the class.
        limit: The largest number that is returned.
        least: The lowest image stage included.
    """
    rows = db.tuples(
        f"""SELECT id FROM image WHERE stage < ? AND stage >= ? AND problem = '' AND {_OPEN_CELL}
        ORDER BY stage, stage_decision, sha256 LIMIT ?""",
        [COMPLETE, least, class_id, class_id, limit],
    )
    return [row[0] for row in rows]


def open_among(db: Database, class_id: int, image_ids: Sequence[int]) -> list[int]:
    """Return those `image_ids` on which this class is open, in the given order."""
    found: set[int] = set()
    for ids in _parts(image_ids):
        rows = db.tuples(
            f"SELECT id FROM image WHERE +stage < ? AND problem = '' AND id IN ({_marks(ids)}) AND {_OPEN_CELL}",
            [COMPLETE, *ids, class_id, class_id],
        )
        found.update(image_id for (image_id,) in rows)
    return [image_id for image_id in image_ids if image_id in found]


def untouched(db: Database) -> np.ndarray:
    """Return the ids of showable images that nobody has labeled or skipped, (n,) int64. Reads all of them."""
    return db.numbers("SELECT id FROM image WHERE stage = ? AND problem = ''", [UNTOUCHED])[:, 0]


def unlabeled_images(db: Database, start: str, looked_at: int, limit: int) -> list[int]:
    """Return at most `limit` images without a positive among the `looked_at` images from the place `start` on."""
    return without_positive(db, images.from_place(db, start, looked_at), limit)


def without_positive(db: Database, ids: Sequence[int], limit: int) -> list[int]:
    """Return the first `limit` of `ids` whose images have no positive label."""
    unlabeled: list[int] = []
    for some in _parts(ids):
        positive = {
            row[0]
            for row in db.tuples(
                f"SELECT DISTINCT image_id FROM label WHERE state = 1 AND image_id IN ({_marks(some)})", some
            )
        }
        unlabeled += [image_id for image_id in some if image_id not in positive]
        if len(unlabeled) >= limit:
            break
    return unlabeled[:limit]


def images_of(db: Database, annotator: str, after: int) -> tuple[np.ndarray, int]:
    """Return the images of a person's decisions after `after`, (n,) int64 with repeats, and the newest decision."""
    with db.reading() as sql:
        newest = newest_decision(sql)
        rows = sql.execute(
            "SELECT image_id FROM decision WHERE annotator = ? AND id > ? AND image_id NOT NULL", [annotator, after]
        ).fetchall()
    return np.array(rows, np.int64).reshape(-1), newest


def incomplete(db: Database) -> np.ndarray:
    """Return the ids of showable images with an answer and an open class, (n,) int64. Reads all of them."""
    return db.numbers("SELECT id FROM image WHERE stage = ? AND problem = ''", [LABELED])[:, 0]


def fewest_answers(
    sql: sqlite_utils.Database, ahead: Sequence[int] | np.ndarray, taken: Collection[int], want: int
) -> list[int]:
    """Return up to `want` incomplete images, those with the fewest answers first.

    The order is exact for up to WINDOW incomplete images. For more, it is exact among WINDOW of `ahead` and the WINDOW
    images whose last decision is oldest.

    Args:
        sql: The database.
        ahead: Ids with the fewest answers when the worker counted them; their answers are counted again here.
        taken: Ids to leave out.
        want: The largest number of images.
    """
    since_of: dict[int, int] = {}
    for start in range(0, len(ahead), ORDER_AT_ONCE):
        some = [image_id for image_id in map(int, ahead[start : start + ORDER_AT_ONCE]) if image_id not in taken]
        # The plus keeps SQLite from walking the index of all such images.
        query = f"{_OPEN.format(stage='+i.stage')} AND i.id IN ({_marks(some)})"
        since = dict(sql.execute(query, [LABELED, *some]).fetchall())
        since_of |= {image_id: since[image_id] for image_id in some if image_id in since}
        if len(since_of) >= WINDOW:
            since_of = dict(islice(since_of.items(), WINDOW))
            break
    query = f"{_OPEN.format(stage='i.stage')} ORDER BY i.stage_decision, i.sha256 LIMIT ?"
    rows = sql.execute(query, [LABELED, WINDOW + len(taken)]).fetchall()
    since_of |= {image_id: since for image_id, since in rows if image_id not in taken}
    ids = list(since_of)
    query = f"SELECT image_id, count(*) FROM label WHERE image_id IN ({_marks(ids)}) GROUP BY image_id"
    answers = dict(sql.execute(query, ids).fetchall())
    return sorted(since_of, key=lambda image_id: (answers.get(image_id, 0), since_of[image_id]))[:want]


def skipped_again(sql: sqlite_utils.Database, taken: Collection[int], want: int) -> list[int]:
    """Return up to `want` images skipped with answers on them, or skipped twice without; longest ago first."""
    rows = sql.execute(
        """SELECT i.id FROM image i JOIN decision d ON d.id = i.stage_decision
        WHERE i.stage IN (?, ?) AND i.problem = '' AND (i.stage = ? OR d.action = 'skip')
        ORDER BY i.stage_decision LIMIT ?""",
        [SKIPPED, LABELED, SKIPPED, want + len(taken)],
    )
    return [image_id for (image_id,) in rows.fetchall() if image_id not in taken][:want]


def stage_column(db: Database, image_ids: np.ndarray) -> np.ndarray:
    """Return the stage of each image, (n,) uint8 in the order of the ids; 0 for an unknown image.

    Stages: 0 untouched, 1 skipped, 2 has labels, 3 complete, 4 set aside.
    """
    statement = (
        "SELECT i.id, i.stage FROM json_each(?) wanted CROSS JOIN image i ON i.id = wanted.value WHERE i.stage > 0"
    )
    return _column(db, image_ids, statement, default=0).astype(np.uint8)


def label_column(db: Database, class_id: int, image_ids: np.ndarray, unknown: int) -> np.ndarray:
    """Return the label of one class on each image, (n,) int8 in the order of the ids.

    1 is present, -1 absent, 0 unsure; open cells are `unknown`.
    """
    statement = """SELECT l.image_id, l.state FROM json_each(?) wanted
        CROSS JOIN label l ON l.image_id = wanted.value AND l.class_id = ?"""
    return _column(db, image_ids, statement, class_id, default=unknown).astype(np.int8)


def decided_since(db: Database, decision_id: int, most: int) -> np.ndarray | None:
    """Return the images of decisions newer than `decision_id`, (n,) int64; None for more than `most` decisions."""
    ids = db.tuples(
        "SELECT image_id FROM decision WHERE id > ? AND image_id IS NOT NULL LIMIT ?", [decision_id, most + 1]
    )
    return np.unique(np.array(ids, np.int64)) if len(ids) <= most else None


def _column(db: Database, image_ids: np.ndarray, statement: str, *parameters: int, default: int) -> np.ndarray:
    # Millions of images may have an answer, but only thousands are requested: CROSS JOIN makes SQLite look up each of
    # these by its key.
    pairs = db.tuples(statement, [json.dumps(image_ids.tolist()), *parameters])
    result = np.full(len(image_ids), default, np.int64)
    if pairs:
        ids, values = np.array(pairs, np.int64).T
        rows, _ = positions(ids, image_ids, np.argsort(image_ids))
        result[rows] = values
    return result


def _parts(ids: Sequence[int]) -> Iterator[list[int]]:
    for start in range(0, len(ids), AT_ONCE):
        yield [int(image_id) for image_id in ids[start : start + AT_ONCE]]


def _marks(ids: Sequence[int]) -> str:
    return ",".join("?" * len(ids))
