"""The routes of the speed test, which sends only times."""

from dataclasses import asdict
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotator.queues import speed_test_tasks
from annotator.queues.speed_test_tasks import SpeedTestTask
from annotator.roles import Right
from annotator.snapshot.time_report import load_time_report
from annotator.store.labels.answer_times import TimedAnswer
from annotator.store.people import speed_tests
from annotator.ui.access import served_project
from annotator.ui.shared import responses
from annotator.ui.shared.guard import NO_STORE_HEADERS, guard_route, read_body
from annotator.ui.shared.requests import EmptyRequest, TimedTaskRequest, parse_body


async def tasks(request: Request, annotator: str) -> Response:
    """Handle POST {} -> {round, of, tasks, empty, report}: list this person's remaining tasks."""
    parse_body(await read_body(request), EmptyRequest)
    return JSONResponse(await run_sync(_build_tasks, annotator), headers=NO_STORE_HEADERS)


async def time(request: Request, annotator: str) -> Response:
    """Handle POST: store the time of one task of the speed test (resending changes nothing)."""
    given = parse_body(await read_body(request), TimedTaskRequest)
    await run_sync(_store_time, annotator, given)
    return JSONResponse({}, headers=NO_STORE_HEADERS)


ROUTES = [
    Route("/api/speed_test", guard_route(tasks, Right.ANSWER), methods=["POST"]),
    Route("/api/speed_test/time", guard_route(time, Right.ANSWER), methods=["POST"]),
]


def _build_tasks(annotator: str) -> dict[str, Any]:
    db = served_project.db()
    test = speed_test_tasks.load_speed_test(db, annotator)
    report = asdict(load_time_report(db, annotator))
    tasks_ = [_build_task(task, test.round) for task in test.tasks]
    return {"round": test.round, "of": test.task_count, "tasks": tasks_, "empty": test.empty_reason, "report": report}


def _build_task(task: SpeedTestTask, round_: int) -> dict[str, Any]:
    """Return a grid or image task as JSON, without predictions."""
    tiles = [responses.build_image(image) | {"probability": None, "state": None, "by": None} for image in task.images]
    name = f"s{round_}-{task.number}"
    grid = {"id": name, "class": task.class_id, "run": None, "share": None, "start": "no", "tiles": tiles}
    single = {"item": responses.build_image(task.images[0]) | {"labels": []}, "preset": [], "scores": []}
    content = {"grid": grid} if task.kind == "grid" else single
    return {"task": task.number, "kind": task.kind, "classes": task.class_ids} | content


def _store_time(annotator: str, given: TimedTaskRequest) -> None:
    answer = TimedAnswer(given.kind, given.cells, given.changes, given.milliseconds / 1000)
    speed_tests.store(served_project.db(), annotator, (given.round, given.task), answer)
