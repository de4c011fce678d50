"""The route that adds a class while labeling."""

from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.roles import Right
from annotator.ui.access import served_project
from annotator.ui.shared import page_classes
from annotator.ui.shared.guard import NO_STORE_HEADERS, guard_route, read_body
from annotator.ui.shared.requests import AddClassRequest, parse_body


async def add(request: Request, annotator: str) -> Response:
    """Handle POST {name, sure} -> {class, classes, class_version}: add a class.

    If it has surprising effects and `sure` is false, it only returns {surprises: [sentence]}.
    """
    asked = parse_body(await read_body(request), AddClassRequest)
    return JSONResponse(await run_sync(_add_class, annotator, asked.name, asked.sure), headers=NO_STORE_HEADERS)


ROUTES = [Route("/api/classes/add", guard_route(add, Right.ANSWER), methods=["POST"])]


def _add_class(annotator: str, name: str, sure: bool) -> dict[str, Any]:
    db = served_project.db()
    class_, surprises = page_classes.add_class(db, annotator, name, sure)
    if class_ is None:
        return {"surprises": surprises}
    return {"class": class_.id} | page_classes.build_classes_json(db)
