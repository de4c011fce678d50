"""The routes of search examples: external images, regions or words."""

import io
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.errors import AnnotatorError
from annotator.exchange.sources.fetch_folder import format_size
from annotator.roles import Right
from annotator.snapshot.similarity import image_similarity
from annotator.store.classes import name_texts
from annotator.store.database.database import Database
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.networks import configuration, search_examples
from annotator.store.pictures.decoding import BadImage, check_image
from annotator.ui.access import served_project
from annotator.ui.pages.gallery.gallery_requests import ExamplePictureQuery, ExampleRequest, ExampleStateRequest
from annotator.ui.shared.guard import NO_STORE_HEADERS, build_error_response, get_person_key, guard_route, read_body
from annotator.ui.shared.requests import convert_values, parse_body

MAX_PICTURE_BYTES = 50_000_000  # bytes of a picture


async def picture(request: Request, annotator: str) -> Response:
    """Handle POST ?name= with image bytes -> {example}: store an image to search by. It is deleted after embedding."""
    name = convert_values(dict(request.query_params), ExamplePictureQuery).name
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_PICTURE_BYTES:
            return build_error_response(
                413, f"{name} is larger than {format_size(MAX_PICTURE_BYTES)}. Give a smaller copy of it."
            )
    return JSONResponse(
        {"example": await run_sync(_store_picture, bytes(data), name, get_person_key(request, annotator))},
        headers=NO_STORE_HEADERS,
    )


async def example(request: Request, annotator: str) -> Response:
    """Handle POST {words} or {image, box in 0..1} -> {example}: store a search example."""
    asked = parse_body(await read_body(request), ExampleRequest)
    return JSONResponse(
        {"example": await run_sync(_store_example, asked, get_person_key(request, annotator))},
        headers=NO_STORE_HEADERS,
    )


async def state(request: Request, annotator: str) -> Response:
    """Handle POST {example} -> {words, ready, error, holdup}: report whether a search example is embedded.

    words      description, "" if expired
    holdup     why it takes long
    """
    asked = parse_body(await read_body(request), ExampleStateRequest)
    return JSONResponse(await run_sync(_build_state, served_project.db(), asked.example), headers=NO_STORE_HEADERS)


ROUTES = [
    Route("/api/like", guard_route(example, Right.LOOK, "gallery"), methods=["POST"]),
    Route("/api/like/picture", guard_route(picture, Right.LOOK, "gallery"), methods=["POST"]),
    Route("/api/like/state", guard_route(state, Right.LOOK, "gallery"), methods=["POST"]),
]


def _store_picture(content: bytes, name: str, by: str) -> str:
    db = served_project.db()
    _check_has_features(db)
    try:
        check_image(io.BytesIO(content), get_shown_bands(db))
    except BadImage as problem:
        raise AnnotatorError(f"{name} cannot be used as an example: {problem}.") from problem
    return search_examples.request_picture(db, content, name, by)


def _store_example(asked: ExampleRequest, by: str) -> str:
    db = served_project.db()
    _check_has_features(db)
    if asked.image is not None:
        return search_examples.request_part(db, asked.image, asked.box, by)
    if not name_texts.get_text_network(db):
        raise AnnotatorError(f"{configuration.get_backbone(db)} knows no texts. Settings has networks that do.")
    return search_examples.request_words(db, asked.words, by)


def _check_has_features(db: Database) -> None:
    if not image_similarity.has_analyzed_images(db):
        raise AnnotatorError(
            f"No image is analyzed with {configuration.get_backbone(db)} yet, so there is nothing to compare. The "
            "worker does that, and Progress shows how far it is; try again then."
        )


def _build_state(db: Database, key: str) -> dict[str, Any]:
    asked = search_examples.load_request(db, key)
    if asked is None:
        return {
            "words": "",
            "ready": False,
            "error": "This example is not kept any longer. Give it again.",
            "holdup": "",
        }
    problem = ""
    is_answered = search_examples.is_answered(db, key)
    if is_answered:
        try:
            search_examples.load_answer(db, key)
        except AnnotatorError as found:
            problem = str(found)
    return {
        "words": asked.description,
        "ready": is_answered and not problem,
        "error": problem,
        "holdup": "" if is_answered else search_examples.explain_delay(db),
    }
