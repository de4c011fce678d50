"""The route of Autopilot: the actions with the highest acquisition value for this annotator's time."""

from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.queues.autopilot.actions import Action
from annotator.queues.autopilot.planner import next_actions
from annotator.records import WantedActions
from annotator.roles import Right
from annotator.ui.access import context
from annotator.ui.routes import decide, shapes
from annotator.ui.routes.guard import FRESH, body_of, guarded
from annotator.ui.routes.requests import MOST_NAMED, ActionsRequest, parsed

MOST_ACTIONS = 8


async def autopilot(request: Request, annotator: str) -> Response:
    """POST {holder, have, want, instead?, passed?, tiles?} -> the next actions, their cells leased to this page.

    have and passed are [image, class] pairs, class 0 for a whole image; tiles: how many a grid may have.
    """
    asked = parsed(await body_of(request), ActionsRequest)
    wanted = WantedActions(
        holder=asked.holder,
        annotator=annotator,
        have=asked.have[:MOST_NAMED],
        want=min(asked.want, MOST_ACTIONS),
        passed=asked.passed[:MOST_NAMED],
        instead=asked.instead,
        tiles=asked.tiles,
    )
    return JSONResponse(await run_sync(_autopilot, wanted), headers=FRESH)


ROUTES = [Route("/api/autopilot", guarded(autopilot, Right.ANSWER), methods=["POST"])]


def _autopilot(wanted: WantedActions) -> dict[str, Any]:
    work = next_actions(context.db(), wanted)
    return shapes.work(work, lambda action: _action(action) | {"run": work.run})


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
    }
