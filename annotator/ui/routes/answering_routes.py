"""The route that stores an annotator's answer mode."""

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.roles import Right
from annotator.store.labels import answer_mode
from annotator.ui.access import served_project
from annotator.ui.shared.guard import NO_STORE_HEADERS, guard_route, read_body
from annotator.ui.shared.requests import AnsweringRequest, parse_body


async def choose(request: Request, annotator: str) -> Response:
    """Handle POST {mode: one|all}: store whether class keys label one or all classes."""
    asked = parse_body(await read_body(request), AnsweringRequest)
    await run_sync(_save_mode, annotator, asked.mode)
    return JSONResponse({}, headers=NO_STORE_HEADERS)


ROUTES = [Route("/api/answering", guard_route(choose, Right.ANSWER), methods=["POST"])]


def _save_mode(annotator: str, mode: str) -> None:
    answer_mode.set_annotator_mode(served_project.db(), annotator, mode)
