"""Finished trainings, with arrays in runs/<id>/ until newer runs replace them."""

import json
import shutil
import time
from collections.abc import Sequence
from typing import Any, cast

from annotator.records import Run
from annotator.settings import KEPT_RUN_COUNT
from annotator.store.database.database import Database, get_inserted_id
from annotator.store.runs import probabilities

RUN_COLUMNS_SQL = """id, method, parameters, backbone, class_ids, images, last_decision_id, epochs, seconds, loss,
    threshold,
    finished_at, trained_decision_id, version, calibration"""
MAX_KEPT_VERSIONS = 2  # and what they need: a page may be about to open the one before


def begin(
    db: Database,
    *,
    method: str,
    parameters: dict[str, Any],
    backbone: str,
    class_ids: Sequence[int],
    images: int,
    last_decision_id: int,
    threshold: float,
) -> int:
    """Add the unpublished row of a training (a run) and return its id, which names its folder.

    Deletes arrays there: a restored project.db can reuse a run id.
    """
    with db.writing() as sql:
        run = sql.execute(
            """INSERT INTO run (method, parameters, backbone, class_ids, images, last_decision_id, trained_decision_id,
            epochs, seconds, loss, threshold, finished_at) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, '[]', ?, 0)""",
            [
                method,
                json.dumps(parameters),
                backbone,
                json.dumps(list(class_ids)),
                images,
                last_decision_id,
                last_decision_id,
                threshold,
            ],
        )
        run_id = get_inserted_id(run)
    for room in (db.paths.runs, db.paths.heatmaps):
        shutil.rmtree(room / str(run_id), ignore_errors=True)
    return run_id


def publish(
    db: Database,
    run_id: int,
    *,
    epochs: int,
    seconds: float,
    loss: Sequence[float],
    calibration: dict[str, Any] | None = None,
    threshold: float | None = None,
    sources: Sequence[tuple[int, int, dict[int, float]]] = (),
) -> None:
    """Publish a training (a run) whose arrays are complete on disk.

    Args:
        calibration: JSON values, or None.
        threshold: None keeps the initial one.
        sources: Used predictions: source, version, weight by class.
    """
    loss_text = json.dumps([round(value, 6) for value in loss])
    calibration_text = "" if calibration is None else json.dumps(calibration)
    with db.writing() as sql:
        sql.execute(
            """UPDATE run SET epochs = ?, seconds = ?, loss = ?, calibration = ?, finished_at = ?, published = 1,
            threshold = coalesce(?, threshold) WHERE id = ?""",
            [epochs, seconds, loss_text, calibration_text, time.time(), threshold, run_id],
        )
        sql.conn.executemany(
            "INSERT OR REPLACE INTO run_source (run_id, prediction_source_id, version, weights) VALUES (?, ?, ?, ?)",
            [(run_id, source, version, json.dumps(weights)) for source, version, weights in sources],
        )


def load_source_versions(db: Database, run_id: int) -> tuple[tuple[int, int], ...]:
    """Return the (source, version) pairs of external predictions that a run used."""
    return tuple(
        db.tuples(
            "SELECT prediction_source_id, version FROM run_source WHERE run_id = ? ORDER BY prediction_source_id",
            [run_id],
        )
    )


def load_source_weights(db: Database, run_id: int) -> dict[int, dict[int, float]]:
    """Return the weights of external predictions in a run: source -> class -> weight."""
    rows = db.tuples("SELECT prediction_source_id, weights FROM run_source WHERE run_id = ?", [run_id])
    return {source: {int(class_id): weight for class_id, weight in json.loads(text).items()} for source, text in rows}


