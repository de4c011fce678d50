"""Leases on open work: no two pages get the same image, or the same cell of a grid.

A lease belongs to one open page (the holder), is renewed while the page is open and expires by itself, so a closed
browser or a killed server needs no cleaning up. It covers a whole image (class 0) or, in a grid, one cell. Pages that
show whole images skip images with a leased cell; grids of different classes share images.

`until` is a time of the machine's monotonic clock, which all processes share and nobody sets: a wall clock set back
would hide images, one set forward would give them to a second person. The clock restarts with the machine, so a lease
that ends later than one taken now was taken before the restart and is void.
"""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import sqlite_utils

from annotator.roles import Right
from annotator.settings import LEASE_SECONDS
from annotator.store.database.database import Database
from annotator.store.images import sequences
from annotator.store.images.stages import COMPLETE, SKIPPED, UNTOUCHED
from annotator.store.labels import cells
from annotator.store.labels import overlap as readings
from annotator.store.people import assignment
from annotator.store.people.assignment import Taken

WHOLE = 0  # the class of a lease of a whole image
MOST_HELD = 400  # images or cells leased by one page; pages are given at most eight grids of 48 tiles

Item = TypeVar("Item", bound=int | tuple[int, int])

_LIVE = "until BETWEEN ? AND ?"  # with _times()


def take_next(
    db: Database,
    holder: str,
    annotator: str,
    have: Collection[int],
    want: int,
    first: Sequence[int] | np.ndarray = (),
    resumed: bool = False,
    ahead: Sequence[int] | np.ndarray = (),
    incomplete_first: bool = False,
    sequence: str = "",
    after: int = 0,
) -> list[int]:
    """Lease and return up to `want` images with an open class that nobody else holds.

    Untouched images come first, then skipped ones, then incomplete ones, and last the images that were skipped twice or
    skipped with answers on them, so that somebody who keeps skipping a few images still reaches all others.

    Args:
        db: The project's database.
        holder: The page that leases.
        annotator: The person at it.
        have: Images that this page shows or has fetched already: their leases are renewed, and they are not returned.
        want: The largest number of images.
        first: Ids of images that, while untouched, come before all others, in this order.
        resumed: Begin with images that this page leases but does not have: it had them before a reload.
        ahead: Ids of incomplete images with the fewest answers, as the worker counted them.
        incomplete_first: Incomplete images come before all others.
        sequence: Untouched and incomplete images come in the order of this sequence (sequences.py), from the image
            after `after` on.
        after: The image after which a sequence goes on; 0: its beginning.
    """
    aside = assignment.assigned_to_others(db, annotator)
    with db.writing(durable=False, right=Right.ANSWER) as sql:
        _renew(sql, holder, annotator, _whole(have))
        want = min(want, _room(sql, holder, _whole(have)))
        rows = sql.execute("SELECT image_id, holder FROM lease").fetchall()
        taken = {image_id for image_id, other in rows if other != holder} | set(have)
        held = [
            image_id for image_id, other in rows if other == holder and image_id not in taken and image_id not in aside
        ]
        # In a sequence, the images leased before a reload are the first after `after` anyway.
        chosen = _in_order(sql, held)[:want] if resumed and not sequence else []
        unlabeled: list[Callable[[Taken, int], list[int]]] = [
            partial(_free_of, sql, first),
            partial(_free, sql, UNTOUCHED),
            partial(_free, sql, SKIPPED),
        ]
        partly = partial(cells.fewest_answers, sql, ahead)
        last = partial(cells.skipped_again, sql)
        queues = [partly, *unlabeled, last] if incomplete_first else [*unlabeled, partly, last]
        if sequence:
            queues = [partial(sequences.next_open, sql, sequence, after), partial(_free, sql, SKIPPED), last]
        if aside.holds_untouched:
            queues = [partly, last]
        for more in queues:
            if len(chosen) < want:
                chosen += more(Taken(taken | set(chosen), aside), want - len(chosen))
        _let_go(sql, holder, _whole([*have, *chosen]))
        _lease(sql, holder, annotator, _whole(chosen))
    return chosen


def take(db: Database, holder: str, annotator: str, candidates: Sequence[int], want: int) -> list[int]:
    """Lease and return the first `want` of `candidates` that nobody else holds (for Review, whose order is given).

    Images that wait for answers of several people are left out.
    """
    candidates = _not_waiting(db, candidates)
    with db.writing(durable=False, right=Right.ANSWER) as sql:
        chosen = _not_held(sql, holder, _whole(candidates))[: min(want, _room(sql, holder))]
        _lease(sql, holder, annotator, chosen)
    return [image_id for image_id, _ in chosen]


