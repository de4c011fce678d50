"""A queue of the Review page: likely mistakes, which are labels that the model contradicts."""

from collections.abc import Iterator

import numpy as np

from annotator.records import ABSENT, PRESENT, Suggestion, SuggestionFilter
from annotator.snapshot.rankings import MIN_DOUBTFUL_DIFFERENCE, Rankings
from annotator.snapshot.run_predictions import Predictions
from annotator.store.database.database import Database
from annotator.store.labels import disagreed_cells, label_cells


class LikelyMistakes:
    """A queue of the cells where annotators and the current model differ, largest difference first."""

    def __init__(
        self,
        db: Database,
        predictions: Predictions,
        rankings: Rankings,
        filter_: SuggestionFilter,
        min_probability: float,
        *,
        exclude_disputed: bool = False,
    ):
        self.db, self.predictions, self.filter, self.exclude_disputed = db, predictions, filter_, exclude_disputed
        rows, columns = rankings.disagreements.T
        keep = np.ones(len(rows), bool)
        if filter_.class_id is not None:
            keep &= predictions.class_ids[columns] == filter_.class_id
        if min_probability > 0 or filter_.high < 1:
            probabilities = predictions.probabilities[rows, columns]
            keep &= (probabilities >= min_probability) & (probabilities <= filter_.high)
        self._rows, self._columns = rows[keep], columns[keep]

    def iterate_images(self) -> Iterator[np.ndarray]:
        """Yield one array with the ids of the images that have a likely mistake. Ids may repeat."""
        yield self.predictions.image_ids[self._rows]

    def filter_relevant(self, image_ids: list[int]) -> list[int]:
        """Return the given images whose answers still differ from the model."""
        chips = self.load_suggestions(image_ids)
        return [image_id for image_id in image_ids if chips[image_id]]

    def load_suggestions(self, image_ids: list[int]) -> dict[int, list[Suggestion]]:
        places = np.flatnonzero(np.isin(self._rows, self.predictions.find_rows(image_ids)[0]))
        rows, columns = self._rows[places], self._columns[places]
        cell_images, cell_classes = self.predictions.image_ids[rows], self.predictions.class_ids[columns]
        mistakes = list(zip(cell_images.tolist(), cell_classes.tolist(), strict=True))
        probabilities = self.predictions.probabilities[rows, columns].astype(float).tolist()
        answers = label_cells.load_labels_with_annotators(self.db, mistakes)
        differ = disagreed_cells.find_disagreed_cells(self.db, image_ids) if self.exclude_disputed else set()
        chips: dict[int, list[Suggestion]] = {image_id: [] for image_id in image_ids}
        for (image_id, class_id), probability in zip(mistakes, probabilities, strict=True):
            state, by = answers.get((image_id, class_id), (None, ""))
            differs = state in (PRESENT, ABSENT) and abs(probability - (state == PRESENT)) >= MIN_DOUBTFUL_DIFFERENCE
            if differs and self.filter.by in ("", by) and (image_id, class_id) not in differ:
                run_id = self.predictions.run.id
                chips[image_id].append(Suggestion(image_id, class_id, round(probability, 4), run_id, state))
        return chips
