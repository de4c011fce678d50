"""The routes of work: next images or grids, and class progress."""

from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.queues import audit_queue, grid_queue, image_queue
from annotator.records import SuggestionFilter, WantedGrids, WantedImages
from annotator.roles import Right
from annotator.store.classes.classes import load_active_classes, load_ordered_classes
from annotator.store.labels import label_cells
from annotator.store.people import blindness, leases
from annotator.ui.access import served_project
from annotator.ui.shared import responses
from annotator.ui.shared.guard import NO_STORE_HEADERS, get_blind_annotator, guard_route, read_body, require_right
from annotator.ui.shared.page_classes import build_class_json
from annotator.ui.shared.requests import (
    MAX_NAMED_ITEMS,
    ClassRequest,
    EmptyRequest,
    FilterRequest,
    GridRequest,
    ItemsRequest,
    NeighborsRequest,
    WorkRequest,
    parse_body,
)

MAX_IMAGES = 200
MAX_GRIDS = 8
MAX_GRID_TILES = 96
MAX_EXAMPLES = 6


async def work(request: Request, annotator: str) -> Response:
    """Handle POST {mode, ...}: lease the next images to annotate or review."""
    asked = parse_body(await read_body(request), WorkRequest)
    if asked.only.kind == "annotator_disagreements":  # these show the answers of others
        require_right(request, Right.REVIEW)
    wanted = WantedImages(
        mode=asked.mode,
        holder=asked.holder,
        annotator=annotator,
        have=asked.have[:MAX_NAMED_ITEMS],
        want=min(asked.want, MAX_IMAGES),
        only=_build_filter(asked.only),
        passed=asked.passed[:MAX_NAMED_ITEMS],
        instead=asked.instead,
        order=asked.order,
        after=asked.after,
        may_review=not get_blind_annotator(request, annotator),
    )
    return JSONResponse(await run_sync(_build_work, wanted), headers=NO_STORE_HEADERS)


async def grids(request: Request, annotator: str) -> Response:
    """Handle POST: lease the next grids of images for one class.

    have and passed are displayed and finished [image, class] pairs. Class null selects the best class except
    `but`. audit hides predictions.
    """
    asked = parse_body(await read_body(request), GridRequest)
    wanted = WantedGrids(
        holder=asked.holder,
        annotator=annotator,
        class_id=asked.class_id,
        size=min(max(1, asked.size), MAX_GRID_TILES),
        have=asked.have[:MAX_NAMED_ITEMS],
        want=min(asked.want, MAX_GRIDS),
        passed=asked.passed[:MAX_NAMED_ITEMS],
        instead=asked.instead,
        selection=asked.selection or "",
        but=asked.but,
        hide_predictions=bool(asked.audit),
    )
    return JSONResponse(await run_sync(_build_grids, wanted), headers=NO_STORE_HEADERS)


async def items(request: Request, annotator: str) -> Response:
    """Handle POST {images} -> {items}: return images with current labels and viewers, not leased.

    Images that the annotator must still answer blind reveal nothing (`hidden`).
    """
    asked, blind = parse_body(await read_body(request), ItemsRequest), get_blind_annotator(request, annotator)
    return JSONResponse(
        await run_sync(_build_items, asked.images[:MAX_IMAGES], annotator, blind), headers=NO_STORE_HEADERS
    )


async def neighbours(request: Request, annotator: str) -> Response:
    """Handle POST {image, by: name|time} -> {before, after}: return the neighbors of an image."""
    asked = parse_body(await read_body(request), NeighborsRequest)
    return JSONResponse(
        await run_sync(_find_neighbors, asked, get_blind_annotator(request, annotator)), headers=NO_STORE_HEADERS
    )


