"""Images in groups by a fact: by each of its choices, or by bands of its numbers and times."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from annotator.shares import counted
from annotator.snapshot.facts import Fact
from annotator.snapshot.filters import TO
from annotator.store.gallery.values import NONE, Choices


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
    between = [f"{low} to {high}" for low, high in pairwise(words)]
    given = [f"{low}{TO}{high}" for low, high in zip(["", *ends], [*ends, ""], strict=True)]
    return Groups(codes, [f"under {words[0]}", *between, f"{words[-1]} or more"], given)
