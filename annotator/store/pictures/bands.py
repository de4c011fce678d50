"""Choice of the displayed bands of a multi-band image.

Without names in the file, a user must choose. The first three are never assumed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from annotator.errors import AnnotatorError

MAX_BANDS = 1000  # bands of a file
MISSING_BAND_REASON = "are to be shown"  # in the reason of a file that does not have the chosen bands
UNCHOSEN_REASON = "which three to show is not known"  # in the reason of a file that waits for a choice

# Who says which bands of an image are red, green and blue.
CHANNELS_PLAIN = ""  # it is a usual picture of three channels
CHANNELS_NAMED = "rgb"  # the file names them
CHANNELS_BY_ORDER = "order"  # nobody: of three bands the order of the file is taken, and that is said

BandTriple = tuple[int, int, int]  # numbers of bands from 1, in the order red, green, blue


@dataclass(frozen=True)
class BandChoices:
    """The chosen bands of a project."""

    # bands of images that do not name theirs, None if not chosen
    unknown: BandTriple | None = None
    # number of bands -> bands to show, overriding the file
    by_count: Mapping[int, BandTriple] = field(default_factory=dict[int, BandTriple])


NO_BAND_CHOICES = BandChoices()


@dataclass(frozen=True)
class ShownBands:
    """The displayed bands of one image."""

    # band numbers from 1
    three: BandTriple
    # band count and origin, such as "4:rgb", "" for ordinary images
    kind: str


def choose_shown_bands(count: int, known: BandTriple | None, by: str, bands: BandChoices) -> ShownBands | None:
    """Return the bands to show, or None if unknown.

    Args:
        known: RGB bands named by the file, or None.
        by: Origin of `known`: CHANNELS_PLAIN, CHANNELS_NAMED or CHANNELS_BY_ORDER.

    Raises:
        AnnotatorError: The choice exceeds the image's bands.
    """
    chosen = bands.by_count.get(count)
    if chosen is None and known:
        return ShownBands(known, f"{count}:{by}" if by else "")
    chosen = chosen or bands.unknown
    if chosen is None:
        return None
    if max(chosen) > count:
        raise AnnotatorError(f"it has {count} bands, and {format_bands(chosen)} {MISSING_BAND_REASON}")
    return ShownBands(chosen, f"{count}:{format_bands(chosen)}")


def format_bands(three: BandTriple) -> str:
    """Format a choice as "4,3,2"."""
    return ",".join(map(str, three))


def parse_bands(text: str) -> BandTriple:
    """Parse three band numbers, or one for gray. Raises AnnotatorError if invalid."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (1, 3) or not all(
        part.isascii() and part.isdigit() and 1 <= int(part) <= MAX_BANDS for part in parts
    ):
        raise AnnotatorError(
            f"{text!r} is no choice of bands. Wanted are the numbers of three, from 1, for red, green and blue, such "
            "as 4,3,2; or of one, which is then shown as grey."
        )
    first, second, third = map(int, parts * 3 if len(parts) == 1 else parts)
    return first, second, third
