"""The end of a project in Autopilot: what its offers promise, what an audit found, and the certified target."""

import uuid
from collections import Counter

import numpy as np
import pytest
from harness import projects
from harness.audit_answers import answer, say, truth
from harness.autopilot_actions import wanted
from harness.published_runs import publish
from harness.served import until

from annotator.quality import audit_sampling
from annotator.queues.autopilot import action_texts, complete_project, planner, target_recall
from annotator.records import Decision
from annotator.snapshot.time_model import TimeModel, load_time_model
from annotator.store.labels import decisions

EVERY_CELL = [(image_id, class_id) for image_id in range(1, 25) for class_id in (1, 2, 3)]
PERSON = TimeModel(tile=0.15, change=0.9, submit=0.6, begin=0.8)


def answer_in_grids(db, cells, source, *, times=1.0):
    """Answer these cells in grids that start absent, in the seconds that PERSON takes. Returns their sum."""
    seconds = 0.0
    for class_id in (1, 2, 3):
        of_class = [cell for cell in cells if cell[1] == class_id]
        for start in range(0, len(of_class), complete_project.AUDIT_GRID_TILES):
            tiles = of_class[start : start + complete_project.AUDIT_GRID_TILES]
            took = times * PERSON.estimate_grid_seconds(len(tiles), sum(truth(*cell) == 1 for cell in tiles))
            say(db, tiles, source, milliseconds=round(1000 * took))
            seconds += took
    return seconds


@pytest.fixture
def answered(db):
    """A project whose cells are all answered, by a person whose times are known from grids, and without a model."""
    for _ in range(12):
        answer_in_grids(db, EVERY_CELL, "grid")
    return db


def load_end(db, **more):
    found = complete_project.load_complete_project(db, wanted(**more))
    assert found is not None
    return found


def test_offered_audit_takes_the_seconds_of_its_tiles_and_presses(answered):
    offer = load_end(answered).new_audit
    audit_sampling.draw_audit(answered, seed=1)
    cells = audit_sampling.load_open_cells(answered)
    assert offer.pairs == len(cells) == 72, "half of it would be present, half absent: there are so few"
    assert load_end(answered).open_audit.pairs == 72
    presses = Counter(cell.class_id for cell in cells if truth(cell.image_id, cell.class_id) == 1)
    times = load_time_model(answered, "Ann")
    expected = sum(times.estimate_grid_seconds(24, presses[class_id]) for class_id in (1, 2, 3))
    assert load_end(answered).open_audit.seconds == pytest.approx(expected)
    took = answer_in_grids(answered, [(cell.image_id, cell.class_id) for cell in cells], "audit")
    assert offer.seconds == pytest.approx(took, rel=0.15), "it said a third of it when it expected one press a grid"


def test_offered_audit_of_small_grids_takes_longer(answered):
    usual, small = load_end(answered).new_audit, load_end(answered, tiles=6).new_audit
    assert small.pairs == usual.pairs and small.seconds > usual.seconds + 9 * 0.8


def test_offered_audit_follows_the_times_of_earlier_second_answers(answered):
    first = load_end(answered).new_audit.seconds
    for seed in range(2):
        audit_sampling.draw_audit(answered, seed=seed)
        cells = [(cell.image_id, cell.class_id) for cell in audit_sampling.load_open_cells(answered)]
        took = answer_in_grids(answered, cells, "audit", times=2)
    second = load_end(answered).new_audit.seconds
    assert first * 1.5 < second == pytest.approx(took, rel=0.25)


def test_complete_project_shows_what_its_audit_found(answered):
    wrong = (1, 1)
    say(answered, [wrong], states=[-truth(*wrong)])
    audit_sampling.draw_audit(answered, seed=1)
    assert not load_end(answered).findings and not action_texts.format_findings_line(load_end(answered))
    answer(answered)
    line = action_texts.format_findings_line(load_end(answered))
    assert line.startswith("The audit: 72 answers asked again, blind: of 35 present labels, 0 wrong (0 % to 10")
    assert "; of 37 absent labels, 1 missed (" in line
    decisions.undo(answered, "Ann")
    assert not load_end(answered).findings, "it is not answered to the end any more"


