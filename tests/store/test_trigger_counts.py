"""What triggers keep is what counting would have found, whatever people do."""

import random
import time
import uuid

import pytest
from harness.random_decisions import SHOWN, anything, counted, kept

from annotator.records import STATE_NAMES, Batch, Decision, list_sources
from annotator.store.classes import classes
from annotator.store.labels import decisions, project_counts
from annotator.store.labels.sources import build_counted_view
from annotator.store.runs import runs


def test_sql_view_for_decision_counts_covers_every_decision_source(db):
    """A source that is added needs a step that makes the view anew."""
    assert set(SHOWN) == set(list_sources(scored=True))
    assert db.value("SELECT sql FROM sqlite_master WHERE name = 'counted'") == build_counted_view()


@pytest.mark.parametrize("seed", range(4))
def test_trigger_maintained_counts_equal_full_counts_after_random_decisions(db, seed):
    chance, given = random.Random(seed), []
    for turn in range(120):
        some = [anything(chance, given) for _ in range(chance.randint(1, 5))]
        given += [f"{one.uuid}:0" if isinstance(one, Batch) else one.uuid for one in some]
        decisions.save(db, [*some, chance.choice(some)])
        if turn == 60:
            classes.add_classes(db, [("boar", "")])
    assert kept(db) == counted(db)
    assert db.value("SELECT count(*) FROM tally WHERE n < 0") == 0
    assert len({kind for kind, _, _ in kept(db)}) == 7


def test_labels_equal_the_newest_decisions_that_are_not_undone(db):
    """The labels that an undo leaves are those of a project where the decision never was."""
    chance = random.Random(9)
    for _ in range(60):
        image, one = chance.randint(1, 3), chance.randint(1, 3)
        state = chance.choice([1, -1, 0])
        decisions.save(db, [Decision(str(uuid.uuid4()), "label", "Ann", "click", image, one, state)])
        if chance.random() < 0.4:
            decisions.undo(db)
    newest: dict[tuple[int, int], int] = {}
    undone = {row["undoes"] for row in db.rows("SELECT undoes FROM decision")}
    for row in db.rows("SELECT * FROM decision WHERE action = 'label' ORDER BY id"):
        if row["id"] not in undone:
            newest[row["image_id"], row["class_id"]] = row["state"]
    labels = {(row["image_id"], row["class_id"]): row["state"] for row in db.rows("SELECT * FROM label")}
    assert labels == newest


def test_label_counts_shown_by_pages_match_the_saved_decisions(db):
    grid = [(1, 1, 1, 0.97), (2, 1, -1, 0.93), (3, 1, 0, 0.31)]
    decisions.save(
        db,
        [
            Batch("grid-one", "Ann", "grid", grid, run_id=3, milliseconds=10),
            Decision("skip-one", "skip", "Ann", "click", 4),
            Decision("done-one", "done", "Bob", "click", 5),
            Decision("import-one", "label", "import", "import", 6, 1, 1),
        ],
    )
    assert project_counts.count_labels_by_class(db) == {1: (2, 2, 1), 2: (0, 1, 0), 3: (0, 1, 0)}
    assert project_counts.list_label_counts_by_class(db)[0] == {"class": "fox", "present": 2, "absent": 2, "unsure": 1}
    assert project_counts.count_labels_by_state(db) == {"present": 2, "absent": 4, "unsure": 1}
    assert project_counts.list_annotators(db) == ["Ann", "Bob", "import"]
    assert runs.count_suggestion_answers(db) == [{"run": 3, "accepted": 1, "rejected": 1, "unsure": 1}]
    bins = project_counts.count_answers_by_score(db)
    assert [one["low"] for one in bins] == [step / 20 for step in range(20)] and bins[-1]["high"] == 1
    assert [bins[19][name] for name in STATE_NAMES.values()] == [1, 0, 0]
    assert [bins[18][name] for name in STATE_NAMES.values()] == [0, 1, 0]
    assert bins[6]["unsure"] == 1
    assert project_counts.count_decisions_after(db, 2) == 4


@pytest.mark.parametrize("seconds", [60, 3600])
def test_decision_counts_over_time_exclude_imports_and_undone_decisions(db, seconds):
    assert project_counts.count_decisions_over_time(db, seconds) == []
    before = time.time()
    some = [Decision(str(uuid.uuid4()), "label", "Ann", "click", image, 1, 1) for image in (1, 2, 3)]
    skip = Decision(str(uuid.uuid4()), "skip", "Ann", "click", 4)
    decisions.save(db, [*some, skip, Decision("import-one", "label", "import", "import", 6, 1, 1)])
    decisions.save(db, [Decision("undo-one", "undo", "Ann", "click", undoes=some[0].uuid)])
    rows = project_counts.count_decisions_over_time(db, seconds)
    assert {row["source"]: row["decisions"] for row in rows} == {"click": 2, "skip": 1}
    assert all(row["at"] % seconds == 0 and before - seconds < row["at"] <= time.time() for row in rows)
    assert project_counts.get_chart_time_step(db) == 60
