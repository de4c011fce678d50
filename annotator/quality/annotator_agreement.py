"""Agreement of annotators on the same cells (image and class), by class, pair of annotators and week.

Only independent first answers count. Agreeing with a visible answer stores nothing, so counting changes
would overstate disagreement.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import numpy as np

from annotator.progress_callbacks import ProgressCallback, ignore_progress
from annotator.records import ABSENT, PRESENT
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import disagreed_cells
from spmll.statistics.agreement_coefficients import (
    Estimate,
    cohen_kappa,
    krippendorff_alpha,
    pooled_krippendorff_alpha,
    raw_agreement,
)

ALL_CLASSES = "all classes"
NO_ESTIMATE = Estimate(math.nan, math.nan, math.nan)
MIN_CELLS_FOR_KAPPA = 10  # cells of two people in one class, below which kappa is not given


@dataclass(frozen=True)
class ClassAgreement:
    """The agreement of annotators on one class, or on all classes together."""

    name: str
    # cells with several independent answers
    cells: int
    differ: int
    # probability of equal answers
    raw: Estimate
    # krippendorff's, nan for all classes
    alpha: Estimate


@dataclass(frozen=True)
class PairAgreement:
    """The agreement of two annotators, over all classes or in the class `name`.

    Cohen's `kappa` for one class needs at least MIN_CELLS_FOR_KAPPA cells.
    """

    first: str
    second: str
    cells: int
    differ: int
    raw: Estimate
    kappa: Estimate
    name: str = ALL_CLASSES


@dataclass(frozen=True)
class WeekAgreement:
    """The agreement in the week from `monday` (YYYY-MM-DD, UTC). A cell counts in the week of its second answer."""

    monday: str
    cells: int
    differ: int
    raw: Estimate
    alpha: Estimate


@dataclass(frozen=True)
class Agreement:
    """The agreement of all annotators: overall, by class, by pair (most common cells first) and by week."""

    overall: ClassAgreement
    classes: list[ClassAgreement]
    pairs: list[PairAgreement]
    pairs_by_class: list[PairAgreement]
    weeks: list[WeekAgreement]

    def as_json(self) -> dict[str, Any]:
        """Return the figures as plain JSON values, with None for unmeasured figures."""
        return {
            "overall": nan_to_none(asdict(self.overall)),
            "classes": [nan_to_none(asdict(row)) for row in self.classes],
            "pairs": [nan_to_none(asdict(row)) for row in self.pairs],
            "pairs_by_class": [nan_to_none(asdict(row)) for row in self.pairs_by_class],
            "weeks": [nan_to_none(asdict(row)) for row in self.weeks],
        }


def compute_agreement(db: Database, on_progress: ProgressCallback = ignore_progress) -> Agreement:
    """Compute the agreement of all annotators, reporting progress in images."""
    image_ids = disagreed_cells.find_multi_annotator_images(db)
    by_class: dict[int, Counter[tuple[int, int]]] = {}
    by_pair: dict[int, dict[tuple[str, str], Counter[tuple[int, int]]]] = {}
    by_week: dict[str, dict[int, Counter[tuple[int, int]]]] = {}
    for number, said in enumerate(disagreed_cells.iterate_first_answers(db, image_ids)):
        for class_id, answers in said.items():
            if len(answers) < 2:
                continue
            states = {person: answer.state for person, answer in answers.items()}
            # Agreement can be seen from the second person's answer on.
            second = sorted(answer.at for answer in answers.values())[1]
            present = sum(state == PRESENT for state in states.values())
            pattern = present, len(states) - present
            by_class.setdefault(class_id, Counter())[pattern] += 1
            by_week.setdefault(get_monday(second), {}).setdefault(class_id, Counter())[pattern] += 1
            of_class = by_pair.setdefault(class_id, {})
            for pair in combinations(sorted(states), 2):
                of_class.setdefault(pair, Counter())[states[pair[0]], states[pair[1]]] += 1
        if number % 100 == 0:
            on_progress(number, len(image_ids))
    overall: Counter[tuple[int, int]] = sum(by_class.values(), Counter())
    of_pairs: dict[tuple[str, str], Counter[tuple[int, int]]] = {}
    for of_class in by_pair.values():
        for pair, found in of_class.items():
            of_pairs.setdefault(pair, Counter()).update(found)
    known = classes.load_active_classes(db)
    return Agreement(
        ClassAgreement(ALL_CLASSES, *_count_cells(overall), raw_agreement(overall), NO_ESTIMATE),
        [
            ClassAgreement(class_.name, *_count_cells(found), raw_agreement(found), krippendorff_alpha(found))
            for class_ in known
            if (found := by_class.get(class_.id))
        ],
        [_build_pair(*pair, found) for pair, found in _sort_by_cells(of_pairs)],
        [
            _build_pair(*pair, found, class_.name)
            for class_ in known
            for pair, found in _sort_by_cells(by_pair.get(class_.id, {}))
        ],
        [_build_week(start, by_class) for start, by_class in sorted(by_week.items())],
    )


def get_monday(at: float) -> str:
    """Return the Monday (YYYY-MM-DD, UTC) of the week that contains a Unix time."""
    day = datetime.fromtimestamp(at, UTC).date()
    return (day - timedelta(days=day.weekday())).isoformat()


def _count_cells(patterns: Counter[tuple[int, int]]) -> tuple[int, int]:
    return patterns.total(), sum(cells for pattern, cells in patterns.items() if min(pattern))


def _sort_by_cells(pairs: dict[tuple[str, str], Counter]) -> list[tuple[tuple[str, str], Counter[tuple[int, int]]]]:
    return sorted(pairs.items(), key=lambda item: -item[1].total())


def _build_week(start: str, by_class: dict[int, Counter[tuple[int, int]]]) -> WeekAgreement:
    found: Counter[tuple[int, int]] = sum(by_class.values(), Counter())
    return WeekAgreement(
        start, *_count_cells(found), raw_agreement(found), pooled_krippendorff_alpha(by_class.values())
    )


def _build_pair(first: str, second: str, found: Counter[tuple[int, int]], name: str = ALL_CLASSES) -> PairAgreement:
    table = np.array([[found[one, other] for other in (PRESENT, ABSENT)] for one in (PRESENT, ABSENT)])
    differ = int(table[0, 1] + table[1, 0])
    patterns = {(2, 0): int(table[0, 0]), (1, 1): differ, (0, 2): int(table[1, 1])}
    is_enough = name == ALL_CLASSES or found.total() >= MIN_CELLS_FOR_KAPPA
    kappa = cohen_kappa(table) if is_enough else NO_ESTIMATE
    return PairAgreement(first, second, found.total(), differ, raw_agreement(patterns), kappa, name)


def as_rows(measured: Agreement) -> Iterator[list[object]]:
    """Yield the rows of a table of all figures, headings first, with "" for unmeasured figures."""
    ends = [f"{figure}{end}" for figure in ("same", "alpha", "kappa") for end in ("", "_low", "_high")]
    yield ["by", "class", "person", "other", "week", "answered_twice", "differ", *ends]
    for row in (*measured.classes, measured.overall):
        yield [
            "class",
            row.name,
            "",
            "",
            "",
            row.cells,
            row.differ,
            *_format_estimates(row.raw, row.alpha, NO_ESTIMATE),
        ]
    for pairs in (measured.pairs, measured.pairs_by_class):
        for row in pairs:
            by = "pair" if row.name == ALL_CLASSES else "class and pair"
            names = [row.name, row.first, row.second]
            yield [by, *names, "", row.cells, row.differ, *_format_estimates(row.raw, NO_ESTIMATE, row.kappa)]
    for row in measured.weeks:
        yield [
            "week",
            ALL_CLASSES,
            "",
            "",
            row.monday,
            row.cells,
            row.differ,
            *_format_estimates(row.raw, row.alpha, NO_ESTIMATE),
        ]


def _format_estimates(*figures: Estimate) -> list[object]:
    return ["" if math.isnan(end) else end for one in figures for end in (one.value, one.low, one.high)]


def nan_to_none(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: nan_to_none(value) if isinstance(value, dict) else None if value != value else value  # nan
        for key, value in values.items()
    }
