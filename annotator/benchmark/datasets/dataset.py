"""Fully labeled images in three parts, with the labels that training may see.

Published training sets are split 80 to 20 after drawing single-positive labels.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError
from spmll.single_positive_sampling import sample_single_positives, split_train_validation


@dataclass(frozen=True, eq=False)
class Part:
    """The images of one part of a data set (training, validation or test), with complete truth (n, C) bool."""

    paths: tuple[Path, ...]
    truth: np.ndarray

    def __len__(self) -> int:
        return len(self.paths)

    def rows(self, rows: np.ndarray) -> "Part":
        """Return the part reduced to these rows, (m,), in this order."""
        return Part(tuple(self.paths[row] for row in rows), self.truth[rows])


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set for comparing methods: training, validation and test images with complete labels."""

    name: str
    classes: tuple[str, ...]
    train: Part
    val: Part
    test: Part
    # (n_train, C) int8 labels that training sees: 1 present, -1 absent, 0 unseen, as published, or drawn with seed 0
    observed: np.ndarray
    # rows of train and val in the official training set, None for a folder
    official_rows: tuple[np.ndarray, np.ndarray] | None
    # sentences on used files and omissions
    notes: tuple[str, ...] = ()
    # (n_train, C) object area per class, None if unknown
    areas: np.ndarray | None = None


def build_official_dataset(
    name: str,
    classes: tuple[str, ...],
    train: Part,
    test: Part,
    observed_labels: np.ndarray | None,
    notes: tuple[str, ...] | list[str],
    areas: np.ndarray | None = None,
) -> DataSet:
    """Return a published data set, with its training images split 80 to 20 into train and val (seed 1200).

    Args:
        train, test: Official parts in published order.
        observed_labels: (len(train), C) single-positive labels. None draws them.

    Raises:
        AnnotatorError: If a part has no image.
    """
    train_rows, val_rows = split_train_validation(max(len(train), 1))
    if not len(val_rows) or not len(test):
        raise AnnotatorError(
            f"{name} has {len(train)} training and {len(test)} test images here: too few to hold 20 % of the first "
            "back for validation and to test on the second. Is the set complete?"
        )
    labels = sample_single_positives(train.truth) if observed_labels is None else observed_labels
    return DataSet(
        name,
        classes,
        train.rows(train_rows),
        train.rows(val_rows),
        test,
        labels[train_rows],
        (train_rows, val_rows),
        tuple(notes),
        None if areas is None else areas[train_rows],
    )


def join_official_truth(dataset: DataSet) -> np.ndarray:
    """Return the complete official training labels in published order, (n_train + n_val, C) bool."""
    if dataset.official_rows is None:
        raise ValueError(f"{dataset.name} is no set of the papers: its rows have no published order.")
    train_rows, val_rows = dataset.official_rows
    truth = np.empty((len(train_rows) + len(val_rows), len(dataset.classes)), bool)
    truth[train_rows], truth[val_rows] = dataset.train.truth, dataset.val.truth
    return truth
