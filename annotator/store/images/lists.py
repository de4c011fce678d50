"""Lists of images that people write: a name in each line."""

import os
from collections.abc import Sequence

from annotator.errors import AnnotatorError, did_you_mean
from annotator.store.database.database import Database
from annotator.store.images.images import names_to_ids, with_short_names
from annotator.store.pictures.files import escaped


def named(db: Database, names: Sequence[str]) -> list[int]:
    """Return the ids of the images in a list of names, each once, in its order.

    A bare file name is enough where it belongs to one image.

    Raises:
        AnnotatorError: For an empty list, and for names of no image, all at once.
    """
    wanted = [escaped(name.strip()).replace(os.sep, "/") for name in names if name.strip()]
    if not wanted:
        raise AnnotatorError("The list names no image. It needs the name of one image in each line.")
    known = with_short_names(names_to_ids(db))
    unknown = [name for name in wanted if name not in known]
    if unknown:
        shown = ", ".join(repr(name) for name in unknown[:10])
        more = f" and {len(unknown) - 10:,} more" if len(unknown) > 10 else ""
        hint = did_you_mean(unknown[0], sorted(known), shown=5)
        raise AnnotatorError(
            f"{len(unknown):,} of {len(wanted):,} lines name no image of this project: {shown}{more}. {hint}"
        )
    return list(dict.fromkeys(known[name] for name in wanted))
