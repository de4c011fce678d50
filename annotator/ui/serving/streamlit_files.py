"""Streamlit's static files from memory, because its own path is slow for sixty requests."""

import gzip
from pathlib import Path

from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from annotator.ui.serving.streamlit_static import CACHE_HEADERS, MEDIA_TYPES, list_static_files

COMPRESSED_SUFFIXES = (".js", ".css")  # fonts are compressed already
CONDITIONAL_HEADERS = ("range", "if-none-match", "if-modified-since")


class StaticFilesMiddleware:
    """ASGI middleware that serves Streamlit's static files.

    Args:
        base: URL prefix, "" or like "/annotator".
        compress: Compress scripts and styles. Over a network this saves more time than it takes, on one computer none.
    """

    def __init__(self, app: ASGIApp, base: str = "", compress: bool = False):
        self.app, self._compress = app, compress
        self._paths = {f"{base}{url}": path for url, path in list_static_files().items()}
        self._answers: dict[tuple[Path, bool], Response] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a static file from memory, or pass other requests on."""
        path = self._paths.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if path is None or any(name in Headers(scope=scope) for name in CONDITIONAL_HEADERS):
            await self.app(scope, receive, send)
            return
        is_compressed = (
            self._compress
            and path.suffix in COMPRESSED_SUFFIXES
            and "gzip" in Headers(scope=scope).get("accept-encoding", "")
        )
        answer = self._answers.get((path, is_compressed))
        if answer is None:
            answer = self._answers[path, is_compressed] = await run_sync(_build_answer, path, is_compressed)
        await answer(scope, receive, send)


def _build_answer(path: Path, is_compressed: bool) -> Response:
    content = path.read_bytes()
    headers = CACHE_HEADERS | {"vary": "accept-encoding"}
    if is_compressed:
        content, headers["content-encoding"] = gzip.compress(content, mtime=0), "gzip"
    return Response(content, media_type=MEDIA_TYPES[path.suffix], headers=headers)
