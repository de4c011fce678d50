"""The route that uploads a file for import."""

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.roles import Right
from annotator.ui.access import served_project
from annotator.ui.pages.imports.uploaded_files import MAX_FILE_BYTES, IncomingFile, format_too_large, get_uploads
from annotator.ui.shared.guard import NO_STORE_HEADERS, guard_route
from annotator.ui.shared.requests import UploadQuery, convert_values

WRITE_CHUNK_BYTES = 1 << 20  # bytes that are written in one go


async def upload(request: Request, annotator: str) -> Response:
    """Handle POST ?name= with the file's bytes -> {name, bytes}: store an uploaded file."""
    name = convert_values(dict(request.query_params), UploadQuery).name
    size = request.headers.get("content-length", "")
    if size.isdecimal() and int(size) > MAX_FILE_BYTES:
        return JSONResponse({"error": format_too_large(name)}, 413, headers=NO_STORE_HEADERS)
    incoming = await run_sync(get_uploads(served_project.db()).begin_file, annotator, name)
    stored = await receive_file(request, incoming)
    return JSONResponse({"name": stored, "bytes": incoming.bytes}, headers=NO_STORE_HEADERS)


async def receive_file(request: Request, incoming: IncomingFile) -> str:
    """Store the request body, discarding incomplete files, and return its name."""
    try:
        await _write_body(request, incoming)
        return await run_sync(incoming.finish)
    except BaseException:  # also when the browser goes away in the middle
        incoming.discard()
        raise


async def _write_body(request: Request, incoming: IncomingFile) -> None:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) >= WRITE_CHUNK_BYTES:
            await run_sync(incoming.write, bytes(data))
            data.clear()
    await run_sync(incoming.write, bytes(data))


ROUTES = [Route("/api/upload", guard_route(upload, Right.OWN), methods=["POST"])]
