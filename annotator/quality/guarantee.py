"""The precision guarantee that people ask of auto-accept, and the sample that it takes to show it.

It is one setting of the project. A guarantee is about the share of right cells among those that are auto-accepted.
"""

from dataclasses import dataclass

from annotator.records import ABSENT, PRESENT
from annotator.shares import counted
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import counts as overview
from models.statistics.sequential_bound import needed, possible_precision, sample_size

SETTING = "acceptance"
PRECISION = 0.99
POPULATION = 100_000  # cells; a larger population hardly needs a larger sample
LARGEST_SAMPLE = 0.5  # share of the guaranteed cells; a larger sample saves too little work


@dataclass(frozen=True)
class Guarantee:
    """A precision guarantee: which states are auto-accepted, and with which precision.

    Attributes:
        precision: Least share of right cells among the auto-accepted ones.
        together: One guarantee for all classes instead of one for each: a single sample of some 350 cells can be enough
            for all of them, but one class may be worse than guaranteed if others are better.
    """

    precision: float = PRECISION
    present: bool = True
    absent: bool = False
    together: bool = False

    @property
    def states(self) -> list[int]:
        """Return the states that are auto-accepted: PRESENT, ABSENT or both."""
        return [state for state, accepted in ((PRESENT, self.present), (ABSENT, self.absent)) if accepted]


def chosen(db: Database) -> Guarantee | None:
    """Return the guarantee in force; None while auto-accept is off, and where the setting is not valid (`ignored`)."""
    setting = db.setting(SETTING)
    try:
        guarantee = Guarantee(**setting) if setting else None
        return guarantee if guarantee and 0.5 <= guarantee.precision < 1 else None
    except TypeError:
        return None


def ignored(db: Database) -> list[str]:
    """Return a sentence on a setting that is no valid guarantee; [] where it is valid or off."""
    setting = db.setting(SETTING)
    if not setting or chosen(db):
        return []
    return [f"setting 'acceptance' {setting!r}: it is no precision guarantee, so nothing is auto-accepted"]


def outlook(db: Database, guarantee: Guarantee) -> str:
    """Return sentences on what showing this guarantee takes here, or why it cannot be shown and what could be.

    They follow from the numbers of images and classes alone, so that a page can show them at no cost: a class has at
    most as many cells to accept as there are images. `auto_accept_sample.draw` looks at the probabilities.
    """
    images, class_count = overview.image_counts(db)["all"], len(classes.all_classes(db))
    cells, what = (images * class_count, "all classes together") if guarantee.together else (images, "one class")
    if in_reach(cells, guarantee.precision):
        answers = needed(min(cells, POPULATION), guarantee.precision)
        return (
            f"Showing {share(guarantee.precision)} for {what} takes about {counted(answers, 'audit answer')} without a "
            "mistake, and more with mistakes."
        )
    by_classes = f" x {counted(class_count, 'class', 'classes')}" if guarantee.together else ""
    return (
        f"{share(guarantee.precision)} cannot be shown for {what} here: it takes about "
        f"{needed(POPULATION, guarantee.precision):,} audit answers without a mistake, and there are "
        f"{counted(images, 'image')}{by_classes}. "
    ) + _alternatives(cells, None if guarantee.together else images * class_count, guarantee.precision)


def in_reach(cells: int, precision: float) -> bool:
    """Return whether a sample of at most the share LARGEST_SAMPLE of this many cells can show this precision."""
    return 0 < sample_size(min(cells, POPULATION), precision) <= LARGEST_SAMPLE * cells


def share(value: float) -> str:
    """Return a precision in percent, as it was asked for."""
    return f"{100 * value:g} %"


def _alternatives(cells: int, all_cells: int | None, precision: float) -> str:
    """Return, in words, the guarantees that can be shown of a population of cells.

    Args:
        cells: The cells of the population.
        all_cells: The cells of all classes together; None: that was asked for.
        precision: The precision that is out of reach for them.
    """
    options = []
    if possible := possible_precision(min(cells, POPULATION), LARGEST_SAMPLE):
        options.append(f"{share(possible)} (about {needed(min(cells, POPULATION), possible):,} answers)")
    if all_cells and in_reach(all_cells, precision):
        answers = needed(min(all_cells, POPULATION), precision)
        options.append(f"{share(precision)} for all classes together (about {answers:,} answers)")
    elif all_cells and (possible := possible_precision(min(all_cells, POPULATION), LARGEST_SAMPLE)):
        answers = needed(min(all_cells, POPULATION), possible)
        options.append(f"{share(possible)} for all classes together (about {answers:,} answers)")
    if not options:
        return "There are too few images to guarantee anything."
    return f"Possible at most: {', or '.join(options)}."
