"""Class relations by column, which published probabilities must obey."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from annotator.store.database.database import Database
from annotator.store.relations import declared_relations
from spmll.rows import Rows
from spmll.statistics.relation_constraints import ClassRelations


def load_related_columns(db: Database, class_ids: Sequence[int]) -> ClassRelations | None:
    """Return the relations between these classes, by column of their arrays, or None if there are none."""
    declared, column_of = (
        declared_relations.load_relations(db),
        {class_id: column for column, class_id in enumerate(class_ids)},
    )
    if not declared.made:
        return None
    kinds = {
        column_of[whole]: tuple(column_of[kind] for kind in below if kind in column_of)
        for whole, below in declared.descendants.items()
        if whole in column_of
    }
    # Whatever has fewer kinds is nearer to the bottom.
    pairs = sorted(
        ((kind, whole) for whole, below in kinds.items() for kind in below),
        key=lambda pair: (len(kinds.get(pair[1], ())), pair),
    )
    groups = [
        (tuple(column_of[one] for one in group.class_ids if one in column_of), group.exactly_one)
        for group in declared.groups
    ]
    whole_groups = tuple(
        (columns, exactly and len(columns) == len(group.class_ids))
        for (columns, exactly), group in zip(groups, declared.groups, strict=True)
        if len(columns) > 1
    )
    return ClassRelations(tuple(pairs), whole_groups, kinds) if pairs or whole_groups else None


def list_related_columns(related: ClassRelations | None) -> list[int]:
    """Return the columns that take part in relations."""
    if related is None:
        return []
    pairs = {column for pair in related.pairs for column in pair}
    return sorted(pairs.union(*(columns for columns, _ in related.groups)))


class ConsistentRows:
    """A lazy array of probabilities (N, C) that obey class relations, computed per requested rows."""

    def __init__(self, rows: Rows, related: ClassRelations):
        self._rows, self._related = rows, related
        self.shape, self.dtype, self.ndim = rows.shape, rows.dtype, rows.ndim

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any, /) -> np.ndarray:
        return self._related.enforce(self._rows[rows]).astype(self.dtype, copy=False)
