"""What a page asks for when it needs more to show: the next images or grids, and images it goes back to."""

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.engine import blind, grid, worklist
from annotator.records import Filter, Wanted, WantedGrids
from annotator.store import cells
from annotator.ui import context
from annotator.ui.routes import shapes
from annotator.ui.routes.guard import FRESH, body_of, guarded

MOST_IMAGES = 200
MOST_GRIDS = 8
LARGEST_GRID = 48
EXAMPLES = 6


async def work(request: Request, annotator: str) -> Response:
    """POST {mode, holder, have, want, instead?, passed?, filter?, order?} -> the next images of a mode, now leased."""
    body = await body_of(request)
    wanted = Wanted(
        mode=str(body["mode"]),
        holder=shapes.holder(body["holder"]),
        annotator=annotator,
        have=shapes.ids(body.get("have")),
        want=shapes.at_most(body.get("want", 0), MOST_IMAGES),
        only=_filter(body.get("filter") or {}),
        passed=shapes.ids(body.get("passed")),
        instead=shapes.holder(body.get("instead", "")),
        order=str(body.get("order") or "")[:100],
    )
    return JSONResponse(await run_sync(_work, wanted), headers=FRESH)


async def grids(request: Request, annotator: str) -> Response:
    """POST {holder, class, size, have, want, instead?, passed?, selection?, but?, audit?} -> the next grids, leased.

    have and passed are [image, class] pairs; class null asks for the best one, other than `but` if there is one. audit:
    cells of a drawing that wait for an answer; of them nothing is told.
    """
    body = await body_of(request)
    wanted = WantedGrids(
        holder=shapes.holder(body["holder"]),
        annotator=annotator,
        class_id=shapes.number(body.get("class")),
        size=max(1, shapes.at_most(body["size"], LARGEST_GRID)),
        have=shapes.pairs(body.get("have")),
        want=shapes.at_most(body.get("want", 0), MOST_GRIDS),
        passed=shapes.pairs(body.get("passed")),
        instead=shapes.holder(body.get("instead", "")),
        selection=str(body.get("selection") or "")[:100],
        but=shapes.number(body.get("but")),
        blind=bool(body.get("audit")),
    )
    return JSONResponse(await run_sync(_grids, wanted), headers=FRESH)


async def items(request: Request, annotator: str) -> Response:
    """POST {images} -> {items}: those images again, with their labels as they are now (going back to one)."""
    body = await body_of(request)
    found = await run_sync(worklist.items, context.db(), shapes.ids(body["images"])[:MOST_IMAGES])
    return JSONResponse({"items": [shapes.item(one) for one in found]}, headers=FRESH)


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
    return shapes.told(worklist.next_work(context.db(), wanted), shapes.item)


def _grids(wanted: WantedGrids) -> dict:
    next_grids = blind.next_grids if wanted.blind else grid.next_grids
    return shapes.told(next_grids(context.db(), wanted), shapes.grid)


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


def _filter(entry: dict) -> Filter:
    return Filter(
        class_id=shapes.number(entry.get("class")),
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
