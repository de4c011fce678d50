"""The routes behind the components: work out, decisions in, pictures. Every one checks a token.

They hold no rules: what comes next is asked of the engine. Anything that touches the disk runs in a thread, because a
synchronous database call in an async route would stall every browser.
"""

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from annotator.engine import suggest, worklist
from annotator.errors import AnnotatorError, DiskFull
from annotator.records import Decision, Wanted
from annotator.settings import DISPLAY_PIXELS
from annotator.store import decisions, images, jobs
from annotator.store.pixels import BadImage, write_display
from annotator.ui import context

COMPONENTS = Path(__file__).parent / "components"
LARGEST_BODY = 1_000_000
MOST_DECISIONS = 500
MOST_IMAGES = 200
RECENT = 200  # decisions a page can take back after a reload
HEATMAP_WAIT = 4.0  # seconds a request waits for the worker before the browser is told to ask again
HEATMAP_POLL = 0.04
FIRST_BYTES = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
LARGEST_ORIGINAL = 1_500_000  # bytes; larger files are reduced once and kept

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
            return _error(401, "This page's pass is missing or has run out. Reload the page.")
        try:
            return await handler(request, annotator)
        except DiskFull as error:
            return _error(507, str(error))
        except AnnotatorError as error:
            return _error(409, str(error))
        except (ValueError, TypeError, KeyError) as error:
            return _error(400, f"The request is not as it should be: {error}")

    return route


async def work(request: Request, annotator: str) -> Response:
    """POST {mode, holder, have, want, instead?, passed?, threshold?} -> the next images of that mode, now leased."""
    body = await _body(request)
    wanted = Wanted(
        mode=str(body["mode"]),
        holder=str(body["holder"])[:100],
        annotator=annotator,
        have=[int(image_id) for image_id in body.get("have", [])][:5000],
        want=min(max(int(body.get("want", 0)), 0), MOST_IMAGES),
        instead=str(body.get("instead", ""))[:100],
        passed=[int(image_id) for image_id in body.get("passed", [])][:5000],
        threshold=None if body.get("threshold") is None else float(body["threshold"]),
    )
    return JSONResponse(await run_sync(_work, wanted), headers=FRESH)


async def items(request: Request, annotator: str) -> Response:
    """POST {holder, images} -> those images again, with their labels as they are now (going back to one)."""
    body = await _body(request)
    ids = [int(image_id) for image_id in body["images"]][:MOST_IMAGES]
    found = await run_sync(worklist.items, context.db(), ids)
    return JSONResponse({"images": [_item(one) for one in found]}, headers=FRESH)


async def recent(request: Request, annotator: str) -> Response:
    """POST {} -> {decisions: [...]}: what this person can still undo after a reload, newest last."""
    found = await run_sync(decisions.recent, context.db(), annotator, RECENT)
    return JSONResponse(
        {"decisions": [{"uuid": one["uuid"], "image": one["image_id"]} for one in found]}, headers=FRESH
    )


async def decide(request: Request, annotator: str) -> Response:
    """POST {decisions: [...]} -> {saved: [uuid], refused: {uuid: reason}}; the same batch again changes nothing."""
    body = await _body(request)
    if len(body["decisions"]) > MOST_DECISIONS:
        raise ValueError(f"{len(body['decisions'])} decisions at once; at most {MOST_DECISIONS} are taken")
    batch, refused = [], {}
    for entry in body["decisions"]:
        try:
            batch.append(_decision(entry, annotator))
        except (ValueError, TypeError, KeyError) as error:
            # One decision that makes no sense must not hold back the good ones behind it.
            refused[str(entry.get("uuid") if isinstance(entry, dict) else entry)] = f"not a decision: {error}"
    result = await run_sync(decisions.decide, context.db(), batch)
    return JSONResponse({"saved": result.saved, "refused": refused | result.refused}, headers=FRESH)


async def image(request: Request, annotator: str) -> Response:
    """GET one image as the browser can show it: the file itself, or a reduced copy that is made once."""
    path, media_type = await run_sync(_display, int(request.path_params["image_id"]))
    return FileResponse(path, media_type=media_type, headers=IMMUTABLE)


