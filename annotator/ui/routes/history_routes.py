"""The route of one image's history."""

from dataclasses import replace
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.records import SOURCES
from annotator.roles import Right
from annotator.store.gallery.image_history import DecisionRecord, load_image_history
from annotator.store.people import blindness
from annotator.ui.access import served_project
from annotator.ui.routes.decide_routes import mask_source
from annotator.ui.shared.guard import NO_STORE_HEADERS, get_blind_annotator, guard_route, read_body
from annotator.ui.shared.requests import HistoryRequest, parse_body


async def history(request: Request, annotator: str) -> Response:
    """Handle POST {image} -> {decisions, hidden}: list an image's decisions, oldest first.

    Own active comments carry their uuid for undo. While this person must answer the image blind, only own notes
    are sent.
    """
    asked = parse_body(await read_body(request), HistoryRequest)
    events, hidden = await run_sync(_load_history, asked.image, get_blind_annotator(request, annotator))
    decisions = [_build_event(event, annotator) for event in events]
    return JSONResponse({"decisions": decisions, "hidden": hidden}, headers=NO_STORE_HEADERS)


ROUTES = [Route("/api/history", guard_route(history, Right.LOOK, "history"), methods=["POST"])]


def _load_history(image_id: int, blind: str) -> tuple[list[DecisionRecord], bool]:
    db = served_project.db()
    # Asked first: what is hidden is not read, so that the time of an answer does not tell how much there is.
    hidden = bool(blind and blindness.reveal_visible_images(db, blind, [image_id]))
    events = load_image_history(db, image_id, notes_of=blind if hidden else "")
    if blind:
        # The image in front may be one that this person is still to answer blind.
        events = [replace(event, source=mask_source(event.source), front="") for event in events]
    return events, hidden


def _build_event(event: DecisionRecord, annotator: str) -> dict[str, Any]:
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
        "about": _describe_source(event.source)
        + (f": as on {event.front}" if event.front else "")
        + ("; an opinion, given while people disagreed" if event.is_opinion else ""),
        "score": event.score,
        "models": event.models,
        "origin": event.origin and [event.origin[0], _describe_source(event.origin[1]), event.origin[2]],
        "covered": event.covered,
        "undone_by": event.undone_by,
        "undone_at": event.undone_at,
    }
    own = event.action == "comment" and event.annotator == annotator and event.undone_by is None
    return shape | ({"uuid": event.uuid} if own else {})


def _describe_source(source: str) -> str:
    return SOURCES[source].about if source in SOURCES else source
