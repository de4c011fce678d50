"""Images reserved for other annotators, which answers to whole events leave out."""

from collections.abc import Collection

from annotator.store.database.database import Database
from annotator.store.people import assignment, leases


def find_unavailable_images(db: Database, annotator: str, image_ids: Collection[int]) -> set[int]:
    """Return images that others have open or assigned, or that wait for blind answers."""
    if not image_ids:
        return set()
    aside = assignment.load_withheld_images(db, annotator)
    opened = leases.find_opened_by_others(db, image_ids, annotator)
    return {image_id for image_id in image_ids if image_id in opened or image_id in aside}
