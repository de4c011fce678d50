"""Decisions in, and those that a person can still take back."""

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.records import Batch, Decision
from annotator.store import decisions
from annotator.ui import context
from annotator.ui.routes.guard import FRESH, body_of, guarded

MOST_DECISIONS = 500
MOST_CELLS = 500  # of one batch
RECENT = 200  # steps a page can take back after a reload
RECENT_CELLS = 500  # and cells in them: ten grids of 48


async def recent(request: Request, annotator: str) -> Response:
    """POST {} -> {decisions: [...]}: what this person can still undo after a reload, newest last, as it was sent."""
    found = await run_sync(decisions.undoable, context.db(), annotator, RECENT, RECENT_CELLS)
    return JSONResponse({"decisions": [_entry(one) for one in found]}, headers=FRESH)


async def decide(request: Request, annotator: str) -> Response:
    """POST {decisions: [...]} -> {saved: [uuid], refused: {uuid: reason}}; the same batch again changes nothing."""
    body = await body_of(request)
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


ROUTES = [
    Route("/api/recent", guarded(recent), methods=["POST"]),
    Route("/api/decisions", guarded(decide), methods=["POST"]),
]


def _decision(entry: dict, annotator: str) -> Decision | Batch:
    uuid = str(entry["uuid"])
    if not 8 <= len(uuid) <= 100:
        raise ValueError(f"its uuid {uuid!r} is not one")
    # Given while another name was on the page (kept in the browser until the server was back): it stays theirs.
    annotator = str(entry.get("annotator") or annotator)[:100]
    source = str(entry.get("source", "click"))
    if entry["action"] == "batch":
        if len(entry["cells"]) > MOST_CELLS:
            raise ValueError(f"{len(entry['cells'])} cells at once; at most {MOST_CELLS} are taken")
        cells = [
            (int(image_id), int(class_id), int(state), None if score is None else float(score))
            for image_id, class_id, state, score in entry["cells"]
        ]
        return Batch(uuid, annotator, source, cells, _number(entry, "run"), _number(entry, "milliseconds"))
    return Decision(
        uuid=uuid,
        action=str(entry["action"]),
        annotator=annotator,
        source=source,
        image_id=_number(entry, "image"),
        class_id=_number(entry, "class"),
        state=_number(entry, "state"),
        undoes=_text(entry, "undoes"),
        batch=_text(entry, "batch"),
        run_id=_number(entry, "run"),
        score=_number(entry, "score", float),
        milliseconds=_number(entry, "milliseconds"),
        note=str(entry.get("note") or "").strip(),
    )


def _number(entry: dict, name: str, kind: type = int) -> int | float | None:
    return None if entry.get(name) is None else kind(entry[name])


def _text(entry: dict, name: str) -> str | None:
    return None if entry.get(name) is None else str(entry[name])


def _entry(one: Decision | Batch) -> dict:
    shared = {"uuid": one.uuid, "source": one.source, "run": one.run_id}
    if isinstance(one, Batch):
        return shared | {"action": "batch", "cells": [list(cell) for cell in one.cells]}
    return shared | {
        "action": one.action,
        "image": one.image_id,
        "class": one.class_id,
        "state": one.state,
        "note": one.note,
        "score": one.score,
    }
