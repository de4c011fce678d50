"""What a person does next: which image, with what is known about it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from annotator.engine import suggest
from annotator.records import Image, Label, Suggestion
from annotator.store import decisions, images, leases
from annotator.store.database import Database


@dataclass(frozen=True)
class WorkItem:
    """One image in a person's hands."""

    image: Image
    labels: list[Label]
    suggestions: list[Suggestion]


def next_to_annotate(db: Database, holder: str, annotator: str, have: Collection[int], want: int) -> list[WorkItem]:
    """Up to `want` images that nobody has labeled and nobody else has open; skipped ones come last.

    The order has nothing to do with names or dates: the first hundred labels then say something about all images.
    """
    return items(db, leases.take_next(db, holder, annotator, have, want))


def next_to_review(
    db: Database, holder: str, annotator: str, have: Collection[int], want: int, threshold: float
) -> list[WorkItem]:
    """Up to `want` images with suggestions at or above the threshold, those first that probably hide most."""
    chosen = suggest.next_to_review(db, holder, annotator, have, want, threshold)
    return items(db, [image_id for image_id, _ in chosen], dict(chosen))


def items(
    db: Database, image_ids: Sequence[int], suggestions: dict[int, list[Suggestion]] | None = None
) -> list[WorkItem]:
    """These images as a page needs them, in this order; ids that do not exist are left out."""
    found = images.images(db, image_ids)
    labels: dict[int, list[Label]] = {}
    for label in decisions.labels(db, image_ids):
        labels.setdefault(label.image_id, []).append(label)
    return [
        WorkItem(found[image_id], labels.get(image_id, []), (suggestions or {}).get(image_id, []))
        for image_id in image_ids
        if image_id in found
    ]
