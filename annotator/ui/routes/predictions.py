"""The route by which a program sends scores: a model that runs beside the project, with a token of its own."""

from functools import partial

import numpy as np
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.exchange.predictions.outside_predictions import Choices, store_blocks
from annotator.exchange.predictions.score_tables import ScoreBlock
from annotator.store.people.access_tokens import PREDICTIONS
from annotator.ui.access import context
from annotator.ui.access.middleware import PREDICTIONS_PATH
from annotator.ui.routes.guard import FRESH, body_of, error, for_programs
from annotator.ui.routes.requests import PredictionsRequest, parsed

OTHERS = ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS")  # which would get the app's page
_one_at_a_time: list[CapacityLimiter] = []  # made in the server's loop


async def predictions(request: Request, token: str) -> Response:
    """POST {name, scale?, images, only_known?} -> {images, unknown_images, version}.

    images: [{image | sha256, scores: {class: x}}], added to the source of this name, as `annotator predictions` does.
    """
    given = parsed(await body_of(request), PredictionsRequest)
    if not _one_at_a_time:
        _one_at_a_time.append(CapacityLimiter(1))  # programs wait for each other, and never take the pages' threads
    add = partial(_add, given, f"token {token}")
    return JSONResponse(await run_sync(add, limiter=_one_at_a_time[0]), headers=FRESH)


async def _refused(request: Request) -> Response:
    return error(405, f"Send predictions with POST, not with {request.method}.", {"allow": "POST"})


ROUTES = [
    Route(PREDICTIONS_PATH, for_programs(predictions, PREDICTIONS), methods=["POST"]),
    Route(PREDICTIONS_PATH, _refused, methods=OTHERS),
]


def _add(given: PredictionsRequest, by: str) -> dict[str, int]:
    choices = Choices(scale=given.scale, only_known=given.only_known)
    source, found = store_blocks(context.db(), given.name, iter([_block(given)]), choices, by)
    return {"images": found.images, "unknown_images": found.unknown_images.count, "version": source.version}


def _block(given: PredictionsRequest) -> ScoreBlock:
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