def test_offered_check_expects_fewer_wrong_answers_after_one_that_changed_none(db):
    say(db, EVERY_CELL, "grid")
    chances = np.array(
        [[0.5 + 0.45 * truth(image_id, class_id) for class_id in (1, 2, 3)] for image_id in range(1, 25)]
    )
    chances[:8, 0] = 1 - chances[:8, 0]
    publish(db, chances, decisions.get_newest_decision_id(db))
    before = load_end(db).doubted_answers
    assert before.pairs == 8 and 1 < before.changes < 8
    line = action_texts.format_doubted_line(before)
    assert line.startswith(f"About {before.changes:.0f} of 8 answers that the model contradicts may be wrong. ")
    say(db, [(image_id, 1) for image_id in range(1, 7)], "relabel")
    last = load_end(db).doubted_answers
    assert last.pairs == 2 and last.changes < 0.6 * before.changes * 2 / 8
    assert action_texts.format_doubted_line(last).startswith("Probably none of 2 answers")


def test_answers_that_an_audit_asked_again_are_not_offered_for_another_check(db):
    for image_id in range(1, 25):
        assert not decisions.save(db, [Decision(str(uuid.uuid4()), "done", "Ann", "done", image_id=image_id)]).refused
    publish(db, np.full((24, 3), 0.9), decisions.get_newest_decision_id(db))
    assert load_end(db).doubted_answers.pairs == 72
    audit_sampling.draw_audit(db, 30, seed=1)
    asked = [(cell.image_id, cell.class_id) for cell in audit_sampling.load_open_cells(db)]
    say(db, asked, "audit", states=[-1] * len(asked))
    assert load_end(db).doubted_answers.pairs == 72 - len(asked) < 72


def test_autopilot_asks_present_answers_of_an_audit_a_second_time(db):
    say(db, EVERY_CELL[:-12], "grid", states=[-1] * 60)
    audit_sampling.draw_audit(db, 12, seed=1)
    first = [(cell.image_id, cell.class_id) for cell in audit_sampling.load_open_cells(db)]
    say(db, first, "audit", states=[1] * len(first))
    rest = [cell for cell in EVERY_CELL[-12:] if cell not in first]
    say(db, rest, "grid", states=[-1] * len(rest))
    again = {(cell.image_id, cell.class_id) for cell in audit_sampling.load_open_cells_for(db, "Ann")}
    assert again and complete_project.has_no_open_pair(db)
    assert load_end(db).open_audit.pairs == len(again)
    asked = planner.lease_next_actions(db, wanted(extras=("audit",))).items
    assert {(tile.image.id, action.grid.class_id) for action in asked for tile in action.grid.tiles} <= again
    assert {action.kind for action in asked} == {"audit"}


def test_target_recall_is_reached_by_an_audit_and_not_without_one(tmp_path):
    db = projects.make_project(tmp_path, 240, 3)
    cells = [(image_id, class_id) for image_id in range(1, 241) for class_id in (1, 2, 3)][:-12]
    say(db, cells, states=[1] * len(cells))
    assert target_recall.load_reached_certificate(db) is None
    audit_sampling.draw_audit(db, 9, seed=1)
    assert target_recall.load_reached_certificate(db) is None, "nothing of it is answered"
    asked = [(cell.image_id, cell.class_id) for cell in audit_sampling.load_open_cells(db)]
    say(db, asked, "audit", states=[-1] * len(asked))
    reached = until(lambda: target_recall.load_reached_certificate(db))  # it is computed again after a pause
    assert reached.overall.unknown == 3 and reached.overall.recall_allowing.low >= 0.95
    heading, line = action_texts.format_target_lines(reached)
    assert heading == "95 % recall reached" and line.endswith("3 pairs are unanswered.")
    cleared = [Decision(str(uuid.uuid4()), "clear", "Ann", "click", image_id, 1) for image_id in range(1, 101)]
    assert not decisions.save(db, cleared).refused
    assert target_recall.load_reached_certificate(db) is None
