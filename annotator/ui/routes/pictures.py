"""The routes for pictures: images as a browser can show them, and heat maps; and the components' scripts."""

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

from annotator.errors import AnnotatorError, NoAnswer
from annotator.roles import Right
from annotator.settings import EARLY_POSITIVES
from annotator.snapshot import suggestions
from annotator.store.database import jobs
from annotator.store.disk.open_files import open_file
from annotator.store.images import browser_copies as copies
from annotator.store.images.band_setting import bands_of
from annotator.store.people import blindness
from annotator.store.runs import runs
from annotator.store.runs.heatmap_findings import finding
from annotator.ui.access import context
from annotator.ui.routes.guard import FRESH, IMMUTABLE, blind_as, error, guarded
from annotator.ui.routes.requests import HeatmapPath, ImagePath, PictureQuery, converted
from annotator.ui.serving.readers import Readers
from annotator.ui.serving.scripts import bundle

HEATMAP_WAIT = 4.0  # seconds a request waits for the worker before the browser is told to ask again
HEATMAP_POLL = 0.04
THUMBS_AT_ONCE = 2
FINDS = 3  # a file that goes between finding and opening it is looked for again
EARLY, BESIDE = "x-annotator-early", "x-annotator-beside"
FOR_A_MINUTE = IMMUTABLE | {"cache-control": "private, max-age=60"}
CHUNK = 4_000_000  # bytes of a picture that are read at a time


async def image(request: Request, annotator: str) -> Response:
    """GET one image as the browser can show it, reduced to 1600 pixels; with ?full=1 at its own size."""
    kind = copies.FULL if converted(dict(request.query_params), PictureQuery).full else copies.DISPLAY
    return await _picture(request, kind)


async def thumb(request: Request, annotator: str) -> Response:
    """GET one image at 320 pixels."""
    return await _picture(request, copies.THUMB)


async def heatmap(request: Request, annotator: str) -> Response:
    """GET one heat map. Where it does not exist yet the worker is asked for it, and 202 says: ask again.

    A header says how many images with the class its run had seen, where these are few. Another header names the class
    that the heat map may show instead ("0": none), for how many heat maps of its class that is so, and how many of
    them were examined. An image that this person is still to answer blind is refused.
    """
    asked = converted(request.path_params, HeatmapPath)
    image_id, class_id, db = asked.image_id, asked.class_id, context.db()
    if blind := blind_as(request, annotator):
        await run_sync(blindness.refuse_hidden, db, blind, image_id)
    run_id = await run_sync(suggestions.run_to_explain, db, asked.run_id)
    path = anyio.Path(db.paths.heatmap(run_id, image_id, class_id))
    until = time.monotonic() + HEATMAP_WAIT
    asked = False
    while not await path.exists():
        if not asked:
            await run_sync(jobs.ask_heatmap, db, run_id, image_id, class_id)
            asked = True
        elif problem := await run_sync(jobs.heatmap_error, db, run_id, image_id, class_id):
            return error(410, problem)
        if time.monotonic() > until:
            return JSONResponse({"waiting": True}, status_code=202, headers=FRESH)
        await anyio.sleep(HEATMAP_POLL)
    seen = await run_sync(runs.positives_seen, db, run_id, class_id, EARLY_POSITIVES)
    early = {EARLY: str(seen)} if seen < EARLY_POSITIVES else {}
    found = await run_sync(finding, db, run_id, class_id, image_id)
    beside = {BESIDE: f"{found.beside or 0} {found.explained} {found.maps}"} if found.maps else {}
    return FileResponse(str(path), media_type="image/png", headers=IMMUTABLE | early | beside)


async def asset(request: Request, annotator: str) -> Response:
    """GET one of the components' scripts, with all that it imports; v is its version, for browsers to keep it."""
    name = request.path_params["name"]
    script = bundle(name)
    if script is None:
        return error(404, f"There is no script {name}.")
    headers = {**(IMMUTABLE if request.query_params.get("v") == script.version else FRESH), "vary": "accept-encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(script.text, media_type="text/javascript", headers=headers)
    return Response(script.packed, media_type="text/javascript", headers={**headers, "content-encoding": "gzip"})


ROUTES = [
    Route("/api/image/{image_id}", guarded(image, Right.LOOK)),
    Route("/api/thumb/{image_id}", guarded(thumb, Right.LOOK)),
    Route("/api/heatmap/{run_id}/{image_id}/{class_id}", guarded(heatmap, Right.LOOK)),
    Route("/api/script/{token}/{name:path}", guarded(asset, Right.LOOK)),
]


@dataclass(frozen=True)
class _Picture:
    """A file to send: size in bytes; content is None for a file of more than CHUNK bytes."""

    path: Path
    media_type: str
    size: int
    content: bytes | None
    headers: Mapping[str, str]


async def _picture(request: Request, kind: copies.Kind) -> Response:
    image_id = converted(request.path_params, ImagePath).image_id
    picture = await _readers().read(image_id, ("ready", kind.name), _read, copies.ready, context.db(), image_id, kind)
    if picture is None:
        # A bucket that is slow holds up its own images only: neither disks nor what is made of files wait for it.
        await _fetchers().read(image_id, "fetched", copies.fetch, context.db(), image_id)
        # A grid asks for dozens at once: were they all made at once, a decision would wait for the machine.
        async with _few() if kind == copies.THUMB else contextlib.nullcontext():
            picture = await _readers().read(
                image_id, ("made", kind.name), _read, copies.make, context.db(), image_id, kind
            )
    if picture.content is not None:
        return Response(picture.content, media_type=picture.media_type, headers=picture.headers)
    headers = {**picture.headers, "content-length": str(picture.size)}
    return StreamingResponse(_chunks(image_id, picture), media_type=picture.media_type, headers=headers)


def _read(find: Callable[..., tuple[Path, str] | None], *arguments: Any) -> _Picture | None:
    for attempt in range(1, FINDS + 1):
        path_and_type = find(*arguments)
        if path_and_type is None:
            return None
        path, media_type = path_and_type
        try:
            with open_file(path) as file:
                size = os.fstat(file.fileno()).st_size
                content = file.read() if size <= CHUNK else None
            # Which bands of an image are shown may change.
            headers = FOR_A_MINUTE if bands_of(*arguments[:2]) else IMMUTABLE
            return _Picture(path, media_type, size, content, headers)
        except OSError as problem:
            if isinstance(problem, FileNotFoundError) and attempt < FINDS:  # others pushed it out of the cache
                continue
            raise AnnotatorError(f"The file {path.name} cannot be read: {problem.strerror or problem}.") from problem
    raise AssertionError("not reached")


async def _chunks(image_id: int, picture: _Picture) -> AsyncIterator[bytes]:
    readers, mine = _readers(), object()  # no other request shares this one's place in the file
    try:
        file = await readers.read(image_id, mine, open_file, picture.path)
        left = picture.size
        while left and (chunk := await readers.read(image_id, mine, file.read, min(CHUNK, left))):
            left -= len(chunk)
            yield chunk
    except (NoAnswer, OSError):
        return  # the browser sees that bytes are missing
    file.close()  # only here: while another thread reads, this would wait for it


@cache
def _readers() -> Readers:
    return Readers()


@cache
def _fetchers() -> Readers:
    return Readers()


@cache
def _few() -> anyio.CapacityLimiter:
    return anyio.CapacityLimiter(THUMBS_AT_ONCE)
