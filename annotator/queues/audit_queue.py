"""Audit grids: unanswered audit cells, one class at a time, in audit order.

Predictions and earlier labels are hidden. Every tile starts as "no".
"""

from collections.abc import Iterator
from dataclasses import replace

from annotator.humanize import format_count
from annotator.quality import audit_sampling
from annotator.queues import grid_queue
from annotator.queues.grid_queue import Grid, Tile
from annotator.queues.image_queue import COMING_BACK_MESSAGE, LeasedWork, build_work
from annotator.records import WantedGrids
from annotator.store.database.database import Database
from annotator.store.labels import audits
from annotator.store.people import leases


def lease_next_grids(db: Database, wanted: WantedGrids) -> LeasedWork:
    """Lease up to `want` grids of unanswered audit cells, and return them with the page's context.

    The current class is finished first, and class `wanted.but` comes last. Raises AnnotatorError for an unknown class.
    """
    run, counts, class_ids = grid_queue.renew_leases(db, wanted)
    grids = list(_lease_grids(db, wanted, class_ids)) if wanted.want else []
    empty = "" if grids or not wanted.want else _explain_empty(db, wanted)
    return build_work(db, wanted, grids, empty, counts, run)


def _lease_grids(db: Database, wanted: WantedGrids, class_ids: list[int]) -> Iterator[Grid]:
    in_hand = set(wanted.have)
    open_cells = [
        cell
        for cell in audit_sampling.load_open_cells_for(db, wanted.annotator)
        if (cell.image_id, cell.class_id) not in in_hand
    ]
    out, room = grid_queue.UnavailableCells(wanted, leases.load_leases_of_others(db, wanted.holder)), wanted.want
    taken: dict[int, list[Tile]] = {}
    for class_id in _order_classes(wanted, class_ids):
        images_out = out.get_unavailable_images(class_id)
        free = [cell.image_id for cell in open_cells if cell.class_id == class_id and cell.image_id not in images_out]
        if free and room > 0:
            asked = replace(wanted, want=room, selection="", hide_predictions=True)
            taken[class_id] = grid_queue.lease_tiles(db, asked, class_id, ((image_id, None) for image_id in free))
            room -= -(-len(taken[class_id]) // wanted.size)
    # A cell that was answered between reading the audits and leasing it is not asked again.
    still_open = (
        {(cell.image_id, cell.class_id) for cell in audit_sampling.load_open_cells_for(db, wanted.annotator)}
        if taken
        else set()
    )
    waiting = len(open_cells)
    for class_id, leased in taken.items():
        tiles = [tile for tile in leased if (tile.image.id, class_id) in still_open]
        for start in range(0, len(tiles), wanted.size):
            audit_grid = grid_queue.build_grid(class_id, None, tiles[start : start + wanted.size])
            yield replace(audit_grid, waiting=waiting)
            waiting -= len(audit_grid.tiles)


def _order_classes(wanted: WantedGrids, class_ids: list[int]) -> list[int]:
    first = wanted.class_id
    if first is None and wanted.have and wanted.have[-1][1] != wanted.but:
        first = wanted.have[-1][1]
    return sorted(class_ids, key=lambda class_id: (class_id != first, class_id == wanted.but))


def _explain_empty(db: Database, wanted: WantedGrids) -> str:
    if not audits.load_audits(db):
        return "There is no audit yet. Start one on the Certificate page."
    in_hand = {*wanted.have, *wanted.passed}
    left = sum(
        (cell.image_id, cell.class_id) not in in_hand
        for cell in audit_sampling.load_open_cells_for(db, wanted.annotator)
    )
    if left:
        return (
            f"Nothing left here: {format_count(left, 'audit question is', 'audit questions are')} open elsewhere. "
            f"{COMING_BACK_MESSAGE}"
        )
    if others := len(audit_sampling.load_cells_to_repeat(db, None)):
        waiting = format_count(others, "question waits", "questions wait")
        return f"You have answered every audit question that is yours. {waiting} for the answer of another person."
    return "Every audit question has been answered. The Certificate page shows the result."
