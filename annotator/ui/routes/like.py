"""The routes that take an example that is no image of the project: a picture, a part of an image, words.

The worker answers (store/networks/search_examples.py); the page asks whether it has, and then lists what is like it
(gallery.py).
"""

import io
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.errors import AnnotatorError
from annotator.exchange.sources.landing import size_in_words
from annotator.roles import Right
from annotator.snapshot.likeness import similar
from annotator.store.classes import name_texts
from annotator.store.database.database import Database
from annotator.store.images.band_setting import shown_bands
from annotator.store.networks import configuration, search_examples
from annotator.store.pictures.decoding import BadImage, check_image
from annotator.ui.access import context
from annotator.ui.routes.gallery_requests import ExampleRequest, ExampleStateRequest, PictureQuery
from annotator.ui.routes.guard import FRESH, body_of, error, guarded
from annotator.ui.routes.requests import converted, parsed

LARGEST = 50_000_000  # bytes of a picture


async def picture(request: Request, annotator: str) -> Response:
    """POST the bytes of an image file to ?name=... -> {example}: its id, for state, gallery and addresses.

    It is read here, to say at once what is wrong with it, and removed once the worker has looked at it.
    """
    name = converted(dict(request.query_params), PictureQuery).name
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > LARGEST:
            return error(413, f"{name} is larger than {size_in_words(LARGEST)}. Give a smaller copy of it.")
    return JSONResponse({"example": await run_sync(_picture, context.db(), bytes(data), name)}, headers=FRESH)


async def example(request: Request, annotator: str) -> Response:
    """POST {words} or {image, box: [left, top, right, bottom]} -> {example}: as of picture; sides are from 0 to 1."""
    asked = parsed(await body_of(request), ExampleRequest)
    return JSONResponse({"example": await run_sync(_example, context.db(), asked)}, headers=FRESH)


async def state(request: Request, annotator: str) -> Response:
    """POST {example} -> {words, ready, error, holdup}: whether the worker has looked at it.

    words      what it is, for people; "" when it is not kept any longer
    error      why it cannot be compared
    holdup     why that takes longer than a moment
    """
    asked = parsed(await body_of(request), ExampleStateRequest)
    return JSONResponse(await run_sync(_state, context.db(), asked.example), headers=FRESH)


ROUTES = [
    Route("/api/like", guarded(example, Right.LOOK, "gallery"), methods=["POST"]),
    Route("/api/like/picture", guarded(picture, Right.LOOK, "gallery"), methods=["POST"]),
    Route("/api/like/state", guarded(state, Right.LOOK, "gallery"), methods=["POST"]),
]


def _picture(db: Database, content: bytes, name: str) -> str:
    _refuse_without_features(db)
    try:
        check_image(io.BytesIO(content), shown_bands(db))
    except BadImage as problem:
        raise AnnotatorError(f"{name} cannot be used as an example: {problem}.") from problem
    return search_examples.ask_picture(db, content, name)


def _example(db: Database, asked: ExampleRequest) -> str:
    _refuse_without_features(db)
    if asked.image is not None:
        return search_examples.ask_part(db, asked.image, asked.box)
    if not name_texts.network(db):
        raise AnnotatorError(f"{configuration.backbone(db)} knows no texts. Settings has networks that do.")
    return search_examples.ask_words(db, asked.words)


def _refuse_without_features(db: Database) -> None:
    if not similar.is_possible(db):
        raise AnnotatorError(
            f"No image is analyzed with {configuration.backbone(db)} yet, so there is nothing to compare. The worker "
            "does that, and Progress shows how far it is; try again then."
        )


def _state(db: Database, key: str) -> dict[str, Any]:
    asked = search_examples.find(db, key)
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
            search_examples.read(db, key)
        except AnnotatorError as found:
            problem = str(found)
    return {
        "words": asked.in_words,
        "ready": is_answered and not problem,
        "error": problem,
        "holdup": "" if is_answered else search_examples.holdup(db),
    }
