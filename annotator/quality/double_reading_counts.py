"""Counts of blind answers by several annotators to the same images, as input of allowed_mistakes.py."""

import numpy as np

from annotator.indexing import find_positions
from annotator.records import ABSENT, PRESENT
from annotator.store.database.database import Database
from annotator.store.labels import image_overlap, project_counts
from spmll.statistics.allowed_mistakes import (
    COUNT_AS_ABSENT,
    COUNT_AS_LABELED,
    COUNT_AS_PRESENT,
    COUNTING_WAYS,
    DoubleReadings,
)


def count_double_readings(db: Database, class_ids: np.ndarray) -> DoubleReadings | None:
    """Count the blind answers to images that were given to several annotators. None if there are none.

    Audits are omitted, because they sample classes equally. `class_ids` is (C,) int64.
    """
    if image_overlap.OVERLAP_SOURCE not in project_counts.count_decisions_by_source(db):
        return None  # avoids reading every decision
    volume = project_counts.count_decisions_by_annotator(db)
    counted = DoubleReadingCounter(len(volume), len(class_ids))
    for rows in image_overlap.iterate_first_answers(db, list(volume)):
        columns, known = find_positions(rows[:, 1], class_ids)
        counted.add(rows[known], columns[known])
    return counted.to_double_readings(np.array(list(volume.values()), np.float64))


class DoubleReadingCounter:
    """Counts of how often an annotator's blind answer agrees with the label, added one block of answers at a time."""

    def __init__(self, people: int, classes: int):
        self.present, self.absent = np.zeros((2, COUNTING_WAYS, 2, people, classes), np.int64)
        self.found, self.rejected = np.zeros((2, classes, image_overlap.MAX_PEOPLE_PER_IMAGE + 1), np.int64)

    def add(self, rows: np.ndarray, columns: np.ndarray) -> None:
        """Count n answers from `iterate_first_answers`: their `rows`, and the class column of each, (n,)."""
        cells = rows[:, 0] * self.found.shape[0] + columns
        _, first, cell = np.unique(cells, return_index=True, return_inverse=True)
        people = np.bincount(cell)
        yes = np.bincount(cell, rows[:, 3] == PRESENT)
        labels, differ = rows[:, 4], rows[:, 5] > 0
        several = (people[cell] > 1) & (labels != 0)
        for counts, state, others in (
            (self.present, PRESENT, yes[cell] - (rows[:, 3] == PRESENT)),
            (self.absent, ABSENT, (people - yes)[cell] - (rows[:, 3] == ABSENT)),
        ):
            for way, unsettled in ((COUNT_AS_LABELED, None), (COUNT_AS_PRESENT, PRESENT), (COUNT_AS_ABSENT, ABSENT)):
                is_ = labels if unsettled is None else np.where(differ, unsettled, labels)
                asked = several & (is_ == state) & (others > 0)
                np.add.at(counts[way, 0], (rows[asked, 2], columns[asked]), 1)
                right = asked & (rows[:, 3] == state)
                np.add.at(counts[way, 1], (rows[right, 2], columns[right]), 1)
        first = first[several[first]]
        many = np.minimum(people[cell[first]], self.found.shape[1] - 1)
        for counts, state in ((self.found, PRESENT), (self.rejected, ABSENT)):
            chosen = labels[first] == state
            np.add.at(counts, (columns[first][chosen], many[chosen]), 1)

    def to_double_readings(self, volume: np.ndarray) -> DoubleReadings | None:
        """Return the counts, or None if no cell was answered by several annotators.

        `volume` (P,) is the number of answers per annotator.
        """
        by_people = np.flatnonzero((self.found + self.rejected).any(0))
        if not len(by_people):
            return None
        # Columns only up to the most people at one cell: each column is kept for each of a thousand draws.
        found, rejected = self.found[:, : by_people[-1] + 1], self.rejected[:, : by_people[-1] + 1]
        return DoubleReadings(volume / volume.sum(), self.present, self.absent, found, rejected)
