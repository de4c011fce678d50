"""Relabel: grids of probably wrong labels, each checked once, while the expected changes pay for the time.

The probability of a mistake is a Beta posterior mean of the changes so far, so accurate annotators soon get no more.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from annotator.queues.autopilot.acquisition import Candidate
from annotator.queues.grid_queue import UnavailableCells
from annotator.records import ABSENT, PRESENT
from annotator.snapshot.closing.account import Account
from annotator.snapshot.snapshot import Snapshot
from annotator.snapshot.time_model import TimeModel
from annotator.store.database.database import Database
from annotator.store.labels import answer_times, label_cells

GRID_TILES = 24
MAX_CELLS_TRIED = 400  # likely mistakes that are read, those first on which model and people differ most
# share of all answers that is wrong, as a prior, and the audited answers that it weighs as much as
PRIOR_WRONG_SHARE, PRIOR_WEIGHT_AUDITED = (0.03, 30.0)
PRIOR_WEIGHT_RELABELS = 2.0  # relabels that the promise of the model weighs as much as
MIN_EXPECTED_CHANGES = 1.0  # of a grid that Autopilot proposes unasked


def propose_grids(
    db: Database,
    snapshot: Snapshot,
    time_model: TimeModel,
    unavailable_cells: UnavailableCells,
    account: Account,
    max_tiles: int | None = None,
    *,
    ask_once: bool = False,
) -> Iterator[Candidate]:
    """Yield a grid of probable mistakes per class and state, of at least MIN_EXPECTED_CHANGES, most probable first.

    `max_tiles` of None selects GRID_TILES. `ask_once`, for checks that a person asked for, skips every cell that was
    relabeled before, and has no minimum.
    """
    size = GRID_TILES if max_tiles is None else min(GRID_TILES, max_tiles)
    for (class_id, state), group in _group_likely_mistakes(
        db, snapshot, unavailable_cells, account, ask_once=ask_once
    ).items():
        worst = group[:size]
        mistakes = _estimate_changes(worst, account, state)
        if mistakes < MIN_EXPECTED_CHANGES and not ask_once:
            continue
        yield Candidate(
            kind="relabel",
            class_id=class_id,
            cells=[(image_id, None) for image_id, _ in worst],
            expected_positives=mistakes,
            decided_cells=0,
            expected_presses=mistakes,
            learning_value=0.0,
            seconds=time_model.estimate_grid_seconds(len(worst), mistakes),
            start_present=state == PRESENT,
        )


def list_checks(
    db: Database, snapshot: Snapshot, unavailable_cells: UnavailableCells, account: Account
) -> list[tuple[int, float]]:
    """Return (tiles, expected changes) of each grid that checks all likely mistakes."""
    groups = _group_likely_mistakes(db, snapshot, unavailable_cells, account, ask_once=True)
    grids = [
        (state, group[start : start + GRID_TILES])
        for (_, state), group in groups.items()
        for start in range(0, len(group), GRID_TILES)
    ]
    return [(len(cells), _estimate_changes(cells, account, state)) for state, cells in grids]


def _group_likely_mistakes(
    db: Database, snapshot: Snapshot, unavailable_cells: UnavailableCells, account: Account, *, ask_once: bool
) -> dict[tuple[int, int], list[tuple[int, float]]]:
    """Return (class id, state) -> (image id, probability of a wrong label), most probable first."""
    rows, columns = snapshot.rankings.disagreements[:MAX_CELLS_TRIED].T
    image_ids, class_ids = snapshot.predictions.image_ids[rows], snapshot.predictions.class_ids[columns]
    probabilities = snapshot.predictions.probabilities[rows, columns].astype(float)
    likely_mistakes = list(zip(image_ids.tolist(), class_ids.tolist(), strict=True))
    if not likely_mistakes:
        return {}
    answers = label_cells.load_labels_with_annotators(db, likely_mistakes)
    relabeled = answer_times.find_cells_answered_twice(db, likely_mistakes, relabels=ask_once)
    share = (PRIOR_WRONG_SHARE * PRIOR_WEIGHT_AUDITED + account.audited[1]) / (
        PRIOR_WEIGHT_AUDITED + account.audited[0]
    )
    groups: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for (image_id, class_id), probability in zip(likely_mistakes, probabilities.tolist(), strict=True):
        state = answers.get((image_id, class_id), (0, ""))[0]
        if (
            state not in (PRESENT, ABSENT)
            or (image_id, class_id) in relabeled
            or class_id in unavailable_cells.withheld_classes
        ):
            continue
        if image_id in unavailable_cells.get_unavailable_images(class_id):
            continue
        opposite = probability if state == ABSENT else 1 - probability
        wrong = opposite * share / max(opposite * share + (1 - opposite) * (1 - share), 1e-9)
        groups.setdefault((class_id, state), []).append((image_id, wrong))
    return {key: sorted(group, key=lambda cell: -cell[1]) for key, group in groups.items()}


def _estimate_changes(cells: Sequence[tuple[int, float]], account: Account, state: int) -> float:
    """Return the expected changes of a grid, from its promised ones and the changes of earlier checks of this state."""
    relabels, changed = account.relabels.get(state, (0, 0))
    promised = float(np.mean([wrong for _, wrong in cells]))
    return len(cells) * (PRIOR_WEIGHT_RELABELS * promised + changed) / (PRIOR_WEIGHT_RELABELS + relabels)
