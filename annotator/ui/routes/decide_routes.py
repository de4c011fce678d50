"""The routes that store decisions and list undoable ones."""

from dataclasses import asdict, replace

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.records import SOURCES, Batch, Decision, SaveResult
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.store.events.event_answers import EventBatch
from annotator.store.images import images
from annotator.store.labels import audits, decisions, image_overlap, implied_cells
from annotator.store.people import blindness, members, others_images, reference_answers
from annotator.store.people.daily_activity import load_daily_activity
from annotator.ui.access import served_project
from annotator.ui.shared.guard import NO_STORE_HEADERS, get_blind_annotator, guard_route, read_body
from annotator.ui.shared.requests import (
    AnyDecisionRequest,
    BatchRequest,
    ClearRequest,
    CommentRequest,
    EmptyRequest,
    FlagRequest,
    LabelRequest,
    UndoRequest,
    parse_body,
    parse_decisions,
    parse_milliseconds,
)

MAX_RECENT_STEPS = 200  # steps a page can take back after a reload
MAX_RECENT_CELLS = 500  # cells in these steps: ten grids of 48


BLIND_SOURCES = (image_overlap.OVERLAP_SOURCE, reference_answers.REFERENCE_SOURCE)
"""Sources of answers to images that are chosen for blind answers. Pages know the first one only: neither what is sent
nor what is refused tells which of these images have known answers."""


def mask_source(source: str) -> str:
    """Return a decision's source for display, in which answers to reference images look like ordinary ones."""
    return image_overlap.OVERLAP_SOURCE if source in BLIND_SOURCES else source


async def recent(request: Request, annotator: str) -> Response:
    """Handle POST {} -> {decisions, images: [[id, name]]}: list undoable decisions, newest last."""
    parse_body(await read_body(request), EmptyRequest)
    undoable, names = await run_sync(_load_recent, annotator)
    return JSONResponse(
        {"decisions": [_build_entry(decision) for decision in undoable], "images": names}, headers=NO_STORE_HEADERS
    )


async def decide(request: Request, annotator: str) -> Response:
    """Handle POST {decisions} -> {saved, refused, opinions, contradicted, today}: store decisions.

    Invalid ones do not block the others, and resending changes nothing.

    opinions      uuids of decisions on cells with a disagreement that this person may not resolve
    contradicted  [[image, class, state, other class, its state]]: older answers that batches contradict
    """
    given, refused = parse_decisions(await read_body(request))
    result, more = await run_sync(_store_decisions, given, annotator)
    refused |= more | result.refused
    saved = [uuid for uuid in result.saved if uuid not in refused]  # a uuid sent with two contents is in both
    day = await run_sync(load_daily_activity, served_project.db(), annotator)
    answer = {"saved": saved, "refused": refused, "opinions": result.opinions, "today": asdict(day)}
    batches = [one.uuid for one in given if isinstance(one, BatchRequest) and one.uuid in saved and _can_ask_about(one)]
    if batches:
        answer["contradicted"] = await run_sync(_find_contradicted, batches, get_blind_annotator(request, annotator))
    return JSONResponse(answer, headers=NO_STORE_HEADERS)


ROUTES = [
    Route("/api/recent", guard_route(recent, Right.LOOK), methods=["POST"]),
    Route("/api/decisions", guard_route(decide, Right.ANSWER), methods=["POST"]),
]


def _load_recent(annotator: str) -> tuple[list[Decision | Batch], list[tuple[int, str]]]:
    db = served_project.db()
    undoable = decisions.load_undoable(db, annotator, MAX_RECENT_STEPS, MAX_RECENT_CELLS)
    about = [_get_image_ids(step) for step in undoable]
    named = images.load_images(db, sorted({id_ for ids in about if len(ids) == 1 for id_ in ids if id_ is not None}))
    return undoable, [(image_id, image.name) for image_id, image in named.items()]


def _get_image_ids(step: Decision | Batch) -> set[int | None]:
    if not isinstance(step, Batch):
        return {step.image_id} - {None}
    copies = step.copies if isinstance(step, EventBatch) else ()
    return {image_id for image_id, *_ in (*step.cells, *copies)}


def _store_decisions(given: list[AnyDecisionRequest], own: str) -> tuple[SaveResult, dict[str, str]]:
    db, refused, accepted = served_project.db(), {}, []
    for decision in given:
        author = _find_author(decision, own)
        if author is None:
            refused[decision.uuid] = f"given as {decision.annotator!r}; switch to that user to send it"
        elif isinstance(decision, BatchRequest) and decision.copies and SOURCES[decision.source].blind:
            refused[decision.uuid] = "blind answers are of one image and are given to no other"
        elif decision.action != "undo" and decision.source == "audit" and (cell := _find_unsampled_cell(db, decision)):
            refused[decision.uuid] = f"class {cell[1]} on image {cell[0]} is not part of an audit"
        elif decision.action != "undo" and decision.source in BLIND_SOURCES:
            if (source := _find_blind_source(db, decision)) is None:
                refused[decision.uuid] = "it is not about one image that people answer blind"
            else:
                accepted.append(replace(_build_decision(decision, author), source=source))
        else:
            accepted.append(_mark_others_images(db, _build_decision(decision, author)))
    return decisions.save(db, accepted), refused


