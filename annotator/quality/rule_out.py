"""Ruling out a class: a person takes a class as absent everywhere, after a random sample of images showed none.

The cells are held like auto-accepted ones (store/labels/auto_accepted.py): they count as absent, train nothing, are
asked about in audits only, give way to every answer of a person, and are given back as one.

With n random images, all absent, the share of images that show the class is at most 1 - 0.05 ** (1 / n), the one-sided
95 % interval of Clopper and Pearson, Biometrika 1934. It holds whenever the person stops: one positive ends the sample,
so the bound is wrong only if the first n images are absent for the smallest n at which it would be. The cells that are
ruled out are what the sample has left of the images. Their own guarantee counts all positives that may exist among
them, drawn without replacement (hypergeometric), and is lower where few are left.
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
    """A class that a person has ruled out.

    Attributes:
        batch: It is undone by this name.
        class_id: The class.
        cells: How many cells count as absent by it.
        absent: Random images that were answered absent.
        compute_max_share: The share of images that show the class, at most, with 95 % confidence.
    """

    batch: str
    class_id: int
    cells: int
    absent: int
    at_most: float


def rule_out_class(db: Database, class_id: int, annotator: str) -> RuleOutResult:
    """Take a class as absent wherever nobody has answered it, in the name of a person.

    Cells that this person or a model accepted before belong to the new batch.

    Raises:
        AnnotatorError: The class is unknown, archived or has an example, too few random images were answered, no cell
            is open, or the person has no name.
        Forbidden: The person may not review.
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
    """Give back the cells of a class that was ruled out, and return how many they were.

    Raises:
        AnnotatorError: For a batch that no longer holds; the message lists those that do.
    """
    held = {ruling.batch: ruling for ruling in load_rulings(db)}
    if batch not in held or not auto_accepted.withdraw_batch(db, batch, "undone"):
        raise AnnotatorError(f"No class was ruled out as batch {batch!r}. There is: {', '.join(held) or 'none'}.")
    jobs.request_training(db)
    return held[batch].cells


def load_rulings(db: Database) -> list[Acceptance]:
    """Return what people have ruled out and not undone, the newest first."""
    return [made for made in auto_accepted.load_acceptances(db) if made.annotator and not made.withdrawn]


def compute_max_share(absent: int) -> float:
    """Return the share of images that show a class, at most, of which so many random images showed none (95 %)."""
    return 1 - (1 - CONFIDENCE) ** (1 / absent)


def describe_ruling(ruling: Acceptance, name: str, by: str = "") -> str:
    """Return who ruled out a class of this name and what that rests on, in words, without a full stop at the end.

    Args:
        ruling: What was ruled out.
        name: The name of its class.
        by: The person who is named; "": none is.
    """
    return (
        f"Ruled out by {by or 'a person'} after {format_count(ruling.audited, 'random image')}: '{name}', "
        f"{format_count(ruling.cells, 'image')}, at most {100 * compute_max_share(ruling.audited):.1f} % of all show "
        "it (95 %)"
    )


def _count_random_absent(db: Database, class_id: int) -> int:
    """Return on how many random images a class is absent. Raises AnnotatorError where it cannot be ruled out."""
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
    """Return the share of these cells that is absent, at least, with 95 % confidence.

    P(no positive among `drawn` of `images` | K positives) is the product of 1 - drawn / (images - j) over j < K. All K
    of them are among the `cells` that are left.
    """
    images = max(images, drawn + cells)
    log_chances = np.cumsum(np.log1p(-drawn / (images - np.arange(cells))))
    return 1 - int((log_chances >= np.log(1 - CONFIDENCE)).sum()) / cells
