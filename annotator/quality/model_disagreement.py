"""Decisions that the model doubts: likely mistakes, shown in Review with what a person said."""

from collections.abc import Iterator

import numpy as np

from annotator.records import ABSENT, PRESENT, Filter, Suggestion
from annotator.snapshot.predictions import Predictions
from annotator.snapshot.rankings import DOUBTFUL, Rankings
from annotator.store import cells
from annotator.store.database import Database


class LikelyMistakes:
    """Cells on which people and the run differ, and differ still; those first on which they differ most."""

    def __init__(self, db: Database, found: Predictions, rankings: Rankings, only: Filter, low: float):
        self.db, self.predictions, self.only = db, found, only
        rows, columns = rankings.disagreements.T
        keep = np.ones(len(rows), bool)
        if only.class_id is not None:
            keep &= found.class_ids[columns] == only.class_id
        if low > 0 or only.high < 1:
            chances = found.probabilities[rows, columns]
            keep &= (chances >= low) & (chances <= only.high)
        self._rows, self._columns = rows[keep], columns[keep]

    def images(self) -> Iterator[np.ndarray]:
        """Ids of images with such a cell, some more than once."""
        yield self.predictions.image_ids[self._rows]

    def still(self, image_ids: list[int]) -> list[int]:
        """Those of the images on which nobody has given in."""
        chips = self.chips(image_ids)
        return [image_id for image_id in image_ids if chips[image_id]]

    def chips(self, image_ids: list[int]) -> dict[int, list[Suggestion]]:
        """What there is to show of these images, from the labels as they are now."""
        places = np.flatnonzero(np.isin(self._rows, self.predictions.rows(image_ids)[0]))
        rows, columns = self._rows[places], self._columns[places]
        asked = list(
            zip(self.predictions.image_ids[rows].tolist(), self.predictions.class_ids[columns].tolist(), strict=True)
        )
        chances = self.predictions.probabilities[rows, columns].astype(float).tolist()
        said = cells.said(self.db, asked)
        chips: dict[int, list[Suggestion]] = {image_id: [] for image_id in image_ids}
        for (image_id, class_id), chance in zip(asked, chances, strict=True):
            state, by = said.get((image_id, class_id), (None, ""))
            contradicted = state in (PRESENT, ABSENT) and abs(chance - (state == PRESENT)) >= DOUBTFUL
            if contradicted and self.only.by in ("", by):
                chips[image_id].append(Suggestion(image_id, class_id, round(chance, 4), self.predictions.run.id, state))
        return chips
