"""The long test of faults: a short one keeps every promise, and a promise that is broken is seen."""

import json
import uuid

import pytest

from annotator.errors import AnnotatorError
from annotator.records import Batch, Decision
from annotator.store.labels import decisions
from benchmarks.__main__ import parse_seeds
from benchmarks.faults import guarantee_checks
from benchmarks.faults.fault_measurement import FAULT_WEIGHTS, measure
from benchmarks.faults.hands import WHOLE_IMAGE_CLASS, Hands
from benchmarks.faults.simulated_pages import SentDecisions


def sent_and_stored(db) -> SentDecisions:
    """A label, a batch, an undo of each, and a flag, as people send them; all of it acknowledged."""
    names = [str(uuid.UUID(int=number)) for number in range(5)]
    shared = {"annotator": "Ann", "milliseconds": 1}
    entries = [
        {"action": "label", "image": 1, "class": 2, "state": 1, "source": "click"},
        {"action": "batch", "cells": [[2, 1, 1, 0.5], [3, 1, -1, 0.4]], "run": None, "source": "grid"},
        {"action": "undo", "undoes": names[0], "source": "click"},
        {"action": "undo", "undoes": f"{names[1]}:0", "source": "click"},
        {"action": "flag", "image": 4, "note": "odd", "source": "click"},
    ]
    entries = [one | shared | {"uuid": name} for one, name in zip(entries, names, strict=True)]
    for one in entries:
        if one["action"] == "batch":
            given = Batch(one["uuid"], "Ann", "grid", [tuple(cell) for cell in one["cells"]])
        else:
            given = Decision(
                one["uuid"], one["action"], "Ann", "click", one.get("image"), one.get("class"), one.get("state"),
                undoes=one.get("undoes"), note=one.get("note", ""),
            )  # fmt: skip
        assert not decisions.save(db, [given]).refused
    return SentDecisions({one["uuid"]: one for one in entries}, set(names))


def put(db, *statements: str) -> None:
    db.sql.conn.execute("PRAGMA foreign_keys = OFF")
    with db.writing() as sql:
        for statement in statements:
            sql.execute(statement)


AGAIN = """INSERT INTO decision (uuid, action, image_id, class_id, state, source, annotator, batch, decided_at)
    SELECT '{uuid}', action, image_id, class_id, state, source, annotator, batch, 0 FROM decision WHERE id = {id}"""


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("lost", "DELETE FROM decision WHERE id = 1"),
        ("lost", "DELETE FROM decision WHERE action = 'flag'"),
        ("moved", "UPDATE decision SET image_id = 7 WHERE id = 1"),
        ("moved", "UPDATE decision SET class_id = 1 WHERE id = 1"),
        ("moved", "UPDATE decision SET state = -1 WHERE id = 2"),
        ("moved", "UPDATE decision SET annotator = 'Bob' WHERE id = 1"),
        ("moved", "UPDATE decision SET undoes = 7 WHERE undoes = 1"),
        ("in_parts", "DELETE FROM decision WHERE id = 3"),
        ("doubled", AGAIN.format(uuid=f"{uuid.UUID(int=1)}:2", id=2)),
        ("doubled", AGAIN.format(uuid=f"{uuid.UUID(int=0)}:1", id=1)),
        ("from_nobody", AGAIN.format(uuid="another", id=1)),
    ],
)
def test_fault_check_finds_decisions_that_differ_from_those_sent(db, kind, statement):
    sent = sent_and_stored(db)
    assert not any(guarantee_checks.find_broken_decisions(db, sent).values())
    put(db, statement)
    told = guarantee_checks.find_broken_decisions(db, sent)
    assert [name for name, every in told.items() if every] == [kind], told


def test_fault_check_allows_an_unacknowledged_decision_to_be_missing(db):
    sent = sent_and_stored(db)
    sent.acknowledged.discard(str(uuid.UUID(int=4)))
    put(db, "DELETE FROM decision WHERE action = 'flag'")
    assert not any(guarantee_checks.find_broken_decisions(db, sent).values())


def test_fault_check_reports_labels_leased_to_two_pages_until_one_page_releases_them():
    hands = Hands()
    hands.take_cells("a", [(1, WHOLE_IMAGE_CLASS), (2, 5)])
    hands.take_cells("b", [(3, WHOLE_IMAGE_CLASS), (2, 6)])
    assert not hands.double_holdings
    hands.take_cells("c", [(1, 4), (2, WHOLE_IMAGE_CLASS), (2, 5)])
    assert {(cell, other) for cell, _, other in hands.double_holdings} == {
        ((1, 4), "a"), ((2, WHOLE_IMAGE_CLASS), "a"), ((2, WHOLE_IMAGE_CLASS), "b"), ((2, 5), "a")
    }  # fmt: skip
    before = len(hands.double_holdings)
    hands.keep_cells("b", [(2, 6)])
    hands.rename_page("d", "b")
    hands.take_cells("e", [(3, WHOLE_IMAGE_CLASS)])
    assert len(hands.double_holdings) == before
    hands.take_cells("e", [(2, 6)])
    assert ((2, 6), "e", "d") in hands.double_holdings[before:]


def test_fault_check_reports_truncated_exports_and_damaged_arrays(db, tmp_path):
    (tmp_path / "0.csv").write_text("image,fox\n")
    place = db.paths.selections / "odd.npy"
    place.parent.mkdir()
    place.write_bytes(b"\x93NUMPY\x01")
    told = guarantee_checks.find_broken_files(db, [tmp_path / "0.csv", tmp_path / "none.csv"])
    assert len(told) == 2 and "odd.npy" in told[0] and "0.csv has not 25 lines" in told[1]


def test_seed_option_parses_one_seed_or_a_range():
    assert [*parse_seeds("3")] == [3] and [*parse_seeds("1..4")] == [1, 2, 3, 4]
    for wrong in ("a", "4..1", "1..", ""):
        with pytest.raises(AnnotatorError, match="--seed takes"):
            parse_seeds(wrong)


@pytest.mark.process
@pytest.mark.slow
def test_acknowledged_decisions_are_stored_exactly_once_after_kills(tmp_path, monkeypatch):
    kills = 20
    monkeypatch.setattr("benchmarks.faults.fault_measurement.PROJECT_IMAGES", 400)
    monkeypatch.setattr("benchmarks.faults.fault_measurement.FAULT_PAUSE_SECONDS", 0.4)
    monkeypatch.setitem(FAULT_WEIGHTS, "training", 0)  # which is waited for: that is for the long measurement
    result = measure(kills=kills, seeds=[5], work=tmp_path / "kept")
    figures = result["figures"]
    assert not result["broken"]
    assert figures["kills"] >= kills and figures["decisions_acknowledged"] > 5 * kills
    assert figures["decisions_acknowledged"] + figures["decisions_refused"] == figures["decisions_sent"]
    again = measure(kills=kills, seeds=[5], work=tmp_path / "kept")
    assert again == result and json.loads((tmp_path / "kept" / "seed-5.json").read_text())["figures"] == figures
