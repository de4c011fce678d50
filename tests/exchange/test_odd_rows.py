"""Whatever stands in the database or lies among the arrays, a training publishes a run and says what it left out."""

import json
import shutil
import sqlite3

import numpy as np
import pytest
from harness.short_forms import mark_slow_after
from harness.trained_projects import trained_project
from harness.worker_runs import train

from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot.project_status import collect_status
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.database import heartbeat
from annotator.store.database.database import Database
from annotator.store.runs import runs

__all__ = ["trained_project"]  # a fixture


@pytest.fixture
def db(trained_project, tmp_path):
    shutil.copytree(trained_project, tmp_path / "project")
    return Database(tmp_path / "project")


def put(db: Database, *statements: str) -> None:
    """Rows as no annotator writes them: without foreign keys or checks."""
    connection = sqlite3.connect(db.paths.database)
    with connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            connection.execute(statement)
    connection.close()


def scored(score: str = "0.7", class_id: str = "1", state: str = "1", run: str = "1", many: int = 60) -> list[str]:
    """So many answers with a score to cells of a run."""
    return [
        f"""INSERT INTO decision (uuid, action, image_id, class_id, state, source, annotator, run_id, score, decided_at)
        VALUES ('odd-{number}', 'label', {1 + number % 24}, {class_id}, {state if number % 2 else -1}, 'suggestion',
        'Ann', {run}, {score}, 0)"""
        for number in range(many)
    ]


def calibrated(told: object, many: int = 60) -> list[str]:
    """Sound answers to a run whose calibration is this."""
    text = told if isinstance(told, str) else json.dumps(told)
    return [*scored(many=many), f"UPDATE run SET calibration = '{text}'"]


STRAIGHT = {"kind": "isotonic", "slopes": [1, 1, 1], "shifts": [0, 0, 0], "knots": {}}
ADDED = "INSERT INTO class (id, name, since_decision) VALUES (4, 'lynx', 12)"

