"""Decisions about embedded images as arrays: labels, mask, unbiased flags."""

from dataclasses import dataclass

import numpy as np

from annotator.indexing import find_positions
from annotator.quality import disagreement_resolution
from annotator.records import PRESENT, UNSURE
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache
from annotator.store.images import excluded_images
from annotator.store.labels import label_cells


@dataclass(frozen=True)
class TrainingSet:
    """The labels that training reads, as arrays."""

    # (n,) embedding rows of labeled and excluded images. Excluded images are not trained on
    rows: np.ndarray
    # (n, C) int8, 1 present, -1 absent, 0 unanswered
    labels: np.ndarray
    # (n, C) bool, read-only, False for cells that are not trained on: unsure or with an unresolved disagreement
    mask: np.ndarray
    class_ids: list[int]
    # (n, C) bool, labels of cells that were chosen independently of their label
    unbiased: np.ndarray
    newest_decision_id: int
    # number of skipped labels
    invalid_count: int

    @property
    def positive_count(self) -> int:
        return int((self.labels == PRESENT).sum())

    def make_unknown_mask(self, images: int) -> np.ndarray:
        """Return unanswered cells of all rows: (N, C) bool."""
        result = np.ones((images, len(self.class_ids)), bool)
        result[self.rows] = (self.labels == 0) & self.mask
        return result


def load_training_set(db: Database, cache: FeatureCache) -> TrainingSet:
    """Return a consistent snapshot of the labels of embedded images."""
    with db.reading():  # classes come and go
        class_ids = [class_.id for class_ in classes.load_active_classes(db)]
        cells, odd, newest = label_cells.load_training_cells(db)
        aside = excluded_images.load_image_ids(db)
        _apply_consensus(cells, disagreement_resolution.estimate_consensus_states(db))
    place, embedded = find_positions(cells[:, 0], cache.image_ids, np.argsort(cache.image_ids, kind="stable"))
    cells, place = cells[embedded], place[embedded]
    sure = cells[:, 2] != UNSURE
    rows, is_aside = np.unique(place[sure]), np.zeros(0, bool)
    if aside:
        is_aside = np.isin(cache.image_ids, list(aside))
        rows = np.union1d(rows, np.flatnonzero(is_aside))
    labels = np.zeros((len(rows), len(class_ids)), np.int8)
    used = np.isin(place, rows)
    at, _ = find_positions(place[used], rows)
    columns, _ = find_positions(cells[used, 1], np.array(class_ids, np.int64))
    labels[at, columns] = np.where(sure[used], cells[used, 2], 0)
    mask = np.broadcast_to(np.ones((), bool), labels.shape)
    if aside or not sure[used].all():
        mask = mask.copy()
        mask[at, columns] = sure[used]
        mask[is_aside[rows] if aside else []] = False
    unbiased = np.zeros(labels.shape, bool)
    unbiased[at, columns] = sure[used] & (cells[used, 3] == 1)
    return TrainingSet(rows, labels, mask, class_ids, unbiased, newest, odd)


def _apply_consensus(cells: np.ndarray, states: dict[tuple[int, int], int]) -> None:
    """Set cells with conflicting answers to their probable state in place, and clear their unbiased flags."""
    if not states:
        return
    rows = np.flatnonzero(cells[:, 2] == UNSURE)  # what people differ on is among these
    for row, (image_id, class_id) in zip(rows.tolist(), cells[rows, :2].tolist(), strict=True):
        if (image_id, class_id) in states:
            cells[row, 2:4] = states[image_id, class_id], 0
