"""A set of images with its whole truth, in three parts, and what training gets to see of it.

The sets of the papers come with an official training set (split here into training and validation, 80 to 20) and a
test set; their single-positive labels are drawn on the whole official training set, before it is split.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotator.errors import AnnotatorError
from spmll.single_positive_sampling import sample_single_positives, split_train_validation


@dataclass(frozen=True, eq=False)
class Part:
    """The images of one part of a set, with their truth.

    Attributes:
        paths: Existing files inside the folder of the set.
        truth: (n, C) bool, complete.
    """

    paths: tuple[Path, ...]
    truth: np.ndarray

    def __len__(self) -> int:
        return len(self.paths)

    def rows(self, rows: np.ndarray) -> "Part":
        """Return the part with only the given images, in the order of `rows`."""
        return Part(tuple(self.paths[row] for row in rows), self.truth[rows])


@dataclass(frozen=True, eq=False)
class DataSet:
    """A set of images with their truth, in three parts, on which methods are compared.

    Attributes:
        name: A name in DATASETS.
        classes: C names, in the order of the columns.
        train, val: The two parts of the official training set, or of a folder.
        test: The official test set, or the rest of a folder.
        observed: (n_train, C) int8, the labels that training sees: 1 present, -1 absent, 0 unseen. For the sets of the
            papers as published; for a folder, one label of every image that shows anything (seed 0). Other seeds and
            shares: clicks.draw_observed_labels.
        official_rows: The rows of train and val in the official training set of a paper's set; None for a folder.
        areas: (n_train, C), the size of each class on each training image, in any unit; None: not known.
        notes: Sentences for readers of the figures: the files used, images or classes left out.
    """

    name: str
    classes: tuple[str, ...]
    train: Part
    val: Part
    test: Part
    observed: np.ndarray
    official_rows: tuple[np.ndarray, np.ndarray] | None
    notes: tuple[str, ...] = ()
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
    """Return a set of the papers by their protocol (spmll/single_positive_sampling.py): labels and split, seed 1200.

    Args:
        name: The name of the set.
        classes: Names of the C classes.
        train: The official training part, its rows in the published order.
        test: The official test part, its rows in the published order.
        observed_labels: (len(train), C) published labels; None: they are drawn as the papers did.
        notes: Sentences about the set, for the report.
        areas: (len(train), C), the size of each class on each image; None: not known.

    Raises:
        AnnotatorError: A part would be without an image.
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
    """Return the truth of the official training set in its published order, (n_train + n_val, C) bool."""
    if dataset.official_rows is None:
        raise ValueError(f"{dataset.name} is no set of the papers: its rows have no published order.")
    train_rows, val_rows = dataset.official_rows
    truth = np.empty((len(train_rows) + len(val_rows), len(dataset.classes)), bool)
    truth[train_rows], truth[val_rows] = dataset.train.truth, dataset.val.truth
    return truth
