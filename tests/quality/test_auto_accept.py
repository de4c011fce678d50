"""Auto-accept: off until asked for, where an audit shows it, never over a person's answer, undone as one."""

import json
import uuid

import numpy as np
import pytest
from harness.auto_accept_project import LIKELY, answer_audit, many, publish

from annotator.errors import AnnotatorError
from annotator.exchange.exports.data_set import open_data_set
from annotator.exchange.exports.export_writer import export_data_set
from annotator.exchange.formats.export_view import STATE_WORDS
from annotator.quality import audit_sampling, auto_accept, auto_accept_sample, guarantee
from annotator.quality.guarantee import Guarantee
from annotator.queues import grid_queue, review_queue
from annotator.records import Batch, Decision, WantedGrids, WantedImages
from annotator.snapshot import suggestions
from annotator.snapshot.project_status import collect_status
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import auto_accepted, decisions
from spmll.statistics.sequential_bound import (
    POSSIBLE_PRECISIONS,
    bound_wrong_cells,
    compute_sample_size,
    find_possible_precision,
)

__all__ = ["many"]  # a fixture


def click(db, image_id: int, class_id: int, state: int, **about) -> None:
    one = Decision(str(uuid.uuid4()), "label", "Ann", "click", image_id=image_id, class_id=class_id, state=state)
    assert not decisions.save(db, [one]).refused


@pytest.fixture
def accepting(many) -> Database:
    auto_accept_sample.draw_audit(many, Guarantee(0.98))
    answer_audit(many)
    auto_accept.set_guarantee(many, Guarantee(0.98))
    return many


def test_auto_accept_is_off_by_default(many):
    auto_accept_sample.draw_audit(many, Guarantee(0.98))
    answer_audit(many)
    publish(many)
    assert auto_accepted.count_accepted(many) == {"present": 0, "absent": 0}
    assert guarantee.get_guarantee(many) is None


def test_auto_accept_accepts_all_unanswered_likely_labels_of_the_audited_class(accepting):
    cells = auto_accepted.load_accepted_cells(accepting)
    answered = {label.image_id for label in decisions.load_all_labels(accepting)}
    assert {image_id for image_id, _ in cells} == set(range(1, LIKELY + 1)) - answered
    assert {class_id for _, class_id in cells} == {1}
    one = auto_accepted.load_acceptances(accepting)[0]
    assert (one.state, one.wrong, one.audited) == (1, 0, len(answered))
    assert (one.cells, one.precision, one.run_id) == (len(cells), 0.98, 1)
    assert collect_status(accepting)["accepted"] == {"present": len(cells), "absent": 0}


def test_auto_accept_accepts_nothing_after_too_many_audit_mistakes(many):
    auto_accept_sample.draw_audit(many, Guarantee(0.98))
    answer_audit(many, wrong=10)
    outcomes = auto_accept.set_guarantee(many, Guarantee(0.98))
    assert auto_accepted.count_accepted(many)["present"] == 0
    assert "too many to guarantee 98 % of the rest" in outcomes[0].reason
    assert "no audit answers yet" in outcomes[1].reason or "too few" in outcomes[1].reason


def test_auto_accept_does_not_count_grid_answers_as_audit_answers(many):
    for start in range(1, 401, 100):
        cells = [(image_id, 1, 1, 0.998) for image_id in range(start, start + 100)]
        decisions.save(many, [Batch(str(uuid.uuid4()), "Ann", "grid", cells, run_id=1)])
    outcomes = auto_accept.set_guarantee(many, Guarantee(0.98))
    assert auto_accepted.count_accepted(many)["present"] == 0
    assert outcomes[0].reason == "no audit answers yet"


def test_annotator_answer_replaces_an_auto_accepted_label_until_undo(accepting):
    image_id = next(iter(auto_accepted.load_accepted_cells(accepting)))[0]
    before = auto_accepted.count_accepted(accepting)["present"]
    click(accepting, image_id, 1, -1)
    assert (image_id, 1) not in auto_accepted.load_accepted_cells(accepting)
    publish(accepting)
    assert auto_accepted.count_accepted(accepting)["present"] == before - 1
    decisions.undo(accepting, "Ann")
    assert (image_id, 1) in auto_accepted.load_accepted_cells(accepting), "the guarantee has not been withdrawn"
    assert auto_accepted.count_accepted(accepting)["present"] == before
    publish(accepting)
    assert auto_accepted.count_accepted(accepting)["present"] == before


def test_next_training_withdraws_auto_accepted_labels_after_60_corrections(accepting):
    for image_id, _ in list(auto_accepted.load_accepted_cells(accepting))[:60]:
        click(accepting, image_id, 1, -1)
    publish(accepting)
    assert auto_accepted.count_accepted(accepting)["present"] == 0
    assert "too many to guarantee" in auto_accepted.load_acceptances(accepting)[0].withdrawn


