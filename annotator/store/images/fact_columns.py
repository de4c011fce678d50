"""The columns of the table `image` that the facts of an image file fill, in one place for all writers."""

from annotator.store.pictures.decoding import ImageFacts
from annotator.store.pictures.exif import CAPTURE_COLUMNS, UNKNOWN_CAPTURE

FACT_COLUMNS = ("width", "height", "capture_read", "bands", *CAPTURE_COLUMNS)


def to_fact_values(facts: ImageFacts | None) -> tuple[float | str | None, ...]:
    """Return the values of FACT_COLUMNS; width 0 where only the checksum of a file is known (address_cache.py)."""
    if facts is None:
        return (0, 0, False, "", *UNKNOWN_CAPTURE.to_row())
    return (facts.width, facts.height, True, facts.bands, *facts.capture.to_row())
