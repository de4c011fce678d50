"""Notes on pixel changes of new images: values stretched to 8 bits, bands chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from annotator.humanize import format_count
from annotator.store.pictures.bands import CHANNELS_BY_ORDER, CHANNELS_NAMED
from annotator.store.pictures.decoding import ImageFacts


@dataclass(frozen=True)
class StretchedImages:
    """The number of images of one bit depth that were stretched to 8 bits, from `low` (black) to `high` (white)."""

    images: int
    low: float
    high: float
    is_same: bool = True


@dataclass
class PixelNotes:
    """The notes on pixel changes (stretched values, chosen bands) during one registration of images."""

    # bit depth -> stretched images
    stretched: dict[int, StretchedImages] = field(default_factory=dict[int, StretchedImages])
    # displayed bands -> number of images
    bands: dict[str, int] = field(default_factory=dict[str, int])

    def add_facts(self, facts: ImageFacts) -> None:
        """Count the pixel changes of a newly registered image."""
        if facts.bands:
            self.bands[facts.bands] = self.bands.get(facts.bands, 0) + 1
        if one := facts.stretch:
            self._merge_stretched({one.bits: StretchedImages(1, one.low, one.high)})

    def merge(self, others: "PixelNotes") -> None:
        for kind, images in others.bands.items():
            self.bands[kind] = self.bands.get(kind, 0) + images
        self._merge_stretched(others.stretched)

    def _merge_stretched(self, others: Mapping[int, StretchedImages]) -> None:
        for bits, new in others.items():
            old = self.stretched.get(
                bits, new if new.images == 0 else StretchedImages(0, new.low, new.high, new.is_same)
            )
            self.stretched[bits] = StretchedImages(
                old.images + new.images,
                min(old.low, new.low),
                max(old.high, new.high),
                old.is_same and new.is_same and (old.low, old.high) == (new.low, new.high),
            )

    def format_sentences(self) -> list[str]:
        said: list[str] = []
        for bits, one in sorted(self.stretched.items()):
            verb = "was" if one.images == 1 else "were"
            how = "" if one.is_same else "each from its darkest to its brightest value, in all "
            said.append(
                f"{format_count(one.images, 'image')} of {bits} bits {verb} stretched {how}from "
                f"{_format_number(one.low)}..{_format_number(one.high)}."
            )
        for kind, images in sorted(self.bands.items()):
            count, _, by = kind.partition(":")
            how = {
                CHANNELS_NAMED: "shown by the red, green and blue that their files name",
                CHANNELS_BY_ORDER: "shown as red, green and blue in the order of the file, because it does not name "
                "them",
            }.get(by, f"shown by bands {by}")
            said.append(f"{format_count(images, 'image')} of {count} bands: {how}.")
        return said


def _format_number(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"
