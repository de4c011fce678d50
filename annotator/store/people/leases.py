"""Leases on open work, so that no two pages get the same image or grid cell.

A lease belongs to one open page (the holder) and expires unless renewed, so crashes need no cleanup.
`until` uses the monotonic clock: a changed wall clock would hide or duplicate images. It restarts with the
machine, so a lease ending later than a new one is void.
"""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import sqlite_utils

from annotator.roles import Right
from annotator.settings import LEASE_SECONDS
from annotator.store.database.database import Database
from annotator.store.images import sequences
from annotator.store.images.stages import COMPLETE, SKIPPED, UNTOUCHED
from annotator.store.labels import image_overlap, label_cells
from annotator.store.people import assignment
from annotator.store.people.assignment import UnavailableImages

WHOLE_IMAGE = 0  # the class of a lease of a whole image
MAX_LEASES_PER_PAGE = 400  # images or cells leased by one page; pages are given at most eight grids of 48 tiles

Item = TypeVar("Item", bound=int | tuple[int, int])

_IS_LIVE_SQL = "until BETWEEN ? AND ?"  # with _times()


@dataclass(frozen=True)
class LeaseRequest:
    """A page's request for images."""

    holder: str
    annotator: str
    # images that this page has: their leases are renewed, and they are not returned
    have: Collection[int]
    # largest number of images
    want: int


@dataclass(frozen=True, eq=False)
class LeaseOrder:
    """The order in which images are leased."""

    # ids of images that come first, in this order, while untouched
    first: Sequence[int] | np.ndarray = ()
    # ids of incomplete images with the fewest answers, as counted by the worker
    ahead: Sequence[int] | np.ndarray = ()
    # start with images that this page leased before a reload
    resumed: bool = False
    incomplete_first: bool = False
    # order of untouched and incomplete images (sequences.py), or ""
    sequence: str = ""
    # image after which the sequence continues, 0 for its start
    after: int = 0


USUAL_ORDER = LeaseOrder()


def lease_next_images(db: Database, request: LeaseRequest, order: LeaseOrder = USUAL_ORDER) -> list[int]:
    """Lease and return up to `request.want` images with an unanswered class that no other page leases.

    Untouched images come first, then skipped, then incomplete ones. Images skipped twice or with answers come last, so
    that an annotator who keeps skipping reaches all others.
    """
    holder, annotator, have, want = request.holder, request.annotator, request.have, request.want
    aside = assignment.load_withheld_images(db, annotator)
    with db.writing(durable=False, right=Right.ANSWER) as sql:
        _renew_leases(sql, holder, annotator, _to_whole_cells(have))
        want = min(want, _count_free_leases(sql, holder, _to_whole_cells(have)))
        rows = sql.execute("SELECT image_id, holder FROM lease").fetchall()
        taken = {image_id for image_id, other in rows if other != holder} | set(have)
        held = [
            image_id for image_id, other in rows if other == holder and image_id not in taken and image_id not in aside
        ]
        # In a sequence, the images leased before a reload are the first after `after` anyway.
        chosen = _sort_by_order(sql, held)[:want] if order.resumed and not order.sequence else []
        unlabeled: list[Callable[[UnavailableImages, int], list[int]]] = [
            partial(_select_untouched, sql, order.first),
            partial(_find_free_images, sql, UNTOUCHED),
            partial(_find_free_images, sql, SKIPPED),
        ]
        partly = partial(label_cells.find_least_answered_images, sql, order.ahead)
        last = partial(label_cells.find_skipped_images, sql)
        queues = [partly, *unlabeled, last] if order.incomplete_first else [*unlabeled, partly, last]
        if order.sequence:
            queues = [
                partial(sequences.find_next_open, sql, order.sequence, order.after),
                partial(_find_free_images, sql, SKIPPED),
                last,
            ]
        if aside.holds_untouched:
            queues = [partly, last]
        for more in queues:
            if len(chosen) < want:
                chosen += more(UnavailableImages(taken | set(chosen), aside), want - len(chosen))
        _release_others(sql, holder, _to_whole_cells([*have, *chosen]))
        _insert_leases(sql, holder, annotator, _to_whole_cells(chosen))
    return chosen


def lease_images(db: Database, holder: str, annotator: str, candidates: Sequence[int], want: int) -> list[int]:
    """Lease the first `want` free `candidates`, without images that wait for blind answers of several annotators."""
    candidates = _filter_not_waiting(db, candidates)
    with db.writing(durable=False, right=Right.ANSWER) as sql:
        chosen = _filter_not_held(sql, holder, _to_whole_cells(candidates))[
            : min(want, _count_free_leases(sql, holder))
        ]
        _insert_leases(sql, holder, annotator, chosen)
    return [image_id for image_id, _ in chosen]


