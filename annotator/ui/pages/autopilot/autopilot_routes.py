"""The routes of Autopilot: actions, audits and absent classes."""

from dataclasses import replace
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.humanize import format_count
from annotator.quality import audit_sampling, rule_out
from annotator.quality.certificate_records import Certificate
from annotator.queues.autopilot import action_texts, complete_project, target_recall
from annotator.queues.autopilot.actions import Action, RuleOutOffer
from annotator.queues.autopilot.complete_project import CompleteProject
from annotator.queues.autopilot.planner import lease_next_actions
from annotator.records import WantedActions
from annotator.roles import Right
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.people import blindness
from annotator.ui.access import served_project
from annotator.ui.routes import decide_routes
from annotator.ui.shared import responses
from annotator.ui.shared.guard import NO_STORE_HEADERS, get_blind_annotator, guard_route, read_body
from annotator.ui.shared.requests import (
    MAX_NAMED_ITEMS,
    ActionsRequest,
    ClassRequest,
    EmptyRequest,
    UndoRuleOutRequest,
    parse_body,
)

MAX_ACTIONS = 8


async def autopilot(request: Request, annotator: str) -> Response:
    """Handle POST: lease the next actions to this page.

    In the request, `have` (displayed) and `passed` (finished) are [image, class] pairs, class 0 for whole images. In
    the response, `complete` is null while actions remain. `ends`: nothing is open once these are answered.
    """
    asked = parse_body(await read_body(request), ActionsRequest)
    wanted = WantedActions(
        holder=asked.holder,
        annotator=annotator,
        have=asked.have[:MAX_NAMED_ITEMS],
        want=min(asked.want, MAX_ACTIONS) if asked.extra != "none" else 0,
        passed=asked.passed[:MAX_NAMED_ITEMS],
        instead=asked.instead,
        tiles=asked.tiles,
        extras=(asked.extra,) if asked.extra in complete_project.EXTRA_KINDS else (),
    )
    reviews = not get_blind_annotator(request, annotator)
    return JSONResponse(await run_sync(_build_actions, wanted, asked, reviews), headers=NO_STORE_HEADERS)


async def draw_audit(request: Request, annotator: str) -> Response:
    """Handle POST {}: draw an audit sample unless one is open."""
    parse_body(await read_body(request), EmptyRequest)
    await run_sync(_draw_audit, annotator)
    return JSONResponse({}, headers=NO_STORE_HEADERS)


async def rule_out_class(request: Request, annotator: str) -> Response:
    """Handle POST {class} -> {batch, cells, line}: mark the class absent everywhere."""
    asked = parse_body(await read_body(request), ClassRequest)
    return JSONResponse(await run_sync(_rule_out_class, asked.class_id, annotator), headers=NO_STORE_HEADERS)


async def undo_rule_out(request: Request, annotator: str) -> Response:
    """Handle POST {batch} -> {cells}: undo marking a class absent everywhere."""
    asked = parse_body(await read_body(request), UndoRuleOutRequest)
    return JSONResponse({"cells": await run_sync(_undo_rule_out, asked.batch)}, headers=NO_STORE_HEADERS)


ROUTES = [
    Route("/api/autopilot", guard_route(autopilot, Right.ANSWER), methods=["POST"]),
    Route("/api/autopilot/audit", guard_route(draw_audit, Right.REVIEW), methods=["POST"]),
    Route("/api/rule_out", guard_route(rule_out_class, Right.REVIEW), methods=["POST"]),
    Route("/api/rule_out/undo", guard_route(undo_rule_out, Right.REVIEW), methods=["POST"]),
]


def _rule_out_class(class_id: int, annotator: str) -> dict[str, Any]:
    db = served_project.db()
    ruled = rule_out.rule_out_class(db, class_id, annotator)
    line = f"'{classes.load_class_names(db)[class_id]}' counts as absent on {format_count(ruled.cells, 'image')}."
    return {"batch": ruled.batch, "cells": ruled.cells, "line": line}


def _undo_rule_out(batch: str) -> int:
    return rule_out.undo(served_project.db(), batch)


