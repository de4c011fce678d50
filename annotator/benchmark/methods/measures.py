"""Optional figures of a comparison of methods: `--measures A,B,...`."""

import re

import numpy as np

from annotator.errors import did_you_mean
from spmll.statistics.metrics import precision_and_recall_at, wasserstein_distance

FIGURE_HEADINGS = {"hidden_ap": "hidden AP", "hidden_map": "hidden mAP"}  # of task.HIDDEN_FIGURES
PLAIN_MEASURES = ("train_map", "wasserstein")
AT_K_PATTERN = re.compile(r"(precision|recall)@([1-9][0-9]*)")
KNOWN_MEASURES = (*PLAIN_MEASURES, "precision@K", "recall@K")
MEASURE_NOTES = {
    "train_map": "train_map: as test mAP, on the training images, against their whole truth.",
    "wasserstein": (
        "wasserstein: the Wasserstein distance between the probabilities of positives and of negatives among the cells "
        "of validation images that would be unseen in training, in hundredths."
    ),
    "precision@": "precision@K: the share of true classes among the K most probable ones of a test image.",
    "recall@": (
        "recall@K: the share of the classes of a test image that are among its K most probable ones, of images that "
        "show any."
    ),
}


def find_unknown_measures(names: tuple[str, ...]) -> list[str]:
    wrong = [name for name in names if name not in PLAIN_MEASURES and not AT_K_PATTERN.fullmatch(name)]
    return [f"no measure is called {name!r}. {did_you_mean(name, KNOWN_MEASURES)}" for name in wrong]


def list_notes(names: tuple[str, ...]) -> list[str]:
    """Return the notes that explain these measures, one per kind."""
    return [note for start, note in MEASURE_NOTES.items() if any(name.startswith(start) for name in names)]


def compute_at_k(names: tuple[str, ...], probabilities: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return precision@K and recall@K of each image's top classes, for those names that have this form."""
    matches = [match for name in names if (match := AT_K_PATTERN.fullmatch(name))]
    return {
        match.group(): precision_and_recall_at(probabilities, truth, int(match.group(2)))[match.group(1) == "recall"]
        for match in matches
    }


def compute_separation(probabilities: np.ndarray, truth: np.ndarray, observed: np.ndarray) -> float:
    """Return the Wasserstein distance between probabilities of unseen positives and of negatives, in [0, 1] or nan.

    Args:
        probabilities: (n, C), nan columns are ignored.
        truth: (n, C) bool.
        observed: (n, C) bool, positives visible in training.

    Source: Chen et al. 2024, sec. 4.4 ("Distinguishability of model predictions"), fig. 3.
    """
    unseen = ~observed & np.isfinite(probabilities)
    return wasserstein_distance(probabilities[unseen & truth], probabilities[unseen & ~truth])
