"""The probability that a cell (image and class) is present, from several annotators' independent first answers.

Workers cache them between trainings and reread only changed images.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from annotator.records import PRESENT
from annotator.store.database.database import Database
from annotator.store.labels import decisions, disagreed_cells
from annotator.store.labels.disagreed_cells import FirstAnswer
from spmll.statistics.error_rates import Pattern, estimate_probabilities


class FirstAnswers:
    """The first answers to cells that several annotators answered, with estimated probabilities.

    For use by one thread, while classes stay the same.
    """

    def __init__(self, class_ids: Sequence[int]):
        self._column = {class_id: column for column, class_id in enumerate(class_ids)}
        self._number: dict[str, int] = {}  # of each person
        self._of_image: dict[int, tuple[Pattern, ...]] = {}
        self._count: Counter[Pattern] = Counter()
        self._one: dict[Pattern, Pattern] = {}  # equal patterns are one object, or images would fill the memory
        self._probability: dict[Pattern, float] = {}
        self._newest = 0

    def refresh(self, db: Database) -> None:
        """Read the decisions made since the last call."""
        with db.reading():
            newest = decisions.get_newest_decision_id(db)
            image_ids = disagreed_cells.find_multi_annotator_images(db, self._newest)
            for image_id, said in zip(image_ids, disagreed_cells.iterate_first_answers(db, image_ids), strict=True):
                found = (build_pattern(self._number, self._column, *cell) for cell in said.items())
                patterns = tuple(self._one.setdefault(pattern, pattern) for pattern in found if pattern)
                self._count.subtract(self._of_image.get(image_id, ()))
                self._count.update(patterns)
                self._of_image[image_id] = patterns
        if image_ids:
            self._count = +self._count
            self._probability = estimate_probabilities(self._count, len(self._number), len(self._column))
        self._newest = newest

    def count_people(self, image_id: int, class_id: int) -> int:
        """Count the annotators who answered this cell, or 0 if fewer than two."""
        return len(pattern[1]) if (pattern := self._find_pattern(image_id, class_id)) else 0

    def get_probability(self, image_id: int, class_id: int) -> float:
        """Estimate the probability that the class is present from first answers, 0.5 with fewer than two annotators."""
        return self._probability[pattern] if (pattern := self._find_pattern(image_id, class_id)) else 0.5

    def _find_pattern(self, image_id: int, class_id: int) -> Pattern | None:
        column = self._column.get(class_id)
        return next((pattern for pattern in self._of_image.get(image_id, ()) if pattern[0] == column), None)


def build_pattern(
    number: dict[str, int], column: Mapping[int, int], class_id: int, answers: Mapping[str, FirstAnswer]
) -> Pattern | None:
    """Return a cell's answers as (class column, ((annotator number, is present), ...)).

    None with fewer than two answers or an unknown class. New annotators are added to `number`.
    """
    if len(answers) < 2 or class_id not in column:
        return None
    row = sorted((number.setdefault(name, len(number)), answer.state == PRESENT) for name, answer in answers.items())
    return column[class_id], tuple(row)
