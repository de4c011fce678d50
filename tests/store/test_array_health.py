"""Array files that are emptied, cut off or overwritten: nothing ends with a traceback, and `doctor` names each."""

import math
import random
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from harness.answers import answer_cell
from harness.asked import asked
from harness.made_maps import in_rows
from harness.trained_projects import cache_of, trained_project
from harness.worker_runs import train
from typer.testing import CliRunner

from annotator.cli import app
from annotator.errors import AnnotatorError
from annotator.queues import query_order
from annotator.snapshot.rankings import Rankings
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.database import jobs
from annotator.store.database.database import Database
from annotator.store.images import selections
from annotator.store.networks import configuration
from annotator.store.runs import probabilities, runs
from annotator.store.upkeep import array_health, health
from annotator.worker.training.incremental_update import Updater
from spmll.linear.training import Head

__all__ = ["trained_project"]  # a fixture

pytestmark = pytest.mark.training

SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1]]
LOOKS = [
    ("GET", "/api/map", None),
    ("GET", "/api/map/colors?by=stage", None),
    ("GET", "/api/map/colors?by=probability&class=1", None),
    ("POST", "/api/map/select", {"polygon": SQUARE}),
    ("POST", "/api/autopilot", {"holder": "h", "want": 3}),
    ("POST", "/api/work", {"holder": "h", "mode": "annotate", "want": 3}),
    ("POST", "/api/work", {"holder": "h", "mode": "annotate", "want": 3, "order": "uncertainty"}),
    ("POST", "/api/work", {"holder": "h", "mode": "review", "want": 3}),
    ("POST", "/api/work", {"holder": "h", "mode": "review", "want": 3, "filter": {"kind": "likely_mistakes"}}),
    ("POST", "/api/grid", {"holder": "h", "size": 6, "want": 1}),
    ("POST", "/api/grid", {"holder": "h", "size": 6, "want": 1, "audit": True}),
    ("POST", "/api/items", {"images": [1, 2]}),
    ("POST", "/api/classes", {}),
    ("POST", "/api/examples", {"class": 1}),
    ("POST", "/api/gallery", {"start": 0, "count": 24, "sort": "probability", "class": 1}),
]
DAMAGES: dict[str, Callable[[Path], object]] = {
    "emptied": lambda path: path.write_bytes(b""),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "overwritten": lambda path: path.write_bytes(random.Random(1).randbytes(path.stat().st_size)),
    "of another shape": lambda path: np.save(path.open("wb"), np.zeros((2, 2, 2))),
}
CODES = ("features", "image_codes")


@pytest.fixture(scope="module")
def whole(trained_project, tmp_path_factory):
    """A project with all arrays that one has: a run with a version, a map, a selection, an audit, predictions."""
    folder = tmp_path_factory.mktemp("whole")
    shutil.copytree(trained_project, folder / "project")
    db = Database(folder / "project")
    answer_cell(db, 20, 1, -1)
    assert Updater().update(db, cache_of(db))
    in_rows(db)
    selections.save(db, np.arange(1, 9))
    (folder / "a.csv").write_text("image,class,score\n" + "".join(f"{n:02}.jpg,fox,0.{n:02}\n" for n in range(24)))
    done = CliRunner().invoke(app, ["predictions", str(folder / "project"), str(folder / "a.csv"), "--name", "other"])
    assert done.exit_code == 0, done.output
    query_order.publish_first(db, np.arange(1, 25), np.eye(24), 1)
    db.sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return folder / "project"


def in_use(project: Path) -> list[Path]:
    """All but the first orders, which a run replaces, and the rankings of the version before."""
    found = [*project.rglob("*.npy"), *project.rglob("*.safetensors"), *project.rglob("*.npz")]
    older = {project / "runs" / "1" / f"{field.name}.npy" for field in fields(Rankings)}
    return sorted(path.relative_to(project) for path in {*found} - older if "first_orders" not in path.parts)


def looked(project: Path) -> dict[str, int]:
    with asked(project) as routes:
        answers = {}
        for method, path, body in LOOKS:
            if method == "GET":
                answers[f"{path}"] = routes.send("GET", path)[0]
            else:
                answers[f"{path} {body}"] = routes.post(path, body)[0]
        return answers


