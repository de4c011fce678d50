"""The routes of images, heat maps and component scripts."""

import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from annotator.errors import AnnotatorError, StorageTimeout
from annotator.roles import Right
from annotator.settings import MIN_HEATMAP_POSITIVES
from annotator.snapshot import suggestions
from annotator.store.database import jobs
from annotator.store.disk.open_files import open_file
from annotator.store.images import browser_copies
from annotator.store.images.band_setting import get_image_bands
from annotator.store.people import blindness
from annotator.store.runs import runs
from annotator.store.runs.heatmap_findings import load_finding
from annotator.ui.access import served_project
from annotator.ui.serving.first_page import mark_image_sent
from annotator.ui.serving.reader_pool import ReaderPool
from annotator.ui.serving.script_bundles import build_bundle
from annotator.ui.shared.guard import (
    IMMUTABLE_HEADERS,
    NO_STORE_HEADERS,
    build_error_response,
    get_blind_annotator,
    guard_route,
)
from annotator.ui.shared.requests import HeatmapPath, ImagePath, PictureQuery, convert_values

HEATMAP_WAIT_SECONDS = 4.0  # seconds a request waits for the worker before the browser is told to ask again
HEATMAP_POLL_SECONDS = 0.04
MAX_PARALLEL_THUMBS = 2
MAX_FIND_ATTEMPTS = 3  # a file that goes between finding and opening it is looked for again
EARLY_HEADER, BESIDE_HEADER = "x-annotator-early", "x-annotator-beside"
ONE_MINUTE_HEADERS = IMMUTABLE_HEADERS | {"cache-control": "private, max-age=60"}
CHUNK_BYTES = 4_000_000  # bytes of a picture that are read at a time


async def image(request: Request, annotator: str) -> Response:
    """Handle GET: return an image of at most 1600 pixels per side, or at full size (?full=1)."""
    kind = (
        browser_copies.FULL if convert_values(dict(request.query_params), PictureQuery).full else browser_copies.DISPLAY
    )
    return await _send_picture(request, kind)


async def thumb(request: Request, annotator: str) -> Response:
    """Handle GET: return a thumbnail of at most 320 pixels per side."""
    return await _send_picture(request, browser_copies.THUMB)


async def heatmap(request: Request, annotator: str) -> Response:
    """Handle GET: return a heat map, or 202 while the worker creates it.

    Headers hold the number of training images with the class (if few), and the class that the heat map may show
    instead, with counts. Images that the annotator must still answer blind are refused.
    """
    asked = convert_values(request.path_params, HeatmapPath)
    image_id, class_id, db = asked.image_id, asked.class_id, served_project.db()
    if blind := get_blind_annotator(request, annotator):
        await run_sync(blindness.check_not_hidden, db, blind, image_id)
    run_id = await run_sync(suggestions.find_run_to_explain, db, asked.run_id)
    path = anyio.Path(db.paths.heatmap(run_id, image_id, class_id))
    until = time.monotonic() + HEATMAP_WAIT_SECONDS
    asked = False
    while not await path.exists():
        if not asked:
            await run_sync(jobs.request_heatmap, db, run_id, image_id, class_id)
            asked = True
        elif problem := await run_sync(jobs.get_heatmap_error, db, run_id, image_id, class_id):
            return build_error_response(410, problem)
        if time.monotonic() > until:
            return JSONResponse({"waiting": True}, status_code=202, headers=NO_STORE_HEADERS)
        await anyio.sleep(HEATMAP_POLL_SECONDS)
    seen = await run_sync(runs.count_training_positives, db, run_id, class_id, MIN_HEATMAP_POSITIVES)
    early = {EARLY_HEADER: str(seen)} if seen < MIN_HEATMAP_POSITIVES else {}
    found = await run_sync(load_finding, db, run_id, class_id, image_id)
    beside = {BESIDE_HEADER: f"{found.shown_class_id or 0} {found.explained} {found.maps}"} if found.maps else {}
    return FileResponse(str(path), media_type="image/png", headers=IMMUTABLE_HEADERS | early | beside)


