"""Scores by names, made comparable between classes and converted to probabilities.

Similarities of images and texts have a level and a spread of their own for each text, so each class is standardised
over the images of the collection. That discards how frequent a class is, which nobody has said so far.
"""

import numpy as np
from scipy.special import expit, logit

CLASS_SHIFT = 2.0  # standard deviations by which images with a class are taken to lie above those without
MAX_SCORE = 4.0  # standard deviations that count
MAX_CLASS_SHARE = 0.3  # of the images that show a class, before any answer
CLASSES_PER_CHUNK = 16  # classes at once: no second copy of everything


def standardize(scores: np.ndarray) -> np.ndarray:
    """Return scores (N, C) with mean 0 and deviation 1 in each class; 0 in a constant class; nan stays nan."""
    scores = np.asarray(scores, np.float64)
    known = ~np.isnan(scores)
    count = np.maximum(known.sum(0), 1)
    centred = scores - np.where(known, scores, 0).sum(0) / count
    spread = np.sqrt(np.square(np.where(known, centred, 0)).sum(0) / count)
    return centred / np.where(spread > 1e-9, spread, np.inf)


def guess_probabilities(image_scores: np.ndarray, patch_scores: np.ndarray | None = None) -> np.ndarray:
    """Return (N, C) float32 probabilities of the classes by the scores of their names alone.

    The scores of the whole image and of its patches have equal weight. Classes are assumed to be equally frequent, one
    an image, and the scores of images with a class to lie CLASS_SHIFT standard deviations over those without, both
    normal:
    the log odds are then linear in the score. That is an assumption, not a calibration: answers correct it
    (spmll/statistics/outside_scores.py).

    Args:
        image_scores: (N, C), how well the texts of each class fit the whole image, on any scale; nan where unknown.
        patch_scores: (N, C), how well they fit the best patch; where None or nan, the whole image alone counts.
    """
    images, classes = image_scores.shape
    result = np.empty((images, classes), np.float32)
    share = min(MAX_CLASS_SHARE, 1 / max(1, classes))
    for start in range(0, classes, CLASSES_PER_CHUNK):
        columns = slice(start, start + CLASSES_PER_CHUNK)
        together = standardize(image_scores[:, columns])
        if patch_scores is not None:
            own = standardize(patch_scores[:, columns])
            together += np.where(np.isnan(own), together, own)
        score = np.clip(standardize(together), -MAX_SCORE, MAX_SCORE)
        result[:, columns] = expit(logit(share) + CLASS_SHIFT * score - CLASS_SHIFT**2 / 2)
    return result
