"""Grids of the cells that were drawn for an audit: of one class at a time, in the order in which they are to be asked.

Nothing is told of them, neither what the model thinks nor what was said before, and every grid begins with "no".
"""

from collections.abc import Iterator
from dataclasses import replace

from annotator.quality import audit
from annotator.queues import grid
from annotator.queues.annotate import Work, with_surroundings
from annotator.queues.grid import Grid, Tile
from annotator.records import WantedGrids
from annotator.store import audits, leases
from annotator.store.database import Database


def next_grids(db: Database, wanted: WantedGrids) -> Work:
    """Up to `want` grids of drawn cells, leased to this page, with everything around them.

    They are of the class that is wanted, or else of the one in hand, until it has no more, and then of the next one;
    `but` comes last. Raises AnnotatorError for a class that is not there.
    """
    run, counts, every = grid.renewed(db, wanted)
    found = list(_grids(db, wanted, every)) if wanted.want else []
    empty = "" if found or not wanted.want else _empty(db, wanted)
    return with_surroundings(db, wanted, found, empty, counts, run)


def _grids(db: Database, wanted: WantedGrids, every: list[int]) -> Iterator[Grid]:
    in_hand = set(wanted.have)
    asked = [one for one in audit.open_cells(db) if (one.image_id, one.class_id) not in in_hand]
    out, room = grid.Out(wanted, leases.held(db, wanted.holder)), wanted.want
    taken: dict[int, list[Tile]] = {}
    for class_id in _in_turn(wanted, every):
        gone = out.images(class_id)
        free = [one.image_id for one in asked if one.class_id == class_id and one.image_id not in gone]
        if free and room > 0:
            some = replace(wanted, want=room, selection="", hide_predictions=True)
            taken[class_id] = grid.take_tiles(db, some, class_id, ((image_id, None) for image_id in free))
            room -= -(-len(taken[class_id]) // wanted.size)
    # What somebody has answered between the look at the drawings and the lease is not asked again.
    still = {(one.image_id, one.class_id) for one in audit.open_cells(db)} if taken else set()
    left = len(asked)
    for class_id, every_tile in taken.items():
        tiles = [tile for tile in every_tile if (tile.image.id, class_id) in still]
        for start in range(0, len(tiles), wanted.size):
            made = grid.grid_of(class_id, None, tiles[start : start + wanted.size])
            yield replace(made, waiting=left)
            left -= len(made.tiles)


def _in_turn(wanted: WantedGrids, every: list[int]) -> list[int]:
    """The classes in the order in which they are asked about."""
    first = wanted.class_id
    if first is None and wanted.have and wanted.have[-1][1] != wanted.but:
        first = wanted.have[-1][1]
    return sorted(every, key=lambda class_id: (class_id != first, class_id == wanted.but))


def _empty(db: Database, wanted: WantedGrids) -> str:
    if not audits.audits(db):
        return "Nothing has been drawn for an audit yet. The Certificate page draws cells for it."
    in_hand = {*wanted.have, *wanted.passed}
    left = sum((one.image_id, one.class_id) not in in_hand for one in audit.open_cells(db))
    if left:
        return (
            f"The last {left:,} drawn cells are open on other pages. What is not answered there comes back here within "
            "three minutes."
        )
    return "Every drawn cell has been answered. The Certificate page says what follows from it."
