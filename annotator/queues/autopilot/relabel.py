"""Answers that are probably wrong, as grids to look at again: what the model thinks the opposite of, once each.

How likely a doubted answer is wrong follows from the model and from how often people were wrong before: whoever never
changes anything at a second look is soon not asked for another.
"""

from collections.abc import Iterator

import numpy as np

from annotator.queues.autopilot.acquisition import Offer
from annotator.queues.grid import Out
from annotator.records import ABSENT, PRESENT
from annotator.snapshot.snapshot import Snapshot
from annotator.snapshot.time_model import Tempo
from annotator.store import answer_times, cells
from annotator.store.database import Database

SIZE = 24
DOUBTED = 400  # cells that people and model see most differently
NEWEST = 3000  # decisions among which second looks are counted
WRONG, BELIEF = 0.03, 20.0  # share of the answers that are wrong, until second looks say more; looks it is worth


def offers(db: Database, snapshot: Snapshot, pace: Tempo, out: Out) -> Iterator[Offer]:
    """Grids of doubted answers of one class and state, those with most expected mistakes first."""
    rows, columns = snapshot.rankings.disagreements[:DOUBTED].T
    ids, class_ids = snapshot.predictions.image_ids[rows], snapshot.predictions.class_ids[columns]
    chances = snapshot.predictions.probabilities[rows, columns].astype(float)
    asked = list(zip(ids.tolist(), class_ids.tolist(), strict=True))
    if not asked:
        return
    said, again = cells.said(db, asked), answer_times.answered_twice(db, asked)
    wrong = _wrong(db)
    doubted: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for (image_id, class_id), chance in zip(asked, chances.tolist(), strict=True):
        state = said.get((image_id, class_id), (0, ""))[0]
        if state not in (PRESENT, ABSENT) or (image_id, class_id) in again or image_id in out.images(class_id):
            continue
        against = chance if state == ABSENT else 1 - chance
        mistaken = against * wrong[state] / max(against * wrong[state] + (1 - against) * (1 - wrong[state]), 1e-9)
        doubted.setdefault((class_id, state), []).append((image_id, mistaken))
    for (class_id, state), found in doubted.items():
        found = sorted(found, key=lambda one: -one[1])[:SIZE]
        changes = float(np.sum([mistaken for _, mistaken in found]))
        yield Offer(
            "doubt", class_id, [(image_id, None) for image_id, _ in found], changes, 0, changes, 0.0,
            pace.grid(len(found), changes), start=state == PRESENT,
        )  # fmt: skip


def _wrong(db: Database) -> dict[int, float]:
    """How often answers of each state are wrong, before the model is heard."""
    seen = answer_times.relabel_counts(db, NEWEST)
    return {
        state: (WRONG * BELIEF + changed) / (BELIEF + looks)
        for state, (looks, changed) in ((state, seen.get(state, (0, 0))) for state in (PRESENT, ABSENT))
    }
