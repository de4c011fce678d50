"""The route that keeps whether a person begins with one label of each image or with all."""

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.roles import Right
from annotator.store.labels import answering
from annotator.ui.access import context
from annotator.ui.routes.guard import FRESH, body_of, guarded
from annotator.ui.routes.requests import AnsweringRequest, parsed


async def choose(request: Request, annotator: str) -> Response:
    """POST {mode: one|all} -> {}: what the key of a class does for this person, on each page and in each browser."""
    asked = parsed(await body_of(request), AnsweringRequest)
    await run_sync(_choose, annotator, asked.mode)
    return JSONResponse({}, headers=FRESH)


ROUTES = [Route("/api/answering", guarded(choose, Right.ANSWER), methods=["POST"])]


def _choose(annotator: str, mode: str) -> None:
    answering.choose_for(context.db(), annotator, mode)
