"""Files that pages have written for a download: sent from the disk in pieces, also from the middle (Range)."""

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from annotator.roles import Right
from annotator.ui.access import context
from annotator.ui.routes.guard import FRESH, error, guarded
from annotator.ui.work.downloads import Offered, downloads

GONE = "This download has expired and was deleted. Export it again."


async def download(request: Request, annotator: str) -> Response:
    """GET one file, whole or in parts."""
    offered = await run_sync(_offered, request.path_params["name"])
    if offered is None:
        return error(410, GONE)
    return FileResponse(offered.path, media_type=offered.media_type, filename=offered.path.name, headers=FRESH)


def _offered(name: str) -> Offered | None:
    offered = downloads(context.db()).find(name)
    return offered if offered and offered.path.is_file() else None


ROUTES = [Route("/api/download/{name}", guarded(download, Right.REVIEW))]
