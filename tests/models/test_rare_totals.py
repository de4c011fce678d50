"""Totals of rare classes: what they are judged by."""

import numpy as np

from spmll.statistics.metrics import count_honest_totals


def test_plausible_totals_of_rare_classes_are_at_most_twice_the_true_count():
    truth = np.zeros((40, 4), bool)
    truth[:12] = True
    labels = np.zeros((40, 4), np.int8)
    labels[0, :3] = 1
    labels[:11, 3] = 1  # not rare
    columns = np.array([24, 25, 6, 0]) / 40
    assert count_honest_totals(np.tile(columns, (40, 1)), labels, truth) == (3, 2)
    assert count_honest_totals(np.tile(columns, (40, 1)), np.zeros_like(labels), truth) == (0, 0)