async def heatmap(request: Request, annotator: str) -> Response:
    """GET one heat map. Where there is none yet the worker is asked, and 202 says: ask again."""
    run_id, image_id, class_id = (int(request.path_params[name]) for name in ("run_id", "image_id", "class_id"))
    db = context.db()
    run_id = await run_sync(suggest.run_to_explain, db, run_id)
    path = anyio.Path(db.paths.heatmap(run_id, image_id, class_id))
    until = time.monotonic() + HEATMAP_WAIT
    asked = False
    while not await path.exists():
        if not asked:
            await run_sync(jobs.ask_heatmap, db, run_id, image_id, class_id)
            asked = True
        elif problem := await run_sync(jobs.heatmap_error, db, run_id, image_id, class_id):
            return _error(410, problem)
        if time.monotonic() > until:
            return JSONResponse({"waiting": True}, status_code=202, headers=FRESH)
        await anyio.sleep(HEATMAP_POLL)
    return FileResponse(str(path), media_type="image/png", headers=IMMUTABLE)


async def asset(request: Request, annotator: str) -> Response:
    """GET one of the components' script files."""
    name = request.path_params["name"]
    known = {file.name: file for file in COMPONENTS.glob("*.js")}
    if name not in known:
        return _error(404, f"There is no script {name}.")
    return FileResponse(known[name], media_type="text/javascript", headers=FRESH)


ROUTES = [
    Route("/api/work", guarded(work), methods=["POST"]),
    Route("/api/items", guarded(items), methods=["POST"]),
    Route("/api/recent", guarded(recent), methods=["POST"]),
    Route("/api/decisions", guarded(decide), methods=["POST"]),
    Route("/api/image/{image_id:int}", guarded(image)),
    Route("/api/heatmap/{run_id:int}/{image_id:int}/{class_id:int}", guarded(heatmap)),
    # The token stands in the path, so that a script's relative imports carry it along.
    Route("/api/script/{token}/{name}", guarded(asset)),
]


def _error(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status_code=status, headers=FRESH)


async def _body(request: Request) -> dict:
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > LARGEST_BODY:
            raise ValueError(f"more than {LARGEST_BODY:,} bytes")
    body = json.loads(data)
    if not isinstance(body, dict):
        raise ValueError("not a JSON object")
    return body


def _decision(entry: dict, annotator: str) -> Decision:
    def number(name: str, kind: type = int):
        return None if entry.get(name) is None else kind(entry[name])

    uuid = str(entry["uuid"])
    if not 8 <= len(uuid) <= 100:
        raise ValueError(f"its uuid {uuid!r} is not one")
    return Decision(
        uuid=uuid,
        action=str(entry["action"]),
        # Given while another name was on the page (kept in the browser until the server was back): it stays theirs.
        annotator=str(entry.get("annotator") or annotator)[:100],
        source=str(entry.get("source", "click")),
        image_id=number("image"),
        class_id=number("class"),
        state=number("state"),
        undoes=entry.get("undoes"),
        batch=entry.get("batch"),
        run_id=number("run"),
        score=number("score", float),
        milliseconds=number("milliseconds"),
    )


def _work(wanted: Wanted) -> dict:
    found = worklist.next_work(context.db(), wanted)
    return {
        "images": [_item(one) for one in found.items],
        "left": found.left,
        "mine": found.mine,
        "empty": found.empty,
        "worker": found.worker,
        "run": found.run,
    }


def _item(one: worklist.WorkItem) -> dict:
    return {
        "id": one.image.id,
        "name": one.image.name,
        "width": one.image.width,
        "height": one.image.height,
        "labels": [{"class": label.class_id, "state": label.state, "source": label.source} for label in one.labels],
        "suggestions": [asdict(chip) for chip in one.suggestions],
    }


def _display(image_id: int) -> tuple[Path, str]:
    db = context.db()
    try:
        source = images.image_path(db, image_id)
        kept = db.paths.thumbs / f"{image_id}.jpg"
        if kept.exists():
            return kept, "image/jpeg"
        known = images.images(db, [image_id])[image_id]
        small = max(known.width, known.height) <= DISPLAY_PIXELS and source.stat().st_size <= LARGEST_ORIGINAL
        if small and (media_type := _media_type(source)):
            return source, media_type
        kept.parent.mkdir(exist_ok=True)
        write_display(source, kept, DISPLAY_PIXELS)
        return kept, "image/jpeg"
    except (AnnotatorError, BadImage) as error:
        images.mark_problem(db, image_id, str(error))
        raise AnnotatorError(str(error)) from error


def _media_type(source: Path) -> str | None:
    """What the file really is, by its first bytes, since its name may lie; None for what browsers do not show."""
    with source.open("rb") as file:
        start = file.read(12)
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for first, media_type in FIRST_BYTES.items() if start.startswith(first)), None)
