"""What every route does first and last: the token, the body, and what went wrong as JSON that a person can read."""

from collections.abc import Awaitable, Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from annotator.errors import AnnotatorError, DiskFull, NoAnswer, ProjectMoved
from annotator.ui import context
from annotator.ui.routes.requests import BadRequest

LARGEST_BODY = 1_000_000

IMMUTABLE = {"cache-control": "private, max-age=31536000, immutable", "x-content-type-options": "nosniff"}
FRESH = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

Handler = Callable[[Request, str], Awaitable[Response]]


def guarded(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """The handler, reached only with a valid token; what goes wrong becomes JSON that a person can read."""

    async def route(request: Request) -> Response:
        token = request.headers.get("x-annotator-token") or request.query_params.get("token", "")
        token = token or request.path_params.get("token", "")
        annotator = context.tokens().annotator(token)
        if annotator is None:
            return error(401, "This page's pass is missing or has run out. Reload the page.")
        try:
            return await handler(request, annotator)
        except ClientDisconnect:  # before it had said what it wants: nobody hears an answer
            return Response(status_code=400)
        except DiskFull as problem:
            return error(507, str(problem))
        except ProjectMoved as problem:
            return error(503, str(problem))
        except NoAnswer as problem:
            return error(504, str(problem))
        except AnnotatorError as problem:
            return error(409, str(problem))
        except BadRequest as problem:  # and nothing else: a page sets aside for good what is answered with 400
            return error(400, f"The request is not as it should be: {problem}")

    return route


def error(status: int, text: str) -> JSONResponse:
    """{error: text}, which the page shows as it is."""
    return JSONResponse({"error": text}, status_code=status, headers=FRESH)


async def body_of(request: Request) -> bytes:
    """What was sent. Raises BadRequest for more than LARGEST_BODY bytes."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > LARGEST_BODY:
            raise BadRequest(f"more than {LARGEST_BODY:,} bytes")
    return data
