"""Logged probabilities and the answers given to them later, from which calibrations are fitted."""

import json

import numpy as np

from annotator.store.database.database import Database
from annotator.store.database.decision_sql import NEWEST_DECISION_ID_SQL, NOT_UNDONE_SQL
from annotator.store.labels.sources import format_source_list

MAX_ANSWERS = 20_000  # largest number of answers read
MAX_DECISIONS_SEARCHED = 200_000  # newest decisions searched for answers
NO_IMAGE_IDS = np.zeros(0, np.int64)


def load_scored_answers(
    db: Database, method: str, backbone: str, excluded_image_ids: np.ndarray = NO_IMAGE_IDS
) -> tuple[np.ndarray, int]:
    """Return the newest answers with a logged probability of this method and backbone.

    Omits undone and unsure answers, and answers about an event of which another image was answered before training,
    because frames look alike.

    Returns:
        (n, 4) float64: run id, class id, probability, 1 or -1, and the number of invalid rows.
    """
    rows = db.tuples(
        f"""SELECT d.run_id, d.class_id, d.score, d.state, d.image_id, r.last_decision_id
        FROM decision d JOIN run r ON r.id = d.run_id
        WHERE d.id > {NEWEST_DECISION_ID_SQL} - ? AND d.action = 'label' AND d.score NOT NULL
          AND d.source IN {format_source_list(scored=True)} AND d.state != 0 AND r.method = ? AND r.backbone = ?
          AND {NOT_UNDONE_SQL}
        ORDER BY d.id DESC LIMIT ?""",
        [MAX_DECISIONS_SEARCHED, method, backbone, MAX_ANSWERS],
    )
    known = {row[0] for row in db.tuples("SELECT id FROM class")}
    sound = [row for row in rows if row[1] in known and _is_probability(row[2]) and row[3] in (1, -1)]
    image_ids, trained = np.array([row[4:] for row in sound], np.int64).reshape(-1, 2).T
    wanted = ~np.isin(image_ids, excluded_image_ids) & (trained < _find_first_sibling_decisions(db, image_ids))
    return np.array([row[:4] for row in sound], np.float64).reshape(-1, 4)[wanted], len(rows) - len(sound)


def _find_first_sibling_decisions(db: Database, image_ids: np.ndarray) -> np.ndarray:
    """Return, per image, the first decision on another image of its event, even undone: (n,) int64."""
    none = np.iinfo(np.int64).max
    rows = db.integer_rows(
        """SELECT event_id, image_id, first FROM (SELECT o.event_id, o.image_id, (SELECT min(d.id) FROM decision d
            WHERE d.image_id = o.image_id AND d.action IN ('label', 'done')) AS first
            FROM image_event o WHERE o.event_id IN (SELECT event_id FROM image_event
                WHERE image_id IN (SELECT value FROM json_each(?)))) WHERE first NOT NULL ORDER BY event_id, first""",
        [json.dumps(np.unique(image_ids).tolist())],
    )
    firsts: dict[int, list[tuple[int, int]]] = {}
    event_of: dict[int, int] = {}
    for event, image_id, first in rows.tolist():
        event_of[image_id] = event
        firsts.setdefault(event, []).append((first, image_id))
    found = np.full(len(image_ids), none)
    for place, image_id in enumerate(image_ids.tolist()):
        others = firsts.get(event_of.get(image_id, 0), [])[:2]  # an image itself has been answered, so it is among them
        found[place] = next((first for first, other in others if other != image_id), none)
    return found


def load_calibrations(db: Database, run_ids: list[int]) -> dict[int, tuple[object, object]]:
    """Return run id -> (class ids, calibration or None), parsed from JSON. Invalid JSON stays text."""
    marks = ",".join("?" * len(run_ids))
    rows = db.tuples(f"SELECT id, class_ids, calibration FROM run WHERE id IN ({marks})", run_ids)
    return {
        run_id: (_parse_json(class_ids), _parse_json(calibration) if calibration else None)
        for run_id, class_ids, calibration in rows
    }


def _is_probability(score: object) -> bool:
    return isinstance(score, int | float) and 0 <= score <= 1


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        return text
