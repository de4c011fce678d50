"""Images picked out on the map, as the grid shows them: one class of theirs, the unanswered ones first."""

from collections.abc import Iterator

import numpy as np

from annotator.snapshot.predictions import Predictions
from annotator.store import cells, selections
from annotator.store.database import Database

AT_ONCE = 500  # cells whose labels are read in one query
SAMPLE = 1000  # images from which the best class of a selection is judged


def cells_of(
    db: Database, found: Predictions | None, selection: str, class_id: int, column: int | None, out: set[int]
) -> Iterator[tuple[int, float | None]]:
    """Image ids of a selection with the probability of a class, None without a model: unanswered ones, likeliest first,
    then those that people have answered.

    column    of the class in the run; None when it has no model
    out       images that are left out

    Raises AnnotatorError for a selection that is gone.
    """
    ids = selections.load(db, selection)
    ids = ids[~np.isin(ids, list(out))]
    chances = np.full(len(ids), np.nan, np.float32)
    if found is not None and column is not None:
        rows, known = found.rows(ids)
        chances[known] = found.probabilities[rows[known], column]
    order = np.argsort(-chances, kind="stable")  # nan comes last
    every = [
        (image_id, None if np.isnan(chance) else chance)
        for image_id, chance in zip(ids[order].tolist(), chances[order].tolist(), strict=True)
    ]
    answered: list[tuple[int, float | None]] = []
    for start in range(0, len(every), AT_ONCE):
        some = every[start : start + AT_ONCE]
        states = cells.states(db, class_id, [image_id for image_id, _ in some])
        answered += [one for one in some if one[0] in states]
        yield from (one for one in some if one[0] not in states)
    yield from answered


def finds(db: Database, found: Predictions, selection: str, size: int) -> dict[int, float]:
    """Of each class with a model how many of the `size` likeliest unanswered images of a selection are expected to be
    present, judged from some of them."""
    ids = selections.load(db, selection)
    rows, known = found.rows(ids)
    some = np.flatnonzero(known)
    if len(some) > SAMPLE:
        some = some[np.linspace(0, len(some) - 1, SAMPLE).astype(int)]
    chances = np.array(found.probabilities[rows[some]], np.float32)
    has_model = ~np.isnan(chances).all(0) if len(chances) else np.zeros(len(found.class_ids), bool)
    answered = cells.answered(db, ids[some].tolist())
    for place, image_id in enumerate(ids[some].tolist()):
        chances[place, np.isin(found.class_ids, list(answered.get(image_id, ())))] = 0
    best = np.sort(np.nan_to_num(chances), 0)[::-1][:size].sum(0, dtype=np.float64)
    return dict(zip(found.class_ids[has_model].tolist(), best[has_model].tolist(), strict=True))
