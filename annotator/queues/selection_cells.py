"""The images of a map selection as grid cells of one class, unanswered images first."""

from collections.abc import Iterator

import numpy as np

from annotator.snapshot.run_predictions import Predictions
from annotator.store.database.database import Database
from annotator.store.images import selections
from annotator.store.labels import label_cells
from annotator.store.people.assignment import UnavailableImages, WithheldImages

CELLS_PER_QUERY = 500  # cells whose labels are read in one query
MAX_SAMPLE_IMAGES = 1000  # images from which the best class of a selection is estimated


def iterate_cells(
    db: Database, predictions: Predictions | None, selection: str, class_id: int, unavailable: UnavailableImages
) -> Iterator[tuple[int, float | None]]:
    """Yield (image id, probability or None) of a map selection: unanswered images first, each part likeliest first.

    Raises AnnotatorError for a deleted selection.
    """
    ids = selections.load(db, selection)
    ids = ids[~unavailable.get_mask(ids)]
    chances = np.full(len(ids), np.nan, np.float32)
    if predictions is not None:
        chances = predictions.align(predictions.probabilities, ids, [class_id])[:, 0].astype(np.float32)
    order = np.argsort(-chances, kind="stable")  # nan comes last
    ranked = [
        (image_id, None if np.isnan(chance) else chance)
        for image_id, chance in zip(ids[order].tolist(), chances[order].tolist(), strict=True)
    ]
    answered: list[tuple[int, float | None]] = []
    for start in range(0, len(ranked), CELLS_PER_QUERY):
        block = ranked[start : start + CELLS_PER_QUERY]
        states = label_cells.load_states(db, class_id, [image_id for image_id, _ in block])
        answered += [cell for cell in block if cell[0] in states]
        yield from (cell for cell in block if cell[0] not in states)
    yield from answered


def estimate_positives(
    db: Database, predictions: Predictions, selection: str, size: int, aside: WithheldImages
) -> dict[int, float]:
    """Return class id -> expected positives among the `size` likeliest unanswered images of a map selection.

    Uses at most MAX_SAMPLE_IMAGES images, none withheld (`aside`).
    """
    ids = selections.load(db, selection)
    ids = ids[~aside.get_mask(ids)]
    rows, known = predictions.find_rows(ids)
    sample = np.flatnonzero(known)
    if len(sample) > MAX_SAMPLE_IMAGES:
        sample = sample[np.linspace(0, len(sample) - 1, MAX_SAMPLE_IMAGES).astype(int)]
    class_ids, chances = predictions.class_ids, np.array(predictions.probabilities[rows[sample]], np.float32)
    has_model = ~np.isnan(chances).all(0) if len(chances) else np.zeros(len(class_ids), bool)
    answered = label_cells.load_answered_cells(db, ids[sample].tolist())
    for row, image_id in enumerate(ids[sample].tolist()):
        chances[row, np.isin(class_ids, list(answered.get(image_id, ())))] = 0
    best = np.sort(np.nan_to_num(chances), 0)[::-1][:size].sum(0, dtype=np.float64)
    return dict(zip(class_ids[has_model].tolist(), best[has_model].tolist(), strict=True))
