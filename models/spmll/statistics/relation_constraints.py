"""Probabilities that obey how classes have to do with each other: kinds of a class, and groups of which one is present.

No class is less likely than a kind of it: it takes the largest probability of its kinds (the maximum constraint of
Giunchiglia & Lukasiewicz, "Coherent Hierarchical Multi-Label Classification Networks", NeurIPS 2020). The probabilities
of a group are divided by their sum where that exceeds 1, and with them those of all kinds of its classes, so that the
first rule goes on to hold; of a group of which exactly one is present they are divided by their sum in any case.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MIN_SCALED_SUM = 1e-6  # a sum below it says nothing that could be scaled up


@dataclass(frozen=True)
class ClassRelations:
    """The relations of the columns of a table of probabilities.

    Attributes:
        pairs: (kind, class) columns, such that whatever is a kind of a kind comes first.
        groups: The columns of each group, and whether exactly one of them is present.
        kinds: Column -> the columns of everything that is a kind of it.
    """

    pairs: tuple[tuple[int, int], ...]
    groups: tuple[tuple[tuple[int, ...], bool], ...]
    kinds: dict[int, tuple[int, ...]]

    def enforce(self, probabilities: np.ndarray) -> np.ndarray:
        """Return probabilities that obey the relations.

        Sums hold but for rounding. Where relations contradict each other for a group of which exactly one is present
        (its class would be likelier than what it is a kind of is allowed to be), its sum stays below 1.

        Args:
            probabilities: (n, C) float; nan where a class has no model: it takes part in nothing.

        Returns:
            (n, C) float32.
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
