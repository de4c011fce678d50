"""The routes for decisions: storing them, and listing those that a person can still take back."""

from dataclasses import asdict, replace

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.records import SOURCES, Batch, Decision, Saved
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.store.events.answers import EventBatch
from annotator.store.images import images
from annotator.store.labels import audits, decisions, implied
from annotator.store.labels import overlap as readings
from annotator.store.people import blindness, known_answers, members, others_images
from annotator.store.people.daily_activity import today
from annotator.ui.access import context
from annotator.ui.routes.guard import FRESH, blind_as, body_of, guarded
from annotator.ui.routes.requests import (
    AnyDecisionRequest,
    BatchGiven,
    ClearGiven,
    CommentGiven,
    FlagGiven,
    LabelGiven,
    Nothing,
    UndoGiven,
    milliseconds_of,
    parsed,
    parsed_decisions,
)

RECENT = 200  # steps a page can take back after a reload
RECENT_CELLS = 500  # cells in these steps: ten grids of 48


BLIND = (readings.SOURCE, known_answers.SOURCE)
"""Sources of answers to images that are chosen for blind answers. Pages know the first one only: neither what is sent
nor what is refused tells which of these images have known answers."""


def as_sent(source: str) -> str:
    """Return the source of a decision as a person is told it: that an answer was a known one is hidden from them."""
    return readings.SOURCE if source in BLIND else source


async def recent(request: Request, annotator: str) -> Response:
    """POST {} -> {decisions: [...], images: [[id, name]]}: what this person can still undo after a reload.

    The decisions are given as they were sent, newest last, and images names those that they are about.
    """
    parsed(await body_of(request), Nothing)
    undoable, names = await run_sync(_recent, annotator)
    return JSONResponse({"decisions": [_entry(decision) for decision in undoable], "images": names}, headers=FRESH)


async def decide(request: Request, annotator: str) -> Response:
    """POST {decisions: [...]} -> {saved: [uuid], refused: {uuid: reason}, opinions: [uuid], contradicted, today}.

    Every decision is judged alone: one that cannot be stored is refused with its reason, and the rest is saved.
    Decisions that are sent again change nothing. opinions: decisions on cells about which people still differ and
    which this person may not settle. contradicted: [[image, class, state, other class, its state]], older answers that
    the batches among the decisions contradict by the relations of classes; those about one image the page finds itself.
    today: what this person has done today, these decisions included (store/people/daily_activity.py).
    """
    given, refused = parsed_decisions(await body_of(request))
    result, more = await run_sync(_decide, given, annotator)
    refused |= more | result.refused
    saved = [uuid for uuid in result.saved if uuid not in refused]  # a uuid sent with two contents is in both
    day = await run_sync(today, context.db(), annotator)
    answer = {"saved": saved, "refused": refused, "opinions": result.opinions, "today": asdict(day)}
    batches = [one.uuid for one in given if isinstance(one, BatchGiven) and one.uuid in saved and _is_asked(one)]
    if batches:
        answer["contradicted"] = await run_sync(_contradicted, batches, blind_as(request, annotator))
    return JSONResponse(answer, headers=FRESH)


ROUTES = [
    Route("/api/recent", guarded(recent, Right.LOOK), methods=["POST"]),
    Route("/api/decisions", guarded(decide, Right.ANSWER), methods=["POST"]),
]


def _recent(annotator: str) -> tuple[list[Decision | Batch], list[tuple[int, str]]]:
    db = context.db()
    undoable = decisions.undoable(db, annotator, RECENT, RECENT_CELLS)
    about = [_images_of(step) for step in undoable]
    named = images.images(db, sorted({id_ for ids in about if len(ids) == 1 for id_ in ids if id_ is not None}))
    return undoable, [(image_id, image.name) for image_id, image in named.items()]


def _images_of(step: Decision | Batch) -> set[int | None]:
    if not isinstance(step, Batch):
        return {step.image_id} - {None}
    copies = step.copies if isinstance(step, EventBatch) else ()
    return {image_id for image_id, *_ in (*step.cells, *copies)}


def _decide(given: list[AnyDecisionRequest], own: str) -> tuple[Saved, dict[str, str]]:
    db, refused, accepted = context.db(), {}, []
    for decision in given:
        author = _author(decision, own)
        if author is None:
            refused[decision.uuid] = f"given as {decision.annotator!r}; switch to that user to send it"
        elif isinstance(decision, BatchGiven) and decision.copies and SOURCES[decision.source].blind:
            refused[decision.uuid] = "blind answers are of one image and are given to no other"
        elif decision.action != "undo" and decision.source == "audit" and (cell := _never_drawn(db, decision)):
            refused[decision.uuid] = f"class {cell[1]} on image {cell[0]} is not part of an audit"
        elif decision.action != "undo" and decision.source in BLIND:
            if (source := _blind_source(db, decision)) is None:
                refused[decision.uuid] = "it is not about one image that people answer blind"
            else:
                accepted.append(replace(_decision(decision, author), source=source))
        else:
            accepted.append(_for_event(db, _decision(decision, author)))
    return decisions.decide(db, accepted), refused


