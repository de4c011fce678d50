"""Images that other people are to answer: what one person says of a whole event is not said of them."""

from collections.abc import Collection

from annotator.store.database.database import Database
from annotator.store.people import assignment, leases


def find_unavailable_images(db: Database, annotator: str, image_ids: Collection[int]) -> set[int]:
    """Return those `image_ids` that others have open, that are assigned to others, or that wait for blind answers."""
    if not image_ids:
        return set()
    aside = assignment.load_withheld_images(db, annotator)
    opened = leases.find_opened_by_others(db, image_ids, annotator)
    return {image_id for image_id in image_ids if image_id in opened or image_id in aside}
