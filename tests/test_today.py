"""What a person has done today is what counting every decision finds, whatever people do and take back."""

import random
import time

import pytest
from test_tallies import anything

from annotator.records import Batch, Decision, sources
from annotator.store.database.database import Database
from annotator.store.labels import decisions
from annotator.store.labels.answer_times import LONGEST
from annotator.store.people.daily_activity import Today, today

PEOPLE = ("Ann", "Bob", "5", "nobody")


def counted(db: Database, annotator: str, midnight: float) -> Today:
    """The same, counted one by one."""
    rows = {row["id"]: row for row in db.rows("SELECT * FROM decision")}
    undone = {row["undoes"] for row in rows.values()}
    own = {
        id_: row
        for id_, row in rows.items()
        if row["annotator"] == annotator
        and row["decided_at"] >= midnight
        and row["source"] in sources(claimable=True)
        and row["action"] != "undo"
        and id_ not in undone
    }
    times: dict[str, int] = {}
    for row in own.values():
        times[row["batch"] or row["uuid"]] = times.get(row["batch"] or row["uuid"], 0) + (row["milliseconds"] or 0)
    return Today(
        sum(taken for taken in times.values() if taken <= LONGEST),
        len({row["image_id"] for row in own.values() if row["action"] in ("label", "clear", "done")}),
        sum(row["decision_id"] in own for row in db.rows("SELECT decision_id FROM label WHERE state = 1")),
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_day_grows_and_shrinks_with_what_holds(db, seed):
    chance, given, begun = random.Random(seed), [], time.time()
    for _ in range(40):
        some = [anything(chance, given) for _ in range(chance.randint(1, 6))]
        some += [
            Decision(f"more-{seed}-{len(given)}", "clear", "Ann", "click", chance.randint(1, 24), chance.randint(1, 3)),
            Decision(f"slow-{seed}-{len(given)}", "label", "Ann", "click", chance.randint(1, 24), 1, 1,
                     milliseconds=chance.choice([0, 700, LONGEST, LONGEST + 1])),
        ]  # fmt: skip
        given += [f"{one.uuid}:0" if isinstance(one, Batch) else one.uuid for one in some]
        decisions.decide(db, some)
        if chance.random() < 0.2:
            decisions.undo(db, "Ann", by="Bob")
        for name in PEOPLE:
            if chance.random() < 0.6:  # one who has not asked for a while catches up with several at once
                assert today(db, name, begun) == counted(db, name, begun), name
    for name in PEOPLE:
        assert today(db, name, begun) == today(Database(db.paths.project), name, begun) == counted(db, name, begun)
    assert today(db, "Ann", begun).milliseconds > LONGEST and today(db, "Ann", begun).images > 3


def test_yesterday_does_not_count(db):
    for number, image_id in enumerate((1, 2, 3)):
        decisions.decide(db, [Decision(f"one-{number}", "label", "Ann", "click", image_id, 1, 1, milliseconds=900)])
    with db.writing() as sql:
        sql.execute("UPDATE decision SET decided_at = decided_at - 86400 WHERE image_id < 3")
    assert today(db, "Ann") == Today(900, 1, 1)
    decisions.decide(db, [Decision("back", "undo", "Ann", "click", undoes="one-0")])  # of yesterday
    assert today(db, "Ann") == Today(900, 1, 1)
    decisions.decide(db, [Decision("back-2", "undo", "Bob", "click", undoes="one-2")])
    assert today(db, "Ann") == Today(0, 0, 0)


def test_a_day_is_found_by_the_index_of_its_person_and_later_by_what_is_newer(db):
    """Not by reading all decisions: the plan of each query names the index that it uses."""
    plans: list[str] = []
    sql = db.sql.conn

    def explained(statement: str) -> None:
        if statement.lstrip().startswith("SELECT") and "EXPLAIN" not in statement:
            sql.set_trace_callback(None)
            plans.extend(row[3] for row in sql.execute(f"EXPLAIN QUERY PLAN {statement}"))
            sql.set_trace_callback(explained)

    sql.set_trace_callback(explained)
    today(db, "Ann", 0.0)
    decisions.decide(db, [Decision("one-label", "label", "Ann", "click", 1, 1, 1, milliseconds=900)])
    plans.clear()
    today(db, "Ann", 0.0)
    today(db, "Ann", 1.0)
    sql.set_trace_callback(None)
    scans = [plan for plan in plans if plan.startswith(("SCAN d", "SCAN u", "SCAN l"))]
    assert any("decision_annotator" in plan for plan in plans) and not scans, scans