def _is_asked(batch: BatchGiven) -> bool:
    """Return whether a person is asked about what a batch contradicts: an audit must not make them answer anew."""
    return batch.source != "audit" and not SOURCES[batch.source].blind


def _contradicted(batches: list[str], blind: str) -> list[tuple[int, int, int, int, int]]:
    """Return what the batches contradict, but for images that this person is still to answer blind."""
    found = implied.contradicted_by(context.db(), batches)
    hidden = blindness.hidden_from(context.db(), blind, sorted({row[0] for row in found})) if blind and found else set()
    return [row for row in found if row[0] not in hidden]


def _author(given: AnyDecisionRequest, own: str) -> str | None:
    """Return the person whose decision it is; None when nothing shows that, or when they may no longer answer.

    It is the page's own person. A decision that waited in the browser while the name on the page changed belongs to
    the person whose token came with it, who may have another name by now.
    """
    if given.annotator in ("", own):
        return own
    if context.tokens().author(given.signature or "") != given.annotator:
        return None
    sessions = context.sessions()
    if sessions is None:
        return given.annotator
    author = members.name_now(context.db(), given.annotator)
    return author if sessions.may(author, Right.ANSWER) else None


def _never_drawn(db: Database, given: AnyDecisionRequest) -> tuple[int, int] | None:
    """Return a cell of this decision that no audit has drawn, else None: the audit grid answers only audit cells."""
    cells = _cells(given)
    drawn = audits.sampled_cells(db, cells)
    return next((cell for cell in cells if cell not in drawn), None)


def _blind_source(db: Database, given: AnyDecisionRequest) -> str | None:
    """Return the source of a blind answer: a known answer, or one of several people's.

    None where its image is asked about for neither reason, or there are several images.
    """
    stored = db.value("SELECT source FROM decision WHERE uuid IN (?, ?)", [given.uuid, f"{given.uuid}:0"])
    if stored is not None:  # sent again
        return stored
    image_ids = {image_id for image_id, _ in _cells(given)} or {getattr(given, "image", 0)}
    if len(image_ids) > 1:
        return None
    if known_answers.chosen_among(db, image_ids) and not readings.waiting_among(db, image_ids):
        return known_answers.SOURCE
    return readings.SOURCE if readings.chosen_among(db, image_ids) else None


def _cells(given: AnyDecisionRequest) -> list[tuple[int, int]]:
    if isinstance(given, BatchGiven):
        return [(image_id, class_id) for image_id, class_id, _, _ in given.cells]
    return [(given.image, given.class_id)] if isinstance(given, LabelGiven) else []


def _decision(given: AnyDecisionRequest, annotator: str) -> Decision | Batch:
    shared = {
        "uuid": given.uuid,
        "annotator": annotator,
        "source": given.source,
        "milliseconds": milliseconds_of(given),
    }
    if isinstance(given, BatchGiven):
        shared |= {"cells": given.cells, "run_id": given.run}
        return EventBatch(**shared, copies=given.copies) if given.copies else Batch(**shared)
    if isinstance(given, UndoGiven):
        return Decision(**shared, action="undo", undoes=given.undoes)
    shared |= {"action": given.action, "image_id": given.image, "batch": given.batch}
    if isinstance(given, LabelGiven):
        return Decision(**shared, class_id=given.class_id, state=given.state, run_id=given.run, score=given.score)
    if isinstance(given, ClearGiven):
        return Decision(**shared, class_id=given.class_id)
    if isinstance(given, FlagGiven | CommentGiven):
        return Decision(**shared, note=(given.note or "").strip())
    return Decision(**shared)


def _for_event(db: Database, decision: Decision | Batch) -> Decision | Batch:
    """Return the decision; of one that answers a whole event, with the images that are other people's left out."""
    if not isinstance(decision, EventBatch):
        return decision
    image_ids = {image_id for image_id, _, _, _ in decision.copies}
    return replace(decision, away=others_images.among(db, decision.annotator, image_ids))


def _entry(decision: Decision | Batch) -> dict:
    shared = {"uuid": decision.uuid, "source": as_sent(decision.source), "run": decision.run_id}
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