def test_auto_accepted_labels_contradicted_by_the_newest_model_are_withdrawn(accepting):
    publish(accepting, opposite=60)
    left = {image_id for image_id, _ in auto_accepted.load_accepted_cells(accepting)}
    assert left and min(left) > 60


def test_training_without_changes_keeps_the_auto_accepted_batch(accepting):
    batch = auto_accepted.load_acceptances(accepting)[0].batch
    publish(accepting)
    assert [one.batch for one in auto_accepted.load_acceptances(accepting)] == [batch]


def test_undone_auto_accepted_batch_stays_undone_after_training(accepting):
    batch = auto_accepted.load_acceptances(accepting)[0].batch
    auto_accept.undo(accepting, batch)
    publish(accepting)
    assert auto_accepted.load_accepted_cells(accepting) == {}
    assert auto_accepted.load_acceptances(accepting)[0].withdrawn == "undone"
    with pytest.raises(AnnotatorError, match=rf"There is no auto-accepted batch '{batch}'. There is: none"):
        auto_accept.undo(accepting, batch)


def test_undo_of_an_unknown_batch_keeps_auto_accept_on(accepting):
    before, counted = guarantee.get_guarantee(accepting), auto_accepted.count_accepted(accepting)
    with pytest.raises(AnnotatorError, match="no auto-accepted batch 'none such'"):
        auto_accept.undo(accepting, "none such")
    assert before and guarantee.get_guarantee(accepting) == before
    assert auto_accepted.count_accepted(accepting) == counted


def test_turning_auto_accept_off_withdraws_all_labels_and_keeps_answers(accepting):
    auto_accept.set_guarantee(accepting, None)
    assert auto_accepted.load_accepted_cells(accepting) == {}
    assert decisions.load_all_labels(accepting), "what people answered stays"


def test_queues_suggestions_and_audits_skip_auto_accepted_labels(accepting):
    publish(accepting)
    filled = set(auto_accepted.load_accepted_cells(accepting))
    tiles = grid_queue.lease_next_grids(accepting, WantedGrids("tab", "Ann", 1, 24, (), 2)).items
    assert not filled & {(tile.image.id, 1) for one in tiles for tile in one.tiles}
    for image_id, chips in review_queue.lease_next_images(accepting, WantedImages("review", "tab", "Ann", (), 24), 0.4):
        assert not filled & {(image_id, chip.class_id) for chip in chips}
    assert not filled & {
        (one.image_id, one.class_id) for one in suggestions.find_missing_positives(accepting, limit=None)
    }
    drawn = audit_sampling.draw_audit(accepting, 400, seed=0)
    asked = {(cell.image_id, cell.class_id) for cell in audit_sampling.load_open_cells(accepting)}
    assert drawn.cells and filled & asked, "audits do look at them"


def test_export_marks_auto_accepted_labels_with_model_provenance_and_guarantee(accepting, tmp_path):
    filled = auto_accepted.load_accepted_cells(accepting)
    with open_data_set(accepting) as data:
        marked, source = set(), data.view.sources.index("model (accepted)")
        for block in data.view.blocks():
            for cell in zip(*np.nonzero(block.sources == source), strict=True):
                facts = (block.values[cell], block.states[cell], block.annotators[cell])
                assert facts == (1, STATE_WORDS.index("present"), 0)
                marked.add((block.images[cell[0]].id, 1, float(block.probabilities[cell])))
    assert marked == {(*cell, round(score, 4)) for cell, (_, _, score) in filled.items()}
    export_data_set(accepting, tmp_path / "out.csv", "csv")
    head, *rows = (tmp_path / "out.provenance.csv").read_text().splitlines()
    assert head.endswith("probability,run,threshold,precision,confidence")
    assert any("model (accepted)" in row and row.endswith("0.98,0.95") for row in rows)
    export_data_set(accepting, tmp_path / "out.jsonl", "jsonl")
    lines = [json.loads(line)["provenance"].get("fox", {}) for line in (tmp_path / "out.jsonl").open()]
    told = [line for line in lines if line.get("source") == "model (accepted)"]
    assert len(told) == len(filled) and told[0]["precision"] == 0.98 and told[0]["run"] == 1


def test_auto_accept_accepts_absent_labels_when_enabled(many):
    auto_accept_sample.draw_audit(many, Guarantee(0.95, present=False, absent=True))
    answer_audit(many)
    auto_accept.set_guarantee(many, Guarantee(0.95, present=False, absent=True))
    cells = auto_accepted.load_accepted_cells(many)
    assert {state for state, _, _ in cells.values()} == {-1}
    assert min(image_id for image_id, class_id in cells if class_id == 1) > LIKELY