def lease_cells(
    db: Database, holder: str, annotator: str, candidates: Sequence[tuple[int, int]], want: int
) -> list[tuple[int, int]]:
    """Lease the first `want` cells (image id, class id) not open elsewhere."""
    with db.writing(durable=False, right=Right.ANSWER) as sql:
        chosen = _filter_not_held(sql, holder, candidates)[: min(want, _count_free_leases(sql, holder))]
        _insert_leases(sql, holder, annotator, chosen)
    return chosen


def lease_overlap_image(db: Database, holder: str, annotator: str, image_id: int) -> bool:
    """Lease an image that several annotators answer blind, and return whether it was free."""
    with db.writing(durable=False, right=Right.ANSWER) as sql:
        chosen = _filter_not_held(sql, holder, [(image_id, WHOLE_IMAGE)])[: _count_free_leases(sql, holder)]
        _insert_leases(sql, holder, annotator, chosen)
    return bool(chosen)


def take_over(db: Database, holder: str, before: str) -> bool:
    """Move leases from `before`, the same page before a reload. Return whether any existed."""
    if not db.value("SELECT 1 FROM lease WHERE holder = ?", [before]):
        return False
    with db.writing(durable=False, right=Right.ANSWER) as sql:
        return sql.execute("UPDATE lease SET holder = ? WHERE holder = ?", [holder, before]).rowcount > 0


def renew_images(db: Database, holder: str, annotator: str, have: Collection[int]) -> None:
    """Renew a page's leases of these images and release its others."""
    renew_cells(db, holder, annotator, _to_whole_cells(have))


def renew_cells(db: Database, holder: str, annotator: str, have: Collection[tuple[int, int]]) -> None:
    """Renew a page's leases of these cells and release its others."""
    with db.writing(durable=False, right=Right.ANSWER) as sql:
        _renew_leases(sql, holder, annotator, have)
        _release_others(sql, holder, have)


def find_taken_by_others(db: Database, holder: str, have: Collection[Item]) -> list[Item]:
    """Return the images or cells of `have` that another page leases."""
    with db.reading() as sql:
        free = set(_filter_not_held(sql, holder, [_to_cell(item) for item in have]))
    return [item for item in have if _to_cell(item) not in free]


def load_leases_of_others(db: Database, excluded_holder: str) -> list[tuple[int, int]]:
    """Return other holders' leases: (image id, class id), class 0 for a whole image."""
    return db.tuples(
        f"SELECT image_id, class_id FROM lease WHERE holder != ? AND {_IS_LIVE_SQL}",
        [excluded_holder, *_get_live_interval()],
    )


def find_opened_by_others(db: Database, image_ids: Collection[int], annotator: str) -> dict[int, str]:
    """Return the `image_ids` that another annotator has open: image id -> annotator."""
    marks = ",".join("?" * len(image_ids))
    rows = db.tuples(
        f"SELECT image_id, annotator FROM lease WHERE image_id IN ({marks}) AND annotator != ? AND {_IS_LIVE_SQL}",
        [*image_ids, annotator, *_get_live_interval()],
    )
    return dict(rows)


def count_held_by_others(db: Database, holder: str) -> int:
    return db.value(
        f"""SELECT count(DISTINCT l.image_id) FROM lease l JOIN image i ON i.id = l.image_id
        WHERE l.holder != ? AND {_IS_LIVE_SQL} AND i.stage < ?""",
        [holder, *_get_live_interval(), COMPLETE],
    )


def _filter_not_waiting(db: Database, image_ids: Sequence[int]) -> list[int]:
    waiting = image_overlap.find_waiting_images(db, image_ids)
    return [image_id for image_id in image_ids if image_id not in waiting]


def _to_whole_cells(image_ids: Iterable[int]) -> list[tuple[int, int]]:
    return [(image_id, WHOLE_IMAGE) for image_id in image_ids]


def _to_cell(item: int | tuple[int, int]) -> tuple[int, int]:
    return (item, WHOLE_IMAGE) if isinstance(item, int) else item


def _get_live_interval() -> tuple[float, float]:
    """Return the interval of times (monotonic seconds) in which valid leases end, with slack for other processes."""
    start = time.monotonic()
    return start, start + LEASE_SECONDS + 1


def _count_free_leases(sql: sqlite_utils.Database, holder: str, keep: Collection[tuple[int, int]] | None = None) -> int:
    """Return how many leases this page may add if it keeps only `keep` (None keeps all)."""
    own = set(sql.execute("SELECT image_id, class_id FROM lease WHERE holder = ?", [holder]).fetchall())
    return max(0, MAX_LEASES_PER_PAGE - len(own if keep is None else own & set(keep)))


