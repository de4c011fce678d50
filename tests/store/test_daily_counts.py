"""What a person has done today is what counting every decision finds, whatever people do and take back."""

import random
import time

import pytest
from harness.random_decisions import anything

from annotator.records import Batch, Decision, list_sources
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.labels.answer_times import MAX_ANSWER_MILLISECONDS
from annotator.store.people.daily_activity import DailyActivity, load_daily_activity

PEOPLE = ("Ann", "Bob", "5", "nobody")


def counted(db: Database, annotator: str, midnight: float) -> DailyActivity:
    """The same, counted one by one."""
    rows = {row["id"]: row for row in db.rows("SELECT * FROM decision")}
    undone = {row["undoes"] for row in rows.values()}
    own = {
        id_: row
        for id_, row in rows.items()
        if row["annotator"] == annotator
        and row["decided_at"] >= midnight
        and row["source"] in list_sources(claimable=True)
        and row["action"] != "undo"
        and id_ not in undone
    }
    times: dict[str, int] = {}
    for row in own.values():
        times[row["batch"] or row["uuid"]] = times.get(row["batch"] or row["uuid"], 0) + (row["milliseconds"] or 0)
    return DailyActivity(
        sum(taken for taken in times.values() if taken <= MAX_ANSWER_MILLISECONDS),
        len({row["image_id"] for row in own.values() if row["action"] in ("label", "clear", "done")}),
        sum(row["decision_id"] in own for row in db.rows("SELECT decision_id FROM label WHERE state = 1")),
    )


@pytest.mark.parametrize("seed", range(3))
def test_daily_activity_equals_a_full_count_after_random_decisions_and_undos(db, seed):
    chance, given, begun = random.Random(seed), [], time.time()
    for _ in range(40):
        some = [anything(chance, given) for _ in range(chance.randint(1, 6))]
        some += [
            Decision(f"more-{seed}-{len(given)}", "clear", "Ann", "click", chance.randint(1, 24), chance.randint(1, 3)),
            Decision(f"slow-{seed}-{len(given)}", "label", "Ann", "click", chance.randint(1, 24), 1, 1,
                     milliseconds=chance.choice([0, 700, MAX_ANSWER_MILLISECONDS, MAX_ANSWER_MILLISECONDS + 1])),
        ]  # fmt: skip
        given += [f"{one.uuid}:0" if isinstance(one, Batch) else one.uuid for one in some]
        decisions.save(db, some)
        if chance.random() < 0.2:
            decisions.undo(db, "Ann", by="Bob")
        for name in PEOPLE:
            if chance.random() < 0.6:  # one who has not asked for a while catches up with several at once
                assert load_daily_activity(db, name, begun) == counted(db, name, begun), name
    for name in PEOPLE:
        assert (
            load_daily_activity(db, name, begun)
            == load_daily_activity(Database(db.paths.project), name, begun)
            == counted(db, name, begun)
        )
    assert (
        load_daily_activity(db, "Ann", begun).milliseconds > MAX_ANSWER_MILLISECONDS
        and load_daily_activity(db, "Ann", begun).images > 3
    )


def test_daily_activity_ignores_decisions_of_yesterday_and_undos_of_them(db):
    for number, image_id in enumerate((1, 2, 3)):
        decisions.save(db, [Decision(f"one-{number}", "label", "Ann", "click", image_id, 1, 1, milliseconds=900)])
    with db.writing() as sql:
        sql.execute("UPDATE decision SET decided_at = decided_at - 86400 WHERE image_id < 3")
    assert load_daily_activity(db, "Ann") == DailyActivity(900, 1, 1)
    decisions.save(db, [Decision("back", "undo", "Ann", "click", undoes="one-0")])  # of yesterday
    assert load_daily_activity(db, "Ann") == DailyActivity(900, 1, 1)
    decisions.save(db, [Decision("back-2", "undo", "Bob", "click", undoes="one-2")])
    assert load_daily_activity(db, "Ann") == DailyActivity(0, 0, 0)


def test_daily_activity_query_uses_the_annotator_index(db):
    """Not by reading all decisions: the plan of each query names the index that it uses."""
    plans: list[str] = []
    sql = db.sql.conn

    def explained(statement: str) -> None:
        if statement.lstrip().startswith("SELECT") and "EXPLAIN" not in statement:
            sql.set_trace_callback(None)
            plans.extend(row[3] for row in sql.execute(f"EXPLAIN QUERY PLAN {statement}"))
            sql.set_trace_callback(explained)

    sql.set_trace_callback(explained)
    load_daily_activity(db, "Ann", 0.0)
    decisions.save(db, [Decision("one-label", "label", "Ann", "click", 1, 1, 1, milliseconds=900)])
    plans.clear()
    load_daily_activity(db, "Ann", 0.0)
    load_daily_activity(db, "Ann", 1.0)
    sql.set_trace_callback(None)
    scans = [plan for plan in plans if plan.startswith(("SCAN d", "SCAN u", "SCAN l"))]
    assert any("decision_annotator" in plan for plan in plans) and not scans, scans
