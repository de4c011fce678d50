"""Colors of map points by a metadata field: the frequent choices and the rest, or a ramp of numbers."""

from typing import Any

import numpy as np

from annotator.indexing import find_positions
from annotator.snapshot import fact_groups, gallery_listing, image_facts
from annotator.snapshot.image_facts import Fact, FactKind, FactValues
from annotator.snapshot.image_map import ImageMap
from annotator.store.database.database import Database
from annotator.store.gallery.values import NO_TEXT, CategoryColumn

MAX_COLORS = 12  # colours that can be told apart
UNKNOWN_BYTE, MAX_BYTE = 255, 254
# percentiles at the ends of a ramp: a single odd value must not make all others look the same
RAMP_PERCENTILES = (2, 98)


def load_values(db: Database, map_: ImageMap, name: str) -> tuple[Fact, FactValues]:
    """Return a metadata field and its values for the drawn images. Raises AnnotatorError for an unknown field."""
    with gallery_listing.open_columns(db) as columns:
        fact = image_facts.find(db, columns, name)
        rows, known = find_positions(map_.image_ids[map_.drawn_rows], columns.image_ids)
        return fact, hide_rows(image_facts.select_rows(fact.read_values(db, columns), rows), ~known)


def hide_rows(values: FactValues, rows: np.ndarray) -> FactValues:
    """Return the values with those of the marked rows, (n,) bool, replaced by unknown."""
    if isinstance(values, CategoryColumn):
        return CategoryColumn(np.where(rows, NO_TEXT, values.codes), values.names)
    return np.where(rows, np.nan, values)


def encode_colors(fact: Fact, values: FactValues) -> tuple[np.ndarray, dict[str, Any]]:
    """Encode values as one byte per map point, and return the bytes with their legend.

    The bytes are (n,) uint8, 255 if unknown. For choices they index `names`, most frequent first. With
    `rest` the last stands for all others. Numbers run from 0 at `low` to 254 at `high`, clipped.
    """
    if isinstance(values, CategoryColumn):
        groups = fact_groups.group_by_choice(values, MAX_COLORS)
        meaning = {"names": list(groups.labels), "rest": "" in groups.filter_values}
        return np.where(groups.codes == NO_TEXT, UNKNOWN_BYTE, groups.codes).astype(np.uint8), meaning
    known = values[~np.isnan(values)].astype(np.float64)
    if not len(known):
        return np.full(len(values), UNKNOWN_BYTE, np.uint8), {"low": "", "high": ""}
    # Ends that some image has: few images have no odd value among them.
    low, high = (
        float(np.percentile(known, at, method=end))
        for at, end in zip(RAMP_PERCENTILES, ("lower", "higher"), strict=True)
    )
    share = np.clip((values.astype(np.float64) - low) / max(high - low, 1e-300), 0, 1)
    scaled = np.where(np.isnan(values), UNKNOWN_BYTE, np.rint(np.nan_to_num(share) * MAX_BYTE))
    is_time = fact.kind == FactKind.TIME
    ends = [low, high, known.min(), known.max()]
    first, last, lowest, highest = (image_facts.format_day(end) if is_time else fact.format_value(end) for end in ends)
    below, above = ("earlier", "later") if is_time else ("less", "more")
    return scaled.astype(np.uint8), {
        "low": first if first == lowest else f"{first} or {below}",
        "high": last if last == highest else f"{last} or {above}",
    }