def publish_version(db: Database, run_id: int, version: int, last_decision_id: int) -> None:
    """Publish a later version of a run's probabilities, complete on disk, which includes decisions up to an id."""
    with db.writing() as sql:
        sql.execute(
            "UPDATE run SET version = ?, last_decision_id = ? WHERE id = ?", [version, last_decision_id, run_id]
        )
    kept = range(max(version - MAX_KEPT_VERSIONS + 1, 0), version + 1)
    needed = {number for of_kept in kept for number in probabilities.find_needed_versions(db.paths, run_id, of_kept)}
    for place in db.paths.run(run_id).glob("v*"):
        number = place.name.removeprefix("v")
        if number.isdigit() and int(number) not in needed:
            shutil.rmtree(place, ignore_errors=True)


def load_current_run(db: Database) -> Run | None:
    """Return the newest readable run, or None."""
    return next((run for row in _load_newest_rows(db) if (run := _to_run(row))), None)


def find_damaged_runs(db: Database) -> list[int]:
    """Return the newest published runs whose database rows are invalid."""
    return [row["id"] for row in _load_newest_rows(db) if _to_run(row) is None]


def find_kept_run(db: Database, run_id: int) -> Run | None:
    """Return a published run with arrays, or None."""
    rows = db.rows(f"SELECT {RUN_COLUMNS_SQL} FROM run WHERE published = 1 AND id = ?", [run_id])
    return _to_run(rows[0]) if rows and (db.paths.run(run_id) / "head.safetensors").exists() else None


def delete_old_runs(db: Database, limit: int = KEPT_RUN_COUNT) -> None:
    """Delete arrays and heat maps of old runs, and unpublished rows."""
    keep = {row["id"] for row in db.rows("SELECT id FROM run WHERE published = 1 ORDER BY id DESC LIMIT ?", [limit])}
    newest = max(keep, default=0)
    for room in (db.paths.runs, db.paths.heatmaps):
        if not room.exists():
            continue
        for place in room.iterdir():
            # A run newer than the newest published one is being written right now.
            if place.name.isdigit() and int(place.name) not in keep and int(place.name) < newest:
                shutil.rmtree(place, ignore_errors=True)
    with db.writing() as sql:
        sql.execute("DELETE FROM run WHERE published = 0 AND id < ?", [newest])


def count_suggestion_answers(db: Database) -> list[dict[str, Any]]:
    """Return suggestion answers per run: run, accepted, rejected, unsure."""
    return db.rows(
        """SELECT one AS run, sum(n * (two = 1)) AS accepted, sum(n * (two = -1)) AS rejected,
        sum(n * (two = 0)) AS unsure FROM tally WHERE kind = 'run' GROUP BY one HAVING sum(n) > 0 ORDER BY one"""
    )


def _load_newest_rows(db: Database) -> list[dict[str, Any]]:
    return db.rows(f"SELECT {RUN_COLUMNS_SQL} FROM run WHERE published = 1 ORDER BY id DESC LIMIT ?", [KEPT_RUN_COUNT])


def count_training_positives(db: Database, run_id: int, class_id: int, limit: int) -> int:
    """Count a class's present labels up to a run's training, up to `limit`."""
    return db.value(
        """SELECT count(*) FROM (SELECT 1 FROM label WHERE class_id = ? AND state = 1 AND decision_id <=
        (SELECT trained_decision_id FROM run WHERE id = ?) LIMIT ?)""",
        [class_id, run_id, limit],
    )


def _to_run(row: dict[str, Any]) -> Run | None:
    try:
        parsed: dict[str, Any] = {name: json.loads(row[name]) for name in ("parameters", "class_ids", "loss")}
        parsed["calibration"] = json.loads(row["calibration"]) if row["calibration"] else None
    except (ValueError, TypeError):
        return None
    if not all(isinstance(parsed[name], kind) for name, kind in (("parameters", dict), ("loss", list))):
        return None
    return Run(**{**row, **parsed}) if _are_valid_ids(parsed["class_ids"]) else None


def _are_valid_ids(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    ids = cast(list[Any], value)
    return all(type(item) is int for item in ids) and ids == sorted(set(ids))
