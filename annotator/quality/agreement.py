"""Agreement: how often people who answered the same cells gave the same answers, by class and by pair of people.

Only the first answer of each person to a cell counts, given blind or while no other person's answer was there
(store/labels/disagreement.py). A person who sees an answer and agrees stores nothing, and a person who changes it
does: counting the changes alone would make people seem to differ.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import numpy as np

from annotator.records import ABSENT, PRESENT
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import disagreement as annotator_disagreement
from models.statistics.agreement import Estimate, alpha_within, cohen_kappa, krippendorff_alpha, raw_agreement

ALL = "all classes"
NONE = Estimate(math.nan, math.nan, math.nan)
ENOUGH = 10  # cells of two people in one class, below which kappa is not given


@dataclass(frozen=True)
class ClassAgreement:
    """The agreement of people on one class, or on all classes together.

    Attributes:
        cells: Cells that two people or more answered without seeing each other's answers.
        differ: Those of `cells` on which the answers are not all the same.
        raw: How often two people give the same answer to a cell.
        alpha: Krippendorff's alpha, which is 0 for agreement by chance; nan for all classes together.
    """

    name: str
    cells: int
    differ: int
    raw: Estimate
    alpha: Estimate


@dataclass(frozen=True)
class PairAgreement:
    """The agreement of two people, over all classes or in the class `name`.

    kappa is Cohen's; in one class it is nan below ENOUGH cells.
    """

    first: str
    second: str
    cells: int
    differ: int
    raw: Estimate
    kappa: Estimate
    name: str = ALL


@dataclass(frozen=True)
class WeekAgreement:
    """The agreement in one week, which begins on `monday` (YYYY-MM-DD, UTC).

    A cell counts in the week of its second answer.

    Attributes:
        alpha: Krippendorff's within classes (models/statistics/agreement.py), which is 0 for agreement by chance.
    """

    monday: str
    cells: int
    differ: int
    raw: Estimate
    alpha: Estimate


@dataclass(frozen=True)
class Agreement:
    """The agreement of all people: overall, by class, by pair of people and by week.

    Attributes:
        classes: The classes with a cell that several people answered, in the order of the project.
        pairs: The pair of people with most cells in common first.
        pairs_by_class: Class by class, ordered like `pairs` within each.
        weeks: The earliest first.
    """

    overall: ClassAgreement
    classes: list[ClassAgreement]
    pairs: list[PairAgreement]
    pairs_by_class: list[PairAgreement]
    weeks: list[WeekAgreement]

    def as_json(self) -> dict[str, Any]:
        """Return the figures as plain values for JSON; None where a figure is not measured."""
        return {
            "overall": plain(asdict(self.overall)),
            "classes": [plain(asdict(row)) for row in self.classes],
            "pairs": [plain(asdict(row)) for row in self.pairs],
            "pairs_by_class": [plain(asdict(row)) for row in self.pairs_by_class],
            "weeks": [plain(asdict(row)) for row in self.weeks],
        }


def agreement(db: Database, note: Callable[[int, int], None] = lambda done, of: None) -> Agreement:
    """Compute the agreement of everybody who answered.

    Args:
        db: The project's database.
        note: Called from time to time as note(done, of), in images.
    """
    image_ids = annotator_disagreement.images_of_several(db)
    by_class: dict[int, Counter[tuple[int, int]]] = {}
    by_pair: dict[int, dict[tuple[str, str], Counter[tuple[int, int]]]] = {}
    by_week: dict[str, dict[int, Counter[tuple[int, int]]]] = {}
    for number, said in enumerate(annotator_disagreement.first_answers(db, image_ids)):
        for class_id, answers in said.items():
            if len(answers) < 2:
                continue
            states = {person: answer.state for person, answer in answers.items()}
            # Agreement can be seen from the second person's answer on.
            second = sorted(answer.at for answer in answers.values())[1]
            present = sum(state == PRESENT for state in states.values())
            pattern = present, len(states) - present
            by_class.setdefault(class_id, Counter())[pattern] += 1
            by_week.setdefault(monday(second), {}).setdefault(class_id, Counter())[pattern] += 1
            of_class = by_pair.setdefault(class_id, {})
            for pair in combinations(sorted(states), 2):
                of_class.setdefault(pair, Counter())[states[pair[0]], states[pair[1]]] += 1
        if number % 100 == 0:
            note(number, len(image_ids))
    overall: Counter[tuple[int, int]] = sum(by_class.values(), Counter())
    of_pairs: dict[tuple[str, str], Counter[tuple[int, int]]] = {}
    for of_class in by_pair.values():
        for pair, found in of_class.items():
            of_pairs.setdefault(pair, Counter()).update(found)
    known = classes.all_classes(db)
    return Agreement(
        ClassAgreement(ALL, *_counts(overall), raw_agreement(overall), NONE),
        [
            ClassAgreement(class_.name, *_counts(found), raw_agreement(found), krippendorff_alpha(found))
            for class_ in known
            if (found := by_class.get(class_.id))
        ],
        [_pair(*pair, found) for pair, found in _most_first(of_pairs)],
        [
            _pair(*pair, found, class_.name)
            for class_ in known
            for pair, found in _most_first(by_pair.get(class_.id, {}))
        ],
        [_week(start, by_class) for start, by_class in sorted(by_week.items())],
    )


def monday(at: float) -> str:
    """Return the Monday (YYYY-MM-DD, UTC) of the week of a time in unix seconds."""
    day = datetime.fromtimestamp(at, UTC).date()
    return (day - timedelta(days=day.weekday())).isoformat()


def _counts(patterns: Counter[tuple[int, int]]) -> tuple[int, int]:
    return patterns.total(), sum(cells for pattern, cells in patterns.items() if min(pattern))


def _most_first(pairs: dict[tuple[str, str], Counter]) -> list[tuple[tuple[str, str], Counter[tuple[int, int]]]]:
    return sorted(pairs.items(), key=lambda item: -item[1].total())


def _week(start: str, by_class: dict[int, Counter[tuple[int, int]]]) -> WeekAgreement:
    found: Counter[tuple[int, int]] = sum(by_class.values(), Counter())
    return WeekAgreement(start, *_counts(found), raw_agreement(found), alpha_within(by_class.values()))


def _pair(first: str, second: str, found: Counter[tuple[int, int]], name: str = ALL) -> PairAgreement:
    table = np.array([[found[one, other] for other in (PRESENT, ABSENT)] for one in (PRESENT, ABSENT)])
    differ = int(table[0, 1] + table[1, 0])
    patterns = {(2, 0): int(table[0, 0]), (1, 1): differ, (0, 2): int(table[1, 1])}
    is_enough = name == ALL or found.total() >= ENOUGH
    kappa = cohen_kappa(table) if is_enough else NONE
    return PairAgreement(first, second, found.total(), differ, raw_agreement(patterns), kappa, name)


def as_rows(measured: Agreement) -> Iterator[list[object]]:
    """Yield all figures as rows of a table, the headings first.

    A field is "" where its figure is not measured or the row has none.
    """
    ends = [f"{figure}{end}" for figure in ("same", "alpha", "kappa") for end in ("", "_low", "_high")]
    yield ["by", "class", "person", "other", "week", "answered_twice", "differ", *ends]
    for row in (*measured.classes, measured.overall):
        yield ["class", row.name, "", "", "", row.cells, row.differ, *_ends(row.raw, row.alpha, NONE)]
    for pairs in (measured.pairs, measured.pairs_by_class):
        for row in pairs:
            by = "pair" if row.name == ALL else "class and pair"
            names = [row.name, row.first, row.second]
            yield [by, *names, "", row.cells, row.differ, *_ends(row.raw, NONE, row.kappa)]
    for row in measured.weeks:
        yield ["week", ALL, "", "", row.monday, row.cells, row.differ, *_ends(row.raw, row.alpha, NONE)]


def _ends(*figures: Estimate) -> list[object]:
    return ["" if math.isnan(end) else end for one in figures for end in (one.value, one.low, one.high)]


def plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return the figures with None in place of nan, which JSON does not have; nested dicts included."""
    return {
        key: plain(value) if isinstance(value, dict) else None if value != value else value  # nan
        for key, value in values.items()
    }
