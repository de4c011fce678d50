"""Sums kept from one training to the next: equal to those made afresh, whatever has come, gone or changed."""

import numpy as np
import pytest
import torch

from models.ensemble import squares
from models.ensemble.basis import as_tensor, root, unit
from models.ensemble.fit_ensemble import Moments

IMAGES, DIMENSIONS = 300, 12


@pytest.fixture
def features() -> np.ndarray:
    return np.abs(np.random.default_rng(0).normal(size=(IMAGES, DIMENSIONS))).astype(np.float16)


def is_full(kept: squares.KeptSquares, features: np.ndarray, rows: np.ndarray, centre: torch.Tensor) -> int:
    """Compare what is kept with the sums of these rows; how many images were added or taken off."""
    roots, added = root(as_tensor(features[rows])), []
    found = kept.of(features, centre, rows, roots, lambda: added.append(1))
    answers = torch.rand(len(rows), 3)
    units = unit(roots, centre)
    whole, ours = Moments.of(units, answers), Moments.of_roots(roots, centre, answers, found)
    torch.testing.assert_close(found.products, units.double().T.mm(units.double()).float())
    torch.testing.assert_close(ours.solve(1.0), whole.solve(1.0), atol=1e-5, rtol=1e-4)
    return len(added)


def test_what_was_added_up_training_by_training_equals_the_sums_of_all(features, monkeypatch):
    monkeypatch.setattr(squares, "ROWS", 1)
    chance, kept, centre = np.random.default_rng(1), squares.KeptSquares(), torch.rand(DIMENSIONS)
    rows = np.sort(chance.permutation(IMAGES)[:200])
    assert is_full(kept, features, rows, centre) == 200
    for _ in range(30):
        before, rows = rows, np.sort(chance.permutation(np.setdiff1d(np.arange(IMAGES), rows[::15]))[:200])
        rows = np.union1d(before[14:], rows[:20])
        changed = len(np.setxor1d(before, rows))
        assert 0 < changed == is_full(kept, features, rows, centre)
    assert is_full(kept, features, rows, centre) == 0


@pytest.mark.parametrize("what", ["stayed", "gone", "cut off", "centre", "most"])
def test_sums_are_made_again_when_a_row_holds_another_image(features, monkeypatch, what):
    monkeypatch.setattr(squares, "ROWS", 1)
    kept, centre, rows = squares.KeptSquares(), torch.rand(DIMENSIONS), np.arange(100, 200)
    is_full(kept, features, rows, centre)
    rows = np.arange(90, 190)
    if what in ("stayed", "gone"):
        features[150 if what == "stayed" else 195] += 1
    features, rows = (features[:195], rows) if what == "cut off" else (features, rows)
    rows = np.arange(160, 260) if what == "most" else rows
    assert is_full(kept, features, rows, centre + 0.1 if what == "centre" else centre) == 100


def test_a_training_that_is_ended_leaves_no_half_made_sums(features, monkeypatch):
    monkeypatch.setattr(squares, "ROWS", 1)
    kept, centre = squares.KeptSquares(), torch.rand(DIMENSIONS)
    is_full(kept, features, np.arange(100), centre)
    told = []

    def end() -> None:
        told.append(1)
        if len(told) == 3:
            raise InterruptedError

    rows = np.arange(5, 105)
    with pytest.raises(InterruptedError):
        kept.of(features, centre, rows, root(as_tensor(features[rows])), end)
    assert is_full(kept, features, rows, centre) == 100
