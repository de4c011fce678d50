"""Agreement: how often people who answered the same cells gave the same answers, by class and by pair of people.

What counts is each person's first answer to a cell (store/annotator_disagreement.py). Nothing says that the second
person had not seen the first one's answer: only cells that were answered blindly measure agreement without a doubt.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import numpy as np

from annotator.records import ABSENT, PRESENT
from annotator.store import annotator_disagreement, classes
from annotator.store.database import Database
from models.statistics.agreement import Estimate, cohen_kappa, krippendorff_alpha, raw_agreement

ALL = "all classes"


@dataclass(frozen=True)
class ClassAgreement:
    """One class, or all together.

    cells      that two people or more answered
    differ     of them, on which not all said the same
    raw        how often two people say the same of a cell
    alpha      Krippendorff's, which is 0 for agreement by chance; nan for all classes together
    """

    name: str
    cells: int
    differ: int
    raw: Estimate
    alpha: Estimate


@dataclass(frozen=True)
class PairAgreement:
    """Two people, over all classes; kappa is Cohen's."""

    first: str
    second: str
    cells: int
    differ: int
    raw: Estimate
    kappa: Estimate


@dataclass(frozen=True)
class WeekAgreement:
    """One week, from its Monday (YYYY-MM-DD, UTC) on: the cells whose second answer was given in it."""

    monday: str
    cells: int
    differ: int
    raw: Estimate


@dataclass(frozen=True)
class Agreement:
    """classes: in the order of the project, those with a cell that several people answered; pairs: those with most
    cells in common first; weeks: the earliest first."""

    overall: ClassAgreement
    classes: list[ClassAgreement]
    pairs: list[PairAgreement]
    weeks: list[WeekAgreement]

    def as_json(self) -> dict[str, Any]:
        """For machines; None where a figure is not measured."""
        return {
            "overall": plain(asdict(self.overall)),
            "classes": [plain(asdict(row)) for row in self.classes],
            "pairs": [plain(asdict(row)) for row in self.pairs],
            "weeks": [plain(asdict(row)) for row in self.weeks],
        }


def agreement(db: Database, note: Callable[[int, int], None] = lambda done, of: None) -> Agreement:
    """The agreement of everybody who answered; note(done, of) is called from time to time, in images."""
    image_ids = annotator_disagreement.images_of_several(db)
    by_class: dict[int, Counter[tuple[int, int]]] = {}
    by_pair: dict[tuple[str, str], Counter[tuple[int, int]]] = {}
    by_week: dict[str, Counter[tuple[int, int]]] = {}
    for number, said in enumerate(annotator_disagreement.first_answers(db, image_ids)):
        for class_id, answers in said.items():
            if len(answers) < 2:
                continue
            states = {person: answer.state for person, answer in answers.items()}
            # Agreement can be seen from the second person's answer on.
            second = sorted(answer.at for answer in answers.values())[1]
            present = sum(state == PRESENT for state in states.values())
            by_class.setdefault(class_id, Counter())[present, len(states) - present] += 1
            by_week.setdefault(monday(second), Counter())[present, len(states) - present] += 1
            for pair in combinations(sorted(states), 2):
                by_pair.setdefault(pair, Counter())[states[pair[0]], states[pair[1]]] += 1
        if number % 100 == 0:
            note(number, len(image_ids))
    overall: Counter[tuple[int, int]] = sum(by_class.values(), Counter())
    return Agreement(
        ClassAgreement(ALL, *_counts(overall), raw_agreement(overall), Estimate(math.nan, math.nan, math.nan)),
        [
            ClassAgreement(class_.name, *_counts(found), raw_agreement(found), krippendorff_alpha(found))
            for class_ in classes.all_classes(db)
            if (found := by_class.get(class_.id))
        ],
        [_pair(*pair, found) for pair, found in sorted(by_pair.items(), key=lambda item: -item[1].total())],
        [WeekAgreement(monday, *_counts(found), raw_agreement(found)) for monday, found in sorted(by_week.items())],
    )


def monday(at: float) -> str:
    """The Monday (YYYY-MM-DD, UTC) of the week of a time in unix seconds."""
    day = datetime.fromtimestamp(at, UTC).date()
    return (day - timedelta(days=day.weekday())).isoformat()


def _counts(patterns: Counter[tuple[int, int]]) -> tuple[int, int]:
    return patterns.total(), sum(cells for pattern, cells in patterns.items() if min(pattern))


def _pair(first: str, second: str, found: Counter[tuple[int, int]]) -> PairAgreement:
    table = np.array([[found[one, other] for other in (PRESENT, ABSENT)] for one in (PRESENT, ABSENT)])
    differ = int(table[0, 1] + table[1, 0])
    patterns = {(2, 0): int(table[0, 0]), (1, 1): differ, (0, 2): int(table[1, 1])}
    return PairAgreement(first, second, found.total(), differ, raw_agreement(patterns), cohen_kappa(table))


def plain(values: dict[str, Any]) -> dict[str, Any]:
    """The same for JSON, which has no nan: None instead."""
    return {
        key: plain(value) if isinstance(value, dict) else None if value != value else value  # nan
        for key, value in values.items()
    }
