"""Groups of images by a metadata field: choices, or bands of numbers and times."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from annotator.humanize import format_count
from annotator.snapshot import gallery_listing, image_facts
from annotator.snapshot.filters import RANGE_SEPARATOR, GalleryFilter
from annotator.snapshot.image_facts import Fact, FactKind, FactValues
from annotator.store.database.database import Database
from annotator.store.gallery.values import NO_TEXT, CategoryColumn

EPOCH_YEAR = 1970
HISTOGRAM_PERCENTILES = (1, 99)  # percentiles between which bands of a histogram are of equal width
MAX_BARS = 40
DEFAULT_BAND_COUNT = 4  # of numbers whose fact names no edges
# Units of groups of times, from the finest: numpy's code, how many of them one group has, and the digits of its name.
TIME_UNITS = (("D", 1, 10), ("M", 1, 7), ("Y", 1, 4), ("Y", 10, 4), ("Y", 100, 4))


@dataclass(frozen=True, eq=False)
class FactGroups:
    """Groups of images by a metadata field."""

    # (n,) int, group of each image, NO_TEXT if unknown
    codes: np.ndarray
    labels: Sequence[str]
    # filter value that shows exactly this group, or ""
    filter_values: Sequence[str]


def group_values(fact: Fact, values: FactValues, max_groups: int) -> FactGroups:
    """Return the groups of a field: at most `max_groups` choices or times, or its bands of numbers."""
    if isinstance(values, CategoryColumn):
        return group_by_choice(values, max_groups)
    return (
        group_by_time(values, max_groups)
        if fact.kind == FactKind.TIME
        else group_by_band(fact, values, choose_edges(fact, values))
    )


def bin_values(fact: Fact, values: FactValues, max_groups: int) -> FactGroups:
    """Return groups for a histogram, like `group_values` but with numbers in bands of equal width."""
    if isinstance(values, CategoryColumn) or fact.kind == FactKind.TIME:
        return group_values(fact, values, max_groups)
    return group_by_band(fact, values, compute_even_edges(fact, values, max_groups))


def compute_even_edges(fact: Fact, values: np.ndarray, max_groups: int) -> Sequence[float]:
    """Return band edges at multiples of 1, 2 or 5 times a power of ten, in the field's unit.

    Outer bands are open, so outliers do not narrow the others.
    """
    known = values[np.isfinite(values)].astype(np.float64) * fact.scale
    if not len(known):
        return ()
    low, high = np.percentile(known, HISTOGRAM_PERCENTILES).tolist()
    if not high > low:
        return [high] if known.min() < high else []
    least = 1.0 if bool((known == np.floor(known)).all()) else fact.step
    rough = max((high - low) / (max_groups - 2), least)
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    # So that 3 * 0.1 is given as 0.3.
    return [float(f"{number * step:.12g}") for number in range(math.floor(low / step) + 1, math.floor(high / step) + 1)]


def choose_edges(fact: Fact, values: np.ndarray) -> Sequence[float]:
    """Return the numbers that divide a field's values into bands, as displayed: its own ones, or else quantiles."""
    if fact.edges:
        return fact.edges
    known = values[np.isfinite(values)].astype(np.float64)
    if not len(known):
        return ()
    ends = np.percentile(known, np.linspace(0, 100, DEFAULT_BAND_COUNT + 1)[1:-1], method="higher")
    return np.unique(ends[ends > known.min()] * fact.scale).tolist()


def group_by_time(values: np.ndarray, max_groups: int) -> FactGroups:
    """Return groups by day, month or year, the finest that fit `max_groups`, without gaps.

    `values` are (n,) seconds since 1970 or nan.
    """
    is_known = ~np.isnan(values)
    times = values[is_known].astype("datetime64[s]")
    codes = np.full(len(values), NO_TEXT)
    if not len(times):
        return FactGroups(codes, [], [])

    def to_unit_numbers(times: np.ndarray, unit: str, many: int) -> np.ndarray:
        numbers = times.astype(f"datetime64[{unit}]").astype(np.int64)
        return (numbers + (EPOCH_YEAR if unit == "Y" else 0)) // many  # decades begin at years that end in 0

    ends_of_all = np.array([times.min(), times.max()])
    spans = [int(np.ptp(to_unit_numbers(ends_of_all, unit, many))) for unit, many, _ in TIME_UNITS]
    unit, many, digits = TIME_UNITS[
        next((place for place, span in enumerate(spans) if span < max_groups), len(TIME_UNITS) - 1)
    ]
    numbers = to_unit_numbers(times, unit, many)
    first, last = int(numbers.min()), int(numbers.max())
    codes[is_known] = numbers - first
    begins = np.arange(first, last + 2) * many - (EPOCH_YEAR if unit == "Y" else 0)
    days = begins.astype(f"datetime64[{unit}]").astype("datetime64[D]")
    texts, lasts = days.astype(str).tolist(), (days[1:] - 1).astype(str).tolist()
    ends = list(zip(texts[:-1], lasts, strict=True))
    labels = [low[:digits] if many == 1 else f"{low[:digits]} to {high[:digits]}" for low, high in ends]
    return FactGroups(codes, labels, [f"{low}{RANGE_SEPARATOR}{high}" for low, high in ends])


