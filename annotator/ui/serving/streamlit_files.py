"""Streamlit's static files from memory, because its own path is slow for sixty requests."""

from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from annotator.ui.streamlit_features import SHIPPED_FILES_FOLDER

STATIC_FOLDER = SHIPPED_FILES_FOLDER / "static"
MAX_KEPT_BYTES = 1_000_000  # bytes: of the charts' libraries, which few pages need, nothing is kept
MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2"}  # not by mimetypes: systems differ
# Their names hold a digest of their content.
CACHE_HEADERS = {"cache-control": "public, max-age=31536000, immutable"}
CONDITIONAL_HEADERS = ("range", "if-none-match", "if-modified-since")


class StaticFilesMiddleware:
    """ASGI middleware that serves Streamlit's static files below a URL prefix (`base`, "" or like "/annotator")."""

    def __init__(self, app: ASGIApp, base: str = ""):
        self.app = app
        files = (
            path
            for path in STATIC_FOLDER.rglob("*")
            if path.suffix in MEDIA_TYPES and path.stat().st_size <= MAX_KEPT_BYTES
        )
        self._paths = {f"{base}/static/{path.relative_to(STATIC_FOLDER).as_posix()}": path for path in files}
        self._answers: dict[str, Response] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a static file from memory, or pass other requests on."""
        path = self._paths.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if path is None or any(name in Headers(scope=scope) for name in CONDITIONAL_HEADERS):
            await self.app(scope, receive, send)
            return
        answer = self._answers.get(scope["path"])
        if answer is None:
            content = await run_sync(path.read_bytes)
            answer = Response(content, media_type=MEDIA_TYPES[path.suffix], headers=CACHE_HEADERS)
            self._answers[scope["path"]] = answer
        await answer(scope, receive, send)
