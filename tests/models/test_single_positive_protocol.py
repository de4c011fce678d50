"""The draw of single-positive labels and the split, against what the published code gives."""

import hashlib

import numpy as np
import pytest

from spmll.single_positive_sampling import sample_single_positives, split_train_validation

# Made by observe_uniform of Cole et al. with RandomState(1200); the last row has no positive.
ROWS = "001000 111010 010010 101001 001110 000011 001100 110001 101101 000000"
TRUTH = np.array([[int(cell) for cell in row] for row in ROWS.split()])
POSITIVE = [2, 2, 4, 2, 2, 5, 2, 0, 3, None]
NEGATIVE = [5, 3, 0, 4, 5, 1, 1, 4, 1, 2]
# sha256 of the held-back rows as int64, made by generate_split of Cole et al.
SPLITS = {
    10: (2, "761b59d486d929d4d242938b94eeae7ee280c78da753bba0c9af46ad5e4bef4b"),
    5717: (1143, "f5709e6ab75fb71eb1235fd3fc7e7b20354b5a0367dd9115e58d20e1b5ce6e4e"),
    5994: (1199, "b80f54f4cba60862c17ef1d79caf2afe9c7ad6cfbc8f13125c7aa859a4e8426a"),
    82081: (16416, "bd52756686feb243ea9fba986753d11d69f58a21a1927d2b8d7a17fbefe8037c"),
    150000: (30000, "f4211856213c66795856bc17d26d206c0cbe9949070413b07edd34146c31747f"),
}


def one_of_each(columns: list, value: int) -> np.ndarray:
    labels = np.zeros(TRUTH.shape, np.int8)
    for row, column in enumerate(columns):
        if column is not None:
            labels[row, column] = value
    return labels


def test_single_positive_sampling_matches_the_published_draw():
    labels = sample_single_positives(TRUTH)
    assert labels.dtype == np.int8
    assert np.array_equal(labels, one_of_each(POSITIVE, 1))


def test_sampling_negatives_does_not_change_the_positives():
    assert np.array_equal(
        sample_single_positives(TRUTH, negatives=1), one_of_each(POSITIVE, 1) + one_of_each(NEGATIVE, -1)
    )


def test_label_sampling_with_count_minus_one_keeps_all_labels_and_with_zero_none():
    assert np.array_equal(sample_single_positives(TRUTH, -1, -1), np.where(TRUTH, 1, -1))
    assert not sample_single_positives(TRUTH, 0).any()


def test_sampling_more_positives_than_exist_keeps_all_of_them():
    assert np.array_equal(sample_single_positives(TRUTH.astype(bool), 99) == 1, TRUTH == 1)


def test_sampling_with_another_seed_gives_other_labels():
    assert not np.array_equal(sample_single_positives(TRUTH, seed=1201), sample_single_positives(TRUTH))


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (np.array([[1, -1]]), "0 or 1 in every cell; there is also -1"),
        (np.array([[1, np.nan]]), "nan"),
        (np.array([1, 0]), r"\(2,\)"),
    ],
)
def test_sampling_refuses_an_invalid_truth_array(truth, message):
    with pytest.raises(ValueError, match=message):
        sample_single_positives(truth)


def test_sampling_refuses_a_count_below_minus_one():
    with pytest.raises(ValueError, match="negatives = -2"):
        sample_single_positives(TRUTH, negatives=-2)


@pytest.mark.parametrize("n", SPLITS)
def test_train_validation_split_matches_the_published_one(n):
    train, val = split_train_validation(n)
    size, digest = SPLITS[n]
    assert len(val) == size
    assert hashlib.sha256(val.astype(np.int64).tobytes()).hexdigest() == digest
    assert np.array_equal(np.sort(np.concatenate([train, val])), np.arange(n))
    assert (np.diff(train) > 0).all()


def test_split_of_two_images_has_an_empty_validation_set():
    train, val = split_train_validation(2)
    assert train.tolist() == [0, 1]
    assert len(val) == 0


@pytest.mark.parametrize(("n", "share"), [(0, 0.2), (5, 1.0), (5, -0.1)])
def test_split_refuses_an_invalid_size_or_share(n, share):
    with pytest.raises(ValueError, match=f"n = {n}, share = {share}"):
        split_train_validation(n, share)
