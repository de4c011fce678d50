"""Counts of the labels in an export, for data cards and for warnings about losses."""

from typing import Any

import numpy as np

from annotator.exchange.formats.export_view import (
    STATE_ABSENT,
    STATE_PRESENT,
    STATE_UNANSWERED,
    STATE_UNSURE,
    STATE_WORDS,
    Block,
)

PAIRS_SHOWN = 20


class Tallies:
    """Counts of an export's labels, of classes that occur together, and of answers per month.

    Attributes:
        cells: (C, states, sources) int64, number of labels.
        months: Number of labels by (annotator, source, month since 1970).
        origins: Number of imported labels by (annotator, source) in their file.
        missing: (name, reason) of unreadable images.
    """

    def __init__(self, classes: int, sources: tuple[str, ...], *, keep_positives: bool = False):
        from scipy.sparse import csr_array

        self.sources = sources
        self.cells = np.zeros((classes, len(STATE_WORDS), len(sources)), np.int64)
        self.months: dict[tuple[int, int, int], int] = {}
        self.origins: dict[tuple[str, str], int] = {}
        self.has: set[str] = set()
        self.missing: list[tuple[str, str]] = []
        self._together = csr_array((classes, classes), dtype=np.int64)
        self._keep = keep_positives
        self._columns: list[np.ndarray] = []
        self._counts: list[np.ndarray] = []

    def forget_positives(self) -> None:
        """Release the memory of the present labels, which grows with the number of images."""
        self._columns, self._counts = [], []

    def add(self, block: Block) -> None:
        from scipy.sparse import csr_array

        classes, states, sources = self.cells.shape
        code = (block.states.astype(np.int64) * sources + block.sources) + np.arange(classes) * (states * sources)
        self.cells += np.bincount(code.ravel(), minlength=self.cells.size).reshape(self.cells.shape)
        rows, columns = np.nonzero(block.states == STATE_PRESENT)
        shape = len(block.images), classes
        shown = csr_array((np.ones(len(rows), np.int64), (rows, columns)), shape=shape)
        self._together = self._together + shown.T @ shown
        if self._keep:
            self._columns.append(columns.astype(np.int32))
            self._counts.append(np.bincount(rows, minlength=len(block.images)).astype(np.int32))
        self._add_months(block)
        for origin in block.origins.values():
            who = origin.annotator, origin.source
            self.origins[who] = self.origins.get(who, 0) + 1
        self.missing += [
            (image.name, reason) for image, reason in zip(block.images, block.missing, strict=True) if reason
        ]
        facts = {
            "unknown": bool((block.values < 0).any()),
            "accepted": bool(block.accepted),
            "origins": bool(block.origins),
            "missing": any(block.missing),
            "notes": any(block.notes),
            "attributes": any(block.attributes),
            "events": any(block.events),
        }
        self.has |= {name for name, is_there in facts.items() if is_there}

    def _add_months(self, block: Block) -> None:
        known = ~np.isnan(block.decided_at)
        if not known.any():
            return
        months = block.decided_at[known].astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
        code = (months << 32) + (block.annotators[known].astype(np.int64) << 8) + block.sources[known]
        for value, count in zip(*np.unique(code, return_counts=True), strict=True):
            key = (int(value) >> 8 & 0xFFFF, int(value) & 0xFF, int(value) >> 32)
            self.months[key] = self.months.get(key, 0) + int(count)

    def count_state(self, state: int) -> int:
        return int(self.cells[:, state].sum())

    @property
    def unknown(self) -> int:
        """Count the unanswered cells that are not filled in."""
        return self.count_state(STATE_UNANSWERED)

    @property
    def unsure(self) -> int:
        return self.count_state(STATE_UNSURE)

    @property
    def absent(self) -> int:
        return self.count_state(STATE_ABSENT)

    @property
    def present(self) -> int:
        return self.count_state(STATE_PRESENT)

    def positives(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the present classes of all images in CSR form: offsets (N + 1,) int64, class columns."""
        counts = np.concatenate([np.zeros(1, np.int64), *self._counts])
        return np.cumsum(counts), np.concatenate([np.zeros(0, np.int32), *self._columns])

    def pairs(self) -> list[tuple[int, int, int]]:
        """Return the class pairs that occur together most often, as (class, class, images)."""
        from scipy.sparse import triu

        upper: Any = triu(self._together, k=1).tocoo()
        order = np.lexsort((upper.col, upper.row, -upper.data))[:PAIRS_SHOWN]
        columns = (upper.row[order], upper.col[order], upper.data[order])
        return [(int(row), int(column), int(count)) for row, column, count in zip(*columns, strict=True)]

    def counts_of_class(self, column: int) -> list[tuple[str, str, int]]:
        """Return the sorted (state, source, number of labels) of one class."""
        states, sources = np.nonzero(self.cells[column])
        return sorted(
            (STATE_WORDS[state] or "unknown", self.sources[source], int(self.cells[column, state, source]))
            for state, source in zip(states.tolist(), sources.tolist(), strict=True)
        )
