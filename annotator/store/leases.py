"""Who has which image open: two people are never given the same one.

A lease belongs to one open page (the holder), is renewed while the page is open and runs out by itself, so that a
closed browser or a killed server needs no cleaning up.
"""

import time
from collections.abc import Collection, Sequence

from annotator.settings import LEASE_SECONDS
from annotator.store.database import Database
from annotator.store.decisions import SKIPPED, UNTOUCHED


def take_next(db: Database, holder: str, annotator: str, have: Collection[int], want: int) -> list[int]:
    """Up to `want` images without a label that nobody else holds, untouched ones before skipped ones; leased at once.

    have    images this page has in hand already (their leases are renewed; they are not given again)
    """
    with db.writing() as sql:
        _renew(sql, holder, annotator, have)
        rows = sql.execute("SELECT image_id, holder FROM lease").fetchall()
        taken = {image_id for image_id, other in rows if other != holder} | set(have)
        # What this page holds but has not in hand is from before a reload: it comes first.
        before = [image_id for image_id, other in rows if other == holder and image_id not in taken]
        chosen = _in_order(sql, before)[:want]
        for stage in (UNTOUCHED, SKIPPED):
            chosen += _free(sql, stage, taken | set(chosen), want - len(chosen))
        _let_go(sql, holder, [*have, *chosen])
        _lease(sql, holder, annotator, chosen)
    return chosen


def take(db: Database, holder: str, annotator: str, candidates: Sequence[int], want: int) -> list[int]:
    """The first `want` of these images that nobody else holds, leased at once (review: the engine has the order)."""
    with db.writing() as sql:
        marks = ",".join("?" * len(candidates))
        others = {
            row[0]
            for row in sql.execute(
                f"SELECT image_id FROM lease WHERE holder != ? AND image_id IN ({marks})", [holder, *candidates]
            ).fetchall()
        }
        chosen = [image_id for image_id in candidates if image_id not in others][:want]
        _lease(sql, holder, annotator, chosen)
    return chosen


def take_over(db: Database, holder: str, before: str) -> None:
    """Give this page what it held under another name, before a reload; a late word of that other name frees nothing."""
    if db.value("SELECT 1 FROM lease WHERE holder = ?", [before]):
        with db.writing() as sql:
            sql.execute("UPDATE lease SET holder = ? WHERE holder = ?", [holder, before])


def hold(db: Database, holder: str, annotator: str, have: Collection[int]) -> None:
    """Renew the leases of what an open page has in hand, and let go of everything else it held."""
    with db.writing() as sql:
        _renew(sql, holder, annotator, have)
        _let_go(sql, holder, have)


def held_by_others(db: Database, holder: str) -> int:
    """How many images without a label somebody else has open."""
    return db.value(
        """SELECT count(*) FROM lease l JOIN image i ON i.id = l.image_id
        WHERE l.holder != ? AND l.until > ? AND i.stage <= ?""",
        [holder, time.time(), SKIPPED],
    )


def _renew(sql, holder: str, annotator: str, have: Collection[int]) -> None:
    now = time.time()
    sql.execute("DELETE FROM lease WHERE until < ?", [now])
    # Also what had run out, unless somebody else has it now: a laptop that slept, a page that was gone back to.
    sql.conn.executemany(
        """INSERT INTO lease (image_id, holder, annotator, until) SELECT id, ?, ?, ? FROM image WHERE id = ?
        ON CONFLICT (image_id) DO UPDATE SET until = excluded.until WHERE holder = excluded.holder""",
        [(holder, annotator, now + LEASE_SECONDS, image_id) for image_id in have],
    )


def _let_go(sql, holder: str, but: Collection[int]) -> None:
    marks = ",".join("?" * len(but))
    sql.execute(f"DELETE FROM lease WHERE holder = ? AND image_id NOT IN ({marks})", [holder, *but])


def _in_order(sql, image_ids: Sequence[int]) -> list[int]:
    rows = sql.execute(
        f"""SELECT id FROM image WHERE stage = ? AND problem = '' AND id IN ({",".join("?" * len(image_ids))})
        ORDER BY stage_decision, sha256""",
        [UNTOUCHED, *image_ids],
    ).fetchall()
    return [row[0] for row in rows]


def _free(sql, stage: int, taken: set[int], want: int) -> list[int]:
    found = []
    if want <= 0:
        return found
    # Leases are few, the index gives the order: walking past the taken ones is cheaper than a join.
    for (image_id,) in sql.execute(
        "SELECT id FROM image WHERE stage = ? AND problem = '' ORDER BY stage_decision, sha256", [stage]
    ):
        if image_id not in taken:
            found.append(image_id)
            if len(found) == want:
                break
    return found


def _lease(sql, holder: str, annotator: str, image_ids: Sequence[int]) -> None:
    until = time.time() + LEASE_SECONDS
    sql.conn.executemany(
        """INSERT INTO lease (image_id, holder, annotator, until) VALUES (?, ?, ?, ?)
        ON CONFLICT (image_id) DO UPDATE SET holder = excluded.holder, annotator = excluded.annotator,
        until = excluded.until""",
        [(image_id, holder, annotator, until) for image_id in image_ids],
    )
