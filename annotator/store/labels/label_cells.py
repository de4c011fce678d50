"""Labels of given cells and images, for queues and map columns. Most queries read an index and never all labels."""

import json
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

import numpy as np
import sqlite_utils

from annotator.indexing import find_positions
from annotator.records import ABSENT, CELL_ACTIONS, PRESENT, UNSURE
from annotator.store.database.database import Database, get_newest_decision_id
from annotator.store.database.invalid_rows import VALID_LABEL_STATES_SQL
from annotator.store.images import images
from annotator.store.images.stages import COMPLETE, EXCLUDED, LABELED, SKIPPED, UNTOUCHED
from annotator.store.labels import blind_visibility, implied_cells
from annotator.store.labels.sources import format_source_list

IDS_PER_QUERY = 10_000  # ids in one SELECT
MAX_POSITIVES_SEARCHED = 5000  # positives of a class among which examples are looked for
MAX_IMAGES_COUNTED = 256  # largest number of images counted, each of the worker's order and of those longest undecided
ORDER_IDS_PER_QUERY = 1000  # images of an order looked at in one SELECT

# Neither answered nor auto-accepted; with the class id twice.
_OPEN_CELL_SQL = """NOT EXISTS (SELECT 1 FROM label WHERE image_id = image.id AND class_id = ?)
        AND NOT EXISTS (SELECT 1 FROM accepted WHERE image_id = image.id AND class_id = ?)"""
# Without images whose last decision was a skip: they come last (find_skipped_images).
_OPEN_IMAGES_SQL = """SELECT i.id, i.stage_decision FROM image i LEFT JOIN decision d ON d.id = i.stage_decision
    WHERE {stage} = ? AND i.problem = '' AND d.action IS NOT 'skip'"""


