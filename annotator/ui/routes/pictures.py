"""Pictures out: images as a browser can show them, and heat maps; and the components' scripts."""

import time
from functools import cache
from pathlib import Path

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from annotator.engine import suggest
from annotator.settings import EARLY_POSITIVES
from annotator.store import copies, jobs, runs
from annotator.ui import context
from annotator.ui.routes.guard import FRESH, IMMUTABLE, error, guarded
from annotator.ui.routes.requests import HeatmapPath, ImagePath, PictureQuery, converted

COMPONENTS = Path(__file__).parent.parent / "components"
HEATMAP_WAIT = 4.0  # seconds a request waits for the worker before the browser is told to ask again
HEATMAP_POLL = 0.04
THUMBS_AT_ONCE = 2
EARLY = "x-annotator-early"


async def image(request: Request, annotator: str) -> Response:
    """GET one image as the browser can show it, reduced to 1600 pixels; with ?full=1 at its own size."""
    kind = copies.FULL if converted(dict(request.query_params), PictureQuery).full else copies.DISPLAY
    return await _picture(request, kind)


async def thumb(request: Request, annotator: str) -> Response:
    """GET one image at 320 pixels."""
    return await _picture(request, copies.THUMB)


async def heatmap(request: Request, annotator: str) -> Response:
    """GET one heat map. Where there is none yet the worker is asked, and 202 says: ask again. A header says how many
    images with the class its run had seen, where these are few."""
    asked = converted(request.path_params, HeatmapPath)
    image_id, class_id, db = asked.image_id, asked.class_id, context.db()
    run_id = await run_sync(suggest.run_to_explain, db, asked.run_id)
    path = anyio.Path(db.paths.heatmap(run_id, image_id, class_id))
    until = time.monotonic() + HEATMAP_WAIT
    asked = False
    while not await path.exists():
        if not asked:
            await run_sync(jobs.ask_heatmap, db, run_id, image_id, class_id)
            asked = True
        elif problem := await run_sync(jobs.heatmap_error, db, run_id, image_id, class_id):
            return error(410, problem)
        if time.monotonic() > until:
            return JSONResponse({"waiting": True}, status_code=202, headers=FRESH)
        await anyio.sleep(HEATMAP_POLL)
    seen = await run_sync(runs.positives_seen, db, run_id, class_id, EARLY_POSITIVES)
    early = {EARLY: str(seen)} if seen < EARLY_POSITIVES else {}
    return FileResponse(str(path), media_type="image/png", headers=IMMUTABLE | early)


async def asset(request: Request, annotator: str) -> Response:
    """GET one of the components' script files."""
    name = request.path_params["name"]
    known = {file.relative_to(COMPONENTS).as_posix(): file for file in COMPONENTS.glob("*/*.js")}
    if name not in known:
        return error(404, f"There is no script {name}.")
    return FileResponse(known[name], media_type="text/javascript", headers=FRESH)


ROUTES = [
    Route("/api/image/{image_id}", guarded(image)),
    Route("/api/thumb/{image_id}", guarded(thumb)),
    Route("/api/heatmap/{run_id}/{image_id}/{class_id}", guarded(heatmap)),
    # The token stands in the path, so that a script's relative imports carry it along.
    Route("/api/script/{token}/{name:path}", guarded(asset)),
]


async def _picture(request: Request, kind: copies.Kind) -> Response:
    image_id = converted(request.path_params, ImagePath).image_id
    found = await run_sync(copies.ready, context.db(), image_id, kind)
    if found is None:
        limiter = _few() if kind == copies.THUMB else None
        found = await run_sync(copies.make, context.db(), image_id, kind, limiter=limiter)
    path, media_type = found
    return FileResponse(path, media_type=media_type, headers=IMMUTABLE)


@cache
def _few() -> anyio.CapacityLimiter:
    # A grid asks for dozens at once: were they all made at once, a decision would wait behind them.
    return anyio.CapacityLimiter(THUMBS_AT_ONCE)
