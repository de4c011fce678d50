"""The route of one image's history."""

from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.records import SOURCES
from annotator.roles import Right
from annotator.store.image_history import Event, history_of
from annotator.ui import context
from annotator.ui.routes.guard import FRESH, body_of, guarded
from annotator.ui.routes.requests import HistoryRequest, parsed


async def history(request: Request, annotator: str) -> Response:
    """POST {image} -> {decisions}: what was decided about it, oldest first, with who took what back.

    `about` says in words where an answer came from. A person's own comments that hold carry their uuid: whoever knows
    the uuid of a decision can take it back.
    """
    asked = parsed(await body_of(request), HistoryRequest)
    events = await run_sync(history_of, context.db(), asked.image)
    return JSONResponse({"decisions": [_shape(event, annotator) for event in events]}, headers=FRESH)


ROUTES = [Route("/api/history", guarded(history, Right.LOOK, "history"), methods=["POST"])]


def _shape(event: Event, annotator: str) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "id": event.id,
        "at": event.at,
        "annotator": event.annotator,
        "action": event.action,
        "class": event.class_id,
        "name": event.class_name,
        "merged_into": event.merged_into,
        "state": event.state,
        "note": event.note,
        "source": event.source,
        "about": _about(event.source),
        "score": event.score,
        "models": event.models,
        "origin": event.origin and [event.origin[0], _about(event.origin[1]), event.origin[2]],
        "covered": event.covered,
        "undone_by": event.undone_by,
        "undone_at": event.undone_at,
    }
    own = event.action == "comment" and event.annotator == annotator and event.undone_by is None
    return shape | ({"uuid": event.uuid} if own else {})


def _about(source: str) -> str:
    return SOURCES[source].about if source in SOURCES else source
