"""The route of the twins of one image: which they are, and what can be said of them at once."""

from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.store.gallery import tiles
from annotator.store.images import twins
from annotator.store.labels import decisions
from annotator.store.people import blindness
from annotator.ui.access import context
from annotator.ui.routes.guard import FRESH, blind_as, body_of, guarded
from annotator.ui.routes.requests import TwinsRequest, parsed

MOST = 200  # twins that are told, the first ones: each may get an answer of every class


async def of_image(request: Request, annotator: str) -> Response:
    """POST {image} -> {twins: [{id, name, flag, labels}], answers: [[class, state]], more}.

    answers    the labels of this image that this person gave
    labels     those of the twin, whoever gave them: [class, ...]
    more       further twins, beyond MOST

    A twin that this person is still to answer blind is left out.
    """
    asked = parsed(await body_of(request), TwinsRequest)
    return JSONResponse(
        await run_sync(_twins, context.db(), asked.image, annotator, blind_as(request, annotator)), headers=FRESH
    )


ROUTES = [Route("/api/twins", guarded(of_image, Right.LOOK, "gallery"), methods=["POST"])]


def _twins(db: Database, image_id: int, annotator: str, blind: str) -> dict[str, Any]:
    others = twins.of(db, image_id)
    told = others[:MOST]
    hidden = blindness.show(db, blind, told) if blind and told else set()
    shown = tiles.read(db, [twin for twin in told if twin not in hidden])
    answers = [label for label in decisions.labels(db, [image_id]) if label.annotator == annotator] if shown else []
    return {
        "twins": [
            {
                "id": tile.image.id,
                "name": tile.image.name,
                "flag": tile.flag or None,
                "labels": [class_id for class_id, _ in tile.labels],
            }
            for tile in shown
        ],
        "answers": [(label.class_id, label.state) for label in answers],
        "more": len(others) - len(told),
    }
