"""Who has what open: two people are never given the same image, or the same cell of the grid.

A lease belongs to one open page (the holder), is renewed while the page is open and runs out by itself, so that a
closed browser or a killed server needs no cleaning up. It is of a whole image (class 0), or, in the grid, of one cell:
pages that show whole images keep away from images with a cell open elsewhere; grids of different classes share them.

`until` is a time of the machine's monotonic clock, which all processes share and which nobody sets: a wall clock that
is set back would hide images, one that is set forward would give them to a second person. It begins anew when the
machine does, so a lease that ends later than one taken now is of before that, and void.
"""

import time
from collections.abc import Collection, Iterable, Sequence

import sqlite_utils

from annotator.settings import LEASE_SECONDS
from annotator.store import incomplete
from annotator.store.database import Database
from annotator.store.history import COMPLETE, SKIPPED, UNTOUCHED

WHOLE = 0  # the class of a lease of a whole image
MOST_HELD = 400  # images or cells by one page: more than any is given (eight grids of 48 tiles)

_LIVE = "until BETWEEN ? AND ?"  # with _times()


def take_next(
    db: Database,
    holder: str,
    annotator: str,
    have: Collection[int],
    want: int,
    first: Sequence[int] = (),
    resumed: bool = False,
    ahead: Sequence[int] = (),
    incomplete_first: bool = False,
) -> list[int]:
    """Up to `want` images with an open class that nobody else holds, leased at once.

    Untouched images come first, then skipped ones, then incomplete ones, and last what was skipped a second time, or
    with answers on it: who keeps skipping the same few images still reaches all others.

    have       images this page has in hand already (their leases are renewed; they are not given again)
    first      image ids in the order in which they are wanted before all others, as far as they are untouched
    resumed    what this page holds without having it in hand comes first of all: it was in hand before a reload
    ahead      image ids with the fewest answers, as the worker counted them
    incomplete_first    incomplete images come before all others
    """
    with db.writing(durable=False) as sql:
        _renew(sql, holder, annotator, _whole(have))
        want = min(want, _room(sql, holder, _whole(have)))
        rows = sql.execute("SELECT image_id, holder FROM lease").fetchall()
        taken = {image_id for image_id, other in rows if other != holder} | set(have)
        held = [image_id for image_id, other in rows if other == holder and image_id not in taken]
        chosen = _in_order(sql, held)[:want] if resumed else []
        unlabeled = [
            lambda out, room: _free_of(sql, first, out, room),
            lambda out, room: _free(sql, UNTOUCHED, out, room),
            lambda out, room: _free(sql, SKIPPED, out, room),
        ]
        partly = [lambda out, room: incomplete.fewest_answers(sql, ahead, out, room)]
        last = [lambda out, room: incomplete.skipped_again(sql, out, room)]
        for more in [*partly, *unlabeled, *last] if incomplete_first else [*unlabeled, *partly, *last]:
            if len(chosen) < want:
                chosen += more(taken | set(chosen), want - len(chosen))
        _let_go(sql, holder, _whole([*have, *chosen]))
        _lease(sql, holder, annotator, _whole(chosen))
    return chosen


def take(db: Database, holder: str, annotator: str, candidates: Sequence[int], want: int) -> list[int]:
    """The first `want` of these images that nobody else holds, leased at once (review: the engine has the order)."""
    with db.writing(durable=False) as sql:
        chosen = _not_held(sql, holder, _whole(candidates))[: min(want, _room(sql, holder))]
        _lease(sql, holder, annotator, chosen)
    return [image_id for image_id, _ in chosen]


def take_cells(
    db: Database, holder: str, annotator: str, candidates: Sequence[tuple[int, int]], want: int
) -> list[tuple[int, int]]:
    """The first `want` of these cells (image id, class id) that nobody else holds, leased at once.

    A cell is held when somebody else has it open in a grid, or has its whole image open.
    """
    with db.writing(durable=False) as sql:
        chosen = _not_held(sql, holder, candidates)[: min(want, _room(sql, holder))]
        _lease(sql, holder, annotator, chosen)
    return chosen


def take_over(db: Database, holder: str, before: str) -> bool:
    """Give this page what it held under another name, before a reload; a late word of that other name frees nothing.

    returns    whether there was anything
    """
    if not db.value("SELECT 1 FROM lease WHERE holder = ?", [before]):
        return False
    with db.writing(durable=False) as sql:
        return sql.execute("UPDATE lease SET holder = ? WHERE holder = ?", [holder, before]).rowcount > 0


def hold(db: Database, holder: str, annotator: str, have: Collection[int]) -> None:
    """Renew the leases of the images that an open page has in hand, and let go of everything else it held."""
    hold_cells(db, holder, annotator, _whole(have))


