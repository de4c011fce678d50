"""What a page asks for when it needs more to show: the next images or grids, and images it goes back to."""

import base64

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.engine import grid, worklist
from annotator.records import Filter, Wanted, WantedGrids
from annotator.store import cells
from annotator.ui import context
from annotator.ui.routes.guard import FRESH, body_of, guarded

MOST_IMAGES = 200
MOST_NAMED = 5000  # images or cells that a page names as in hand or done with
MOST_GRIDS = 8
LARGEST_GRID = 48
EXAMPLES = 6


async def work(request: Request, annotator: str) -> Response:
    """POST {mode, holder, have, want, instead?, passed?, filter?} -> the next images of that mode, now leased."""
    body = await body_of(request)
    wanted = Wanted(
        mode=str(body["mode"]),
        holder=_holder(body["holder"]),
        annotator=annotator,
        have=_ids(body.get("have")),
        want=_at_most(body.get("want", 0), MOST_IMAGES),
        only=_filter(body.get("filter") or {}),
        passed=_ids(body.get("passed")),
        instead=_holder(body.get("instead", "")),
    )
    return JSONResponse(await run_sync(_work, wanted), headers=FRESH)


async def grids(request: Request, annotator: str) -> Response:
    """POST {holder, class, size, have, want, instead?, passed?, selection?, but?} -> the next grids of a class, leased.

    have and passed are [image, class] pairs; class null asks for the best one, other than `but` if there is one.
    """
    body = await body_of(request)
    wanted = WantedGrids(
        holder=_holder(body["holder"]),
        annotator=annotator,
        class_id=_number(body.get("class")),
        size=max(1, _at_most(body["size"], LARGEST_GRID)),
        have=_pairs(body.get("have")),
        want=_at_most(body.get("want", 0), MOST_GRIDS),
        passed=_pairs(body.get("passed")),
        instead=_holder(body.get("instead", "")),
        selection=str(body.get("selection") or "")[:100],
        but=_number(body.get("but")),
    )
    return JSONResponse(await run_sync(_grids, wanted), headers=FRESH)


async def items(request: Request, annotator: str) -> Response:
    """POST {images} -> {items}: those images again, with their labels as they are now (going back to one)."""
    body = await body_of(request)
    found = await run_sync(worklist.items, context.db(), _ids(body["images"])[:MOST_IMAGES])
    return JSONResponse({"items": [_item(one) for one in found]}, headers=FRESH)


async def classes(request: Request, annotator: str) -> Response:
    """POST {} -> {classes, best}: how far each class is, how much is probably still to find, and where most of it."""
    await body_of(request)
    return JSONResponse(await run_sync(_classes), headers=FRESH)


async def examples(request: Request, annotator: str) -> Response:
    """POST {class} -> {images}: on which people saw this class, the newest first."""
    body = await body_of(request)
    found = await run_sync(cells.confirmed, context.db(), int(body["class"]), EXAMPLES)
    return JSONResponse({"images": found}, headers=FRESH)


ROUTES = [
    Route("/api/work", guarded(work), methods=["POST"]),
    Route("/api/grid", guarded(grids), methods=["POST"]),
    Route("/api/items", guarded(items), methods=["POST"]),
    Route("/api/classes", guarded(classes), methods=["POST"]),
    Route("/api/examples", guarded(examples), methods=["POST"]),
]


def _work(wanted: Wanted) -> dict:
    return _told(worklist.next_work(context.db(), wanted), _item)


def _grids(wanted: WantedGrids) -> dict:
    return _told(grid.next_grids(context.db(), wanted), _grid)


def _classes() -> dict:
    db = context.db()
    found = [
        {
            "id": one.class_id,
            "present": one.present,
            "absent": one.absent,
            "unsure": one.unsure,
            "unknown": one.unknown,
            "likely": None if one.likely is None else round(one.likely, 1),
        }
        for one in grid.class_counts(db)
    ]
    return {"classes": found, "best": grid.best_class(db)}


def _told(found: worklist.Work, as_json) -> dict:
    return {
        "items": [as_json(one) for one in found.items],
        "left": found.left,
        "mine": found.mine,
        "empty": found.empty,
        "worker": found.worker,
        "run": found.run,
        "of": found.of,
    }


def _item(one: worklist.WorkItem) -> dict:
    return _image(one.image) | {
        "labels": [
            {"class": label.class_id, "state": label.state, "source": label.source, "by": label.annotator}
            for label in one.labels
        ],
        "flag": one.note or None,
        "likely": base64.b64encode(one.likely).decode(),
        "suggestions": [vars(chip) for chip in one.suggestions],
    }


def _grid(one: grid.Grid) -> dict:
    return {
        "id": one.id,
        "class": one.class_id,
        "run": one.run_id,
        "share": one.share,
        "start": one.start,
        "tiles": [_image(tile.image) | {"probability": tile.probability, "state": tile.state} for tile in one.tiles],
    }


def _image(image) -> dict:
    return {"id": image.id, "name": image.name, "width": image.width, "height": image.height}


def _filter(entry: dict) -> Filter:
    return Filter(
        class_id=_number(entry.get("class")),
        low=_probability(entry.get("from")),
        high=1.0 if entry.get("to") is None else _probability(entry["to"]),
        kind=str(entry.get("kind") or "missing"),
        by=str(entry.get("by") or "")[:100],
    )


def _probability(value: object) -> float | None:
    if value is None:
        return None
    if not 0 <= float(value) <= 1:
        raise ValueError(f"{value!r} is not a probability: it must lie between 0 and 1")
    return float(value)


def _holder(value: object) -> str:
    return str(value)[:100]


def _ids(values: list | None) -> list[int]:
    return [int(value) for value in (values or [])[:MOST_NAMED]]


def _pairs(values: list | None) -> list[tuple[int, int]]:
    return [(int(image_id), int(class_id)) for image_id, class_id in (values or [])[:MOST_NAMED]]


def _number(value: object) -> int | None:
    return None if value is None else int(value)


def _at_most(value: object, most: int) -> int:
    return min(max(int(value), 0), most)