def take_cells(
    db: Database, holder: str, annotator: str, candidates: Sequence[tuple[int, int]], want: int
) -> list[tuple[int, int]]:
    """Lease and return the first `want` of these cells (image id, class id) that nobody else holds.

    A cell is held when somebody else has it open in a grid, or has its whole image open.
    """
    with db.writing(durable=False, right=Right.ANSWER) as sql:
        chosen = _not_held(sql, holder, candidates)[: min(want, _room(sql, holder))]
        _lease(sql, holder, annotator, chosen)
    return chosen


def take_reading(db: Database, holder: str, annotator: str, image_id: int) -> bool:
    """Lease an image that waits for answers of several people (overlap.py); return whether it was free."""
    with db.writing(durable=False, right=Right.ANSWER) as sql:
        chosen = _not_held(sql, holder, [(image_id, WHOLE)])[: _room(sql, holder)]
        _lease(sql, holder, annotator, chosen)
    return bool(chosen)


def take_over(db: Database, holder: str, before: str) -> bool:
    """Move the leases of holder `before`, the same page before a reload, to this holder.

    A late request of the old holder then releases nothing.

    Returns:
        Whether the old holder had any leases.
    """
    if not db.value("SELECT 1 FROM lease WHERE holder = ?", [before]):
        return False
    with db.writing(durable=False, right=Right.ANSWER) as sql:
        return sql.execute("UPDATE lease SET holder = ? WHERE holder = ?", [holder, before]).rowcount > 0


def hold(db: Database, holder: str, annotator: str, have: Collection[int]) -> None:
    """Renew the leases of the images that an open page has, and release its other leases."""
    hold_cells(db, holder, annotator, _whole(have))


def hold_cells(db: Database, holder: str, annotator: str, have: Collection[tuple[int, int]]) -> None:
    """Renew the leases of the cells (image id, class id) that an open page has, and release its other leases."""
    with db.writing(durable=False, right=Right.ANSWER) as sql:
        _renew(sql, holder, annotator, have)
        _let_go(sql, holder, have)


def taken_by_others(db: Database, holder: str, have: Collection[Item]) -> list[Item]:
    """Return the images, or cells (image id, class id), of `have` that another page has leased meanwhile."""
    with db.reading() as sql:
        free = set(_not_held(sql, holder, [_cell(item) for item in have]))
    return [item for item in have if _cell(item) not in free]


def leased_by_others(db: Database, but: str) -> list[tuple[int, int]]:
    """Return the leases of all holders except `but`: (image id, class id), class 0 for a whole image."""
    return db.tuples(f"SELECT image_id, class_id FROM lease WHERE holder != ? AND {_LIVE}", [but, *_times()])


def opened_by_others(db: Database, image_ids: Collection[int], annotator: str) -> dict[int, str]:
    """Return which `image_ids` another person has open, as a whole or one cell: image id -> that person."""
    marks = ",".join("?" * len(image_ids))
    rows = db.tuples(
        f"SELECT image_id, annotator FROM lease WHERE image_id IN ({marks}) AND annotator != ? AND {_LIVE}",
        [*image_ids, annotator, *_times()],
    )
    return dict(rows)


def held_by_others(db: Database, holder: str) -> int:
    """Count the images with an open class of which other holders lease the whole or a cell."""
    return db.value(
        f"""SELECT count(DISTINCT l.image_id) FROM lease l JOIN image i ON i.id = l.image_id
        WHERE l.holder != ? AND {_LIVE} AND i.stage < ?""",
        [holder, *_times(), COMPLETE],
    )


def _not_waiting(db: Database, image_ids: Sequence[int]) -> list[int]:
    waiting = readings.waiting_among(db, image_ids)
    return [image_id for image_id in image_ids if image_id not in waiting]


def _whole(image_ids: Iterable[int]) -> list[tuple[int, int]]:
    return [(image_id, WHOLE) for image_id in image_ids]


def _cell(item: int | tuple[int, int]) -> tuple[int, int]:
    return (item, WHOLE) if isinstance(item, int) else item


def _times() -> tuple[float, float]:
    """Return the interval in which valid leases end; a lease just taken by another process may end a little later."""
    start = time.monotonic()
    return start, start + LEASE_SECONDS + 1


def _room(sql: sqlite_utils.Database, holder: str, keep: Collection[tuple[int, int]] | None = None) -> int:
    """Return how many more images or cells this page may lease.

    Args:
        sql: The database, in a transaction.
        holder: The page that holds leases.
        keep: The leases that the page is about to keep, releasing all others; None: it releases nothing.
    """
    own = set(sql.execute("SELECT image_id, class_id FROM lease WHERE holder = ?", [holder]).fetchall())
    return max(0, MOST_HELD - len(own if keep is None else own & set(keep)))


