"""Probabilities that obey class relations: kinds of a class, and exclusive groups.

A class takes at least the largest probability of its kinds (Giunchiglia & Lukasiewicz, NeurIPS 2020). A group's
probabilities, with those of its kinds, are divided by their sum if above 1, always if exactly one is present.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MIN_SCALED_SUM = 1e-6  # a sum below it says nothing that could be scaled up


@dataclass(frozen=True)
class ClassRelations:
    """The relations between the columns of an array of probabilities.

    Attributes:
        pairs: (kind, class) columns, deepest kinds first.
        groups: Columns per group, and whether exactly one is present.
        kinds: Column -> all its kinds.
    """

    pairs: tuple[tuple[int, int], ...]
    groups: tuple[tuple[tuple[int, ...], bool], ...]
    kinds: dict[int, tuple[int, ...]]

    def enforce(self, probabilities: np.ndarray) -> np.ndarray:
        """Return probabilities (n, C) that obey the relations, up to rounding.

        Sums of exact groups stay below 1 if relations contradict each other.

        Args:
            probabilities: (n, C), nan is ignored.
        """
        table = np.array(probabilities, np.float32)
        self._raise_to_kinds(table)
        for columns, exactly in self.groups:
            self._scale_group(table, columns, up=exactly)
        if any(exactly for _, exactly in self.groups):
            self._raise_to_kinds(table)
            for columns, _ in self.groups:
                self._scale_group(table, columns, up=False)
        return table

    def _raise_to_kinds(self, table: np.ndarray) -> None:
        for kind, whole in self.pairs:
            has = ~np.isnan(table[:, whole])
            table[has, whole] = np.fmax(table[has, whole], table[has, kind])

    def _scale_group(self, table: np.ndarray, columns: Sequence[int], *, up: bool) -> None:
        sums = np.nansum(table[:, columns], axis=1)
        factors = np.ones(len(table), np.float32)
        too_large = sums > 1
        factors[too_large] = 1 / sums[too_large]
        for column in {kind for one in columns for kind in (one, *self.kinds.get(one, ()))}:
            table[:, column] *= factors
        if up:
            too_small = (sums < 1) & (sums > MIN_SCALED_SUM) & ~np.isnan(table[:, columns]).any(axis=1)
            table[np.ix_(too_small, list(columns))] /= sums[too_small, None]