def _can_ask_about(batch: BatchRequest) -> bool:
    return batch.source != "audit" and not SOURCES[batch.source].blind


def _find_contradicted(batches: list[str], blind: str) -> list[tuple[int, int, int, int, int]]:
    """Return older answers that the batches contradict, except on images that must still be answered blind."""
    found = implied_cells.find_answers_contradicted_by(served_project.db(), batches)
    hidden = (
        blindness.find_hidden_images(served_project.db(), blind, sorted({row[0] for row in found}))
        if blind and found
        else set()
    )
    return [row for row in found if row[0] not in hidden]


def _find_author(given: AnyDecisionRequest, own: str) -> str | None:
    """Return the annotator to whom the decision's token belongs, or None."""
    if given.annotator in ("", own):
        return own
    if served_project.tokens().read_author(given.signature or "") != given.annotator:
        return None
    sessions = served_project.sessions()
    if sessions is None:
        return given.annotator
    author = members.get_current_name(served_project.db(), given.annotator)
    return author if sessions.has_right(author, Right.ANSWER) else None


def _find_unsampled_cell(db: Database, given: AnyDecisionRequest) -> tuple[int, int] | None:
    cells = _get_cells(given)
    drawn = audits.find_sampled_cells(db, cells)
    return next((cell for cell in cells if cell not in drawn), None)


def _find_blind_source(db: Database, given: AnyDecisionRequest) -> str | None:
    """Return the source to store for a blind answer, or None if its image is not labeled blind."""
    stored = db.value("SELECT source FROM decision WHERE uuid IN (?, ?)", [given.uuid, f"{given.uuid}:0"])
    if stored is not None:  # sent again
        return stored
    image_ids = {image_id for image_id, _ in _get_cells(given)} or {getattr(given, "image", 0)}
    if len(image_ids) > 1:
        return None
    if reference_answers.find_chosen_images(db, image_ids) and not image_overlap.find_waiting_images(db, image_ids):
        return reference_answers.REFERENCE_SOURCE
    return image_overlap.OVERLAP_SOURCE if image_overlap.find_chosen_images(db, image_ids) else None


def _get_cells(given: AnyDecisionRequest) -> list[tuple[int, int]]:
    if isinstance(given, BatchRequest):
        return [(image_id, class_id) for image_id, class_id, _, _ in given.cells]
    return [(given.image, given.class_id)] if isinstance(given, LabelRequest) else []


def _build_decision(given: AnyDecisionRequest, annotator: str) -> Decision | Batch:
    shared = {
        "uuid": given.uuid,
        "annotator": annotator,
        "source": given.source,
        "milliseconds": parse_milliseconds(given),
    }
    if isinstance(given, BatchRequest):
        shared |= {"cells": given.cells, "run_id": given.run}
        return EventBatch(**shared, copies=given.copies) if given.copies else Batch(**shared)
    if isinstance(given, UndoRequest):
        return Decision(**shared, action="undo", undoes=given.undoes)
    shared |= {"action": given.action, "image_id": given.image, "batch": given.batch}
    if isinstance(given, LabelRequest):
        return Decision(**shared, class_id=given.class_id, state=given.state, run_id=given.run, score=given.score)
    if isinstance(given, ClearRequest):
        return Decision(**shared, class_id=given.class_id)
    if isinstance(given, FlagRequest | CommentRequest):
        return Decision(**shared, note=(given.note or "").strip())
    return Decision(**shared)


def _mark_others_images(db: Database, decision: Decision | Batch) -> Decision | Batch:
    """Mark the images of an event batch that other annotators have open, so that saving leaves them out."""
    if not isinstance(decision, EventBatch):
        return decision
    image_ids = {image_id for image_id, _, _, _ in decision.copies}
    return replace(decision, away=others_images.find_unavailable_images(db, decision.annotator, image_ids))


def _build_entry(decision: Decision | Batch) -> dict:
    shared = {"uuid": decision.uuid, "source": mask_source(decision.source), "run": decision.run_id}
    if isinstance(decision, Batch):
        copies = {"copies": [list(copy) for copy in decision.copies]} if isinstance(decision, EventBatch) else {}
        return shared | {"action": "batch", "cells": [list(cell) for cell in decision.cells]} | copies
    return shared | {
        "action": decision.action,
        "image": decision.image_id,
        "class": decision.class_id,
        "state": decision.state,
        "note": decision.note,
        "score": decision.score,
    }