def _not_held(sql: sqlite_utils.Database, holder: str, cells: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return those `cells` and whole images of which no other page leases any part."""
    # All leases of others are read: they are few, and a page may ask about more images than one statement can name.
    rows = sql.execute(f"SELECT image_id, class_id FROM lease WHERE holder != ? AND {_LIVE}", [holder, *_times()])
    others = set(rows.fetchall())
    images = {image_id for image_id, _ in others}
    return [
        cell
        for cell in cells
        if cell[0] not in images or (cell[1] != WHOLE and cell not in others and (cell[0], WHOLE) not in others)
    ]


def _renew(sql: sqlite_utils.Database, holder: str, annotator: str, have: Collection[tuple[int, int]]) -> None:
    sql.execute(f"DELETE FROM lease WHERE NOT {_LIVE}", _times())
    own = set(sql.execute("SELECT image_id, class_id FROM lease WHERE holder = ?", [holder]).fetchall())
    # Expired leases are renewed too (a laptop that slept, a page gone back to) unless somebody else has them now, but
    # never more than a page can have: nobody takes all images by claiming to have them.
    mine = own & set(have)
    claimed = [cell for cell in _not_held(sql, holder, have) if cell not in own][: max(0, MOST_HELD - len(mine))]
    marks = ",".join("?" * len(claimed))
    rows = sql.execute(f"SELECT id FROM image WHERE id IN ({marks})", [image_id for image_id, _ in claimed])
    known = set(rows.fetchall())
    _lease(sql, holder, annotator, [*mine, *(cell for cell in claimed if (cell[0],) in known)])


def _let_go(sql: sqlite_utils.Database, holder: str, but: Iterable[tuple[int, int]]) -> None:
    held = sql.execute("SELECT image_id, class_id FROM lease WHERE holder = ?", [holder]).fetchall()
    sql.conn.executemany(
        "DELETE FROM lease WHERE image_id = ? AND class_id = ? AND holder = ?",
        [(*cell, holder) for cell in set(held) - set(but)],
    )


def _in_order(sql: sqlite_utils.Database, image_ids: Sequence[int]) -> list[int]:
    # The plus keeps SQLite from walking the index of all untouched images to get the order.
    rows = sql.execute(
        f"""SELECT id FROM image WHERE +stage = ? AND problem = '' AND id IN ({",".join("?" * len(image_ids))})
        ORDER BY stage_decision, sha256""",
        [UNTOUCHED, *image_ids],
    ).fetchall()
    return [row[0] for row in rows]


def _free_of(sql: sqlite_utils.Database, wanted: Sequence[int] | np.ndarray, taken: Taken, want: int) -> list[int]:
    """Return the first `want` of the `wanted` images that are untouched and not taken, in their order."""
    free_ids: list[int] = []
    # Without untouched images, a long `wanted` would be searched in vain. ORDER BY makes SQLite use the index.
    any_ = "SELECT 1 FROM image WHERE stage = ? AND problem = '' ORDER BY stage_decision, sha256 LIMIT 1"
    if not sql.execute(any_, [UNTOUCHED]).fetchone():
        return free_ids
    for start in range(0, len(wanted), cells.ORDER_AT_ONCE):
        if want <= len(free_ids):
            break
        some = [image_id for image_id in map(int, wanted[start : start + cells.ORDER_AT_ONCE]) if image_id not in taken]
        rows = sql.execute(
            f"SELECT id FROM image WHERE +stage = ? AND problem = '' AND id IN ({','.join('?' * len(some))})",
            [UNTOUCHED, *some],
        )
        free = {row[0] for row in rows.fetchall()}
        free_ids += [image_id for image_id in some if image_id in free]
    return free_ids[: max(want, 0)]


def _free(sql: sqlite_utils.Database, stage: int, taken: Taken, want: int) -> list[int]:
    free: list[int] = []
    if want <= 0:
        return free
    # Leases are few, the index gives the order: walking past the taken ones is cheaper than a join.
    skipped_once = "AND (SELECT count(*) FROM decision WHERE image_id = image.id AND action = 'skip') < 2"
    for (image_id,) in sql.execute(
        f"""SELECT id FROM image WHERE stage = ? AND problem = '' {skipped_once if stage == SKIPPED else ""}
        ORDER BY stage_decision, sha256""",
        [stage],
    ):
        if image_id not in taken:
            free.append(image_id)
            if len(free) == want:
                break
    return free


def _lease(sql: sqlite_utils.Database, holder: str, annotator: str, cells: Iterable[tuple[int, int]]) -> None:
    until = time.monotonic() + LEASE_SECONDS
    sql.conn.executemany(
        """INSERT INTO lease (image_id, class_id, holder, annotator, until) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (image_id, class_id) DO UPDATE SET holder = excluded.holder, annotator = excluded.annotator,
        until = excluded.until""",
        [(image_id, class_id, holder, annotator, until) for image_id, class_id in cells],
    )