def hold_cells(db: Database, holder: str, annotator: str, have: Collection[tuple[int, int]]) -> None:
    """The same for a page that has cells (image id, class id) in hand."""
    with db.writing(durable=False) as sql:
        _renew(sql, holder, annotator, have)
        _let_go(sql, holder, have)


def lost(db: Database, holder: str, have: Collection) -> list:
    """Those of these images, or cells (image id, class id), that another page has open by now, as they were named."""
    with db.reading() as sql:
        free = set(_not_held(sql, holder, [_cell(one) for one in have]))
    return [one for one in have if _cell(one) not in free]


def held(db: Database, but: str) -> list[tuple[int, int]]:
    """What is open on other pages than the holder `but`: (image id, class id), class 0 for a whole image."""
    return db.tuples(f"SELECT image_id, class_id FROM lease WHERE holder != ? AND {_LIVE}", [but, *_times()])


def held_by_others(db: Database, holder: str) -> int:
    """How many images with an open class somebody else has open, in whatever way."""
    return db.value(
        f"""SELECT count(DISTINCT l.image_id) FROM lease l JOIN image i ON i.id = l.image_id
        WHERE l.holder != ? AND {_LIVE} AND i.stage < ?""",
        [holder, *_times(), COMPLETE],
    )


def _whole(image_ids: Iterable[int]) -> list[tuple[int, int]]:
    return [(image_id, WHOLE) for image_id in image_ids]


def _cell(one: int | tuple[int, int]) -> tuple[int, int]:
    return (one, WHOLE) if isinstance(one, int) else one


def _times() -> tuple[float, float]:
    """Between which times a lease ends that holds; one taken by another process a moment ago may be a little ahead."""
    now = time.monotonic()
    return now, now + LEASE_SECONDS + 1


def _room(sql: sqlite_utils.Database, holder: str, keep: Collection[tuple[int, int]] | None = None) -> int:
    """How many more images or cells this page may hold; of what it has it keeps these, None: all."""
    own = set(sql.execute("SELECT image_id, class_id FROM lease WHERE holder = ?", [holder]).fetchall())
    return max(0, MOST_HELD - len(own if keep is None else own & set(keep)))


def _not_held(sql: sqlite_utils.Database, holder: str, cells: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of these cells and whole images that no other page has open in any way."""
    # All of the others' are read: leases are few, and a page may ask about more images than one statement can name.
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
    # Also what had run out, unless somebody else has it now: a laptop that slept, a page that was gone back to. Of that
    # no more than a page can have in hand: nobody takes all images by saying that they have them.
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
    # The plus keeps SQLite from walking the index of all untouched images for the order's sake.
    rows = sql.execute(
        f"""SELECT id FROM image WHERE +stage = ? AND problem = '' AND id IN ({",".join("?" * len(image_ids))})
        ORDER BY stage_decision, sha256""",
        [UNTOUCHED, *image_ids],
    ).fetchall()
    return [row[0] for row in rows]


def _free_of(sql: sqlite_utils.Database, wanted: Sequence[int], taken: set[int], want: int) -> list[int]:
    """The first `want` untouched ones of these images, in their order."""
    found: list[int] = []
    for start in range(0, len(wanted), incomplete.AT_ONCE):
        if want <= len(found):
            break
        some = [image_id for image_id in map(int, wanted[start : start + incomplete.AT_ONCE]) if image_id not in taken]
        rows = sql.execute(
            f"SELECT id FROM image WHERE +stage = ? AND problem = '' AND id IN ({','.join('?' * len(some))})",
            [UNTOUCHED, *some],
        )
        free = {row[0] for row in rows.fetchall()}
        found += [image_id for image_id in some if image_id in free]
    return found[: max(want, 0)]


def _free(sql: sqlite_utils.Database, stage: int, taken: set[int], want: int) -> list[int]:
    found = []
    if want <= 0:
        return found
    # Leases are few, the index gives the order: walking past the taken ones is cheaper than a join.
    skipped_once = "AND (SELECT count(*) FROM decision WHERE image_id = image.id AND action = 'skip') < 2"
    for (image_id,) in sql.execute(
        f"""SELECT id FROM image WHERE stage = ? AND problem = '' {skipped_once if stage == SKIPPED else ""}
        ORDER BY stage_decision, sha256""",
        [stage],
    ):
        if image_id not in taken:
            found.append(image_id)
            if len(found) == want:
                break
    return found


def _lease(sql: sqlite_utils.Database, holder: str, annotator: str, cells: Iterable[tuple[int, int]]) -> None:
    until = time.monotonic() + LEASE_SECONDS
    sql.conn.executemany(
        """INSERT INTO lease (image_id, class_id, holder, annotator, until) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (image_id, class_id) DO UPDATE SET holder = excluded.holder, annotator = excluded.annotator,
        until = excluded.until""",
        [(image_id, class_id, holder, annotator, until) for image_id, class_id in cells],
    )
