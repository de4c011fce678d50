"""Suggestions: likeliest first, never one that a person has answered; and what an export makes of them."""

import csv
import json
import os
import resource
import uuid

import numpy as np
import pytest
from harness.answers import answer_cell

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import open_data_set
from annotator.exchange.exports.export_writer import export_data_set
from annotator.exchange.exports.thresholds import Limits
from annotator.queues import image_queue, review_queue
from annotator.records import Decision, WantedImages
from annotator.snapshot import suggestions
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.classes import classes
from annotator.store.database import arrays
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.store.runs import runs


@pytest.fixture
def predicted(db) -> np.ndarray:
    """A published run with known probabilities: (24, 3), the third class without a model."""
    probabilities = np.linspace(0.01, 0.99, 72, dtype=np.float32).reshape(24, 3)
    probabilities[:, 2] = np.nan
    facts = {"method": "gr", "parameters": {}, "backbone": "none", "class_ids": [1, 2, 3], "images": 24}
    run_id = runs.begin(db, **facts, last_decision_id=0, threshold=0.5)
    arrays.save_array(db.paths.run(run_id) / "image_ids.npy", np.arange(1, 25))
    arrays.save_array(db.paths.run(run_id) / "probabilities.npy", probabilities.astype(np.float16))
    runs.publish(db, run_id, epochs=1, seconds=0.1, loss=[0.5])
    return probabilities


def test_no_suggestions_exist_before_the_first_training(db):
    assert suggestions.find_missing_positives(db) == []


def test_suggestions_are_ranked_by_probability_and_exclude_answered_labels(db, predicted):
    best = suggestions.find_missing_positives(db, limit=4)
    assert [(one.image_id, one.class_id) for one in best] == [(24, 2), (24, 1), (23, 2), (23, 1)]
    for (image_id, class_id), state in zip([(24, 2), (24, 1), (23, 2)], (1, -1, 0), strict=True):
        answer_cell(db, image_id, class_id, state)
    assert [(one.image_id, one.class_id) for one in suggestions.find_missing_positives(db, limit=1)] == [(23, 1)]
    everything = suggestions.find_missing_positives(db, limit=None)
    assert len(everything) == 48 - 3
    assert all(one.class_id != 3 for one in everything), "a class without a model has no suggestions"


def test_suggestions_can_be_limited_to_one_class(db, predicted):
    assert {one.class_id for one in suggestions.find_missing_positives(db, class_id=1, limit=None)} == {1}


def test_review_shows_the_most_probable_suggestions_and_no_answered_ones(db, predicted):
    answer_cell(db, 24, 1, 1)
    answer_cell(db, 24, 2, 1)
    answer_cell(db, 23, 2, 1)
    work = image_queue.lease_next_work(db, WantedImages("review", "tab", "Ann", (), 3))
    assert [item.image.id for item in work.items] == [23, 22, 21]
    assert [[chip.class_id for chip in item.suggestions] for item in work.items] == [[1], [2, 1], [2, 1]]
    work = image_queue.lease_next_work(db, WantedImages("review", "tab-2", "Bob", (), 1))
    assert [item.image.id for item in work.items] == [20], "the first three are open elsewhere"
    chips = image_queue.lease_next_work(db, WantedImages("review", "tab-3", "Cy", [19, 18, 17], 9)).items
    assert 24 not in [item.image.id for item in chips], "everything the model knows there is answered"
    assert all(chip.probability >= 0.5 for item in chips for chip in item.suggestions)


def test_suggestions_answered_in_another_tab_leave_the_review_queue(db, predicted):
    # the order is now remembered for this run
    review_queue.lease_next_images(db, WantedImages("review", "tab", "Ann", (), 1), 0.5)
    answer_cell(db, 23, 1, -1)
    answer_cell(db, 23, 2, -1)
    chosen = review_queue.lease_next_images(db, WantedImages("review", "tab", "Ann", (), 24), 0.5)
    assert 23 not in [image_id for image_id, _ in chosen]


def test_image_registered_after_the_training_has_no_suggestions(db, predicted):
    predictions = read_predictions(db)
    assert suggestions.find_suggestions(predictions, {}, [24, 99], 0.5).keys() == {24}


def read_csv(path) -> list[dict]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_export_leaves_unanswered_labels_empty_and_states_provenance(db, predicted, tmp_path):
    answer_cell(db, 1, 1, 1)
    answer_cell(db, 1, 2, 0)
    answer_cell(db, 2, 1, -1, source="suggestion")
    decisions.save(db, [Decision(str(uuid.uuid4()), "done", "Bob", "click", image_id=2)])
    export_data_set(db, tmp_path / "out.csv", "csv")
    rows = {row["image"]: row for row in read_csv(tmp_path / "out.csv")}
    names = {image.id: image.name for image in images.load_all_images(db)}
    assert len(rows) == 24
    assert rows[names[1]] == {"image": names[1], "fox": "1", "heron": "", "deer": ""}
    assert rows[names[2]] == {"image": names[2], "fox": "0", "heron": "0", "deer": "0"}
    origins = {(row["image"], row["class"]): row for row in read_csv(tmp_path / "out.provenance.csv")}
    assert len(origins) == 5
    assert origins[names[1], "heron"]["state"] == "unsure"
    assert origins[names[2], "fox"]["source"] == "suggestion"
    assert origins[names[2], "deer"]["source"] == "done"
    assert origins[names[2], "deer"]["annotator"] == "Bob"
    assert float(origins[names[1], "fox"]["probability"]) == pytest.approx(float(predicted[0, 0]), abs=1e-3)