def _build_actions(wanted: WantedActions, asked: ActionsRequest, reviews: bool) -> dict[str, Any]:
    """Return the actions, or the end of the project."""
    db = served_project.db()
    can_stop = bool(asked.want) and asked.extra in ("", "none")
    if can_stop and not reviews:
        can_stop = not blindness.has_hidden_images(db, wanted.annotator)
    can_end = bool(asked.want) and not wanted.have
    end = _build_end(db, wanted, reviews) if can_end and not wanted.extras else None
    reached = target_recall.load_reached_certificate(db) if can_stop and end is None else None
    if reached and can_end:
        end = _build_target_end(db, reached, wanted.annotator, reviews)
    work = lease_next_actions(db, replace(wanted, want=0) if end or reached else wanted)
    cells = [cell for action in work.items if not _is_optional(action) for cell in _list_cells(action)]
    ends = bool(end or reached) or complete_project.has_no_open_pair(db, [*wanted.have, *cells])
    if ends and not wanted.extras:  # what is answered is asked again only on request
        work = replace(work, items=[action for action in work.items if not _is_optional(action)])
    if can_end and wanted.extras and not work.items:
        end = _build_end(db, wanted, reviews)
    answer = responses.build_work(work, lambda action: _build_action(action) | {"run": work.run_id})
    return answer | {"ends": ends, "complete": end}


def _is_optional(action: Action) -> bool:
    return action.kind == "audit" or (action.kind == "grid" and not action.decided_cells)


def _list_cells(action: Action) -> list[tuple[int, int]]:
    if action.grid:
        return [(tile.image.id, action.grid.class_id) for tile in action.grid.tiles]
    return [(action.item.image.id, 0)] if action.item else []


def _build_end(db: Database, wanted: WantedActions, reviews: bool) -> dict[str, Any] | None:
    complete = complete_project.load_complete_project(db, wanted)
    return complete and _build_completion(complete, wanted.annotator, reviews)


def _build_target_end(db: Database, certificate: Certificate, annotator: str, reviews: bool) -> dict[str, Any]:
    heading, line = action_texts.format_target_lines(certificate)
    labels = sorted(((row.name, row.people) for row in certificate.classes), key=lambda label: (-label[1], label[0]))
    nothing = {"doubted": "", "doubts": False, "findings": "", "audit": "", "audit_is_drawn": False}
    return nothing | {
        "heading": heading,
        "line": line,
        "beyond": True,
        "labels": labels,
        "exports": reviews,
        "export": _describe_last_export(db, annotator) if reviews else None,
    }


def _describe_last_export(db: Database, annotator: str) -> dict[str, Any] | None:
    from annotator.ui.shared.work import last_export  # with all formats, when the project is complete

    last = last_export.load_next(db, annotator)
    return last and {"format": last.kind, "name": last.name, "on_server": last.on_server}


def _build_completion(complete: CompleteProject, annotator: str, reviews: bool) -> dict[str, Any]:
    has_audit = bool(complete.open_audit.pairs)
    return {
        "heading": action_texts.COMPLETE_HEADING,
        "beyond": False,
        "findings": action_texts.format_findings_line(complete),
        "line": action_texts.format_complete_line(complete),
        "labels": complete.labels,
        "doubted": action_texts.format_doubted_line(complete.doubted_answers),
        "doubts": bool(complete.doubted_answers and complete.doubted_answers.pairs),
        "audit": action_texts.format_audit_offer_line(complete)
        if has_audit or (reviews and complete.new_audit.pairs)
        else "",
        "audit_is_drawn": has_audit,
        "exports": reviews,
        "export": _describe_last_export(served_project.db(), annotator) if reviews else None,
    }


def _draw_audit(annotator: str) -> None:
    db = served_project.db()
    if not audit_sampling.load_open_cells_for(db, annotator):
        audit_sampling.draw_audit(db)


def _build_action(action: Action) -> dict[str, Any]:
    return {
        "id": action.id,
        "kind": action.kind,
        "source": decide_routes.mask_source(action.source),
        "line": action.line,
        "labels": action.expected_positives,
        "decided": action.decided_cells,
        "seconds": action.seconds,
        "others": action.alternatives,
        "grid": action.grid and responses.build_grid(action.grid),
        "item": action.item and responses.build_item(action.item),
        "preset": action.preset,
        "scores": action.scores,
        "models": action.models,
        "reason": action.reason,
        "ruling_out": action.ruling_out and _build_offer(action.ruling_out),
    }


def _build_offer(offer: RuleOutOffer) -> dict[str, Any]:
    return {
        "class": offer.class_id,
        "name": offer.name,
        "absent": offer.absent_answers,
        "images": offer.images,
        "at_most": offer.max_share_text,
    }
