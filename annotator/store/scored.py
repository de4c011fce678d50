"""Answers to cells whose probability was logged: what a prediction said beforehand, and what people said."""

import json

import numpy as np

from annotator.store.database import Database
from annotator.store.sources import in_sql

NEWEST = 20_000  # answers read at most
LOOKED_AT = 200_000  # among so many newest decisions


def answers(db: Database, method: str, backbone: str) -> tuple[np.ndarray, int]:
    """The newest certain answers that still hold, to cells of which a run of this method and backbone told a
    probability: (n, 4) float64 with run id, class id, probability, and 1 present or -1 absent; and how many rows were
    left out because their class, score or state is none."""
    rows = db.tuples(
        f"""SELECT d.run_id, d.class_id, d.score, d.state FROM decision d JOIN run r ON r.id = d.run_id
        WHERE d.id > (SELECT coalesce(max(id), 0) FROM decision) - ? AND d.action = 'label' AND d.score NOT NULL
          AND d.source IN {in_sql(scored=True)} AND d.state != 0 AND r.method = ? AND r.backbone = ?
          AND NOT EXISTS (SELECT 1 FROM decision u WHERE u.undoes = d.id)
        ORDER BY d.id DESC LIMIT ?""",
        [LOOKED_AT, method, backbone, NEWEST],
    )
    known = {row[0] for row in db.tuples("SELECT id FROM class")}
    sound = [row for row in rows if row[1] in known and _is_probability(row[2]) and row[3] in (1, -1)]
    return np.array(sound, np.float64).reshape(-1, 4), len(rows) - len(sound)


def calibrations(db: Database, run_ids: list[int]) -> dict[int, tuple[object, object]]:
    """Of these runs the class ids, and how their probabilities were calibrated (None: not at all), as they stand there.
    A text that is no JSON is told as it is."""
    marks = ",".join("?" * len(run_ids))
    rows = db.tuples(f"SELECT id, class_ids, calibration FROM run WHERE id IN ({marks})", run_ids)
    return {
        run_id: (_parsed(class_ids), _parsed(calibration) if calibration else None)
        for run_id, class_ids, calibration in rows
    }


def _is_probability(score: object) -> bool:
    return isinstance(score, int | float) and 0 <= score <= 1


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        return text