def load_class_answers(db: Database, class_id: int, newest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a class's labels up to decision `newest`: image ids (n,) int64, states (n,) int8."""
    labels = db.integer_rows(
        f"SELECT image_id, state FROM label WHERE class_id = ? AND decision_id <= ? AND state {VALID_LABEL_STATES_SQL}",
        [class_id, newest],
    )
    return labels[:, 0], labels[:, 1].astype(np.int8)


def load_training_cells(db: Database) -> tuple[np.ndarray, int, int]:
    """Return labels for a training, the number of invalid rows and the newest decision.

    Reads one snapshot, without excluded images. Implied cells are included as biased.

    Returns:
        (n, 4) int64 of image_id, class_id, state, unbiased, then the two numbers.
        state: UNSURE also for unresolved disagreements, which trained better (docs/team.md).
        unbiased: 1 if the choice of cell did not depend on its answer.
    """
    with db.reading() as sql:
        newest = get_newest_decision_id(sql)
        cells = db.integer_rows(
            f"""SELECT l.image_id, l.class_id, l.state, d.source NOT IN {format_source_list(unbiased=False)} OR
                i.stage = ?
            FROM label l JOIN decision d ON d.id = l.decision_id JOIN image i ON i.id = l.image_id
            WHERE l.state {VALID_LABEL_STATES_SQL} AND l.class_id IN (SELECT id FROM class) AND i.stage !=
            {EXCLUDED}""",
            [COMPLETE],
        )
        aside = f"SELECT count(*) FROM image i CROSS JOIN label l ON l.image_id = i.id WHERE i.stage = {EXCLUDED}"
        every, aside = (sql.execute(query).fetchone()[0] for query in ("SELECT count(*) FROM label", aside))
        odd = every - aside - len(cells)
        if len(follow := implied_cells.load_cells(db)):
            out = db.integer_rows("SELECT id FROM image WHERE stage = ?", [EXCLUDED])[:, 0]
            follow = follow[~np.isin(follow[:, 0], out)]
            cells = np.concatenate([cells, np.c_[follow[:, :3], np.zeros(len(follow), np.int64)]])
        differ = db.integer_rows("SELECT image_id, class_id FROM contradiction")
    if len(differ):  # matched here, because a join would look up every label for a few rows
        wide = 1 + max(int(cells[:, 1].max(initial=0)), int(differ[:, 1].max()))
        cells[np.isin(cells[:, 0] * wide + cells[:, 1], differ[:, 0] * wide + differ[:, 1]), 2] = UNSURE
    return cells, odd, newest


def find_changed_images(db: Database, after: int) -> tuple[list[int], int]:
    """Return images with label changes possible after decision `after`, and the newest decision."""
    with db.reading() as sql:
        newest = get_newest_decision_id(sql)
        if newest <= after:
            return [], newest
        # Without DISTINCT, for which SQLite would walk an index of all decisions instead of the newest ones.
        rows = sql.execute(
            """SELECT image_id FROM decision
            WHERE id > ? AND action IN ('label', 'clear', 'done', 'undo') AND image_id NOT NULL""",
            [after],
        ).fetchall()
    return list(dict.fromkeys(row[0] for row in rows)), newest


def find_changed_classes(db: Database, after: int) -> tuple[set[int] | None, int]:
    """Return classes (None for all) with label changes possible after `after`, and the newest decision."""
    with db.reading() as sql:
        newest = get_newest_decision_id(sql)
        rows = sql.execute(
            """SELECT DISTINCT coalesce(u.action, d.action), coalesce(u.class_id, d.class_id)
            FROM decision d LEFT JOIN decision u ON u.id = d.undoes WHERE d.id > ?""",
            [after],
        ).fetchall()
        if any(action == "done" for action, _ in rows):
            return None, newest
        return implied_cells.add_implied_classes(
            sql, (class_id for action, class_id in rows if action in CELL_ACTIONS)
        ), newest


def load_sure_answers_between(
    db: Database, class_id: int, after: int, newest: int, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return a class's present and absent labels decided in (`after`, `newest`] (decision ids).

    Image ids (n,) int64 and states (n,) int8, the newest `limit` per state.
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


def load_answered_cells(db: Database, image_ids: Sequence[int]) -> dict[int, dict[int, int]]:
    """Return image id -> class id -> decision behind the label."""
    result: dict[int, dict[int, int]] = {}
    for ids in _split_ids(image_ids):
        for image_id, class_id, decision_id in db.tuples(
            f"SELECT image_id, class_id, decision_id FROM label WHERE image_id IN ({_build_placeholders(ids)})", ids
        ):
            result.setdefault(image_id, {})[class_id] = decision_id
    return result


def load_states(db: Database, class_id: int, image_ids: Sequence[int]) -> dict[int, int]:
    result: dict[int, int] = {}
    for ids in _split_ids(image_ids):
        result |= db.tuples(
            f"SELECT image_id, state FROM label WHERE class_id = ? AND image_id IN ({_build_placeholders(ids)})",
            [class_id, *ids],
        )
    return result


def load_labels_with_annotators(
    db: Database, asked: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], tuple[int, str]]:
    """Return (image id, class id) -> (state, annotator) of those `asked` cells that have a label."""
    result: dict[tuple[int, int], tuple[int, str]] = {}
    for start in range(0, len(asked), IDS_PER_QUERY):
        some = asked[start : start + IDS_PER_QUERY]
        for image_id, class_id, state, annotator in db.tuples(
            f"""WITH asked (image_id, class_id) AS (VALUES {",".join(["(?, ?)"] * len(some))})
            SELECT l.image_id, l.class_id, l.state, d.annotator FROM asked a
            CROSS JOIN label l ON l.image_id = a.image_id AND l.class_id = a.class_id
            JOIN decision d ON d.id = l.decision_id""",
            [number for cell in some for number in cell],
        ):
            result[image_id, class_id] = (state, annotator)
    return result


def find_unaskable_images(db: Database, image_ids: Sequence[int]) -> set[int]:
    """Return the images that cannot be asked: unknown, unreadable and excluded ones."""
    readable: set[int] = set()
    for ids in _split_ids(image_ids):
        rows = db.tuples(
            f"SELECT id FROM image WHERE problem = '' AND +stage != {EXCLUDED} AND id IN ({_build_placeholders(ids)})",
            ids,
        )
        readable |= {row[0] for row in rows}
    return set(image_ids) - readable


def find_newest_positives(db: Database, class_id: int, limit: int) -> list[int]:
    """Return the images last labeled present for this class that the member may see, newest first."""
    rows = db.tuples(
        f"""SELECT image_id FROM (SELECT image_id, decision_id FROM label WHERE class_id = ? AND state = 1
        ORDER BY decision_id DESC LIMIT ?) d WHERE {blind_visibility.build_visible_condition(db)} ORDER BY decision_id
        DESC LIMIT ?""",
        [class_id, limit if blind_visibility.can_see_all(db) else max(limit, MAX_POSITIVES_SEARCHED), limit],
    )
    return [image_id for (image_id,) in rows]


def find_open_images(db: Database, class_id: int, limit: int, min_stage: int = UNTOUCHED) -> list[int]:
    """Return images unanswered for this class: untouched, skipped, then labeled."""
    rows = db.tuples(
        f"""SELECT id FROM image WHERE stage < ? AND stage >= ? AND problem = '' AND {_OPEN_CELL_SQL}
        ORDER BY stage, stage_decision, sha256 LIMIT ?""",
        [COMPLETE, min_stage, class_id, class_id, limit],
    )
    return [row[0] for row in rows]


def filter_open_images(db: Database, class_id: int, image_ids: Sequence[int]) -> list[int]:
    """Return those of `image_ids` where this class is neither answered nor auto-accepted."""
    found: set[int] = set()
    for ids in _split_ids(image_ids):
        rows = db.tuples(
            f"SELECT id FROM image WHERE +stage < ? AND problem = '' AND id IN ({_build_placeholders(ids)}) AND "
            f"{_OPEN_CELL_SQL}",
            [COMPLETE, *ids, class_id, class_id],
        )
        found.update(image_id for (image_id,) in rows)
    return [image_id for image_id in image_ids if image_id in found]


def load_untouched_image_ids(db: Database) -> np.ndarray:
    """Return valid images never labeled or skipped, (n,) int64."""
    return db.integer_rows("SELECT id FROM image WHERE stage = ? AND problem = ''", [UNTOUCHED])[:, 0]


def find_unlabeled_images(db: Database, start: str, max_searched: int, limit: int) -> list[int]:
    """Return up to `limit` images without a present label, among `max_searched` from hash `start` on."""
    return filter_without_positive(db, images.load_ids_from_hash(db, start, max_searched), limit)


def filter_without_positive(db: Database, ids: Sequence[int], limit: int) -> list[int]:
    """Return the first `limit` of `ids` without a present label."""
    unlabeled: list[int] = []
    for some in _split_ids(ids):
        positive = {
            row[0]
            for row in db.tuples(
                f"SELECT DISTINCT image_id FROM label WHERE state = 1 AND image_id IN ({_build_placeholders(some)})",
                some,
            )
        }
        unlabeled += [image_id for image_id in some if image_id not in positive]
        if len(unlabeled) >= limit:
            break
    return unlabeled[:limit]


def load_decided_image_ids(db: Database, annotator: str, after: int) -> tuple[np.ndarray, int]:
    """Return images of an annotator's newer decisions, (n,) int64 with repeats, and the newest decision."""
    with db.reading() as sql:
        newest = get_newest_decision_id(sql)
        rows = sql.execute(
            "SELECT image_id FROM decision WHERE annotator = ? AND id > ? AND image_id NOT NULL", [annotator, after]
        ).fetchall()
    return np.array(rows, np.int64).reshape(-1), newest


def load_incomplete_image_ids(db: Database) -> np.ndarray:
    """Return valid images with answered and unanswered classes, (n,) int64."""
    return db.integer_rows("SELECT id FROM image WHERE stage = ? AND problem = ''", [LABELED])[:, 0]


def find_least_answered_images(
    sql: sqlite_utils.Database, ahead: Sequence[int] | np.ndarray, taken: Collection[int], want: int
) -> list[int]:
    """Return incomplete images, fewest answers first (approximate beyond MAX_IMAGES_COUNTED).

    Args:
        ahead: Ids with the fewest answers at the last count.
    """
    since_of: dict[int, int] = {}
    for start in range(0, len(ahead), ORDER_IDS_PER_QUERY):
        some = [image_id for image_id in map(int, ahead[start : start + ORDER_IDS_PER_QUERY]) if image_id not in taken]
        # The plus keeps SQLite from walking the index of all such images.
        query = f"{_OPEN_IMAGES_SQL.format(stage='+i.stage')} AND i.id IN ({_build_placeholders(some)})"
        since = dict(sql.execute(query, [LABELED, *some]).fetchall())
        since_of |= {image_id: since[image_id] for image_id in some if image_id in since}
        if len(since_of) >= MAX_IMAGES_COUNTED:
            since_of = dict(islice(since_of.items(), MAX_IMAGES_COUNTED))
            break
    query = f"{_OPEN_IMAGES_SQL.format(stage='i.stage')} ORDER BY i.stage_decision, i.sha256 LIMIT ?"
    rows = sql.execute(query, [LABELED, MAX_IMAGES_COUNTED + len(taken)]).fetchall()
    since_of |= {image_id: since for image_id, since in rows if image_id not in taken}
    ids = list(since_of)
    query = f"SELECT image_id, count(*) FROM label WHERE image_id IN ({_build_placeholders(ids)}) GROUP BY image_id"
    answers = dict(sql.execute(query, ids).fetchall())
    return sorted(since_of, key=lambda image_id: (answers.get(image_id, 0), since_of[image_id]))[:want]


def find_skipped_images(sql: sqlite_utils.Database, taken: Collection[int], want: int) -> list[int]:
    """Return skipped images, with and without answers, oldest skip first."""
    rows = sql.execute(
        """SELECT i.id FROM image i JOIN decision d ON d.id = i.stage_decision
        WHERE i.stage IN (?, ?) AND i.problem = '' AND (i.stage = ? OR d.action = 'skip')
        ORDER BY i.stage_decision LIMIT ?""",
        [SKIPPED, LABELED, SKIPPED, want + len(taken)],
    )
    return [image_id for (image_id,) in rows.fetchall() if image_id not in taken][:want]


def load_stage_column(db: Database, image_ids: np.ndarray) -> np.ndarray:
    """Return each image's stage, (n,) uint8.

    Stages: 0 untouched or unknown, 1 skipped, 2 has labels, 3 complete, 4 excluded.
    """
    statement = (
        "SELECT i.id, i.stage FROM json_each(?) wanted CROSS JOIN image i ON i.id = wanted.value WHERE i.stage > 0"
    )
    return _load_column(db, image_ids, statement, default=0).astype(np.uint8)


def load_label_column(db: Database, class_id: int, image_ids: np.ndarray, unknown: int) -> np.ndarray:
    """Return a class's label per image, (n,) int8: 1 present, -1 absent, 0 unsure, else `unknown`."""
    statement = """SELECT l.image_id, l.state FROM json_each(?) wanted
        CROSS JOIN label l ON l.image_id = wanted.value AND l.class_id = ?"""
    return _load_column(db, image_ids, statement, class_id, default=unknown).astype(np.int8)


def load_images_decided_since(db: Database, decision_id: int, max_decisions: int) -> np.ndarray | None:
    """Return images with decisions after `decision_id`, (n,) int64, or None beyond `max_decisions`."""
    ids = db.tuples(
        "SELECT image_id FROM decision WHERE id > ? AND image_id IS NOT NULL LIMIT ?", [decision_id, max_decisions + 1]
    )
    return np.unique(np.array(ids, np.int64)) if len(ids) <= max_decisions else None


def _load_column(db: Database, image_ids: np.ndarray, statement: str, *parameters: int, default: int) -> np.ndarray:
    # Millions of images may have an answer, but only thousands are requested: CROSS JOIN makes SQLite look up each of
    # these by its key.
    pairs = db.tuples(statement, [json.dumps(image_ids.tolist()), *parameters])
    result = np.full(len(image_ids), default, np.int64)
    if pairs:
        ids, values = np.array(pairs, np.int64).T
        rows, _ = find_positions(ids, image_ids, np.argsort(image_ids))
        result[rows] = values
    return result


def _split_ids(ids: Sequence[int]) -> Iterator[list[int]]:
    for start in range(0, len(ids), IDS_PER_QUERY):
        yield [int(image_id) for image_id in ids[start : start + IDS_PER_QUERY]]


def _build_placeholders(ids: Sequence[int]) -> str:
    return ",".join("?" * len(ids))
