"""The route of temporary download files, with Range requests."""

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from annotator.roles import Right
from annotator.ui.access import served_project
from annotator.ui.shared.guard import NO_STORE_HEADERS, build_error_response, guard_route
from annotator.ui.shared.work.downloads import OfferedFile, get_downloads

EXPIRED_MESSAGE = "This download has expired and was deleted. Export it again."


async def download(request: Request, annotator: str) -> Response:
    """Handle GET: send a temporary file that was offered for download."""
    offered = await run_sync(_find_offered_file, request.path_params["name"])
    if offered is None:
        return build_error_response(410, EXPIRED_MESSAGE)
    return FileResponse(
        offered.path, media_type=offered.media_type, filename=offered.path.name, headers=NO_STORE_HEADERS
    )


def _find_offered_file(name: str) -> OfferedFile | None:
    offered = get_downloads(served_project.db()).find(name)
    return offered if offered and offered.path.is_file() else None


ROUTES = [Route("/api/download/{name}", guard_route(download, Right.REVIEW))]
