"""One re-indexing by image and class: every id lands in its own row and column, and unknown ones nowhere."""

import numpy as np
import pytest

from annotator.indexing import CellIndex, find_positions

IDS = np.array([2, 3, 7, 11])

CASES = {
    "some, in any order": ([11, 2, 7], IDS, None, [3, 0, 2], [True, True, True]),
    "below, between and above": ([1, 5, 12, 3], IDS, None, [None, None, None, 1], [False, False, False, True]),
    "none asked for": ([], IDS, None, [], []),
    "none there": ([1, 2], IDS[:0], None, [None, None], [False, False]),
    "one twice": ([7, 7], IDS, None, [2, 2], [True, True]),
    "ids in no order": ([11, 4, 2], IDS[[2, 0, 3, 1]], np.array([1, 3, 0, 2]), [2, None, 1], [True, False, True]),
    "ids as floats, as answers are kept": (np.array([3.0, 4.0]), IDS, None, [1, None], [True, False]),
}


@pytest.mark.parametrize("case", CASES)
def test_find_positions_returns_the_position_of_each_id_and_masks_unknown_ids(case):
    wanted, ids, order, expected, expected_known = CASES[case]
    found, known = find_positions(wanted, ids, order)
    assert known.tolist() == expected_known
    assert [place if has else None for place, has in zip(found.tolist(), known.tolist(), strict=True)] == expected
    assert not len(ids) or len(ids[found]) == len(wanted), "positions of unknown ids are still valid ones"


def test_find_cells_marks_a_label_known_only_if_image_and_class_are_known():
    index = CellIndex(IDS, np.array([1, 4]))
    rows, columns, known = index.find_cells([7, 7, 8, 11], [4, 2, 1, 1])
    assert known.tolist() == [True, False, False, True]
    assert list(zip(rows[known].tolist(), columns[known].tolist(), strict=True)) == [(2, 1), (3, 0)]


def test_align_reorders_values_by_image_and_class_and_fills_unknown_ones_with_nan():
    index, values = CellIndex(IDS, np.array([1, 4])), np.arange(8, dtype=np.float16).reshape(4, 2)
    moved = index.align(values, [7, 5, 2], [4, 9, 1])
    assert moved.dtype == np.float16
    assert np.array_equal(moved, [[5, np.nan, 4], [np.nan] * 3, [1, np.nan, 0]], equal_nan=True)
    assert index.align(values, [], [4]).shape == (0, 1)
    assert np.isnan(CellIndex(IDS[:0], np.array([1, 4])).align(values[:0], [7], [1])).all()
