"""Routes for changes of classes from hot pages: a class is added where somebody looks for one that is missing."""

from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.roles import Right
from annotator.ui.access import context
from annotator.ui.parts import class_adding
from annotator.ui.routes.guard import FRESH, body_of, guarded
from annotator.ui.routes.requests import AddClassRequest, parsed


async def add(request: Request, annotator: str) -> Response:
    """POST {name, sure} -> {class, classes, class_version}: the class of this name, added if new, and all classes.

    Where adding it may be a surprise and `sure` is false, nothing is added and the answer is {surprises: [...]}.
    """
    asked = parsed(await body_of(request), AddClassRequest)
    return JSONResponse(await run_sync(_add, annotator, asked.name, asked.sure), headers=FRESH)


ROUTES = [Route("/api/classes/add", guarded(add, Right.ANSWER), methods=["POST"])]


def _add(annotator: str, name: str, sure: bool) -> dict[str, Any]:
    db = context.db()
    class_, surprises = class_adding.add_class(db, annotator, name, sure)
    if class_ is None:
        return {"surprises": surprises}
    return {"class": class_.id} | class_adding.all_classes(db)
