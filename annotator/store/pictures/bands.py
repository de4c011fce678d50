"""Which bands of an image of many bands are shown as red, green and blue.

A file of a satellite or a scanner may have 4, 13 or 224 bands in an order of its own. Where the file says which are
red, green and blue, those are shown; else a person has to say it, once for a project. Never silently the first three.
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
    """The bands that a person chose to show of a project's images.

    Attributes:
        unknown: For images that do not say it themselves; None: not said.
        by_count: Number of bands -> the bands to show of images of exactly so many, whatever they say themselves.
    """

    unknown: BandTriple | None = None
    by_count: Mapping[int, BandTriple] = field(default_factory=dict[int, BandTriple])


NO_BAND_CHOICES = BandChoices()


@dataclass(frozen=True)
class ShownBands:
    """The bands of one image that are shown.

    Attributes:
        three: Numbers of bands from 1.
        kind: Of how many bands, and who said it, such as "13:4,3,2", "4:rgb" or "3:order", "" for a usual picture; kept
            with the image, so that it is known what a changed choice concerns.
    """

    three: BandTriple
    kind: str


def choose_shown_bands(count: int, known: BandTriple | None, by: str, bands: BandChoices) -> ShownBands | None:
    """Return the bands to show of an image of `count` bands; None where nobody has said it.

    Args:
        count: The number of bands of the image.
        known: The bands that the file itself gives as red, green and blue; None: it gives none.
        by: How the file gives them: CHANNELS_PLAIN, CHANNELS_NAMED or CHANNELS_BY_ORDER.
        bands: The choices of the project.

    Raises:
        AnnotatorError: The choice names a band that the image does not have.
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
    """Return a choice as people write it, such as "4,3,2"."""
    return ",".join(map(str, three))


def parse_bands(text: str) -> BandTriple:
    """Return a choice that a person wrote: three numbers of bands, or one, which is then shown as grey.

    Raises:
        AnnotatorError: It is none.
    """
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