def test_guarantee_over_all_classes_accepts_nothing_until_its_whole_audit_is_answered(many):
    wanted = Guarantee(0.97, together=True)
    drawn = auto_accept_sample.draw_audit(many, wanted)
    answer_audit(many, stop=drawn.cells // 2)
    assert not any(one.cells for one in auto_accept.set_guarantee(many, wanted))
    answer_audit(many)
    outcome = auto_accept.set_guarantee(many, wanted)[0]
    assert outcome.class_id is None and outcome.cells == auto_accepted.count_accepted(many)["present"] > 300


def test_auto_accept_refuses_impossible_guarantees(many):
    with pytest.raises(AnnotatorError, match=r"A precision of 1.0 cannot be guaranteed: it must lie between"):
        auto_accept.set_guarantee(many, Guarantee(1.0))
    with pytest.raises(AnnotatorError, match="Neither present nor absent"):
        auto_accept.set_guarantee(many, Guarantee(present=False))
    with pytest.raises(AnnotatorError, match=r"No class has enough likely pairs for a guarantee of 99.9 %"):
        auto_accept_sample.draw_audit(many, Guarantee(0.999))


def test_auto_accept_audit_without_a_model_is_refused(db):
    with pytest.raises(AnnotatorError, match="There is no model yet"):
        auto_accept_sample.draw_audit(db, Guarantee())
    assert all(one.cells == 0 for one in auto_accept.set_guarantee(db, Guarantee()))


def test_accept_command_lists_and_undoes_batches_of_auto_accepted_labels(accepting, annotator):
    project, cells = accepting.paths.project, auto_accepted.count_accepted(accepting)["present"]
    found = json.loads(annotator("accept", project, "--list", "--json").stdout)
    assert found["guarantee"]["precision"] == 0.98
    assert [(one["class"], one["state"], one["cells"]) for one in found["acceptances"]] == [("fox", 1, cells)]
    told = annotator("accept", project, "--undo", found["acceptances"][0]["batch"]).stdout
    assert "Off: nothing is auto-accepted." in told and "removed: undone" in told
    assert "no auto-accepted batch 'b'. There is: none" in annotator("accept", project, "--undo", "b", code=1).stderr


def strangers(tmp_path, images: int, names: int) -> Database:
    db = Database(tmp_path / "strangers", create=True)
    rows = [(number, f"{number}.jpg", f"{number:064}", 9, 9) for number in range(1, images + 1)]
    with db.writing() as sql:
        sql.conn.executemany("INSERT INTO image (id, name, sha256, width, height) VALUES (?, ?, ?, ?, ?)", rows)
    classes.add_classes(db, [(f"class {number}", "") for number in range(names)])
    return db


def test_guarantee_feasibility_names_the_highest_possible_precision_for_few_images(tmp_path):
    db = strangers(tmp_path, 200, 28)
    told = guarantee.describe_feasibility(db, Guarantee(0.99))
    assert told.startswith(
        "99 % cannot be shown for one class here: it takes about 340 audit answers without a mistake,"
    )
    assert (
        "and there are 200 images. Possible at most: 95 % (about 76 answers), or 99 % for all classes together" in told
    )
    assert guarantee.describe_feasibility(db, Guarantee(0.95)).startswith(
        "Showing 95 % for one class takes about 76 audit answers without a mistake"
    )
    assert guarantee.describe_feasibility(db, Guarantee(0.99, together=True)).startswith(
        "Showing 99 % for all classes together takes about 350 audit answers"
    )
    assert "cannot be shown for all classes together" in guarantee.describe_feasibility(
        db, Guarantee(0.999, together=True)
    )


@pytest.mark.parametrize("images", [10, 24, 100, 200, 1000])
def test_highest_possible_guarantee_is_provable_by_an_error_free_audit_of_half_the_images(images):
    precision = find_possible_precision(images, 0.5)
    place = POSSIBLE_PRECISIONS.index(precision) if precision else len(POSSIBLE_PRECISIONS)
    for one, possible in ((POSSIBLE_PRECISIONS[place - 1], False), *([(precision, True)] if precision else [])):
        drawn = min(compute_sample_size(images, one), images // 2)
        left = images - drawn
        assert possible == (compute_sample_size(images, one) <= images / 2)
        if possible:
            assert bound_wrong_cells(np.zeros(drawn, bool), images) <= (1 - one) * left


def test_refused_auto_accept_audit_names_the_possible_guarantees(many):
    with pytest.raises(AnnotatorError, match=r"No class has enough likely pairs .*99.9 %") as told:
        auto_accept_sample.draw_audit(many, Guarantee(0.999))
    assert "Possible here: 98 % class by class, or 98 % for all classes together" in str(told.value)
    auto_accept_sample.draw_audit(many, Guarantee(0.98))
