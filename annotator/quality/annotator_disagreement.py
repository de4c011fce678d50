"""Cells on which people contradict each other: likely mistakes, shown in Review with what each of them said.

It needs no model. Where there is one, cells come first of which it is surest, either way: there the mistake is plain.
"""

from collections.abc import Iterator

import numpy as np

from annotator.records import Filter, Suggestion
from annotator.snapshot.predictions import Predictions
from annotator.store import annotator_disagreement
from annotator.store.database import Database

MOST = 10_000  # cells put in order; older ones come when these have been settled


class AnnotatorDisagreements:
    """Cells on which people disagree, and disagree still; those first of which the model is surest, then the newest."""

    def __init__(self, db: Database, found: Predictions | None, only: Filter, low: float):
        self.db, self.found, self.only, self.low = db, found, only, low

    def images(self) -> Iterator[np.ndarray]:
        """Ids of images with such a cell, some more than once."""
        cells = annotator_disagreement.newest(self.db, MOST)
        chances = self._chances(cells)
        keep = np.ones(len(cells), bool)
        if self.only.class_id is not None:
            keep &= cells[:, 1] == self.only.class_id
        if self.low > 0 or self.only.high < 1:
            keep &= (chances >= self.low) & (chances <= self.only.high)
        sure = np.nan_to_num(np.abs(chances[keep] - 0.5))
        yield cells[keep, 0][np.argsort(-sure, kind="stable")]

    def still(self, image_ids: list[int]) -> list[int]:
        """Those of the images that nobody has settled."""
        chips = self.chips(image_ids)
        return [image_id for image_id in image_ids if chips[image_id]]

    def chips(self, image_ids: list[int]) -> dict[int, list[Suggestion]]:
        """What there is to show of these images, from the decisions as they are now."""
        chips: dict[int, list[Suggestion]] = {}
        for image_id, cells in annotator_disagreement.voices(self.db, image_ids).items():
            chances = self._chances(np.array([(image_id, class_id) for class_id in cells], np.int64).reshape(-1, 2))
            chips[image_id] = [
                self._chip(image_id, class_id, float(chance), said)
                for (class_id, said), chance in zip(cells.items(), chances, strict=True)
                if self._wanted(class_id, float(chance), said)
            ]
        return chips

    def _wanted(self, class_id: int, chance: float, said: dict[str, int]) -> bool:
        only = self.only
        everything = self.low <= 0 and only.high >= 1  # then also where there is no model
        return (
            only.class_id in (None, class_id)
            and (everything or self.low <= chance <= only.high)
            and (not only.by or only.by in said)
        )

    def _chip(self, image_id: int, class_id: int, chance: float, said: dict[str, int]) -> Suggestion:
        run = self.found.run if self.found is not None and not np.isnan(chance) else None
        return Suggestion(
            image_id,
            class_id,
            round(chance, 4) if run else None,
            run.id if run else None,
            list(said.values())[-1],
            tuple(said.items()),
        )

    def _chances(self, cells: np.ndarray) -> np.ndarray:
        """The probabilities of cells (n, 2), image id and class id: (n,) float64, nan where there is none."""
        chances = np.full(len(cells), np.nan)
        if self.found is not None:
            rows, columns, known = self.found.cells(*cells.T)
            chances[known] = self.found.probabilities[rows[known], columns[known]]
        return chances
