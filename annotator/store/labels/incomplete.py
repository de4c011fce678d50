"""Images with answers and open classes: those with the fewest answers first, skipped ones last.

Answers are counted for a window of images only, so that a page never counts a million answers.
"""

from collections.abc import Collection, Sequence
from itertools import islice

import numpy as np
import sqlite_utils

from annotator.store.database.database import Database
from annotator.store.labels.derivation import LABELED, SKIPPED

WINDOW = 256  # largest number of images counted, each of the worker's order and of those longest undecided
AT_ONCE = 1000  # images of an order looked at in one SELECT

# Without images whose last decision was a skip: they come last (skipped_again).
_OPEN = """SELECT i.id, i.stage_decision FROM image i LEFT JOIN decision d ON d.id = i.stage_decision
    WHERE {stage} = ? AND i.problem = '' AND d.action IS NOT 'skip'"""


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
        ahead: Ids with the fewest answers when the worker counted them; their answers are counted again here.
        taken: Ids to leave out.
    """
    since_of: dict[int, int] = {}
    for start in range(0, len(ahead), AT_ONCE):
        some = [image_id for image_id in map(int, ahead[start : start + AT_ONCE]) if image_id not in taken]
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


def _marks(ids: Sequence[int]) -> str:
    return ",".join("?" * len(ids))
