"""The route by which external models send scores."""

from functools import partial

import numpy as np
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.exchange.predictions.prediction_import import PredictionOptions, store_scores
from annotator.exchange.predictions.score_files import ScoreBlock
from annotator.store.people.access_tokens import PREDICTIONS_RIGHT
from annotator.ui.access import served_project
from annotator.ui.access.middleware import PREDICTIONS_PATH
from annotator.ui.shared.guard import NO_STORE_HEADERS, build_error_response, guard_program_route, read_body
from annotator.ui.shared.requests import PredictionsRequest, parse_body

REFUSED_METHODS = ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS")  # which would get the app's page
_single_limiter: list[CapacityLimiter] = []  # made in the server's loop


async def predictions(request: Request, token: str) -> Response:
    """Handle POST {name, scale?, images, only_known?} -> {images, unknown_images, version}: store scores.

    images: [{image | sha256, scores: {class: x}}].
    """
    given = parse_body(await read_body(request), PredictionsRequest)
    if not _single_limiter:
        _single_limiter.append(CapacityLimiter(1))  # programs wait for each other, and never take the pages' threads
    add = partial(_store_scores, given, f"token {token}")
    return JSONResponse(await run_sync(add, limiter=_single_limiter[0]), headers=NO_STORE_HEADERS)


async def _refuse_method(request: Request) -> Response:
    return build_error_response(405, f"Send predictions with POST, not with {request.method}.", {"allow": "POST"})


ROUTES = [
    Route(PREDICTIONS_PATH, guard_program_route(predictions, PREDICTIONS_RIGHT), methods=["POST"]),
    Route(PREDICTIONS_PATH, _refuse_method, methods=REFUSED_METHODS),
]


def _store_scores(given: PredictionsRequest, by: str) -> dict[str, int]:
    choices = PredictionOptions(scale=given.scale, only_known=given.only_known)
    source, found = store_scores(served_project.db(), given.name, iter([_build_score_block(given)]), choices, by)
    return {"images": found.images, "unknown_images": found.unknown_images.count, "version": source.version}


def _build_score_block(given: PredictionsRequest) -> ScoreBlock:
    columns: dict[str, int] = {}
    for image in given.images:
        for name in image.scores:
            columns.setdefault(name, len(columns))
    scores = np.full((len(given.images), len(columns)), np.nan)
    for row, image in enumerate(given.images):
        for name, score in image.scores.items():
            scores[row, columns[name]] = score
    names = [image.sha256 or image.image for image in given.images]
    return ScoreBlock(names, range(1, len(names) + 1), list(columns), scores)