async def classes(request: Request, annotator: str) -> Response:
    """Handle POST {} -> {classes, best}: return class progress and estimated remaining images.

    Estimates are null for annotators with images to answer blind, because they reveal others' answers.
    """
    parse_body(await read_body(request), EmptyRequest)
    return JSONResponse(
        await run_sync(_build_classes, annotator, get_blind_annotator(request, annotator)), headers=NO_STORE_HEADERS
    )


async def examples(request: Request, annotator: str) -> Response:
    """Handle POST {class} -> {images}: return chosen example images, then the newest positives.

    Images still to be answered blind are omitted.
    """
    asked = parse_body(await read_body(request), ClassRequest)
    images = await run_sync(_find_examples, asked.class_id, get_blind_annotator(request, annotator))
    return JSONResponse({"images": images}, headers=NO_STORE_HEADERS)


ROUTES = [
    Route("/api/work", guard_route(work, Right.ANSWER), methods=["POST"]),
    Route("/api/grid", guard_route(grids, Right.ANSWER), methods=["POST"]),
    Route("/api/items", guard_route(items, Right.LOOK), methods=["POST"]),
    Route("/api/neighbours", guard_route(neighbours, Right.LOOK), methods=["POST"]),
    Route("/api/classes", guard_route(classes, Right.LOOK), methods=["POST"]),
    Route("/api/examples", guard_route(examples, Right.LOOK), methods=["POST"]),
]


def _build_work(wanted: WantedImages) -> dict[str, Any]:
    return responses.build_work(image_queue.lease_next_work(served_project.db(), wanted), responses.build_item)


def _build_items(image_ids: list[int], annotator: str, blind: str) -> dict[str, Any]:
    db = served_project.db()
    work_items = image_queue.load_items_for(db, image_ids, blind)
    others = leases.find_opened_by_others(db, [item.image.id for item in work_items if not item.hidden], annotator)
    return {"items": [responses.build_item(item) | {"with": others.get(item.image.id, "")} for item in work_items]}


def _find_neighbors(asked: NeighborsRequest, blind: str) -> dict[str, Any]:
    db = served_project.db()
    before, after = image_queue.load_neighbors(db, asked.image, asked.by, blind)
    return {"before": before and responses.build_item(before), "after": after and responses.build_item(after)}


def _build_grids(wanted: WantedGrids) -> dict[str, Any]:
    next_grids = audit_queue.lease_next_grids if wanted.hide_predictions else grid_queue.lease_next_grids
    return responses.build_work(next_grids(served_project.db(), wanted), responses.build_grid)


def _find_examples(class_id: int, blind: str) -> list[int]:
    db = served_project.db()
    chosen = next((class_.examples for class_ in load_active_classes(db) if class_.id == class_id), ())
    confirmed = label_cells.find_newest_positives(db, class_id, MAX_EXAMPLES)
    shown = list(dict.fromkeys([*chosen, *confirmed]))
    hidden = blindness.reveal_visible_images(db, blind, shown) if blind else set()
    return [image_id for image_id in shown if image_id not in hidden][:MAX_EXAMPLES]


def _build_classes(annotator: str, blind: str) -> dict[str, Any]:
    db = served_project.db()
    untold = bool(blind) and blindness.has_hidden_images(db, blind)
    counts = {count.class_id: count for count in grid_queue.load_class_counts(db)}
    classes = [
        build_class_json(class_)
        | {
            "present": count.present,
            "absent": count.absent,
            "unsure": count.unsure,
            "unknown": count.unknown,
            "likely": None if untold or count.expected_positives is None else round(count.expected_positives, 1),
        }
        for class_ in load_ordered_classes(db)
        if (count := counts.get(class_.id))
    ]
    return {"classes": classes, "best": grid_queue.find_best_class(db, annotator=annotator)}


def _build_filter(asked: FilterRequest) -> SuggestionFilter:
    return SuggestionFilter(
        class_id=asked.class_id,
        low=asked.low,
        high=1.0 if asked.high is None else asked.high,
        kind=asked.kind,
        by=asked.by,
    )