def group_by_choice(choices: CategoryColumn, max_groups: int) -> FactGroups:
    """Return one group per text that occurs, most frequent first, with the rest merged into the last group."""
    counts = np.bincount(choices.codes[choices.codes != NO_TEXT], minlength=len(choices.names))
    used = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    named, rest = (used, used[:0]) if len(used) <= max_groups else (used[: max_groups - 1], used[max_groups - 1 :])
    group_of = np.full(len(choices.names) + 1, NO_TEXT, np.int32)  # the last place, which NONE means, is of no text
    group_of[named] = np.arange(len(named))
    group_of[rest] = len(named)
    kept: list[int] = named.tolist()
    labels = [choices.names[code] for code in kept]
    others = [f"other ({format_count(len(rest), 'value')})"] if len(rest) else []
    return FactGroups(group_of[choices.codes], [*labels, *others], [*labels, *("" for _ in others)])


def group_by_band(fact: Fact, values: np.ndarray, edges: Sequence[float]) -> FactGroups:
    """Return groups of numbers, (n,) floats or nan, between ascending edges in displayed units."""
    # As in facts.within: a group is what the filter with its ends shows.
    stored = np.array([edge / fact.scale for edge in edges])
    codes = np.where(np.isnan(values), NO_TEXT, np.searchsorted(stored, values.astype(np.float64), "right"))
    words = [fact.format_value(edge) for edge in stored.tolist()]
    ends = [f"{edge:.15g}" for edge in edges]
    if not words:
        known = values[codes != NO_TEXT]
        return (
            FactGroups(codes, [fact.format_value(float(known[0]))], [""]) if len(known) else FactGroups(codes, [], [])
        )
    between = [f"{low} to {high}" for low, high in pairwise(words)]
    given = [f"{low}{RANGE_SEPARATOR}{high}" for low, high in zip(["", *ends], [*ends, ""], strict=True)]
    return FactGroups(codes, [f"under {words[0]}", *between, f"{words[-1]} or more"], given)


@dataclass(frozen=True)
class Bar:
    """One bar of a histogram: the number of images with one field value or band."""

    label: str
    # filter value that shows these images, or ""
    given: str
    count: int


@dataclass(frozen=True)
class FactCounts:
    """A histogram of filtered images by one field.

    Choices are ordered by frequency, numbers and times by value. `unknown` counts images without a value.
    """

    label: str
    kind: FactKind
    bars: list[Bar]
    unknown: int


def count_images(db: Database, filter_: GalleryFilter, name: str, blind: str = "") -> FactCounts:
    """Count the images of a filter by the values of a field.

    Images that the annotator `blind` must still answer blind are omitted if the field reveals labels. Raises
    AnnotatorError for an unknown field.
    """
    with gallery_listing.open_columns(db) as columns:
        fact = image_facts.find(db, columns, name)
        if fact.reveals_labels:
            filter_ = replace(filter_, blind=blind)
        values, mask = fact.read_values(db, columns), gallery_listing.compute_mask(db, columns, filter_)
        groups = bin_values(
            fact, values if mask is None else image_facts.select_rows(values, np.flatnonzero(mask)), MAX_BARS
        )
    known = groups.codes[groups.codes != NO_TEXT]
    of_each: list[int] = np.bincount(known, minlength=len(groups.labels)).tolist()
    bars = [Bar(*bar) for bar in zip(groups.labels, groups.filter_values, of_each, strict=True)]
    return FactCounts(fact.label, fact.kind, bars, len(groups.codes) - len(known))
