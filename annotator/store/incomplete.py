"""Images that have answers and open classes: those with the fewest answers first, those that were skipped last.

How many answers an image has is counted for a window of images only, so that no page counts a million.
"""

from collections.abc import Collection, Sequence
from itertools import islice

import numpy as np
import sqlite_utils

from annotator.store.database import Database
from annotator.store.history import LABELED, SKIPPED

WINDOW = 256  # images whose answers are counted, of the worker's order and of those longest without a decision
AT_ONCE = 1000  # images of an order looked at in one SELECT

# Not those whose last decision was a skip: a person passed them over, and they come last.
_OPEN = """SELECT i.id, i.stage_decision FROM image i LEFT JOIN decision d ON d.id = i.stage_decision
    WHERE {stage} = ? AND i.problem = '' AND d.action IS NOT 'skip'"""


def incomplete(db: Database) -> np.ndarray:
    """Images with an answer and an open class that can be shown: (n,) int64 ids. Reads all of them."""
    rows = db.tuples("SELECT id FROM image WHERE stage = ? AND problem = ''", [LABELED])
    return np.array(rows, np.int64).reshape(-1)


def fewest_answers(sql: sqlite_utils.Database, ahead: Sequence[int], taken: Collection[int], want: int) -> list[int]:
    """Up to `want` of them, those with the fewest answers first.

    ahead    ids with the fewest answers when the worker counted them; the exact order is that of their answers now
    taken    ids that are not wanted

    Exact for up to WINDOW such images. Of more it is exact among WINDOW of `ahead` and the WINDOW that are longest
    without a decision.
    """
    found: dict[int, int] = {}
    for start in range(0, len(ahead), AT_ONCE):
        some = [one for one in map(int, ahead[start : start + AT_ONCE]) if one not in taken]
        # The plus keeps SQLite from walking the index of all such images.
        query = f"{_OPEN.format(stage='+i.stage')} AND i.id IN ({_marks(some)})"
        since = dict(sql.execute(query, [LABELED, *some]).fetchall())
        found |= {one: since[one] for one in some if one in since}
        if len(found) >= WINDOW:
            found = dict(islice(found.items(), WINDOW))
            break
    query = f"{_OPEN.format(stage='i.stage')} ORDER BY i.stage_decision, i.sha256 LIMIT ?"
    rows = sql.execute(query, [LABELED, WINDOW + len(taken)]).fetchall()
    found |= {one: since for one, since in rows if one not in taken}
    ids = list(found)
    query = f"SELECT image_id, count(*) FROM label WHERE image_id IN ({_marks(ids)}) GROUP BY image_id"
    answers = dict(sql.execute(query, ids).fetchall())
    return sorted(found, key=lambda one: (answers.get(one, 0), found[one]))[:want]


def skipped_again(sql: sqlite_utils.Database, taken: Collection[int], want: int) -> list[int]:
    """Up to `want` images that were skipped with answers on them, or a second time without; longest ago first."""
    rows = sql.execute(
        """SELECT i.id FROM image i JOIN decision d ON d.id = i.stage_decision
        WHERE i.stage IN (?, ?) AND i.problem = '' AND (i.stage = ? OR d.action = 'skip')
        ORDER BY i.stage_decision LIMIT ?""",
        [SKIPPED, LABELED, SKIPPED, want + len(taken)],
    )
    return [one for (one,) in rows.fetchall() if one not in taken][:want]


def _marks(ids: Sequence[int]) -> str:
    return ",".join("?" * len(ids))
