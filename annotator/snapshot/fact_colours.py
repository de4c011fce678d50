"""The colours of the map's points by a fact: some choices and the rest, or a ramp from a low number to a high one."""

from typing import Any

import numpy as np

from annotator.indexing import positions
from annotator.snapshot import fact_groups, facts, gallery
from annotator.snapshot.facts import Fact, Kind, Values
from annotator.snapshot.image_map import Map
from annotator.store.database.database import Database
from annotator.store.gallery.values import NONE, Choices

MOST = 12  # colours that can be told apart
NOT_KNOWN, HIGHEST = 255, 254
OUTER = (2, 98)  # percentiles at the ends of a ramp: a single odd value must not make all others look the same


def read(db: Database, map_: Map, name: str) -> tuple[Fact, Values]:
    """Return a fact, and its values of the drawn images.

    Raises:
        AnnotatorError: There is no such fact.
    """
    with gallery.up_to_date(db) as columns:
        fact = facts.find(db, columns, name)
        rows, known = positions(map_.image_ids[map_.drawn], columns.image_ids)
        return fact, hidden(facts.taken_of(fact.read(db, columns), rows), ~known)


def hidden(values: Values, rows: np.ndarray) -> Values:
    """Return the values without those of some rows, (n,) bool."""
    if isinstance(values, Choices):
        return Choices(np.where(rows, NONE, values.codes), values.names)
    return np.where(rows, np.nan, values)


def coloured(fact: Fact, values: Values) -> tuple[np.ndarray, dict[str, Any]]:
    """Return a byte of each point, (n,) uint8, 255 where the fact is not known, and what the bytes mean.

    Of choices the bytes are places in `names`, the commonest first; `rest`: the last is of all others. Of numbers they
    go from 0 at `low` to 254 at `high`, both in words; what lies further out has the colour of the end.
    """
    if isinstance(values, Choices):
        groups = fact_groups.by_choice(values, MOST)
        meaning = {"names": list(groups.labels), "rest": "" in groups.given}
        return np.where(groups.codes == NONE, NOT_KNOWN, groups.codes).astype(np.uint8), meaning
    known = values[~np.isnan(values)].astype(np.float64)
    if not len(known):
        return np.full(len(values), NOT_KNOWN, np.uint8), {"low": "", "high": ""}
    # Ends that some image has: few images have no odd value among them.
    low, high = (
        float(np.percentile(known, at, method=end)) for at, end in zip(OUTER, ("lower", "higher"), strict=True)
    )
    share = np.clip((values.astype(np.float64) - low) / max(high - low, 1e-300), 0, 1)
    scaled = np.where(np.isnan(values), NOT_KNOWN, np.rint(np.nan_to_num(share) * HIGHEST))
    is_time = fact.kind == Kind.TIME
    ends = [low, high, known.min(), known.max()]
    first, last, lowest, highest = (facts.day(end) if is_time else fact.in_words(end) for end in ends)
    below, above = ("earlier", "later") if is_time else ("less", "more")
    return scaled.astype(np.uint8), {
        "low": first if first == lowest else f"{first} or {below}",
        "high": last if last == highest else f"{last} or {above}",
    }
