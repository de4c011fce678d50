"""Scores by class names, standardized per class and converted to probabilities.

Level and spread of similarities depend on the text. Standardization discards class frequency.
"""

import numpy as np
from scipy.special import expit, logit

CLASS_SHIFT = 2.0  # standard deviations by which images with a class are taken to lie above those without
MAX_SCORE = 4.0  # standard deviations that count
MAX_CLASS_SHARE = 0.3  # of the images that show a class, before any answer
CLASSES_PER_CHUNK = 16  # classes at once: no second copy of everything


def standardize(scores: np.ndarray) -> np.ndarray:
    """Standardize scores (N, C) per class: mean 0 and deviation 1, but 0 if constant. nan is kept."""
    scores = np.asarray(scores, np.float64)
    known = ~np.isnan(scores)
    count = np.maximum(known.sum(0), 1)
    centred = scores - np.where(known, scores, 0).sum(0) / count
    spread = np.sqrt(np.square(np.where(known, centred, 0)).sum(0) / count)
    return centred / np.where(spread > 1e-9, spread, np.inf)


def guess_probabilities(image_scores: np.ndarray, patch_scores: np.ndarray | None = None) -> np.ndarray:
    """Return (N, C) float32 probabilities from scores of class names alone.

    Image and patches weigh equally. Assumes equally frequent classes, one per image, and normal scores CLASS_SHIFT
    standard deviations higher with the class, so log odds are linear. Answers correct this later.

    Args:
        image_scores: (N, C), any scale, or nan.
        patch_scores: (N, C), score of the best patch, or nan.
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
