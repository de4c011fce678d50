"""The route of one image's history."""

from dataclasses import replace
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.records import SOURCES
from annotator.roles import Right
from annotator.store.gallery.image_history import Event, history_of
from annotator.store.people import blindness
from annotator.ui.access import context
from annotator.ui.routes.decide import as_sent
from annotator.ui.routes.guard import FRESH, blind_as, body_of, guarded
from annotator.ui.routes.requests import HistoryRequest, parsed


async def history(request: Request, annotator: str) -> Response:
    """POST {image} -> {decisions, hidden}: what was decided about the image, oldest first, with who took what back.

    `about` says in words where an answer came from; that an image had known answers is told to reviewers only. A
    person's own comments that hold carry their uuid, by which they are taken back. Of an image that this person is
    still to answer blind, only their own flags and comments are sent (`hidden`).
    """
    asked = parsed(await body_of(request), HistoryRequest)
    events, hidden = await run_sync(_history, asked.image, blind_as(request, annotator))
    decisions = [_shape(event, annotator) for event in events]
    return JSONResponse({"decisions": decisions, "hidden": hidden}, headers=FRESH)


ROUTES = [Route("/api/history", guarded(history, Right.LOOK, "history"), methods=["POST"])]


def _history(image_id: int, blind: str) -> tuple[list[Event], bool]:
    db = context.db()
    # Asked first: what is hidden is not read, so that the time of an answer does not tell how much there is.
    hidden = bool(blind and blindness.show(db, blind, [image_id]))
    events = history_of(db, image_id, notes_of=blind if hidden else "")
    if blind:
        # The image in front may be one that this person is still to answer blind.
        events = [replace(event, source=as_sent(event.source), front="") for event in events]
    return events, hidden


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
        "about": _about(event.source)
        + (f": as on {event.front}" if event.front else "")
        + ("; an opinion, given while people disagreed" if event.is_opinion else ""),
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
