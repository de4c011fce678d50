"""The steps of all routes: token checks, bodies and errors."""

import time
from collections.abc import Awaitable, Callable, Mapping

from anyio.to_thread import run_sync
from prometheus_client import Histogram
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from annotator.errors import AnnotatorError, DiskFull, Forbidden, ProjectMoved, StorageTimeout
from annotator.roles import Right
from annotator.store.database import authorization
from annotator.store.disk import system_errors
from annotator.store.people import access_tokens
from annotator.store.people.members import Member
from annotator.ui.access import served_project
from annotator.ui.access.middleware import MEMBER_SCOPE_KEY
from annotator.ui.shared.requests import BadRequest

MAX_BODY_BYTES = 1_000_000

IMMUTABLE_HEADERS = {"cache-control": "private, max-age=31536000, immutable", "x-content-type-options": "nosniff"}
NO_HEADERS: Mapping[str, str] = {}
NO_STORE_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

REQUEST_SECONDS = Histogram(
    "annotator_request_seconds",
    "Time to answer, by route and status",
    ["route", "status"],
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 15),
    registry=None,
)

STATUS_BY_ERROR: Mapping[type[AnnotatorError], int] = {
    Forbidden: 403,
    DiskFull: 507,
    ProjectMoved: 503,
    StorageTimeout: 504,
}
"""Of problems that a person can solve; 409 of all others."""

Handler = Callable[[Request, str], Awaitable[Response]]


def guard_route(handler: Handler, right: Right, part: str = "") -> Callable[[Request], Awaitable[Response]]:
    """Return a route that requires a valid token, its member's session and this right.

    Args:
        part: Part of the app that owners may hide and this route shows, or "".
    """

    async def route(request: Request) -> Response:
        token = request.headers.get("x-annotator-token") or request.query_params.get("token", "")
        token = token or request.path_params.get("token", "")
        annotator = served_project.tokens().read_annotator(token)
        if annotator is None:
            return build_error_response(401, "This page's pass is missing or has run out. Reload the page.")
        member: Member | None = request.scope.get(MEMBER_SCOPE_KEY)
        if member is not None and member.name != annotator:
            return build_error_response(
                401, f"This page is of {annotator}, and {member.name} is signed in. Reload the page."
            )
        if member is not None and member.highest_right < right:
            return build_error_response(403, authorization.format_denial(member.name, member.role, right))
        sessions = served_project.sessions()
        if member is not None and sessions is not None and sessions.is_hidden(part, member):
            return build_error_response(403, "The owners of this project do not show this to guests and annotators.")
        return await answer_or_error(handler(request, annotator))

    return time_route(route, handler)


def require_right(request: Request, right: Right) -> None:
    """Raise Forbidden if the requesting member lacks this right."""
    member: Member | None = request.scope.get(MEMBER_SCOPE_KEY)
    if member is not None and member.highest_right < right:
        raise Forbidden(authorization.format_denial(member.name, member.role, right))


def get_blind_annotator(request: Request, annotator: str) -> str:
    """Return the annotator if images that they must answer blind must be hidden from them, else ""."""
    member: Member | None = request.scope.get(MEMBER_SCOPE_KEY)
    return annotator if member is not None and member.highest_right < Right.REVIEW else ""


def get_person_key(request: Request, annotator: str) -> str:
    """Return a key of the person for limits: the member, who may be renamed, else the typed name."""
    member: Member | None = request.scope.get(MEMBER_SCOPE_KEY)
    return f"name {annotator}" if member is None else f"member {member.id}"


def guard_program_route(handler: Handler, right: str) -> Callable[[Request], Awaitable[Response]]:
    """Return a route for programs that needs an access token with this right. Its handler gets the token's name."""

    async def answered(request: Request) -> Response:
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        name = None
        if scheme.lower() == "bearer" and secret:
            name = await run_sync(access_tokens.find_token_name, served_project.db(), secret.strip(), right)
        if name is None:
            text = f"This needs a valid token for {right}, sent as: Authorization: Bearer TOKEN."
            return build_error_response(401, text, {"www-authenticate": "Bearer"})
        return await handler(request, name)

    async def route(request: Request) -> Response:
        return await answer_or_error(answered(request))

    return time_route(route, handler)


def time_route(
    route: Callable[[Request], Awaitable[Response]], handler: Handler
) -> Callable[[Request], Awaitable[Response]]:
    """Return the route with its responses counted and timed."""
    module = handler.__module__.rpartition(".")[2].removesuffix("_routes")
    name = f"{module}.{handler.__name__}"

    async def timed_route(request: Request) -> Response:
        began = time.perf_counter()
        answer = await route(request)
        REQUEST_SECONDS.labels(name, answer.status_code).observe(time.perf_counter() - began)
        return answer

    return timed_route


async def answer_or_error(answer: Awaitable[Response]) -> Response:
    """Return the handler's response, or its error as JSON."""
    try:
        return await answer
    except ClientDisconnect:  # the request was incomplete: nobody receives an answer
        return Response(status_code=400)
    except BadRequest as problem:  # only here: a page gives up for good a request that is answered with 400
        return build_error_response(400, f"The request is not as it should be: {problem}")
    except Exception as problem:
        told = system_errors.translate_error(problem)
        if told is None:
            raise
        return build_error_response(
            next((status for kind, status in STATUS_BY_ERROR.items() if isinstance(told, kind)), 409), str(told)
        )


def build_error_response(status: int, text: str, headers: Mapping[str, str] = NO_HEADERS) -> JSONResponse:
    """Return a JSON response {error: text}, which the page displays."""
    return JSONResponse({"error": text}, status_code=status, headers={**NO_STORE_HEADERS, **headers})


async def read_body(request: Request) -> bytes:
    """Return the body, or raise BadRequest if too large."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY_BYTES:
            raise BadRequest(f"more than {MAX_BODY_BYTES:,} bytes")
    return data
