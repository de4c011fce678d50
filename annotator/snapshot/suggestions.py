"""Suggestions: probably missing labels, from the current model and all answers."""

from collections.abc import Mapping, Sequence

import numpy as np

from annotator.records import Class, Run, Suggestion
from annotator.settings import MAX_CHIPS_PER_IMAGE, MIN_IMAGES_FOR_FIRST_RUN
from annotator.snapshot.rankings import get_gapless_length
from annotator.snapshot.run_predictions import Predictions, read_predictions
from annotator.snapshot.snapshot import Snapshot, read_snapshot
from annotator.store.database.database import Database
from annotator.store.labels import auto_accepted, decisions
from annotator.store.networks import configuration
from annotator.store.runs import prediction_sources, runs
from annotator.training_extra import has_training
from spmll.catalog import get_default_method_name

FROM_NAMES_ALONE = "from the names alone"


def find_missing_positives(db: Database, class_id: int | None = None, limit: int | None = 50) -> list[Suggestion]:
    """Return the unanswered cells most likely to be present, by falling probability.

    `limit` of None selects all, with memory for every cell.
    """
    if limit is not None and (snapshot := read_snapshot(db)):
        depth = limit + snapshot.delta.changed_image_count  # at least `limit` of these are open
        if depth <= get_gapless_length(snapshot.rankings):
            return _find_likeliest(snapshot, class_id, limit, depth)
    predictions = read_predictions(db)
    if predictions is None:
        return []
    scores = _load_unanswered_scores(db, predictions)
    if class_id is not None:
        scores[:, predictions.class_ids != class_id] = np.nan
    flat = scores.ravel()
    candidates = np.flatnonzero(flat >= 0)
    if limit is not None and limit < len(candidates):
        candidates = candidates[np.argpartition(-flat[candidates], limit - 1)[:limit]] if limit else candidates[:0]
    order = candidates[np.argsort(-flat[candidates], kind="stable")]
    rows, columns = np.divmod(order, len(predictions.class_ids))
    return _build_suggestions(predictions, rows, columns)


def find_suggestions(
    predictions: Predictions,
    answered: dict[int, set[int]],
    image_ids: Sequence[int],
    low: float,
    high: float = 1.0,
    class_id: int | None = None,
) -> dict[int, list[Suggestion]]:
    """Return per image id its suggestions with a probability in [low, high], highest first.

    `answered` has the answered classes by image id.
    """
    rows, known = predictions.find_rows(image_ids)
    result: dict[int, list[Suggestion]] = {}
    for image_id, row, has_row in zip(image_ids, rows, known, strict=True):
        if not has_row:
            continue
        scores = np.array(predictions.probabilities[row], np.float32)
        scores[np.isin(predictions.class_ids, list(answered.get(image_id, ())))] = np.nan
        if class_id is not None:
            scores[predictions.class_ids != class_id] = np.nan
        columns = np.flatnonzero((scores >= low) & (scores <= high))
        columns = columns[np.argsort(-scores[columns], kind="stable")][:MAX_CHIPS_PER_IMAGE]
        class_ids, chances = predictions.class_ids[columns].tolist(), scores[columns].tolist()
        result[image_id] = [
            Suggestion(image_id, suggested, round(chance, 4), predictions.run.id)
            for suggested, chance in zip(class_ids, chances, strict=True)
        ]
    return result


def encode_probabilities(
    predictions: Predictions | None, image_ids: Sequence[int], classes: Sequence[Class]
) -> dict[int, bytes]:
    """Return image id -> one byte per class, round(254 * probability) or 255 if unknown."""
    if predictions is None:
        return {}
    _, known = predictions.find_rows(image_ids)
    known_ids = [image_id for image_id, has_row in zip(image_ids, known, strict=True) if has_row]
    values = predictions.align(predictions.probabilities, known_ids, [class_.id for class_ in classes])
    scaled = np.rint(values.astype(np.float32) * 254)
    rows = np.where(np.isnan(scaled), 255, scaled).astype(np.uint8)
    return {image_id: row.tobytes() for image_id, row in zip(known_ids, rows, strict=True)}


