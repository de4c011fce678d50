"""The routes of Autopilot: the actions with the highest value for this annotator's time, and ruling out a class."""

from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.quality import audit, rule_out
from annotator.queues.autopilot import finishing, wording
from annotator.queues.autopilot.actions import Action, RulingOut
from annotator.queues.autopilot.finishing import Complete
from annotator.queues.autopilot.planner import next_actions
from annotator.records import WantedActions
from annotator.roles import Right
from annotator.shares import counted
from annotator.store.classes import classes
from annotator.ui.access import context
from annotator.ui.export import last_export
from annotator.ui.routes import decide, shapes
from annotator.ui.routes.guard import FRESH, blind_as, body_of, guarded
from annotator.ui.routes.requests import MOST_NAMED, ActionsRequest, ClassRequest, Nothing, UndoRuleOutRequest, parsed

MOST_ACTIONS = 8


async def autopilot(request: Request, annotator: str) -> Response:
    """POST {holder, have, want, instead?, passed?, tiles?, extra?} -> the next actions, leased to this page.

    have and passed are [image, class] pairs, class 0 for a whole image; tiles: how many a grid may have. Without an
    action the answer says what a complete project holds: `complete`, null while something is open.
    """
    asked = parsed(await body_of(request), ActionsRequest)
    wanted = WantedActions(
        holder=asked.holder,
        annotator=annotator,
        have=asked.have[:MOST_NAMED],
        want=min(asked.want, MOST_ACTIONS) if asked.extra != "none" else 0,
        passed=asked.passed[:MOST_NAMED],
        instead=asked.instead,
        tiles=asked.tiles,
        extras=(asked.extra,) if asked.extra in finishing.EXTRAS else (),
    )
    tells_complete, reviews = bool(asked.want and not asked.have), not blind_as(request, annotator)
    return JSONResponse(await run_sync(_autopilot, wanted, tells_complete, reviews), headers=FRESH)


async def draw_audit(request: Request, annotator: str) -> Response:
    """POST {} -> {}: an audit of the usual size is drawn, unless one waits for answers."""
    parsed(await body_of(request), Nothing)
    await run_sync(_draw_audit)
    return JSONResponse({}, headers=FRESH)


async def rule_out_class(request: Request, annotator: str) -> Response:
    """POST {class} -> {batch, cells, line}: the class counts as absent on so many images, and what to say of it."""
    asked = parsed(await body_of(request), ClassRequest)
    return JSONResponse(await run_sync(_rule_out, asked.class_id, annotator), headers=FRESH)


async def undo_rule_out(request: Request, annotator: str) -> Response:
    """POST {batch} -> {cells}: so many images were given back."""
    asked = parsed(await body_of(request), UndoRuleOutRequest)
    return JSONResponse({"cells": await run_sync(_undo, asked.batch)}, headers=FRESH)


ROUTES = [
    Route("/api/autopilot", guarded(autopilot, Right.ANSWER), methods=["POST"]),
    Route("/api/autopilot/audit", guarded(draw_audit, Right.REVIEW), methods=["POST"]),
    Route("/api/rule_out", guarded(rule_out_class, Right.REVIEW), methods=["POST"]),
    Route("/api/rule_out/undo", guarded(undo_rule_out, Right.REVIEW), methods=["POST"]),
]


def _rule_out(class_id: int, annotator: str) -> dict[str, Any]:
    db = context.db()
    ruled = rule_out.rule_out(db, class_id, annotator)
    line = f"'{classes.names(db)[class_id]}' counts as absent on {counted(ruled.cells, 'image')}."
    return {"batch": ruled.batch, "cells": ruled.cells, "line": line}


def _undo(batch: str) -> int:
    return rule_out.undo(context.db(), batch)


def _autopilot(wanted: WantedActions, tells_complete: bool, reviews: bool) -> dict[str, Any]:
    db = context.db()
    work = next_actions(db, wanted)
    complete = finishing.complete(db, wanted) if tells_complete and not work.items else None
    answer = shapes.work(work, lambda action: _action(action) | {"run": work.run})
    return answer | {"complete": complete and _complete(complete, wanted.annotator, reviews)}


def _complete(complete: Complete, annotator: str, reviews: bool) -> dict[str, Any]:
    """Return what a complete project holds as JSON; only whoever reviews may export, and draw another audit."""
    last = last_export.of(context.db(), annotator) if reviews else None
    has_audit = bool(complete.audit_in_hand.pairs)
    return {
        "line": wording.complete_line(complete),
        "labels": complete.labels,
        "doubted": wording.doubted_line(complete.doubted),
        "doubts": bool(complete.doubted and complete.doubted.pairs),
        "audit": wording.audit_offer_line(complete) if has_audit or (reviews and complete.audit.pairs) else "",
        "audit_is_drawn": has_audit,
        "exports": reviews,
        "export": last and {"format": last.kind, "name": last.name, "on_server": last.on_server},
    }


def _draw_audit() -> None:
    db = context.db()
    if not audit.open_cells(db):
        audit.draw(db)


def _action(action: Action) -> dict[str, Any]:
    return {
        "id": action.id,
        "kind": action.kind,
        "source": decide.as_sent(action.source),
        "line": action.line,
        "labels": action.labels,
        "decided": action.decided,
        "seconds": action.seconds,
        "others": action.others,
        "grid": action.grid and shapes.grid(action.grid),
        "item": action.item and shapes.item(action.item),
        "preset": action.preset,
        "scores": action.scores,
        "models": action.models,
        "reason": action.reason,
        "ruling_out": action.ruling_out and _offer(action.ruling_out),
    }


def _offer(offer: RulingOut) -> dict[str, Any]:
    return {
        "class": offer.class_id,
        "name": offer.name,
        "absent": offer.absent,
        "images": offer.images,
        "at_most": offer.at_most,
    }
