"""What people have said about the bands of a project's images, for everything that decodes them."""

from typing import Any, cast

from annotator.store.database.database import Database
from annotator.store.pictures.bands import Bands, Three, in_text

BANDS = "bands"  # setting: number of bands, "" for all that do not say it themselves -> three numbers


def shown_bands(db: Database) -> Bands:
    """Return what people have said about the bands of this project's images."""
    stored: Any = db.setting(BANDS, {})
    facts = cast(dict[str, Any], stored) if isinstance(stored, dict) else {}
    chosen = {key: three for key, value in facts.items() if (three := _three(value))}
    return Bands(chosen.get(""), {int(key): three for key, three in chosen.items() if key.isdigit()})


def _three(value: Any) -> Three | None:
    numbers = cast(list[Any], value) if isinstance(value, list) else []
    if len(numbers) != 3 or not all(isinstance(number, int) for number in numbers):
        return None
    return numbers[0], numbers[1], numbers[2]


def bands_in_words(bands: Bands) -> list[str]:
    """Return sentences about what people have said."""
    said = [
        f"Of images of {count} bands, {in_text(three)} are shown." for count, three in sorted(bands.by_count.items())
    ]
    if bands.unknown:
        others = "other images" if said else "images"
        said.append(f"Of {others} that do not name red, green and blue, {in_text(bands.unknown)} are shown.")
    return said or ["Nothing is chosen: shown are images that name red, green and blue themselves."]


def bands_of(db: Database, image_id: int) -> str:
    """Return what is shown of an image of many bands (pictures/bands.Shown.kind); "" for other images."""
    return str(db.value("SELECT bands FROM image WHERE id = ?", [image_id]) or "")
