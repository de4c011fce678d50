"""Image lists written by users, with one name per line."""

import os
from collections.abc import Sequence

from annotator.errors import AnnotatorError, did_you_mean
from annotator.store.database.database import Database
from annotator.store.images.name_kinds import NO_IMAGE_REASON
from annotator.store.images.name_matching import LOOSEST_UNSEEN_KIND, NameMatch, find_images_by_name


def resolve_image_names(db: Database, names: Sequence[str]) -> list[int]:
    """Return the ids of listed images, unique and in order. Raises AnnotatorError for unknown names or no names."""
    wanted = [name.strip().replace(os.sep, "/") for name in names if name.strip()]
    if not wanted:
        raise AnnotatorError("The list names no image. It needs the name of one image in each line.")
    found = find_images_by_name(db, wanted, LOOSEST_UNSEEN_KIND)
    unknown = [name for name in wanted if found[name].image_id is None]
    if unknown:
        shown = ", ".join(f"{name!r}{_format_reason(found[name])}" for name in unknown[:10])
        more = f" and {len(unknown) - 10:,} more" if len(unknown) > 10 else ""
        known = [name for (name,) in db.tuples("SELECT name FROM image ORDER BY name")]
        hint = did_you_mean(unknown[0], known, max_listed=5)
        raise AnnotatorError(
            f"{len(unknown):,} of {len(wanted):,} lines name no image of this project: {shown}{more}. {hint}"
        )
    return list(dict.fromkeys(image_id for name in wanted if (image_id := found[name].image_id)))


def _format_reason(found: NameMatch) -> str:
    return "" if found.reason == NO_IMAGE_REASON else f" ({found.reason})"