def load_answered_classes(db: Database, image_ids: Sequence[int]) -> dict[int, set[int]]:
    """Return the answered or auto-accepted classes per image."""
    answered = auto_accepted.load_accepted_class_ids(db, image_ids)
    for label in decisions.load_labels(db, image_ids):
        answered.setdefault(label.image_id, set()).add(label.class_id)
    return answered


def list_guess_sources(db: Database) -> list[str]:
    """Return the external models whose predictions replace labels in a first training, none for published methods."""
    if configuration.get_method(db) != get_default_method_name():  # published methods are trained as published
        return []
    known = prediction_sources.load_sources(db)
    return [source.name for source in known if source.scale == prediction_sources.PROBABILITY and source.cells]


def describe_first_run(db: Database) -> str:
    """Return a clause on when the first training starts, or why none does."""
    if not has_training():
        return "training is not installed"
    if (names := list_guess_sources(db)) == [prediction_sources.CLASS_NAMES_SOURCE]:
        return f"the first suggestions come soon, {FROM_NAMES_ALONE}"
    if names:
        return f"the first training starts soon, with the predictions of {' and '.join(names)}"
    return f"needs about {MIN_IMAGES_FOR_FIRST_RUN} labeled images"


def describe_guess_sources(db: Database, run: Run) -> str:
    """Name the external models behind a model trained without labels, else return ""."""
    if run.epochs:
        return ""
    used = {source_id for source_id, _ in runs.load_source_versions(db, run.id)}
    names = [source.name for source in prediction_sources.load_sources(db) if source.id in used]
    if names == [prediction_sources.CLASS_NAMES_SOURCE]:
        return FROM_NAMES_ALONE
    return f"from the predictions of {' and '.join(names)} alone" if names else ""


def count_labels_until_first_run(db: Database, counts: Mapping[str, int]) -> int:
    """Count the images still to label before the first training."""
    if list_guess_sources(db):
        return 0
    images = counts["all"]
    return max(0, min(MIN_IMAGES_FOR_FIRST_RUN, images) - (images - counts["without_decision"]))


def find_run_to_explain(db: Database, run_id: int) -> int:
    """Return the training whose heat map to show: `run_id`, or else the current one."""
    if runs.find_kept_run(db, run_id):
        return run_id
    current = runs.load_current_run(db)
    return current.id if current else run_id


def _find_likeliest(snapshot: Snapshot, class_id: int | None, limit: int, depth: int) -> list[Suggestion]:
    predictions, rankings = snapshot.predictions, snapshot.rankings
    class_ids = predictions.class_ids
    searched = range(len(class_ids)) if class_id is None else np.flatnonzero(class_ids == class_id).tolist()
    rows_of, columns_of = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for column in searched:
        ranked = rankings.by_class[column, :depth]
        open_rows = snapshot.delta.select_open_rows(ranked[ranked >= 0], column)[:limit]
        rows_of.append(open_rows)
        columns_of.append(np.full(len(open_rows), column))
    rows, columns = np.concatenate(rows_of), np.concatenate(columns_of)
    order = np.lexsort((columns, rows, -predictions.probabilities[rows, columns].astype(np.float32)))[:limit]
    return _build_suggestions(predictions, rows[order], columns[order])


def _build_suggestions(predictions: Predictions, rows: np.ndarray, columns: np.ndarray) -> list[Suggestion]:
    image_ids, class_ids = predictions.image_ids[rows].tolist(), predictions.class_ids[columns].tolist()
    probabilities = predictions.probabilities[rows, columns].astype(float).tolist()
    cells = zip(image_ids, class_ids, probabilities, strict=True)
    return [Suggestion(*cell, predictions.run.id) for cell in cells]


def _load_unanswered_scores(db: Database, predictions: Predictions) -> np.ndarray:
    """Return the probabilities, (N, C) float32, with nan for answered cells."""
    scores = np.array(predictions.probabilities, np.float32)
    answered = [(image_id, class_id) for image_id, class_id, _ in decisions.load_label_cells(db)[0]]
    cells = np.array([*answered, *auto_accepted.load_accepted_cells(db)], np.int64).reshape(-1, 2)
    rows, columns, known = predictions.find_cells(*cells.T)
    scores[rows[known], columns[known]] = np.nan
    return scores
