"""Annotator disagreement: cells to which people gave opposite answers, shown in Review with each of the answers.

No model is needed. With a model, the cells that it is surest of come first, whether present or absent: there the
mistake is plain.
"""

from collections.abc import Iterator

import numpy as np

from annotator.records import Filter, Suggestion, Voice
from annotator.snapshot.predictions import Predictions
from annotator.store.database.database import Database
from annotator.store.labels import disagreement as annotator_disagreement

MOST = 10_000  # cells that are ranked; older ones come when these have been settled


class AnnotatorDisagreements:
    """The cells on which people still disagree, ordered by how sure the model is of them, then the newest first.

    Attributes:
        only: The filter of the page: which of these cells are wanted.
        low: The lowest probability, as the filter or the page says.
    """

    def __init__(self, db: Database, predictions: Predictions | None, only: Filter, low: float):
        self.db, self.predictions, self.only, self.low = db, predictions, only, low

    def images(self) -> Iterator[np.ndarray]:
        """Yield one array of ids of images with a disagreement that the filter wants; an image may be repeated."""
        cells = annotator_disagreement.newest(self.db, MOST)
        probabilities = self._probabilities(cells)
        keep = np.ones(len(cells), bool)
        if self.only.class_id is not None:
            keep &= cells[:, 1] == self.only.class_id
        if self.low > 0 or self.only.high < 1:
            keep &= (probabilities >= self.low) & (probabilities <= self.only.high)
        sureness = np.nan_to_num(np.abs(probabilities[keep] - 0.5))
        yield cells[keep, 0][np.argsort(-sureness, kind="stable")]

    def still_relevant(self, image_ids: list[int]) -> list[int]:
        """Return those of the given images that still have an open disagreement to show."""
        chips = self.chips(image_ids)
        return [image_id for image_id in image_ids if chips[image_id]]

    def chips(self, image_ids: list[int]) -> dict[int, list[Suggestion]]:
        """Return the suggestions to show of each image, by image id, from the decisions as they are now."""
        chips: dict[int, list[Suggestion]] = {}
        for image_id, answers_of in annotator_disagreement.answers_by_cell(self.db, image_ids).items():
            cells = np.array([(image_id, class_id) for class_id in answers_of], np.int64).reshape(-1, 2)
            chips[image_id] = [
                self._chip(image_id, class_id, probability, answers)
                for (class_id, answers), probability in zip(
                    answers_of.items(), self._probabilities(cells).tolist(), strict=True
                )
                if self._wanted(class_id, probability, answers)
            ]
        return chips

    def _wanted(self, class_id: int, probability: float, answers: list[Voice]) -> bool:
        only = self.only
        unlimited = self.low <= 0 and only.high >= 1  # then cells without a probability are wanted, too
        return (
            only.class_id in (None, class_id)
            and (unlimited or self.low <= probability <= only.high)
            and (not only.by or only.by in {voice.person for voice in answers})
        )

    def _chip(self, image_id: int, class_id: int, probability: float, answers: list[Voice]) -> Suggestion:
        newest, voices = answers[-1].state, tuple(answers)
        if self.predictions is None or np.isnan(probability):
            return Suggestion(image_id, class_id, None, None, newest, voices)
        return Suggestion(image_id, class_id, round(probability, 4), self.predictions.run.id, newest, voices)

    def _probabilities(self, cells: np.ndarray) -> np.ndarray:
        """Return the probabilities of cells (n, 2), image id and class id: (n,) float64, nan where there is none."""
        probabilities = np.full(len(cells), np.nan)
        if self.predictions is not None:
            rows, columns, known = self.predictions.cells(*cells.T)
            probabilities[known] = self.predictions.probabilities[rows[known], columns[known]]
        return probabilities
