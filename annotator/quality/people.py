"""People: how each answers, as far as the answers of others to the same questions say.

What counts is each person's first answer to a cell (store/annotator_disagreement.py). Sensitivity and specificity are
estimates of models/statistics/error_rates.py; with fewer than ENOUGH cells behind them they are not given.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np

from annotator.quality.agreement import monday, plain
from annotator.records import PRESENT
from annotator.store import annotator_disagreement, answer_times, classes
from annotator.store.database import Database
from models.statistics.agreement import Estimate, raw_agreement
from models.statistics.error_rates import Pattern, error_rates

ENOUGH = 10  # present (absent) cells, in expectation, below which a rate says more of the prior than of the person
NONE = Estimate(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Rates:
    """One class: sensitivity is the share of present cells that the person calls present, specificity that of
    absent cells called absent; nan with fewer than ENOUGH expected present (absent) cells that others answered, too."""

    name: str
    present: float
    absent: float
    sensitivity: Estimate
    specificity: Estimate


@dataclass(frozen=True)
class Week:
    """From its Monday (YYYY-MM-DD, UTC) on: pairs of this person's first answer and another's to the same cell."""

    monday: str
    compared: int
    same: Estimate


@dataclass(frozen=True)
class Person:
    """One person.

    answers     decisions with an answer, also those taken back
    seconds     the median time of a timed click, None without any
    compared    pairs of a first answer of theirs and one of somebody else to the same cell
    same        the share of these that are the same
    shared      cells that somebody else answered, too
    changed     those of them that somebody has answered the opposite way later, knowing what was said, and whose label
                that is now
    """

    name: str
    answers: int
    seconds: float | None
    compared: int
    same: Estimate
    shared: int
    changed: int
    classes: list[Rates]
    weeks: list[Week]

    def as_json(self) -> dict[str, Any]:
        """For machines; None where a figure is not measured."""
        rows = {
            "classes": [plain(asdict(row)) for row in self.classes],
            "weeks": [plain(asdict(w)) for w in self.weeks],
        }
        return {**plain({k: v for k, v in asdict(self).items() if k not in rows}), **rows}


class Tally:
    """What the first answers of all images add up to."""

    def __init__(self, names: list[str], class_ids: list[int]):
        self.number = {name: index for index, name in enumerate(names)}
        self.column = {class_id: index for index, class_id in enumerate(class_ids)}
        self.patterns: Counter[Pattern] = Counter()
        self.weeks: dict[str, dict[str, Counter[bool]]] = {name: {} for name in names}
        self.shared: Counter[str] = Counter()
        self.changed: Counter[str] = Counter()

    def add(
        self,
        class_id: int,
        answers: dict[str, annotator_disagreement.FirstAnswer],
        holds: tuple[int, str, float],
    ) -> None:
        """A cell: who answered it what first, and its label with who gave it, and when knowing what was said."""
        state, holder, at = holds
        for name, answer in answers.items():
            if len(answers) > 1 or holder not in (name, "import"):
                self.shared[name] += 1
                is_later = holder not in (name, "import") and at > answer.at
                self.changed[name] += is_later and state == -answer.state
        for pair in combinations(answers, 2):
            for name in pair:
                week = self.weeks[name].setdefault(monday(answers[name].at), Counter())
                week[answers[pair[0]].state == answers[pair[1]].state] += 1
        if pattern := self.pattern(class_id, answers):
            self.patterns[pattern] += 1

    def pattern(self, class_id: int, answers: dict[str, annotator_disagreement.FirstAnswer]) -> Pattern | None:
        """Who said what of a cell, as `patterns` counts it; None for an archived class, or fewer than two people."""
        if len(answers) < 2 or class_id not in self.column:
            return None
        row = sorted((self.number[name], answer.state == PRESENT) for name, answer in answers.items())
        return self.column[class_id], tuple(row)


def tally(db: Database, note: Callable[[int, int], None] = lambda done, of: None) -> Tally:
    """The first answers of everybody, compared; note(done, of) is called from time to time, in images."""
    names = list(annotator_disagreement.counts_by_person(db))
    found = Tally(names, [class_.id for class_ in classes.all_classes(db)])
    image_ids = annotator_disagreement.images_of_several(db)
    for number, said in enumerate(annotator_disagreement.first_answers(db, image_ids)):
        labels = annotator_disagreement.answers_that_hold(db, image_ids[number])
        for class_id, answers in said.items():
            # A label that was cleared meanwhile is nobody's.
            found.add(class_id, answers, labels.get(class_id, (0, "import", 0.0)))
        if number % 100 == 0:
            note(number, len(image_ids))
    return found


def people(db: Database, note: Callable[[int, int], None] = lambda done, of: None) -> list[Person]:
    """Everybody who answered, sorted by name; note(done, of) is called from time to time, in images."""
    counts, known = annotator_disagreement.counts_by_person(db), classes.all_classes(db)
    compared = tally(db, note)
    names = list(compared.number)
    rates = error_rates(compared.patterns, len(names), len(known))
    found = []
    for index, name in enumerate(names):
        clicks = [a.seconds for a in answer_times.newest_answers(db, name, answer_times.LOOKED_AT) if a.kind == "click"]
        weeks = compared.weeks[name]
        total: Counter[bool] = sum(weeks.values(), Counter())
        shown, empty = rates.present[index], rates.absent[index]
        found.append(
            Person(
                name,
                counts[name],
                median(clicks) if clicks else None,
                total.total(),
                _same(total),
                compared.shared[name],
                compared.changed[name],
                [
                    _rates(class_.name, shown[c], empty[c], rates.sensitivity[index, c], rates.specificity[index, c])
                    for c, class_ in enumerate(known)
                    if shown[c] + empty[c] > 0
                ],
                [Week(start, week.total(), _same(week)) for start, week in sorted(weeks.items())],
            )
        )
    return found


def _same(pairs: Counter[bool]) -> Estimate:
    return raw_agreement({(2, 0): pairs[True], (1, 1): pairs[False]})


def _rates(name: str, present: float, absent: float, sensitivity: np.ndarray, specificity: np.ndarray) -> Rates:
    return Rates(
        name,
        round(float(present), 1),
        round(float(absent), 1),
        Estimate(*sensitivity.tolist()) if present >= ENOUGH else NONE,
        Estimate(*specificity.tolist()) if absent >= ENOUGH else NONE,
    )
