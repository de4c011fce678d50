"""The routes of an image's near-duplicates and event, for labeling them together."""

from collections.abc import Sequence
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.store.events import stored_events
from annotator.store.gallery import tiles
from annotator.store.images import near_duplicate_groups
from annotator.store.labels import decisions
from annotator.store.people import blindness, others_images
from annotator.ui.access import served_project
from annotator.ui.shared.guard import NO_STORE_HEADERS, get_blind_annotator, guard_route, read_body
from annotator.ui.shared.requests import RelatedRequest, parse_body

MAX_RELATED_IMAGES = 200  # images that are told: each may get an answer of every class


async def twins_of(request: Request, annotator: str) -> Response:
    """Handle POST {image} -> {twins: [{id, name, flag, labels}], answers: [[class, state]], more}.

    answers: this person's labels. labels: classes labeled by anyone. more: further near-duplicates. Images to be
    answered blind are omitted.
    """
    asked = parse_body(await read_body(request), RelatedRequest)
    return JSONResponse(
        await run_sync(
            _load_near_duplicates, served_project.db(), asked.image, annotator, get_blind_annotator(request, annotator)
        ),
        headers=NO_STORE_HEADERS,
    )


async def event_of(request: Request, annotator: str) -> Response:
    """Handle POST {image} -> {event, images, first, frames: [{id, name, flag, labels, away}]}.

    event      null if the image has none
    images     event size, even beyond MAX_RELATED_IMAGES
    first      index of the first frame
    labels     classes labeled by anyone
    away       assigned to others
    """
    asked = parse_body(await read_body(request), RelatedRequest)
    return JSONResponse(
        await run_sync(
            _load_event, served_project.db(), asked.image, annotator, get_blind_annotator(request, annotator)
        ),
        headers=NO_STORE_HEADERS,
    )


ROUTES = [
    Route("/api/twins", guard_route(twins_of, Right.LOOK, "gallery"), methods=["POST"]),
    Route("/api/event", guard_route(event_of, Right.LOOK), methods=["POST"]),
]


def _load_near_duplicates(db: Database, image_id: int, annotator: str, blind: str) -> dict[str, Any]:
    others = near_duplicate_groups.find_near_duplicates(db, image_id)
    told = _build_images(db, others[:MAX_RELATED_IMAGES], blind)
    answers = [label for label in decisions.load_labels(db, [image_id]) if label.annotator == annotator] if told else []
    return {
        "twins": told,
        "answers": [(label.class_id, label.state) for label in answers],
        "more": max(0, len(others) - MAX_RELATED_IMAGES),
    }


def _load_event(db: Database, image_id: int, annotator: str, blind: str) -> dict[str, Any]:
    event = stored_events.load_event(db, image_id, MAX_RELATED_IMAGES)
    if event is None:
        return {"event": None, "images": 1, "first": 0, "frames": []}
    told = _build_images(db, event.image_ids, blind)
    away = others_images.find_unavailable_images(db, annotator, [image["id"] for image in told])
    frames = [image | {"away": image["id"] in away} for image in told]
    return {"event": event.id, "images": event.images, "first": event.first, "frames": frames}


def _build_images(db: Database, image_ids: Sequence[int], blind: str) -> list[dict[str, Any]]:
    """Return images as JSON, without those still to be answered blind."""
    hidden = blindness.reveal_visible_images(db, blind, image_ids) if blind and image_ids else set()
    return [
        {
            "id": tile.image.id,
            "name": tile.image.name,
            "flag": tile.flag or None,
            "labels": [class_id for class_id, _ in tile.labels],
        }
        for tile in tiles.read(db, [image_id for image_id in image_ids if image_id not in hidden])
    ]
