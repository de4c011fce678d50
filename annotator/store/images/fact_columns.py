"""The columns of table `image` filled from image files."""

from annotator.store.pictures.decoding import ImageFacts
from annotator.store.pictures.exif import CAPTURE_COLUMNS, UNKNOWN_CAPTURE

FACT_COLUMNS = ("width", "height", "capture_read", "bands", *CAPTURE_COLUMNS)


def to_fact_values(facts: ImageFacts | None) -> tuple[float | str | None, ...]:
    """Return the values of FACT_COLUMNS, with width 0 if only the checksum is known."""
    if facts is None:
        return (0, 0, False, "", *UNKNOWN_CAPTURE.to_row())
    return (facts.width, facts.height, True, facts.bands, *facts.capture.to_row())
