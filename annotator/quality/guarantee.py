"""The guaranteed precision of auto-accepted labels, and the size of the random sample that can prove it."""

from dataclasses import dataclass

from annotator.humanize import format_count
from annotator.records import ABSENT, PRESENT
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import project_counts
from spmll.statistics.sequential_bound import compute_sample_size, count_needed_answers, find_possible_precision

GUARANTEE_SETTING = "acceptance"
DEFAULT_PRECISION = 0.99
MAX_POPULATION_CELLS = 100_000  # cells; a larger population hardly needs a larger sample
MAX_SAMPLE_SHARE = 0.5  # share of the guaranteed cells; a larger sample saves too little work


@dataclass(frozen=True)
class Guarantee:
    """The precision that auto-accepted labels must have."""

    precision: float = DEFAULT_PRECISION
    present: bool = True
    absent: bool = False
    # one guarantee for all classes. Some 350 cells can be enough, but single classes may be worse
    together: bool = False

    @property
    def states(self) -> list[int]:
        return [state for state, accepted in ((PRESENT, self.present), (ABSENT, self.absent)) if accepted]


def get_guarantee(db: Database) -> Guarantee | None:
    """Return the active guarantee, or None if it is off or invalid."""
    setting = db.get_setting(GUARANTEE_SETTING)
    try:
        guarantee = Guarantee(**setting) if setting else None
        return guarantee if guarantee and 0.5 <= guarantee.precision < 1 else None
    except TypeError:
        return None


def describe_invalid_setting(db: Database) -> list[str]:
    """Return a sentence on a stored guarantee that is not valid, or []."""
    setting = db.get_setting(GUARANTEE_SETTING)
    if not setting or get_guarantee(db):
        return []
    return [f"setting 'acceptance' {setting!r}: it is no precision guarantee, so nothing is auto-accepted"]


def describe_feasibility(db: Database, guarantee: Guarantee) -> str:
    """Describe how many answers a guarantee needs, or the alternatives if it cannot be reached.

    Reads no probabilities, so pages can show it quickly.
    """
    images, class_count = project_counts.count_images_by_stage(db)["all"], len(classes.load_active_classes(db))
    cells, what = (images * class_count, "all classes together") if guarantee.together else (images, "one class")
    if is_in_reach(cells, guarantee.precision):
        answers = count_needed_answers(min(cells, MAX_POPULATION_CELLS), guarantee.precision)
        return (
            f"Showing {format_precision(guarantee.precision)} for {what} takes about "
            f"{format_count(answers, 'audit answer')} without a mistake, and more with mistakes."
        )
    by_classes = f" x {format_count(class_count, 'class', 'classes')}" if guarantee.together else ""
    return (
        f"{format_precision(guarantee.precision)} cannot be shown for {what} here: it takes about "
        f"{count_needed_answers(MAX_POPULATION_CELLS, guarantee.precision):,} audit answers without a mistake, and "
        f"there are {format_count(images, 'image')}{by_classes}. "
    ) + _describe_alternatives(cells, None if guarantee.together else images * class_count, guarantee.precision)


def is_in_reach(cells: int, precision: float) -> bool:
    """Return whether answers to at most MAX_SAMPLE_SHARE of the cells can prove this precision."""
    return 0 < compute_sample_size(min(cells, MAX_POPULATION_CELLS), precision) <= MAX_SAMPLE_SHARE * cells


def format_precision(value: float) -> str:
    return f"{100 * value:g} %"


def _describe_alternatives(cells: int, all_cells: int | None, precision: float) -> str:
    options = []
    if possible := find_possible_precision(min(cells, MAX_POPULATION_CELLS), MAX_SAMPLE_SHARE):
        options.append(
            f"{format_precision(possible)} (about {count_needed_answers(min(cells, MAX_POPULATION_CELLS), possible):,} "
            "answers)"
        )
    if all_cells and is_in_reach(all_cells, precision):
        answers = count_needed_answers(min(all_cells, MAX_POPULATION_CELLS), precision)
        options.append(f"{format_precision(precision)} for all classes together (about {answers:,} answers)")
    elif all_cells and (possible := find_possible_precision(min(all_cells, MAX_POPULATION_CELLS), MAX_SAMPLE_SHARE)):
        answers = count_needed_answers(min(all_cells, MAX_POPULATION_CELLS), possible)
        options.append(f"{format_precision(possible)} for all classes together (about {answers:,} answers)")
    if not options:
        return "There are too few images to guarantee anything."
    return f"Possible at most: {', or '.join(options)}."
