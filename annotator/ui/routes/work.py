"""The routes for more work: the next images or grids, images that a page goes back to, and the progress of classes."""

from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.queues import annotate, audit_grid, grid
from annotator.records import Filter, Wanted, WantedGrids
from annotator.roles import Right
from annotator.store.classes.classes import all_classes, in_order
from annotator.store.labels import cells
from annotator.store.people import blindness, leases
from annotator.ui.access import context
from annotator.ui.parts.class_adding import as_json
from annotator.ui.routes import shapes
from annotator.ui.routes.guard import FRESH, blind_as, body_of, guarded, refuse_without
from annotator.ui.routes.requests import (
    MOST_NAMED,
    ClassRequest,
    FilterRequest,
    GridRequest,
    ItemsRequest,
    NeighboursRequest,
    Nothing,
    WorkRequest,
    parsed,
)

MOST_IMAGES = 200
MOST_GRIDS = 8
LARGEST_GRID = 96
EXAMPLES = 6


async def work(request: Request, annotator: str) -> Response:
    """POST {mode, holder, have, want, instead?, passed?, filter?, order?, after?} -> a mode's next images, leased."""
    asked = parsed(await body_of(request), WorkRequest)
    if asked.only.kind == "annotator_disagreements":  # these show the answers of others
        refuse_without(request, Right.REVIEW)
    wanted = Wanted(
        mode=asked.mode,
        holder=asked.holder,
        annotator=annotator,
        have=asked.have[:MOST_NAMED],
        want=min(asked.want, MOST_IMAGES),
        only=_filter(asked.only),
        passed=asked.passed[:MOST_NAMED],
        instead=asked.instead,
        order=asked.order,
        after=asked.after,
        may_review=not blind_as(request, annotator),
    )
    return JSONResponse(await run_sync(_work, wanted), headers=FRESH)


async def grids(request: Request, annotator: str) -> Response:
    """POST {holder, class, size, have, want, instead?, passed?, selection?, but?, audit?} -> the next grids, leased.

    have and passed are [image, class] pairs; class null asks for the best class, other than `but` if there is another.
    audit: open audit cells, without predictions and previous answers.
    """
    asked = parsed(await body_of(request), GridRequest)
    wanted = WantedGrids(
        holder=asked.holder,
        annotator=annotator,
        class_id=asked.class_id,
        size=min(max(1, asked.size), LARGEST_GRID),
        have=asked.have[:MOST_NAMED],
        want=min(asked.want, MOST_GRIDS),
        passed=asked.passed[:MOST_NAMED],
        instead=asked.instead,
        selection=asked.selection or "",
        but=asked.but,
        hide_predictions=bool(asked.audit),
    )
    return JSONResponse(await run_sync(_grids, wanted), headers=FRESH)


async def items(request: Request, annotator: str) -> Response:
    """POST {images} -> {items}: these images, with their labels as they are now and who else has them open (`with`).

    Images that this person is still to answer blind come without anything that is known of them, and without who has
    them open (`hidden`).

    No lease is taken or asked about first: a page may show any image, also a complete or unreadable one.
    """
    asked, blind = parsed(await body_of(request), ItemsRequest), blind_as(request, annotator)
    return JSONResponse(await run_sync(_items, asked.images[:MOST_IMAGES], annotator, blind), headers=FRESH)


async def neighbours(request: Request, annotator: str) -> Response:
    """POST {image, by: name|time} -> {before, after}: the images beside this one in its folder, null at its ends."""
    asked = parsed(await body_of(request), NeighboursRequest)
    return JSONResponse(await run_sync(_neighbours, asked, blind_as(request, annotator)), headers=FRESH)


async def classes(request: Request, annotator: str) -> Response:
    """POST {} -> {classes, best}: every class as lists show it, with its progress and how much is still to find.

    best: the class whose next grid is expected to find most. Example images are not included (`examples`). How much is
    still to find follows from all answers, so it is null for a person who is still to answer some images blind.
    """
    parsed(await body_of(request), Nothing)
    return JSONResponse(await run_sync(_classes, annotator, blind_as(request, annotator)), headers=FRESH)


async def examples(request: Request, annotator: str) -> Response:
    """POST {class} -> {images}: those chosen to show the class, then those on which people saw it, newest first.

    Images that this person is still to answer blind are left out.
    """
    asked = parsed(await body_of(request), ClassRequest)
    images = await run_sync(_examples, asked.class_id, blind_as(request, annotator))
    return JSONResponse({"images": images}, headers=FRESH)


ROUTES = [
    Route("/api/work", guarded(work, Right.ANSWER), methods=["POST"]),
    Route("/api/grid", guarded(grids, Right.ANSWER), methods=["POST"]),
    Route("/api/items", guarded(items, Right.LOOK), methods=["POST"]),
    Route("/api/neighbours", guarded(neighbours, Right.LOOK), methods=["POST"]),
    Route("/api/classes", guarded(classes, Right.LOOK), methods=["POST"]),
    Route("/api/examples", guarded(examples, Right.LOOK), methods=["POST"]),
]


def _work(wanted: Wanted) -> dict[str, Any]:
    return shapes.work(annotate.next_work(context.db(), wanted), shapes.item)


def _items(image_ids: list[int], annotator: str, blind: str) -> dict[str, Any]:
    db = context.db()
    work_items = annotate.shown_to(db, image_ids, blind)
    others = leases.opened_by_others(db, [item.image.id for item in work_items if not item.hidden], annotator)
    return {"items": [shapes.item(item) | {"with": others.get(item.image.id, "")} for item in work_items]}


def _neighbours(asked: NeighboursRequest, blind: str) -> dict[str, Any]:
    db = context.db()
    before, after = annotate.neighbours(db, asked.image, asked.by, blind)
    return {"before": before and shapes.item(before), "after": after and shapes.item(after)}


def _grids(wanted: WantedGrids) -> dict[str, Any]:
    next_grids = audit_grid.next_grids if wanted.hide_predictions else grid.next_grids
    return shapes.work(next_grids(context.db(), wanted), shapes.grid)


def _examples(class_id: int, blind: str) -> list[int]:
    db = context.db()
    chosen = next((class_.examples for class_ in all_classes(db) if class_.id == class_id), ())
    confirmed = cells.confirmed(db, class_id, EXAMPLES)
    shown = list(dict.fromkeys([*chosen, *confirmed]))
    hidden = blindness.show(db, blind, shown) if blind else set()
    return [image_id for image_id in shown if image_id not in hidden][:EXAMPLES]


def _classes(annotator: str, blind: str) -> dict[str, Any]:
    db = context.db()
    untold = bool(blind) and blindness.waits_for(db, blind)
    counts = {count.class_id: count for count in grid.class_counts(db)}
    classes = [
        as_json(class_)
        | {
            "present": count.present,
            "absent": count.absent,
            "unsure": count.unsure,
            "unknown": count.unknown,
            "likely": None if untold or count.likely is None else round(count.likely, 1),
        }
        for class_ in in_order(db)
        if (count := counts.get(class_.id))
    ]
    return {"classes": classes, "best": grid.best_class(db, annotator=annotator)}


def _filter(asked: FilterRequest) -> Filter:
    return Filter(
        class_id=asked.class_id,
        low=asked.low,
        high=1.0 if asked.high is None else asked.high,
        kind=asked.kind,
        by=asked.by,
    )