ROWS = {
    "a score of a class that the run did not have": (
        [ADDED, *scored(class_id="4"), f"UPDATE run SET calibration = '{json.dumps(STRAIGHT)}'"],
        "60 answers",
    ),
    "a score of a class that is gone": (scored(class_id="77"), "60 answers"),
    "a score that is no probability": (scored("5"), "60 answers"),
    "a score below 0": (scored("-3"), "60 answers"),
    "a score that is a word": (scored("'high'"), "60 answers"),
    "an infinite score": (scored("9e999"), "60 answers"),
    "a state that is none": (scored(state="7"), "30 answers"),
    "an answer without a class": (scored(class_id="NULL"), "60 answers"),
    "a calibration that is no JSON": (calibrated("{half"), "run 1"),
    "a calibration that is a list": (calibrated([1]), "run 1"),
    "a calibration without slopes": (calibrated({"kind": "isotonic"}), "run 1"),
    "a calibration of fewer classes": (calibrated(STRAIGHT | {"slopes": [1], "shifts": [0]}), "run 1"),
    "a calibration with words": (calibrated(STRAIGHT | {"slopes": ["a", "b", "c"]}), "run 1"),
    "a calibration that turns all into one": (calibrated(STRAIGHT | {"slopes": [0, 0, 0]}), "run 1"),
    "knots of classes there are not": (calibrated(STRAIGHT | {"knots": {"9": [[0, 1], [0, 1]]}}), "run 1"),
    "knots without values": (calibrated(STRAIGHT | {"knots": {"0": [[], []]}}), "run 1"),
    "knots of different length": (calibrated(STRAIGHT | {"knots": {"0": [[0, 1, 2], [0, 1]]}}), "run 1"),
    "classes of a run that are no JSON": ([*scored(), "UPDATE run SET class_ids = 'fox'"], "run 1"),
    "classes of a run that are words": ([*scored(), """UPDATE run SET class_ids = '["a", "b", "c"]'"""], "run 1"),
    "classes of a run that are a number": ([*scored(), "UPDATE run SET class_ids = '3'"], "run 1"),
    "more classes than the arrays have": ([*scored(), "UPDATE run SET class_ids = '[1, 2, 3, 4, 5]'"], "run 1"),
    "parameters of a run that are no JSON": (["UPDATE run SET parameters = '{'"], "run 1"),
    "losses of a run that are no JSON": (["UPDATE run SET loss = 'nan,'"], "run 1"),
    "a label of a class that is gone": (["INSERT INTO label VALUES (20, 99, 1, 1)"], "1 label"),
    "a label with a state that is none": (["INSERT INTO label VALUES (20, 1, 5, 1)"], "1 label"),
    "a label with a word for its state": (["INSERT INTO label VALUES (20, 1, 'yes', 1)"], "1 label"),
    "a label of an image that is gone": (["INSERT INTO label VALUES (999, 1, 1, 1)"], "1 label"),
    "a label of a decision that is gone": (["INSERT INTO label VALUES (20, 1, 1, 999)"], "1 label"),
    "a class that was taken out": (["DELETE FROM class WHERE id = 2"], "labels"),
    "a method there is not": (["""UPDATE setting SET value = '"bce"' WHERE key = 'method'"""], "bce"),
    "a method that is a number": (["UPDATE setting SET value = '5' WHERE key = 'method'"], "5"),
    "a setting that is no JSON": (["UPDATE setting SET value = 'an' WHERE key = 'method'"], "method"),
    "a parameter there is not": (["""UPDATE setting SET value = '{"speed": 3}' WHERE key = 'parameters'"""], "speed"),
    "a parameter that is a word": (["""UPDATE setting SET value = '{"lr": "x"}' WHERE key = 'parameters'"""], "lr"),
    "a parameter out of its bounds": (["""UPDATE setting SET value = '{"lr": -1}' WHERE key = 'parameters'"""], "lr"),
    "parameters that are a list": (["UPDATE setting SET value = '[1]' WHERE key = 'parameters'"], "parameters"),
    "a network that is a number": (["INSERT INTO setting VALUES ('backbone', '3')"], "backbone"),
    "a guarantee that is a word": (["""UPDATE setting SET value = '"yes"' WHERE key = 'acceptance'"""], "acceptance"),
    "a guarantee of another kind": (
        ["""UPDATE setting SET value = '{"recall": 1}' WHERE key = 'acceptance'"""],
        "acceptance",
    ),
    "a guarantee of a word": (
        ["""UPDATE setting SET value = '{"precision": "all"}' WHERE key = 'acceptance'"""],
        "acceptance",
    ),
    "an audited cell of a class that is gone": (["INSERT INTO audit_cell VALUES (1, 99, 1, 0, 0)"], "audit 1"),
    "an audited cell of an image it does not know": (
        ["INSERT INTO image (id, name, sha256, width, height) VALUES (99, 'x', 'x', 1, 1)",
         "INSERT INTO audit_cell VALUES (1, 1, 99, 0, 0)"],
        "audit 1",
    ),
    "an audited cell with a word for a stratum": (["UPDATE audit_cell SET stratum = 'likely'"], "audit 1"),
    "an audit without arrays": (
        ["INSERT INTO audit (id, run_id, last_decision_id, drawn_at, published) VALUES (7, 1, 1, 0, 1)"],
        "audit 7",
    ),
    "a cell accepted with a state that is none": (
        ["INSERT INTO acceptance VALUES (1, 'a1', 1, 1, 1, 0.9, 0.9, 0.95, 9, 0, 0, '', NULL, '', NULL)",
         "INSERT INTO accepted VALUES (20, 1, 1, 'yes', 0.9, NULL)"],
        "1 cell",
    ),
}  # fmt: skip

FILES = {
    "probabilities cut off": ("runs/1/probabilities.npy", b"\x93NUMPY\x01\0", "run 1"),
    "probabilities gone": ("runs/1/probabilities.npy", None, "run 1"),
    "image ids of a run cut off": ("runs/1/image_ids.npy", b"", "run 1"),
    "a ranking cut off": ("runs/1/scores.npy", b"\x93NUM", ""),
    "a ranking gone": ("runs/1/by_class.npy", None, ""),
    "scores of an audit cut off": ("audits/1/scores.npy", b"\x93NUMPY", "audit 1"),
    "strata of an audit gone": ("audits/1/strata.npy", None, "audit 1"),
    "a shard that is no shard": (f"features/{DEFAULT_BACKBONE}/odd.safetensors", b"\x10" + b"\0" * 7 + b"{half", "odd"),
}


def published(db: Database, words: str) -> str:
    """Train; a newer run is there, whole, and what was left out is said in the status."""
    train(db)
    run = runs.load_current_run(db)
    found = read_predictions(db)
    assert run.id > 1 and found.run.id == run.id and np.isfinite(found.probabilities[:, :1].astype(float)).all()
    told = "\n".join(collect_status(db)["left_out"])
    assert words in told and bool(told) == bool(words), told
    assert not heartbeat.load_worker_state(db).last_error
    return told


@pytest.mark.parametrize("name", mark_slow_after(10, ROWS))
def test_training_with_invalid_database_rows_stores_a_model_and_reports_skipped_rows(db, name):
    statements, words = ROWS[name]
    put(db, *statements)
    published(db, words)


@pytest.mark.parametrize("name", FILES)
def test_training_with_damaged_project_files_stores_a_model_and_reports_skipped_files(db, name):
    path, content, words = FILES[name]
    path = db.paths.project / path
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)
    published(db, words)
