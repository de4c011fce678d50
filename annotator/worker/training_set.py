"""People's decisions as arrays, for images with cached features: labels, a mask, and which labels are unbiased."""

from dataclasses import dataclass

import numpy as np

from annotator.indexing import positions
from annotator.records import PRESENT, UNSURE
from annotator.store import classes, decisions
from annotator.store.database import Database
from annotator.store.features.cache import FeatureCache


@dataclass(frozen=True)
class TrainingSet:
    """People's decisions in the form that training code takes.

    rows       (n,) rows of the feature cache: images with at least one certain answer
    labels     (n, C) int8, 1 present, -1 absent, 0 unanswered
    mask       (n, C) bool, False where somebody was unsure or people differ: such a cell is not trained on, not even
               as unknown; not to be written to, as without such cells it takes no memory
    class_ids  the classes of the columns
    unbiased   (n, C) bool, answers to questions that were not chosen by their answer (store.decisions.training_cells)
    newest     the newest decision these labels include
    odd        labels that were left out, as their row makes no sense (store/odd_rows.py)
    """

    rows: np.ndarray
    labels: np.ndarray
    mask: np.ndarray
    class_ids: list[int]
    unbiased: np.ndarray
    newest: int
    odd: int

    @property
    def positives(self) -> int:
        return int((self.labels == PRESENT).sum())

    def unknown(self, images: int) -> np.ndarray:
        """(N, C) bool, for all rows of the cache: cells that nobody has answered."""
        result = np.ones((images, len(self.class_ids)), bool)
        result[self.rows] = (self.labels == 0) & self.mask
        return result


def training_set(db: Database, cache: FeatureCache) -> TrainingSet:
    """The labels as of one moment, for images with cached features."""
    with db.reading():  # classes come and go
        class_ids = [class_.id for class_ in classes.all_classes(db)]
        cells, odd, newest = decisions.training_cells(db)
    place, embedded = positions(cells[:, 0], cache.image_ids, np.argsort(cache.image_ids, kind="stable"))
    cells, place = cells[embedded], place[embedded]
    sure = cells[:, 2] != UNSURE
    rows = np.unique(place[sure])
    labels = np.zeros((len(rows), len(class_ids)), np.int8)
    used = np.isin(place, rows)
    at, _ = positions(place[used], rows)
    columns, _ = positions(cells[used, 1], np.array(class_ids, np.int64))
    labels[at, columns] = np.where(sure[used], cells[used, 2], 0)
    mask = np.broadcast_to(np.ones((), bool), labels.shape)
    if not sure[used].all():
        mask = mask.copy()
        mask[at, columns] = sure[used]
    unbiased = np.zeros(labels.shape, bool)
    unbiased[at, columns] = sure[used] & (cells[used, 3] == 1)
    return TrainingSet(rows, labels, mask, class_ids, unbiased, newest, odd)
