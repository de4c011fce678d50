"""The class for which a decision about an archived class counts, if any.

Pages opened before a merge may still answer the merged class. Such answers count for the remaining one.
"""

from collections.abc import Collection
from dataclasses import dataclass

import sqlite_utils

from annotator.records import ABSENT, PRESENT

COUNT_ACTIVE_CLASSES_SQL = "SELECT (SELECT count(*) FROM class) - (SELECT count(*) FROM class WHERE archived = 1)"
IS_ACTIVE_CLASS_SQL = "id NOT IN (SELECT id FROM class WHERE archived = 1)"
"""Condition of classes that are not archived; both sides are read from an index."""


@dataclass(frozen=True)
class DecisionTarget:
    """The class for which a decision counts."""

    class_id: int
    # the decision was about a class merged into this one
    is_other: bool = False
    # both mean the same, so absent carries over
    same: bool = True

    def compute_effect(self, state: int | None, is_open: bool, is_merged: bool) -> tuple[bool, int | None]:
        """Return (whether the decision changes the target's cell, the cell's new state or None if cleared).

        Args:
            state: State of the decision, None if it clears the cell.
            is_merged: The cell's answer came from a merged class.
        """
        if self.is_other and state == ABSENT and not self.same:
            state = None  # "no sparrow" says nothing about birds
        if not self.is_other or state == PRESENT:
            return True, state
        return (is_merged or (is_open and state is not None)), state


class ClassArchive:
    """A lookup of the archived classes: when each was archived, and what it was merged into."""

    def __init__(self, sql: sqlite_utils.Database):
        rows = sql.execute("SELECT id, archived_since, merged_into, merged_same FROM class WHERE archived = 1")
        self._classes = {class_id: (since, into, bool(same)) for class_id, since, into, same in rows.fetchall()}

    def __contains__(self, class_id: int) -> bool:
        return class_id in self._classes

    def find_target(self, class_id: int, decision_id: int) -> DecisionTarget | None:
        """Return the class for which a decision counts, or None."""
        target = DecisionTarget(class_id)
        for _ in range(len(self._classes) + 1):
            if target.class_id not in self._classes:
                return target
            since, into, same = self._classes[target.class_id]
            if into is None or decision_id <= since:
                return None
            target = DecisionTarget(into, True, target.same and same)
        return None

    def find_merged_sources(self, class_ids: Collection[int]) -> list[tuple[int, int]]:
        """Return the classes merged into these, directly or not, as (class id, newest decision at the merge).

        Only their later decisions count for these classes.
        """
        return [
            (class_id, since)
            for class_id, (since, into, _) in self._classes.items()
            if into is not None and not set(class_ids).isdisjoint(self._follow_merges(class_id))
        ]

    def _follow_merges(self, class_id: int) -> list[int]:
        chain = [class_id]
        while (step := self._classes.get(chain[-1])) and step[1] is not None and step[1] not in chain:
            chain.append(step[1])
        return chain
