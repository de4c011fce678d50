"""A queue of the Review page: cells (image and class) for which annotators gave opposite answers."""

from collections.abc import Iterator

import numpy as np

from annotator.records import AnnotatorAnswer, Suggestion, SuggestionFilter
from annotator.snapshot.run_predictions import Predictions
from annotator.store.database.database import Database
from annotator.store.labels import disagreed_cells

MAX_RANKED_CELLS = 10_000  # cells that are ranked; older ones come when these have been settled


class AnnotatorDisagreements:
    """A queue of unresolved disagreements between annotators, ordered by model confidence, then newest first."""

    def __init__(
        self, db: Database, predictions: Predictions | None, filter_: SuggestionFilter, min_probability: float
    ):
        self.db, self.predictions, self.filter, self.min_probability = db, predictions, filter_, min_probability

    def iterate_images(self) -> Iterator[np.ndarray]:
        """Yield arrays of image ids with a disagreement that the page's filter selects. Ids may repeat."""
        cells = disagreed_cells.load_newest_cells(self.db, MAX_RANKED_CELLS)
        probabilities = self._get_probabilities(cells)
        keep = np.ones(len(cells), bool)
        if self.filter.class_id is not None:
            keep &= cells[:, 1] == self.filter.class_id
        if self.min_probability > 0 or self.filter.high < 1:
            keep &= (probabilities >= self.min_probability) & (probabilities <= self.filter.high)
        sureness = np.nan_to_num(np.abs(probabilities[keep] - 0.5))
        yield cells[keep, 0][np.argsort(-sureness, kind="stable")]

    def filter_relevant(self, image_ids: list[int]) -> list[int]:
        """Return the given images that still have an unresolved disagreement."""
        chips = self.load_suggestions(image_ids)
        return [image_id for image_id in image_ids if chips[image_id]]

    def load_suggestions(self, image_ids: list[int]) -> dict[int, list[Suggestion]]:
        chips: dict[int, list[Suggestion]] = {}
        for image_id, answers_of in disagreed_cells.load_answers_by_cell(self.db, image_ids).items():
            cells = np.array([(image_id, class_id) for class_id in answers_of], np.int64).reshape(-1, 2)
            chips[image_id] = [
                self._build_suggestion(image_id, class_id, probability, answers)
                for (class_id, answers), probability in zip(
                    answers_of.items(), self._get_probabilities(cells).tolist(), strict=True
                )
                if self._is_wanted(class_id, probability, answers)
            ]
        return chips

    def _is_wanted(self, class_id: int, probability: float, answers: list[AnnotatorAnswer]) -> bool:
        only = self.filter
        unlimited = self.min_probability <= 0 and only.high >= 1  # then cells without a probability are wanted, too
        return (
            only.class_id in (None, class_id)
            and (unlimited or self.min_probability <= probability <= only.high)
            and (not only.by or only.by in {voice.person for voice in answers})
        )

    def _build_suggestion(
        self, image_id: int, class_id: int, probability: float, answers: list[AnnotatorAnswer]
    ) -> Suggestion:
        newest, voices = answers[-1].state, tuple(answers)
        if self.predictions is None or np.isnan(probability):
            return Suggestion(image_id, class_id, None, None, newest, voices)
        return Suggestion(image_id, class_id, round(probability, 4), self.predictions.run.id, newest, voices)

    def _get_probabilities(self, cells: np.ndarray) -> np.ndarray:
        """Return the probabilities (n,) float64 of `cells` (n, 2), image and class ids. Unknown ones are nan."""
        probabilities = np.full(len(cells), np.nan)
        if self.predictions is not None:
            rows, columns, known = self.predictions.find_cells(*cells.T)
            probabilities[known] = self.predictions.probabilities[rows[known], columns[known]]
        return probabilities
