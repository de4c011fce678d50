"""The speed test: which tasks it has, and that nothing comes of them but times."""

import pytest
from harness.answers import answer_cell
from harness.asked import asked

from annotator.queues import speed_test_tasks
from annotator.queues.speed_test_tasks import TASK_PLAN
from annotator.snapshot.time_model import DEFAULT_TIMES
from annotator.store.database.database import Database
from annotator.store.labels import label_cells, project_counts
from annotator.store.labels.answer_times import TimedAnswer
from annotator.store.people import speed_tests


def done(db, test: speed_test_tasks.SpeedTest, tasks: int, annotator: str = "Ann") -> None:
    for task in test.tasks[:tasks]:
        place = (test.round, task.number)
        speed_tests.store(db, annotator, place, TimedAnswer(task.kind, max(1, len(task.images)), 0, 2.0))


def test_speed_test_tasks_take_about_two_minutes_at_the_default_answer_times():
    seconds = [
        {
            "grid": DEFAULT_TIMES.estimate_grid_seconds(size, present),
            "image": DEFAULT_TIMES.estimate_image_seconds(min(size, 12), 1),
            "click": DEFAULT_TIMES.click,
        }[kind]
        for kind, size, present in TASK_PLAN
    ]
    assert 110 <= sum(seconds) <= 135


def test_speed_test_grids_of_12_images_contain_the_planned_number_of_positives(db):
    for image_id in range(1, 10):
        answer_cell(db, image_id, 2)
    test = speed_test_tasks.load_speed_test(db, "Ann")
    assert [task.kind for task in test.tasks] == [kind for kind, _, _ in TASK_PLAN]
    for task in test.tasks:
        _, size, present = TASK_PLAN[task.number]
        if task.kind != "grid":
            assert len(task.images) == 1 and len(task.class_ids) <= 3
            continue
        ids = [image.id for image in task.images]
        assert task.class_id == 2 and len(set(ids)) == len(ids) == min(size, 24)
        seen = [image_id for image_id, state in label_cells.load_states(db, 2, ids).items() if state == 1]
        assert len(seen) == (present if size == 12 else len(seen))  # the project has 24 images, all in larger grids


def test_speed_test_resumes_with_the_same_tasks_and_restarts_after_completion(db):
    first = speed_test_tasks.load_speed_test(db, "Ann")
    done(db, first, 5)
    again = speed_test_tasks.load_speed_test(db, "Ann")
    assert again.round == 1 and again.tasks == first.tasks[5:]
    assert speed_test_tasks.load_speed_test(db, "Bob").tasks[0].number == 0
    done(db, again, len(again.tasks))
    assert speed_test_tasks.load_speed_test(db, "Ann").round == 2 and len(
        speed_test_tasks.load_speed_test(db, "Ann").tasks
    ) == len(TASK_PLAN)


def test_speed_test_stores_only_times(db):
    before = project_counts.count_images_by_stage(db), project_counts.count_labels_by_class(db)
    with asked(db.paths.project) as app:
        status, test = app.post("/api/speed_test", {})
        assert status == 200 and len(test["tasks"]) == test["of"] == len(TASK_PLAN)
        assert all(
            tile["probability"] is None for task in test["tasks"] for tile in task.get("grid", {"tiles": []})["tiles"]
        )
        for task in test["tasks"]:
            time = {"round": test["round"], "task": task["task"], "kind": task["kind"], "cells": 3, "changes": 1}
            assert app.post("/api/speed_test/time", time | {"milliseconds": 1234.5})[0] == 200
        status, after = app.post("/api/speed_test", {})
        assert after["round"] == 2 and after["report"]["tested"] == len(TASK_PLAN)
    assert (project_counts.count_images_by_stage(db), project_counts.count_labels_by_class(db)) == before
    for table in ("decision", "label", "lease"):
        assert db.value(f"SELECT count(*) FROM {table}") == 0, table


@pytest.mark.parametrize(
    "wrong",
    [{"cells": 0}, {"changes": 31, "cells": 10}, {"milliseconds": 0}, {"milliseconds": 700_000}, {"kind": "nap"}],
)
def test_impossible_speed_test_time_is_refused_and_not_stored(db, wrong):
    with asked(db.paths.project) as app:
        good = {"round": 1, "task": 0, "kind": "grid", "cells": 12, "changes": 1, "milliseconds": 9000}
        status, told = app.post("/api/speed_test/time", good | wrong)
    assert status in (400, 409) and told["error"]
    assert speed_tests.count_tests(db, "") == 0


def test_speed_test_without_images_explains_which_images_it_needs(tmp_path):
    test = speed_test_tasks.load_speed_test(Database(tmp_path / "bare", create=True), "Ann")
    assert test.tasks == () and "needs a class and at least 4 images" in test.empty_reason
