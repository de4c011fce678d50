"""Exports in one press: the last choice once more, and how far it is. The Export page has the choices."""

from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.errors import AnnotatorError
from annotator.exchange.sources.landing import size_in_words
from annotator.roles import Right
from annotator.shares import counted
from annotator.ui.access import context
from annotator.ui.export import last_export
from annotator.ui.export.running import Outcome, Running, exporting
from annotator.ui.routes.guard import FRESH, body_of, guarded
from annotator.ui.routes.requests import Nothing, parsed


async def export_again(request: Request, annotator: str) -> Response:
    """POST {} -> {}: an export like this person's last one has begun."""
    parsed(await body_of(request), Nothing)
    await run_sync(_start, annotator)
    return JSONResponse({}, headers=FRESH)


async def export_state(request: Request, annotator: str) -> Response:
    """POST {} -> {running, outcome}: how far this person's export is, or what came of their last one, else null."""
    parsed(await body_of(request), Nothing)
    return JSONResponse(await run_sync(_state, annotator), headers=FRESH)


ROUTES = [
    Route("/api/export", guarded(export_again, Right.REVIEW), methods=["POST"]),
    Route("/api/export/state", guarded(export_state, Right.REVIEW), methods=["POST"]),
]


def _start(annotator: str) -> None:
    order = last_export.of(context.db(), annotator)
    if order is None:
        raise AnnotatorError("You have not exported yet. Choose how on the Export page.")
    last_export.start(context.db(), order)


def _state(annotator: str) -> dict[str, Any]:
    work = exporting(context.db())
    running = work.running  # read first: an export is listed before it stops running
    if running and running.order.by == annotator:
        return {"running": _in_words(running), "outcome": None}
    outcome = next((one for one in work.outcomes if one.order.by == annotator), None)
    return {"running": None, "outcome": outcome and _outcome(outcome)}


def _in_words(running: Running) -> str:
    if not running.of:
        return f"{running.step}..."
    return f"{running.step}: {100 * running.done / running.of:.0f} %"


def _outcome(outcome: Outcome) -> dict[str, Any]:
    offered = outcome.offered
    held = f"{counted(outcome.images, 'image')} × {counted(outcome.classes, 'class', 'classes')}"
    return {
        "error": outcome.error,
        "download": offered and {"id": offered.id, "name": offered.path.name, "size": size_in_words(offered.bytes)},
        "folder": str(outcome.folder or ""),
        "said": " ".join([f"{held}.", *outcome.said]),
    }
