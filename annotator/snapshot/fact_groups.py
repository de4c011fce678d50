"""Images in groups by a fact: by each of its choices, or by bands of its numbers and times."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from annotator.shares import counted
from annotator.snapshot.facts import Fact, Kind, Values
from annotator.snapshot.filters import TO
from annotator.store.gallery.values import NONE, Choices

EPOCH = 1970
BANDS = 4  # of numbers whose fact names no edges
# Units of groups of times, from the finest: numpy's code, how many of them one group has, and the digits of its name.
UNITS = (("D", 1, 10), ("M", 1, 7), ("Y", 1, 4), ("Y", 10, 4), ("Y", 100, 4))


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of images.

    Attributes:
        codes: (n,) int, the group of each image; NONE where the fact is not known.
        labels: The names of the groups.
        given: The value of the fact's filter that shows exactly the images of a group; "" where none does.
    """

    codes: np.ndarray
    labels: Sequence[str]
    given: Sequence[str]


def grouped(fact: Fact, values: Values, most: int) -> Groups:
    """Return the groups of a fact: its choices, its days, months or years, or its bands.

    Args:
        fact: The fact.
        values: Its values of n images.
        most: The largest number of groups of choices and times.
    """
    if isinstance(values, Choices):
        return by_choice(values, most)
    return by_time(values, most) if fact.kind == Kind.TIME else by_band(fact, values, edges_of(fact, values))


def edges_of(fact: Fact, values: np.ndarray) -> Sequence[float]:
    """Return where the bands of a fact begin but the first, as numbers of the fact are given."""
    if fact.edges:
        return fact.edges
    known = values[~np.isnan(values)].astype(np.float64)
    if not len(known):
        return ()
    ends = np.percentile(known, np.linspace(0, 100, BANDS + 1)[1:-1], method="higher")
    return np.unique(ends[ends > known.min()] * fact.scale).tolist()


def by_time(values: np.ndarray, most: int) -> Groups:
    """Return at most `most` groups of equal length, without gaps: days, months or years, as fine as fits.

    Args:
        values: (n,) seconds since 1970, nan where not known.
        most: The largest number of groups.
    """
    is_known = ~np.isnan(values)
    times = values[is_known].astype("datetime64[s]")
    codes = np.full(len(values), NONE)
    if not len(times):
        return Groups(codes, [], [])

    def numbered(unit: str, many: int) -> np.ndarray:
        numbers = times.astype(f"datetime64[{unit}]").astype(np.int64)
        return (numbers + (EPOCH if unit == "Y" else 0)) // many  # decades begin at years that end in 0

    spans = [int(np.ptp(numbered(unit, many))) for unit, many, _ in UNITS]
    unit, many, digits = UNITS[next((place for place, span in enumerate(spans) if span < most), len(UNITS) - 1)]
    numbers = numbered(unit, many)
    first, last = int(numbers.min()), int(numbers.max())
    codes[is_known] = numbers - first
    begins = np.arange(first, last + 2) * many - (EPOCH if unit == "Y" else 0)
    days = begins.astype(f"datetime64[{unit}]").astype("datetime64[D]")
    texts, lasts = days.astype(str).tolist(), (days[1:] - 1).astype(str).tolist()
    ends = list(zip(texts[:-1], lasts, strict=True))
    labels = [low[:digits] if many == 1 else f"{low[:digits]} to {high[:digits]}" for low, high in ends]
    return Groups(codes, labels, [f"{low}{TO}{high}" for low, high in ends])


def by_choice(choices: Choices, most: int) -> Groups:
    """Return a group of each text that an image has, the commonest first; with more than `most`, the last is the rest.

    Args:
        choices: The texts of n images.
        most: The largest number of groups.
    """
    counts = np.bincount(choices.codes[choices.codes != NONE], minlength=len(choices.names))
    used = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    named, rest = (used, used[:0]) if len(used) <= most else (used[: most - 1], used[most - 1 :])
    group_of = np.full(len(choices.names) + 1, NONE, np.int32)  # the last place, which NONE means, is of no text
    group_of[named] = np.arange(len(named))
    group_of[rest] = len(named)
    kept: list[int] = named.tolist()
    labels = [choices.names[code] for code in kept]
    others = [f"other ({counted(len(rest), 'value')})"] if len(rest) else []
    return Groups(group_of[choices.codes], [*labels, *others], [*labels, *("" for _ in others)])


def by_band(fact: Fact, values: np.ndarray, edges: Sequence[float]) -> Groups:
    """Return the groups of numbers below the first edge, from there to the next, and so on, and from the last edge on.

    Args:
        fact: The fact.
        values: (n,) floats, nan where not known.
        edges: Ascending, as numbers of the fact are given.
    """
    # As in facts.within: a group is what the filter with its ends shows.
    stored = np.array([edge / fact.scale for edge in edges])
    codes = np.where(np.isnan(values), NONE, np.searchsorted(stored, values.astype(np.float64), "right"))
    words = [fact.in_words(edge) for edge in stored.tolist()]
    ends = [f"{edge:.15g}" for edge in edges]
    if not words:
        return Groups(codes, ["any"], [TO])
    between = [f"{low} to {high}" for low, high in pairwise(words)]
    given = [f"{low}{TO}{high}" for low, high in zip(["", *ends], [*ends, ""], strict=True)]
    return Groups(codes, [f"under {words[0]}", *between, f"{words[-1]} or more"], given)
