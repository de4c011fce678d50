"""Speed and agreement of each annotator, compared with other annotators' independent answers.

Shares have Wilson intervals that treat other answers as fixed, slightly too narrow for cells with more answers.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from annotator.progress_callbacks import ProgressCallback, ignore_progress
from annotator.quality.annotator_agreement import get_monday, nan_to_none
from annotator.quality.first_answers import build_pattern
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import answer_times, disagreed_cells
from spmll.statistics import intervals
from spmll.statistics.agreement_coefficients import Estimate
from spmll.statistics.error_rates import ErrorRates, Pattern, estimate_error_rates

# present (absent) cells, in expectation, below which a rate says more of the prior than of the person
MIN_EXPECTED_CELLS = 10
NO_ESTIMATE = Estimate(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class AnswerFigures:
    """The figures of one annotator's first answers: overall, in one class or in one week."""

    # pairs of an own and another annotator's first answer
    compared: int
    # share of these pairs with equal answers
    same: Estimate
    # cells that others answered independently
    shared: int
    # cells that others who saw this answer relabeled to the opposite
    changed: int
    changed_shared: int
    # share of the `shared` cells that others changed. Other cells would bias it, because agreeing stores nothing
    changed_share: Estimate
    timed: int
    # median time per click, or per grid cell for figures of a class
    seconds: Estimate

    @property
    def changes_description(self) -> str:
        """Describe how many answers others changed, within and outside the shared cells."""
        if not self.shared:
            return f"{self.changed:,}" if self.changed else "-"
        more = self.changed - self.changed_shared
        return f"{self.changed_shared:,} of {self.shared:,}" + (f", and {more:,} more" if more else "")


@dataclass(frozen=True)
class ClassFigures(AnswerFigures):
    """The figures of one annotator in one class."""

    name: str
    # present, absent: expected number of truly present and truly absent cells answered
    present: float
    absent: float
    # sensitivity, specificity: shares of these answered correctly, nan below MIN_EXPECTED_CELLS cells
    sensitivity: Estimate
    specificity: Estimate


@dataclass(frozen=True)
class WeekFigures(AnswerFigures):
    """The figures of one annotator in the week starting on `monday` (YYYY-MM-DD, UTC)."""

    monday: str


@dataclass(frozen=True)
class AnnotatorFigures(AnswerFigures):
    """The figures of one annotator, overall, by class and by week. `answers` includes undone decisions."""

    name: str
    answers: int
    classes: list[ClassFigures]
    weeks: list[WeekFigures]

    def as_json(self) -> dict[str, Any]:
        """Return the figures as plain JSON values, with None for unmeasured figures."""
        rows = {
            "classes": [nan_to_none(asdict(row)) for row in self.classes],
            "weeks": [nan_to_none(asdict(w)) for w in self.weeks],
        }
        return {**nan_to_none({k: v for k, v in asdict(self).items() if k not in rows}), **rows}


@dataclass
class AnswerSums:
    """The accumulator of counts and times from which `AnswerFigures` are computed."""

    same: int = 0
    compared: int = 0
    shared: int = 0
    changed: int = 0
    changed_shared: int = 0
    seconds: list[float] = field(default_factory=list)

    def to_figures(self) -> dict[str, Any]:
        return {
            "compared": self.compared,
            "same": intervals.estimate_share(self.same, self.compared),
            "shared": self.shared,
            "changed": self.changed,
            "changed_shared": self.changed_shared,
            "changed_share": intervals.estimate_share(self.changed_shared, self.shared),
            "timed": len(self.seconds),
            "seconds": intervals.estimate_median(self.seconds),
        }


class AnswerTally:
    """The accumulator of all first answers: counts per annotator and week (Monday), and per annotator and class."""

    def __init__(self, names: list[str], class_ids: list[int]):
        self.number = {name: index for index, name in enumerate(names)}
        self.column = {class_id: index for index, class_id in enumerate(class_ids)}
        self.patterns: Counter[Pattern] = Counter()
        self.weeks: dict[str, dict[str, AnswerSums]] = {name: defaultdict(AnswerSums) for name in names}
        self.classes: dict[str, dict[int, AnswerSums]] = {name: defaultdict(AnswerSums) for name in names}

    def add_cell(
        self,
        class_id: int,
        answers: dict[str, disagreed_cells.FirstAnswer],
        label: tuple[int, str, float],
    ) -> None:
        """Count the first answers to one cell.

        Args:
            label: The cell's state, annotator and unix time (0 for a blind answer, which corrects none).
        """
        state, holder, at = label
        said = Counter(answer.state for answer in answers.values())
        for name, answer in answers.items():
            is_changeable = holder not in (name, "import")
            is_changed = is_changeable and at > answer.at and state == -answer.state
            if len(answers) == 1 and not is_changed:
                continue
            for sums in (self.weeks[name][get_monday(answer.at)], self.classes[name][class_id]):
                sums.shared += len(answers) > 1
                sums.changed += is_changed
                sums.changed_shared += is_changed and len(answers) > 1
                sums.compared += len(answers) - 1
                sums.same += said[answer.state] - 1
        if pattern := build_pattern(self.number, self.column, class_id, answers):
            self.patterns[pattern] += 1

    def add_time(self, name: str, answer: answer_times.TimedAnswer) -> None:
        """Count the time of one answer: a click for its week, a grid of one class for that class."""
        if answer.kind == "click":
            self.weeks[name][get_monday(answer.at)].seconds.append(answer.seconds)
        elif answer.kind == "grid" and answer.class_id is not None:
            self.classes[name][answer.class_id].seconds.append(answer.seconds / answer.cells)


