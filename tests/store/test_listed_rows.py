"""Rows by a value, in parts: as a plain sort of all of them has them."""

import numpy as np
import pytest

from annotator.snapshot import listed_rows
from annotator.snapshot.listed_rows import RowsByValue, SortedRows


@pytest.mark.parametrize("distinct", [1, 2, 3, 40, 30_000])
@pytest.mark.parametrize("count", [0, 1, 300])
def test_rows_by_value_returns_slices_and_positions_of_a_stable_sort(distinct, count, monkeypatch):
    monkeypatch.setattr(listed_rows, "VALUES_PER_COUNT", 64)
    chance = np.random.default_rng([distinct, count])
    for _ in range(5):
        rows = chance.permutation(500)[:count].astype(np.int32)
        values = chance.choice(chance.integers(0, 0x7C02, distinct), count).astype(np.uint16)
        plain = rows[np.argsort(values, kind="stable")].tolist()
        listed = RowsByValue(rows, values)
        assert len(listed) == count
        for start, stop in [(0, 500), *chance.integers(0, count + 20, (60, 2)).tolist()]:
            assert listed.get_rows(start, stop).tolist() == plain[start:stop], (start, stop)
        places = [listed.find_place(row) for row in range(500)]
        assert places == [plain.index(row) if row in plain else None for row in range(500)]
        assert places == [SortedRows(np.array(plain, np.int32)).find_place(row) for row in range(500)]
