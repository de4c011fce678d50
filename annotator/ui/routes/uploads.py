"""The route by which a browser sends a file to be imported (ui/work/uploads.py)."""

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.roles import Right
from annotator.ui.access import context
from annotator.ui.routes.guard import FRESH, guarded
from annotator.ui.routes.requests import UploadQuery, converted
from annotator.ui.work.uploads import LARGEST, Incoming, too_large, uploads

AT_ONCE = 1 << 20  # bytes that are written in one go


async def upload(request: Request, annotator: str) -> Response:
    """POST the bytes of a file to ?name=... -> {name, bytes}: kept for this person's next import."""
    name = converted(dict(request.query_params), UploadQuery).name
    size = request.headers.get("content-length", "")
    if size.isdecimal() and int(size) > LARGEST:
        return JSONResponse({"error": too_large(name)}, 413, headers=FRESH)
    incoming = await run_sync(uploads(context.db()).begin, annotator, name)
    stored = await received(request, incoming)
    return JSONResponse({"name": stored, "bytes": incoming.bytes}, headers=FRESH)


async def received(request: Request, incoming: Incoming) -> str:
    """Store the body of a request and return the name of its file; what did not arrive as a whole is dropped."""
    try:
        await _written(request, incoming)
        return await run_sync(incoming.finish)
    except BaseException:  # also when the browser goes away in the middle
        incoming.drop()
        raise


async def _written(request: Request, incoming: Incoming) -> None:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) >= AT_ONCE:
            await run_sync(incoming.write, bytes(data))
            data.clear()
    await run_sync(incoming.write, bytes(data))


ROUTES = [Route("/api/upload", guarded(upload, Right.OWN), methods=["POST"])]