def tally_answers(db: Database, on_progress: ProgressCallback = ignore_progress) -> AnswerTally:
    """Compare the first answers of all annotators, reporting progress in images, and return the counts."""
    names = list(disagreed_cells.count_answers_by_annotator(db))
    found = AnswerTally(names, [class_.id for class_ in classes.load_active_classes(db)])
    image_ids = disagreed_cells.find_multi_annotator_images(db)
    for number, said in enumerate(disagreed_cells.iterate_first_answers(db, image_ids)):
        labels = disagreed_cells.load_current_labels(db, image_ids[number])
        for class_id, answers in said.items():
            # A label that was cleared meanwhile belongs to nobody.
            found.add_cell(class_id, answers, labels.get(class_id, (0, "import", 0.0)))
        if number % 100 == 0:
            on_progress(number, len(image_ids))
    return found


def compute_annotator_figures(db: Database, on_progress: ProgressCallback = ignore_progress) -> list[AnnotatorFigures]:
    """Return the figures of all annotators, sorted by name."""
    counts, known = disagreed_cells.count_answers_by_annotator(db), classes.load_active_classes(db)
    compared = tally_answers(db, on_progress)
    rates = estimate_error_rates(compared.patterns, len(compared.number), len(known))
    found = []
    for name, index in compared.number.items():
        for answer in answer_times.load_newest_answers(db, name, answer_times.MAX_DECISIONS_SEARCHED):
            compared.add_time(name, answer)
        weeks, total = compared.weeks[name], AnswerSums()
        for week in weeks.values():
            total = AnswerSums(
                total.same + week.same,
                total.compared + week.compared,
                total.shared + week.shared,
                total.changed + week.changed,
                total.changed_shared + week.changed_shared,
                total.seconds,
            )
            total.seconds += week.seconds
        found.append(
            AnnotatorFigures(
                **total.to_figures(),
                name=name,
                answers=counts[name],
                classes=[
                    _build_class_figures(class_.name, sums, rates, index, compared.column[class_.id])
                    for class_ in known
                    if (sums := compared.classes[name].get(class_.id))
                ],
                weeks=[WeekFigures(**week.to_figures(), monday=start) for start, week in sorted(weeks.items())],
            )
        )
    return found


def _build_class_figures(name: str, sums: AnswerSums, rates: ErrorRates, person: int, column: int) -> ClassFigures:
    present, absent = float(rates.present[person, column]), float(rates.absent[person, column])
    return ClassFigures(
        **sums.to_figures(),
        name=name,
        present=round(present, 1),
        absent=round(absent, 1),
        sensitivity=Estimate(*rates.sensitivity[person, column].tolist())
        if present >= MIN_EXPECTED_CELLS
        else NO_ESTIMATE,
        specificity=Estimate(*rates.specificity[person, column].tolist())
        if absent >= MIN_EXPECTED_CELLS
        else NO_ESTIMATE,
    )


def as_rows(measured: list[AnnotatorFigures]) -> Iterator[list[object]]:
    """Yield the rows of a table of all figures, headings first: per annotator overall, by class and by week."""
    shares = ("same", "changed_share", "sensitivity", "specificity")
    of_shares = [f"{name}{end}" for name in shares for end in ("", "_low", "_high")]
    counts = ("compared", "shared", "changed", "changed_shared", "present", "absent", "timed")
    yield ["person", "by", "of", "answers", *counts, "seconds_of", "seconds", "seconds_low", "seconds_high", *of_shares]
    for person in measured:
        yield _build_row(person.name, "all", "", person, counts, shares)
        for of_class in person.classes:
            yield _build_row(person.name, "class", of_class.name, of_class, counts, shares)
        for week in person.weeks:
            yield _build_row(person.name, "week", week.monday, week, counts, shares)


def _build_row(
    name: str, by: str, group: str, figures: AnswerFigures, counts: tuple[str, ...], shares: tuple[str, ...]
) -> list[object]:
    numbers = [getattr(figures, count, "") for count in counts]
    estimates = [figures.seconds, *(getattr(figures, share, NO_ESTIMATE) for share in shares)]
    ends = ["" if np.isnan(end) else end for one in estimates for end in (one.value, one.low, one.high)]
    time_of = "grid cell" if by == "class" else "click"
    return [name, by, group, getattr(figures, "answers", ""), *numbers, time_of, *ends]
