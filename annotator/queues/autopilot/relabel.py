"""Relabel: grids of answers that are probably wrong, to check again; every answer once.

P(wrong) begins with the model's probability of the opposite and the share of answers that are wrong in general. Both
promise too much of people who are right, so what relabels changed decides more with each of them: an annotator who
never changes an answer is soon not asked again.
"""

from collections.abc import Iterator

import numpy as np

from annotator.queues.autopilot.account import Account
from annotator.queues.autopilot.acquisition import Candidate
from annotator.queues.grid import Out
from annotator.records import ABSENT, PRESENT
from annotator.snapshot.snapshot import Snapshot
from annotator.snapshot.time_model import TimeModel
from annotator.store.database.database import Database
from annotator.store.labels import answer_times, cells

SIZE = 24
CELLS_TRIED = 400  # likely mistakes that are read, those first on which model and people differ most
WRONG = 0.03  # share of all answers that is wrong, as a prior
PROMISED = 2.0  # relabels that the promise of the model weighs as much as


def candidates(
    db: Database,
    snapshot: Snapshot,
    time_model: TimeModel,
    out: Out,
    account: Account,
    tiles: int | None = None,
    *,
    once: bool = False,
) -> Iterator[Candidate]:
    """Yield grids of likely mistakes of one class and state, the answers that are most probably wrong first.

    Args:
        db: The project's database.
        snapshot: The predictions, and what was decided since.
        time_model: The seconds of this annotator.
        out: The images and cells that the page is not given.
        account: Has what earlier relabels changed.
        tiles: How many tiles a grid may have; None: SIZE.
        once: No answer is asked again twice, also if it was first given with a whole image.
    """
    size = SIZE if tiles is None else min(SIZE, tiles)
    for (class_id, state), group in _groups(db, snapshot, out, once=once).items():
        worst = group[:size]
        mistakes = len(worst) * _kept(
            float(np.mean([wrong for _, wrong in worst])), *account.relabels.get(state, (0, 0))
        )
        yield Candidate(
            kind="relabel",
            class_id=class_id,
            cells=[(image_id, None) for image_id, _ in worst],
            positives=mistakes,
            decided=0,
            changes=mistakes,
            learning=0.0,
            seconds=time_model.grid(len(worst), mistakes),
            start_present=state == PRESENT,
        )


def grid_sizes(db: Database, snapshot: Snapshot, out: Out) -> list[int]:
    """Return the number of answers in each grid that asks again, until none is left that is probably wrong."""
    groups = _groups(db, snapshot, out, once=True).values()
    return [len(group[start : start + SIZE]) for group in groups for start in range(0, len(group), SIZE)]


def _groups(
    db: Database, snapshot: Snapshot, out: Out, *, once: bool
) -> dict[tuple[int, int], list[tuple[int, float]]]:
    """Return the likely mistakes by class and state: (image id, P(wrong) by the model), the worst first."""
    rows, columns = snapshot.rankings.disagreements[:CELLS_TRIED].T
    image_ids, class_ids = snapshot.predictions.image_ids[rows], snapshot.predictions.class_ids[columns]
    probabilities = snapshot.predictions.probabilities[rows, columns].astype(float)
    likely_mistakes = list(zip(image_ids.tolist(), class_ids.tolist(), strict=True))
    if not likely_mistakes:
        return {}
    answers = cells.labels_with_annotators(db, likely_mistakes)
    relabeled = answer_times.answered_twice(db, likely_mistakes, relabels=once)
    groups: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for (image_id, class_id), probability in zip(likely_mistakes, probabilities.tolist(), strict=True):
        state = answers.get((image_id, class_id), (0, ""))[0]
        if state not in (PRESENT, ABSENT) or (image_id, class_id) in relabeled or class_id in out.classes_away:
            continue
        if image_id in out.images(class_id):
            continue
        opposite = probability if state == ABSENT else 1 - probability
        wrong = opposite * WRONG / max(opposite * WRONG + (1 - opposite) * (1 - WRONG), 1e-9)
        groups.setdefault((class_id, state), []).append((image_id, wrong))
    return {key: sorted(group, key=lambda cell: -cell[1]) for key, group in groups.items()}


def _kept(promised: float, relabels: int, changed: int) -> float:
    """Return P(wrong) of answers of which the model promises `promised`, after so many relabels and changes.

    It is the posterior mean of a share with a Beta prior of mean `promised` that weighs PROMISED relabels.
    """
    return (PROMISED * promised + changed) / (PROMISED + relabels)
