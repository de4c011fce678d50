"""The project's band choices."""

from typing import Any, cast

from annotator.store.database.database import Database
from annotator.store.pictures.bands import BandChoices, BandTriple, format_bands

BANDS_SETTING = "bands"  # setting: number of bands, "" for all that do not say it themselves -> three numbers


def get_shown_bands(db: Database) -> BandChoices:
    stored: Any = db.get_setting(BANDS_SETTING, {})
    facts = cast(dict[str, Any], stored) if isinstance(stored, dict) else {}
    chosen = {key: three for key, value in facts.items() if (three := _parse_three(value))}
    return BandChoices(chosen.get(""), {int(key): three for key, three in chosen.items() if key.isdigit()})


def _parse_three(value: Any) -> BandTriple | None:
    numbers = cast(list[Any], value) if isinstance(value, list) else []
    if len(numbers) != 3 or not all(isinstance(number, int) for number in numbers):
        return None
    return numbers[0], numbers[1], numbers[2]


def describe_bands(bands: BandChoices) -> list[str]:
    said = [
        f"Of images of {count} bands, {format_bands(three)} are shown."
        for count, three in sorted(bands.by_count.items())
    ]
    if bands.unknown:
        others = "other images" if said else "images"
        said.append(f"Of {others} that do not name red, green and blue, {format_bands(bands.unknown)} are shown.")
    return said or ["Nothing is chosen: shown are images that name red, green and blue themselves."]


def get_image_bands(db: Database, image_id: int) -> str:
    """Return the displayed bands of a multi-band image, or ""."""
    return str(db.value("SELECT bands FROM image WHERE id = ?", [image_id]) or "")
