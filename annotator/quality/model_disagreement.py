"""Model disagreement: decisions of which the model predicts the opposite, shown in Review as likely mistakes."""

from collections.abc import Iterator

import numpy as np

from annotator.records import ABSENT, PRESENT, Filter, Suggestion
from annotator.snapshot.predictions import Predictions
from annotator.snapshot.rankings import DOUBTFUL, Rankings
from annotator.store.database.database import Database
from annotator.store.labels import cells
from annotator.store.labels import disagreement as annotator_disagreement


class LikelyMistakes:
    """The cells on which people and the current run differ, ordered by how far they differ.

    Args:
        only: The filter of the page: which of these cells are wanted.
        low: The lowest probability, as the filter or the page says.
        settled: Leave out cells on which people differ.
    """

    def __init__(
        self,
        db: Database,
        predictions: Predictions,
        rankings: Rankings,
        only: Filter,
        low: float,
        *,
        settled: bool = False,
    ):
        self.db, self.predictions, self.only, self.settled = db, predictions, only, settled
        rows, columns = rankings.disagreements.T
        keep = np.ones(len(rows), bool)
        if only.class_id is not None:
            keep &= predictions.class_ids[columns] == only.class_id
        if low > 0 or only.high < 1:
            probabilities = predictions.probabilities[rows, columns]
            keep &= (probabilities >= low) & (probabilities <= only.high)
        self._rows, self._columns = rows[keep], columns[keep]

    def images(self) -> Iterator[np.ndarray]:
        """Yield one array of ids of images with a likely mistake; an image may come more than once."""
        yield self.predictions.image_ids[self._rows]

    def still_relevant(self, image_ids: list[int]) -> list[int]:
        """Return those of the given images whose answers still differ from the model."""
        chips = self.chips(image_ids)
        return [image_id for image_id in image_ids if chips[image_id]]

    def chips(self, image_ids: list[int]) -> dict[int, list[Suggestion]]:
        """Return the suggestions to show of each image, by image id, from the labels as they are now."""
        places = np.flatnonzero(np.isin(self._rows, self.predictions.rows(image_ids)[0]))
        rows, columns = self._rows[places], self._columns[places]
        cell_images, cell_classes = self.predictions.image_ids[rows], self.predictions.class_ids[columns]
        mistakes = list(zip(cell_images.tolist(), cell_classes.tolist(), strict=True))
        probabilities = self.predictions.probabilities[rows, columns].astype(float).tolist()
        answers = cells.labels_with_annotators(self.db, mistakes)
        differ = annotator_disagreement.among(self.db, image_ids) if self.settled else set()
        chips: dict[int, list[Suggestion]] = {image_id: [] for image_id in image_ids}
        for (image_id, class_id), probability in zip(mistakes, probabilities, strict=True):
            state, by = answers.get((image_id, class_id), (None, ""))
            differs = state in (PRESENT, ABSENT) and abs(probability - (state == PRESENT)) >= DOUBTFUL
            if differs and self.only.by in ("", by) and (image_id, class_id) not in differ:
                run_id = self.predictions.run.id
                chips[image_id].append(Suggestion(image_id, class_id, round(probability, 4), run_id, state))
        return chips