async def asset(request: Request, annotator: str) -> Response:
    """Handle GET: return a bundled component script, cacheable by version `v`."""
    name = request.path_params["name"]
    script = build_bundle(name)
    if script is None:
        return build_error_response(404, f"There is no script {name}.")
    headers = {
        **(IMMUTABLE_HEADERS if request.query_params.get("v") == script.version else NO_STORE_HEADERS),
        "vary": "accept-encoding",
    }
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(script.text, media_type="text/javascript", headers=headers)
    return Response(
        script.compressed_content, media_type="text/javascript", headers={**headers, "content-encoding": "gzip"}
    )


ROUTES = [
    Route("/api/image/{image_id}", guard_route(image, Right.LOOK)),
    Route("/api/thumb/{image_id}", guard_route(thumb, Right.LOOK)),
    Route("/api/heatmap/{run_id}/{image_id}/{class_id}", guard_route(heatmap, Right.LOOK)),
    Route("/api/script/{token}/{name:path}", guard_route(asset, Right.LOOK)),
]


@dataclass(frozen=True)
class _PictureFile:
    """A file to send to a browser. `content` is None for files above CHUNK_BYTES."""

    path: Path
    media_type: str
    size: int
    content: bytes | None
    headers: Mapping[str, str]


async def _send_picture(request: Request, kind: browser_copies.CopyKind) -> Response:
    image_id = convert_values(request.path_params, ImagePath).image_id
    picture = await _get_file_readers().read(
        image_id,
        ("ready", kind.name),
        _read_picture,
        browser_copies.find_ready_file,
        served_project.db(),
        image_id,
        kind,
    )
    if picture is None:
        # A bucket that is slow holds up its own images only: neither disks nor what is made of files wait for it.
        await _get_address_readers().read(
            image_id, "fetched", browser_copies.fetch_original, served_project.db(), image_id
        )
        # A grid asks for dozens at once: were they all made at once, a decision would wait for the machine.
        async with _get_thumb_limiter() if kind == browser_copies.THUMB else contextlib.nullcontext():
            picture = await _get_file_readers().read(
                image_id, ("made", kind.name), _read_picture, browser_copies.make, served_project.db(), image_id, kind
            )
    mark_image_sent()
    if picture.content is not None:
        return Response(picture.content, media_type=picture.media_type, headers=picture.headers)
    headers = {**picture.headers, "content-length": str(picture.size)}
    return StreamingResponse(_stream_chunks(image_id, picture), media_type=picture.media_type, headers=headers)


def _read_picture(find: Callable[..., tuple[Path, str] | None], *arguments: Any) -> _PictureFile | None:
    for attempt in range(1, MAX_FIND_ATTEMPTS + 1):
        path_and_type = find(*arguments)
        if path_and_type is None:
            return None
        path, media_type = path_and_type
        try:
            with open_file(path) as file:
                size = os.fstat(file.fileno()).st_size
                content = file.read() if size <= CHUNK_BYTES else None
            # Which bands of an image are shown may change.
            headers = ONE_MINUTE_HEADERS if get_image_bands(*arguments[:2]) else IMMUTABLE_HEADERS
            return _PictureFile(path, media_type, size, content, headers)
        except OSError as problem:
            if (
                isinstance(problem, FileNotFoundError) and attempt < MAX_FIND_ATTEMPTS
            ):  # others pushed it out of the cache
                continue
            raise AnnotatorError(f"The file {path.name} cannot be read: {problem.strerror or problem}.") from problem
    raise AssertionError("not reached")


async def _stream_chunks(image_id: int, picture: _PictureFile) -> AsyncIterator[bytes]:
    readers, mine = _get_file_readers(), object()  # no other request shares this one's place in the file
    try:
        file = await readers.read(image_id, mine, open_file, picture.path)
        left = picture.size
        while left and (chunk := await readers.read(image_id, mine, file.read, min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield chunk
    except (StorageTimeout, OSError):
        return  # the browser sees that bytes are missing
    file.close()  # only here: while another thread reads, this would wait for it


@cache
def _get_file_readers() -> ReaderPool:
    return ReaderPool()


@cache
def _get_address_readers() -> ReaderPool:
    return ReaderPool()


@cache
def _get_thumb_limiter() -> anyio.CapacityLimiter:
    return anyio.CapacityLimiter(MAX_PARALLEL_THUMBS)