def test_export_filled_by_the_model_keeps_answers_and_names_no_annotator(db, predicted, tmp_path):
    answer_cell(db, 24, 2, -1)
    answer_cell(db, 24, 1, 0)
    export_data_set(
        db, tmp_path / "out.jsonl", "jsonl", Choices(unknown="model", limits=Limits(present_from=0.5, absent_to=0.5))
    )
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    last = next(line for line in lines if line["image"] == images.load_images(db, [24])[24].name)
    assert last["labels"] == {"fox": None, "heron": 0, "deer": None}
    assert last["provenance"]["heron"]["source"] == "click"
    assert last["provenance"]["fox"]["state"] == "unsure"
    filled = [one for line in lines for one in line["provenance"].values() if one["source"] == "model"]
    assert len(filled) == 46
    assert {one["annotator"] for one in filled} == {None}
    assert all((one["state"] == "present") == (one["probability"] >= 0.5) for one in filled)


def test_export_marks_assumed_absences_as_assumed(db, tmp_path):
    answer_cell(db, 1, 1, 1)
    with open_data_set(db, Choices(unknown="absent")) as data:
        [block] = data.view.blocks()
    sources = [data.view.sources[source] for source in block.sources.ravel()]
    assert set(zip(block.values.ravel().tolist(), sources, strict=True)) == {(0, "assumed"), (1, "click")}


def test_exported_provenance_can_be_imported_as_labels(db, tmp_path, photos, class_file):
    from annotator.exchange.project_setup import set_up_project
    from annotator.store.database.database import Database
    from annotator.store.labels import project_counts

    answer_cell(db, 1, 1, 1)
    answer_cell(db, 1, 2, 0)
    answer_cell(db, 2, 3, -1)
    export_data_set(db, tmp_path / "out.csv", "csv")
    set_up_project(
        tmp_path / "second", images_folder=photos, class_file=class_file, label_file=tmp_path / "out.provenance.csv"
    )
    assert project_counts.count_labels_by_state(Database(tmp_path / "second")) == {
        "present": 1,
        "absent": 1,
        "unsure": 1,
    }


def test_class_name_with_quotes_and_commas_survives_csv_export(db, tmp_path):
    awkward = 'grey "heron", young\u00e9'
    classes.add_classes(db, [(awkward, "")])
    answer_cell(db, 1, 4, 1)
    export_data_set(db, tmp_path / "out.csv", "csv")
    assert next(row for row in read_csv(tmp_path / "out.csv") if row[awkward])["fox"] == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("nowhere/out.csv", "csv"), "no folder"),
        ((".", "csv"), "is a folder"),
        (("out.xml", "xml"), "There is: csv, jsonl"),
        (("out.csv", "csv", Choices(unknown="modle")), "Did you mean 'model'"),
        (("out.csv", "csv", Choices(unknown="model", limits=Limits(present_from=1.5))), "between 0 and 1"),
        (("out.csv", "csv", Choices(unknown="model")), "no run yet"),
    ],
)
def test_invalid_export_request_is_refused_with_the_reason(db, tmp_path, arguments, expected):
    target, *rest = arguments
    with pytest.raises(AnnotatorError, match=expected):
        export_data_set(db, tmp_path / target, *rest)


@pytest.mark.process
def test_full_disk_keeps_the_previous_export_unchanged(db, tmp_path):
    target = tmp_path / "out" / "out.csv"
    target.parent.mkdir()
    export_data_set(db, target, "csv")
    before = {path.name: path.read_bytes() for path in target.parent.iterdir()}
    child = os.fork()
    if child == 0:  # a limit on file size is for the whole process, so the export runs in one of its own
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        try:
            export_data_set(db, target, "csv", Choices(unknown="absent"))
        except AnnotatorError as error:
            os._exit(0 if "Free some space" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert {path.name: path.read_bytes() for path in target.parent.iterdir()} == before


def test_old_partial_files_of_an_export_are_deleted_by_the_next_one(db, tmp_path):
    old, fresh, other = (
        tmp_path / name for name in (".out.csv.ab12.part", ".out.csv.cd34.part", ".else.csv.ab12.part")
    )
    for path in (old, fresh, other):
        path.write_text("half a")
    for path in (old, other):
        os.utime(path, (0, 0))
    export_data_set(db, tmp_path / "out.csv", "csv")
    assert not old.exists() and fresh.exists() and other.exists()


def test_export_table_contains_the_current_labels(db, predicted):
    for present in (0, 1):
        with open_data_set(db) as data:
            counted = data.tallies.present, sum(int((block.values == 1).sum()) for block in data.view.blocks())
        assert counted == (present, present)
        answer_cell(db, 3, 3, 1)
