"""Sums kept from one training to the next: equal to those made afresh, whatever has come, gone or changed."""

import numpy as np
import pytest
import torch

from spmll.ensemble.basis import center_and_normalize, signed_sqrt, to_float_tensor
from spmll.ensemble.gram_cache import GramCache
from spmll.ensemble.moments import Moments

IMAGES, DIMENSIONS, CLASSES = 300, 12, 3


class Counted(GramCache):
    """Counts the images that are added or taken off."""

    changed = 0

    def _add_units(self, units: torch.Tensor, sign: int) -> None:
        self.changed += len(units)
        super()._add_units(units, sign)


@pytest.fixture
def features() -> np.ndarray:
    return np.abs(np.random.default_rng(0).normal(size=(IMAGES, DIMENSIONS))).astype(np.float16)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("spmll.ensemble.gram_cache.IMAGES_PER_BLOCK", 7)


def is_full(kept: Counted, features: np.ndarray, rows: np.ndarray, centre: torch.Tensor) -> int:
    """Compare what is kept with the sums of these rows; how many images were added or taken off."""
    kept.changed = 0
    answers = torch.rand(len(rows), CLASSES)
    found = kept.compute_moments(features, centre, rows, CLASSES, lambda some: (answers[some], None))
    changed = kept.changed
    units = center_and_normalize(signed_sqrt(to_float_tensor(features[rows])), centre)
    torch.testing.assert_close(found.products, units.double().T.mm(units.double()).float())
    whole, level = Moments.build(units, answers - torch.arange(CLASSES)), torch.arange(CLASSES).float()
    torch.testing.assert_close(found.subtract_level(level).solve(1.0), whole.solve(1.0), atol=1e-4, rtol=1e-4)
    return changed


def test_incrementally_updated_embedding_moments_equal_recomputed_ones(features):
    chance, kept, centre = np.random.default_rng(1), Counted(), torch.rand(DIMENSIONS)
    rows = np.sort(chance.permutation(IMAGES)[:200])
    assert is_full(kept, features, rows, centre) == 200
    for _ in range(30):
        before, rows = rows, np.sort(chance.permutation(np.setdiff1d(np.arange(IMAGES), rows[::15]))[:200])
        rows = np.union1d(before[14:], rows[:20])
        changed = len(np.setxor1d(before, rows))
        assert 0 < changed == is_full(kept, features, rows, centre)
    assert is_full(kept, features, rows, centre) == 0


@pytest.mark.parametrize("what", ["stayed", "gone", "cut off", "centre", "most"])
def test_embedding_moments_are_recomputed_when_embeddings_change_or_most_rows_are_new(features, what):
    kept, centre, rows = Counted(), torch.rand(DIMENSIONS), np.arange(100, 200)
    is_full(kept, features, rows, centre)
    rows = np.arange(90, 190)
    if what in ("stayed", "gone"):
        features[150 if what == "stayed" else 195] += 1
    features, rows = (features[:195], rows) if what == "cut off" else (features, rows)
    rows = np.arange(160, 260) if what == "most" else rows
    in_vain = 10 if what == "stayed" else 0  # new images before the changed one
    assert is_full(kept, features, rows, centre + 0.1 if what == "centre" else centre) == 100 + in_vain


def test_interrupted_training_keeps_no_partial_embedding_moments(features):
    kept, centre = Counted(), torch.rand(DIMENSIONS)
    is_full(kept, features, np.arange(100), centre)
    told = []

    def end() -> None:
        told.append(1)
        if len(told) == 3:
            raise InterruptedError

    rows, answers = np.arange(5, 105), torch.rand(100, CLASSES)
    with pytest.raises(InterruptedError):
        kept.compute_moments(features, centre, rows, CLASSES, lambda some: (answers[some], None), end)
    assert is_full(kept, features, rows, centre) == 100


def test_masked_labels_count_as_the_average_of_their_class_in_embedding_moments(features):
    centre, rows = torch.rand(DIMENSIONS), np.arange(0, IMAGES, 2)
    answers, blank = torch.rand(len(rows), CLASSES), torch.rand(len(rows), CLASSES) < 0.3
    answers = answers.masked_fill(blank, 0.0)
    halves = [
        GramCache().compute_moments(
            features, centre, rows[half], CLASSES, lambda some, half=half: (answers[half][some], blank[half][some])
        )
        for half in (slice(0, 70), slice(70, None))
    ]
    units = center_and_normalize(signed_sqrt(to_float_tensor(features[rows])), centre)
    filled = Moments.build(units, torch.where(blank, answers.mean(0), answers))
    torch.testing.assert_close(
        (halves[0] + halves[1]).fill_blanks().solve(1.0), filled.solve(1.0), atol=1e-4, rtol=1e-4
    )
