"""The routes that repeat the last export with one click."""

from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.errors import AnnotatorError
from annotator.exchange.sources.fetch_folder import format_size
from annotator.humanize import format_count
from annotator.roles import Right
from annotator.ui.access import served_project
from annotator.ui.shared.guard import NO_STORE_HEADERS, guard_route, read_body
from annotator.ui.shared.requests import EmptyRequest, parse_body
from annotator.ui.shared.work import last_export
from annotator.ui.shared.work.export_runner import ExportOutcome, ExportProgress, get_export_runner


async def export_again(request: Request, annotator: str) -> Response:
    """Handle POST {}: start this person's last export again."""
    parse_body(await read_body(request), EmptyRequest)
    await run_sync(_start_export, annotator)
    return JSONResponse({}, headers=NO_STORE_HEADERS)


async def export_state(request: Request, annotator: str) -> Response:
    """Handle POST {} -> {running, outcome}: return this person's export progress."""
    parse_body(await read_body(request), EmptyRequest)
    return JSONResponse(await run_sync(_build_state, annotator), headers=NO_STORE_HEADERS)


ROUTES = [
    Route("/api/export", guard_route(export_again, Right.REVIEW), methods=["POST"]),
    Route("/api/export/state", guard_route(export_state, Right.REVIEW), methods=["POST"]),
]


def _start_export(annotator: str) -> None:
    order = last_export.load_next(served_project.db(), annotator)
    if order is None:
        raise AnnotatorError("You have not exported yet. Choose how on the Export page.")
    last_export.start_and_save(served_project.db(), order)


def _build_state(annotator: str) -> dict[str, Any]:
    work = get_export_runner(served_project.db())
    running = work.running  # read first: an export is listed before it stops running
    if running and running.order.by == annotator:
        return {"running": _describe_progress(running), "outcome": None}
    outcome = next((one for one in work.outcomes if one.order.by == annotator), None)
    return {"running": None, "outcome": outcome and _build_outcome(outcome)}


def _describe_progress(running: ExportProgress) -> str:
    if not running.of:
        return f"{running.step}..."
    return f"{running.step}: {100 * running.done / running.of:.0f} %"


def _build_outcome(outcome: ExportOutcome) -> dict[str, Any]:
    offered = outcome.offered
    held = f"{format_count(outcome.images, 'image')} × {format_count(outcome.classes, 'class', 'classes')}"
    return {
        "error": outcome.error,
        "download": offered and {"id": offered.id, "name": offered.path.name, "size": format_size(offered.bytes)},
        "folder": str(outcome.folder or ""),
        "said": " ".join([f"{held}.", *outcome.said]),
    }