@pytest.mark.slow
def test_doctor_names_every_damaged_array_file_and_no_page_returns_a_server_error(whole, annotator, tmp_path):
    project = tmp_path / "project"
    shutil.copytree(whole, project)
    files = in_use(project)
    usual = looked(project)
    assert len(files) > 22 and set(usual.values()) == {200}, usual
    assert not array_found(project)
    wrong: list[str] = []
    for file in files:
        for what, damage in DAMAGES.items():
            shutil.rmtree(project)
            shutil.copytree(whole, project)
            damage(project / file)
            answers = looked(project)
            wrong += [f"{file} {what}: {asked_for} {status}" for asked_for, status in answers.items() if status >= 500]
            told = array_found(project)
            wrong += [f"{file} {what}: doctor says {told}"] * (not any(_name(file) in sentence for sentence in told))
    assert not wrong, "\n".join(wrong)


def _name(file: Path) -> str:
    """What doctor calls it by."""
    if file.parts[0] == "audits":
        return f"audit {file.parts[1]}"
    return file.name[:16] if file.parts[0] == "features" else f"{file.parent.name}/{file.name}"


def array_found(project: Path) -> list[str]:
    return [finding.what for finding in health.examine(project).findings]


def test_doctor_accepts_a_head_with_classes_without_positives_and_no_other_missing_number(whole, tmp_path):
    project = shutil.copytree(whole, tmp_path / "project")
    file = Database(project).paths.run(1) / "head.safetensors"
    head = Head.load(file)
    for weight, bias, is_damaged in ((0.0, math.nan, False), (math.nan, 0.0, True), (0.0, math.inf, True)):
        head.weight[0], head.bias[0] = weight, bias
        head.save(file)
        assert bool(array_found(project)) == is_damaged, (weight, bias)


def test_suggest_command_reports_unreadable_training_arrays(whole, annotator, tmp_path):
    shutil.copytree(whole, tmp_path / "project")
    run = tmp_path / "project" / "runs" / "1"
    for name in ("image_ids.npy", "v1/by_class.npy"):
        content = (run / name).read_bytes()
        (run / name).write_bytes(b"")
        done = annotator("suggest", tmp_path / "project")
        assert name.split("/")[-1] in done.stderr and "is empty" in done.stderr and "annotator doctor" in done.stderr
        (run / name).write_bytes(content)
    assert not annotator("suggest", tmp_path / "project").stderr


def test_repair_deletes_recomputable_arrays_and_training_recreates_them(whole, annotator, tmp_path):
    project = tmp_path / "project"
    shutil.copytree(whole, project)
    kept = project / "predictions" / "1" / "1" / "scores.npy"
    [selection] = (project / "selections").glob("*.npy")
    damaged = [project / "runs/1/v1/scores.npy", project / "runs/1/image_ids.npy", selection, kept]
    damaged += [next(project.glob("map/*/points.npy")), next(project.glob("runs/1/orders/*.npy"))]
    for file in damaged:
        file.write_bytes(b"")
    decisions_before = Database(project).rows("SELECT * FROM decision")
    done = annotator("doctor", project, "--repair", code=1).stdout
    assert "Repaired: The map of the images cannot be used" in done and "predictions 'other' cannot be read" in done
    assert kept.exists() and not any(file.exists() for file in damaged if file != kept)
    db = Database(project)
    assert jobs.is_training_requested(db) and db.rows("SELECT * FROM decision") == decisions_before
    with pytest.raises(AnnotatorError, match="is gone"):
        selections.load(db, selection.stem)
    assert read_predictions(db) is None
    train(db)
    assert read_predictions(Database(project)) is not None
    assert [damage.what for damage in array_health.find_damages(Database(project))] == array_found(project)
    assert len(array_found(project)) == 1 and "'other'" in array_found(project)[0]


def test_array_check_reports_impossible_numbers_in_readable_files(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "project")
    db = Database(tmp_path / "project")
    place = db.paths.map(configuration.get_backbone(db)) / "points.npy"
    for path in (db.paths.run(1) / probabilities.WHOLE_FILE, db.paths.run(1, 1) / "by_class.npy", place):
        array = np.load(path)
        if array.dtype.names:
            array["x"][3] = np.nan
        else:
            array[3 % len(array)] = 30000
        np.save(path, array)
    run = runs.load_current_run(db)
    told = " ".join(damage.what for damage in array_health.find_damages(db))
    assert run and all(name in told for name in ("probabilities.npy", "by_class.npy", "points.npy")), told
