"""Labels of events as scores of their images, because no label says which of the images show the class."""

from collections.abc import Iterator

import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.predictions.prediction_import import PredictionOptions, store_scores
from annotator.exchange.predictions.score_files import ScoreBlock
from annotator.records import ABSENT, PRESENT
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import event_labels
from annotator.store.runs.prediction_sources import SCORE, PredictionSource

SOURCE_NAME = "event labels"
IMAGES_PER_BATCH = 5000  # images


def store(db: Database, by: str) -> PredictionSource:
    """Replace the stored scores of all images in labeled events. Raises AnnotatorError without event labels.

    An event's classes score 1 on its images, and all classes score 0 in an empty event. Only the order counts.
    """
    ids = [row[0] for row in db.tuples("SELECT DISTINCT image_id FROM event_image ORDER BY image_id")]
    names = [class_.name for class_ in classes.load_active_classes(db)]
    if not ids or not event_labels.count(db):
        raise AnnotatorError(
            "No event has a label. Labels of events come with imports: COCO Camera Traps with "
            "sequence_level_annotation, Camtrap DP with observations of events."
        )
    source, _ = store_scores(
        db, SOURCE_NAME, _build_blocks(db, ids, names), PredictionOptions(scale=SCORE, replace=True), by
    )
    return source


def _build_blocks(db: Database, ids: list[int], names: list[str]) -> Iterator[ScoreBlock]:
    column_of = {name: column for column, name in enumerate(names)}
    for start in range(0, len(ids), IMAGES_PER_BATCH):
        labels = event_labels.load_by_image(db, ids[start : start + IMAGES_PER_BATCH])
        if not labels:
            continue
        scores = np.full((len(labels), len(names)), np.nan)
        for row, of_image in enumerate(labels.values()):
            for label in of_image:
                if not label.class_name:
                    scores[row] = np.fmax(scores[row], 0.0)
                elif label.state in (PRESENT, ABSENT):
                    column = column_of[label.class_name]
                    scores[row, column] = np.fmax(scores[row, column], float(label.state == PRESENT))
        marks = ",".join("?" * len(labels))
        sha256 = dict(db.tuples(f"SELECT id, sha256 FROM image WHERE id IN ({marks})", list(labels)))
        yield ScoreBlock([sha256[one] for one in labels], list(range(len(labels))), names, scores)