def _filter_not_held(
    sql: sqlite_utils.Database, holder: str, cells: Collection[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the `cells` that overlap with no lease of another page."""
    # All leases of others are read: they are few, and a page may ask about more images than one statement can name.
    rows = sql.execute(
        f"SELECT image_id, class_id FROM lease WHERE holder != ? AND {_IS_LIVE_SQL}", [holder, *_get_live_interval()]
    )
    others = set(rows.fetchall())
    images = {image_id for image_id, _ in others}
    return [
        cell
        for cell in cells
        if cell[0] not in images
        or (cell[1] != WHOLE_IMAGE and cell not in others and (cell[0], WHOLE_IMAGE) not in others)
    ]


def _renew_leases(sql: sqlite_utils.Database, holder: str, annotator: str, have: Collection[tuple[int, int]]) -> None:
    sql.execute(f"DELETE FROM lease WHERE NOT {_IS_LIVE_SQL}", _get_live_interval())
    own = set(sql.execute("SELECT image_id, class_id FROM lease WHERE holder = ?", [holder]).fetchall())
    # Expired leases are renewed too (a laptop that slept, a page gone back to) unless somebody else has them now, but
    # never more than a page can have: nobody takes all images by claiming to have them.
    mine = own & set(have)
    claimed = [cell for cell in _filter_not_held(sql, holder, have) if cell not in own][
        : max(0, MAX_LEASES_PER_PAGE - len(mine))
    ]
    marks = ",".join("?" * len(claimed))
    rows = sql.execute(f"SELECT id FROM image WHERE id IN ({marks})", [image_id for image_id, _ in claimed])
    known = set(rows.fetchall())
    _insert_leases(sql, holder, annotator, [*mine, *(cell for cell in claimed if (cell[0],) in known)])


def _release_others(sql: sqlite_utils.Database, holder: str, but: Iterable[tuple[int, int]]) -> None:
    held = sql.execute("SELECT image_id, class_id FROM lease WHERE holder = ?", [holder]).fetchall()
    sql.conn.executemany(
        "DELETE FROM lease WHERE image_id = ? AND class_id = ? AND holder = ?",
        [(*cell, holder) for cell in set(held) - set(but)],
    )


def _sort_by_order(sql: sqlite_utils.Database, image_ids: Sequence[int]) -> list[int]:
    # The plus keeps SQLite from walking the index of all untouched images to get the order.
    rows = sql.execute(
        f"""SELECT id FROM image WHERE +stage = ? AND problem = '' AND id IN ({",".join("?" * len(image_ids))})
        ORDER BY stage_decision, sha256""",
        [UNTOUCHED, *image_ids],
    ).fetchall()
    return [row[0] for row in rows]


def _select_untouched(
    sql: sqlite_utils.Database, wanted: Sequence[int] | np.ndarray, taken: UnavailableImages, want: int
) -> list[int]:
    free_ids: list[int] = []
    # Without untouched images, a long `wanted` would be searched in vain. STEP_ORDER BY makes SQLite use the index.
    any_ = "SELECT 1 FROM image WHERE stage = ? AND problem = '' ORDER BY stage_decision, sha256 LIMIT 1"
    if not sql.execute(any_, [UNTOUCHED]).fetchone():
        return free_ids
    for start in range(0, len(wanted), label_cells.ORDER_IDS_PER_QUERY):
        if want <= len(free_ids):
            break
        some = [
            image_id
            for image_id in map(int, wanted[start : start + label_cells.ORDER_IDS_PER_QUERY])
            if image_id not in taken
        ]
        rows = sql.execute(
            f"SELECT id FROM image WHERE +stage = ? AND problem = '' AND id IN ({','.join('?' * len(some))})",
            [UNTOUCHED, *some],
        )
        free = {row[0] for row in rows.fetchall()}
        free_ids += [image_id for image_id in some if image_id in free]
    return free_ids[: max(want, 0)]


def _find_free_images(sql: sqlite_utils.Database, stage: int, taken: UnavailableImages, want: int) -> list[int]:
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


def _insert_leases(sql: sqlite_utils.Database, holder: str, annotator: str, cells: Iterable[tuple[int, int]]) -> None:
    until = time.monotonic() + LEASE_SECONDS
    sql.conn.executemany(
        """INSERT INTO lease (image_id, class_id, holder, annotator, until) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (image_id, class_id) DO UPDATE SET holder = excluded.holder, annotator = excluded.annotator,
        until = excluded.until""",
        [(image_id, class_id, holder, annotator, until) for image_id, class_id in cells],
    )
