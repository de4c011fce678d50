"""The routes of the speed test: its tasks, and how long each took. What was marked is never sent."""

from dataclasses import asdict
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.queues import speed_test
from annotator.queues.speed_test import Task
from annotator.roles import Right
from annotator.snapshot.time_report import time_report
from annotator.store.labels.answer_times import Answer
from annotator.store.people import speed_tests
from annotator.ui.access import context
from annotator.ui.routes import shapes
from annotator.ui.routes.guard import FRESH, body_of, guarded
from annotator.ui.routes.requests import Nothing, TimedTaskRequest, parsed


async def tasks(request: Request, annotator: str) -> Response:
    """POST {} -> {round, of, tasks, empty, report}: the tasks that this person has not done yet.

    report: what is known of their times (snapshot/time_report.py).
    """
    parsed(await body_of(request), Nothing)
    return JSONResponse(await run_sync(_tasks, annotator), headers=FRESH)


async def time(request: Request, annotator: str) -> Response:
    """POST {round, task, kind, cells, changes, milliseconds} -> {}: store the time of one task.

    Sent again, it changes nothing.
    """
    given = parsed(await body_of(request), TimedTaskRequest)
    await run_sync(_store, annotator, given)
    return JSONResponse({}, headers=FRESH)


ROUTES = [
    Route("/api/speed_test", guarded(tasks, Right.ANSWER), methods=["POST"]),
    Route("/api/speed_test/time", guarded(time, Right.ANSWER), methods=["POST"]),
]


def _tasks(annotator: str) -> dict[str, Any]:
    db = context.db()
    test = speed_test.speed_test(db, annotator)
    report = asdict(time_report(db, annotator))
    tasks_ = [_task(task, test.round) for task in test.tasks]
    return {"round": test.round, "of": test.of, "tasks": tasks_, "empty": test.empty, "report": report}


def _task(task: Task, round_: int) -> dict[str, Any]:
    """Return a grid as the Grid page shows one in an audit, or an image as Autopilot shows one without predictions."""
    tiles = [shapes.image(image) | {"probability": None, "state": None, "by": None} for image in task.images]
    name = f"s{round_}-{task.task}"
    grid = {"id": name, "class": task.class_id, "run": None, "share": None, "start": "no", "tiles": tiles}
    single = {"item": shapes.image(task.images[0]) | {"labels": []}, "preset": [], "scores": []}
    content = {"grid": grid} if task.kind == "grid" else single
    return {"task": task.task, "kind": task.kind, "classes": task.class_ids} | content


def _store(annotator: str, given: TimedTaskRequest) -> None:
    answer = Answer(given.kind, given.cells, given.changes, given.milliseconds / 1000)
    speed_tests.store(context.db(), annotator, (given.round, given.task), answer)
