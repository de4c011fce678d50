"""Marking a class absent everywhere, after a random sample of images showed none.

Like auto-accepted cells, they train nothing, yield to every answer and are undone in one step.

With n random images, all absent, at most 1 - 0.05 ** (1 / n) of images show the class (one-sided 95%,
Clopper and Pearson, Biometrika 1934). This holds for any stopping time, because one positive ends the
sample.
"""

import uuid
from dataclasses import dataclass

import numpy as np

from annotator.errors import AnnotatorError
from annotator.humanize import format_count
from annotator.records import ABSENT, PRESENT
from annotator.store.classes import classes
from annotator.store.database import jobs
from annotator.store.database.database import Database
from annotator.store.labels import audits, auto_accepted, prediction_outcomes, project_counts
from annotator.store.labels.audits import OPEN
from annotator.store.labels.auto_accepted import Acceptance, NewAcceptance
from annotator.store.runs import runs
from spmll.statistics.sequential_bound import CONFIDENCE

# random images without a positive, from which on a class may be ruled out: at most 3.1 % show it
MIN_RANDOM_ABSENT = 96


@dataclass(frozen=True)
class RuleOutResult:
    """A class that an annotator marked absent everywhere."""

    batch: str
    class_id: int
    cells: int
    # random images answered absent
    absent: int
    # 95% upper limit of its share of images
    at_most: float


def rule_out_class(db: Database, class_id: int, annotator: str) -> RuleOutResult:
    """Mark a class absent on all images where it is unanswered, in an annotator's name.

    Raises:
        AnnotatorError: If the class is unknown, archived or has an example, the sample is too small, no cell is
            open, or the name is empty.
        Forbidden: If the annotator may not review.
    """
    if not annotator.strip():
        raise AnnotatorError("Nobody is named who rules the class out. Give a name, such as --annotator Ann.")
    with db.reading():
        absent = _count_random_absent(db, class_id)
        image_ids = audits.load_readable_image_ids(db)
        unanswered = audits.load_class_labels(db, class_id, image_ids) == OPEN
        accepted = audits.load_class_accepted(db, class_id, image_ids)
        run = runs.load_current_run(db)
    name = classes.load_class_names(db)[class_id]
    if found := int((accepted == PRESENT).sum()):
        raise AnnotatorError(
            f"{name!r} cannot be ruled out: the model has accepted it as present on {format_count(found, 'image')}. "
            "Undo that first, if it is wrong."
        )
    if not (unanswered & (accepted == OPEN)).any():
        raise AnnotatorError(f"{name!r} cannot be ruled out: no image is unanswered for it.")
    cells = int(unanswered.sum())
    ruling = NewAcceptance(
        class_id=class_id,
        state=ABSENT,
        run_id=run.id if run else 0,
        threshold=1.0,
        precision=_compute_min_precision(len(image_ids), absent, cells),
        confidence=CONFIDENCE,
        audited=absent,
        wrong=0,
        image_ids=image_ids[unanswered],
        scores=np.full(cells, round(0.5 / (absent + 1), 4)),  # the posterior mean of the share, with Jeffreys' prior
        annotator=annotator,
    )
    batch = f"r{uuid.uuid4().hex[:8]}"
    if not auto_accepted.accept(db, batch, ruling):
        raise AnnotatorError(f"{name!r} was archived meanwhile, so it was not ruled out.")
    jobs.request_training(db)  # the rankings of Grid and Review leave out these cells from the next run on
    return RuleOutResult(batch, class_id, cells, absent, compute_max_share(absent))


def undo(db: Database, batch: str) -> int:
    """Undo the marking of a class as absent everywhere, and return its number of cells.

    Raises AnnotatorError if the batch is not active.
    """
    held = {ruling.batch: ruling for ruling in load_rulings(db)}
    if batch not in held or not auto_accepted.withdraw_batch(db, batch, "undone"):
        raise AnnotatorError(f"No class was ruled out as batch {batch!r}. There is: {', '.join(held) or 'none'}.")
    jobs.request_training(db)
    return held[batch].cells


def load_rulings(db: Database) -> list[Acceptance]:
    """Return the active markings of classes as absent everywhere, newest first."""
    return [made for made in auto_accepted.load_acceptances(db) if made.annotator and not made.withdrawn]


def compute_max_share(absent: int) -> float:
    """Return the 95% upper limit of a class's share of images, after `absent` random images without it."""
    return 1 - (1 - CONFIDENCE) ** (1 / absent)


def describe_ruling(ruling: Acceptance, name: str, by: str = "") -> str:
    """Describe that a class was marked absent everywhere, and why, without a final period.

    `by` is the annotator to name, or "".
    """
    return (
        f"Ruled out by {by or 'a person'} after {format_count(ruling.audited, 'random image')}: '{name}', "
        f"{format_count(ruling.cells, 'image')}, at most {100 * compute_max_share(ruling.audited):.1f} % of all show "
        "it (95 %)"
    )


def _count_random_absent(db: Database, class_id: int) -> int:
    """Count the random images answered absent. Raises AnnotatorError if the answers do not allow a marking."""
    counts = project_counts.count_labels_by_class(db)
    if class_id not in counts:
        archived = classes.load_class_names(db).get(class_id)
        raise AnnotatorError(
            f"There is no class {class_id} to rule out."
            if archived is None
            else f"{archived!r} is archived: nobody is asked about it, so there is nothing to rule out."
        )
    name, (present, _, _) = classes.load_class_names(db)[class_id], counts[class_id]
    if present:
        raise AnnotatorError(
            f"{name!r} cannot be ruled out: it is present on {format_count(present, 'image')}. If that is a mistake, "
            "correct it first; else let the model look for more."
        )
    absent = prediction_outcomes.count_absent_by_source(db, [class_id])[1].get(class_id, 0)
    if absent < MIN_RANDOM_ABSENT:
        raise AnnotatorError(
            f"{name!r} cannot be ruled out yet: {format_count(absent, 'random image')} showed none of it, and it takes "
            f"{MIN_RANDOM_ABSENT}. Only images drawn at random count. Autopilot asks about them, after unusual images."
        )
    return absent


def _compute_min_precision(images: int, drawn: int, cells: int) -> float:
    """Return the 95% lower limit of the absent share of `cells`, after `drawn` random images without the class."""
    images = max(images, drawn + cells)
    log_chances = np.cumsum(np.log1p(-drawn / (images - np.arange(cells))))
    return 1 - int((log_chances >= np.log(1 - CONFIDENCE)).sum()) / cells
