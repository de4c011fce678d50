"""Class rates at an image's place and hour, an input of the stacker.

They use unbiased answers outside the image's own event, whose similar frames would reveal the answer. Rates are shrunk
from place and hour to place to all, by a Beta prior. A simpler form of Context R-CNN (Beery et al., CVPR 2020).
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import logit

from spmll.labels import ABSENT, PRESENT

PARTS_OF_DAY = 6  # of four hours each
PRIOR_EVENTS = 16.0  # events: with as many, a rate and that of the level above count alike
MAX_INPUT = 4.0  # an input lies between -MAX_INPUT and MAX_INPUT
MAX_CELLS = 50_000_000  # of a larger project no context is read: each input is a matrix of that size
CLASSES_PER_CHUNK = 4  # classes at once: the sums of each are several numbers an image
DAY_SECONDS = 86_400


@dataclass(frozen=True, eq=False)
class ImageContext:
    """The events, places and times of N images.

    Attributes:
        events, places: (N,) int64.
        times: (N,), local unix seconds, or nan.
    """

    events: np.ndarray
    places: np.ndarray
    times: np.ndarray

    def select(self, rows: np.ndarray) -> "ImageContext":
        return ImageContext(self.events[rows], self.places[rows], self.times[rows])

    def compute_inputs(self, rows: np.ndarray, labels: np.ndarray, unbiased: np.ndarray) -> list[np.ndarray]:
        """Return [log odds (N, C) float32 at place and hour less those of all], nan if unknown.

        [] if nothing is known or the project is too large.

        Args:
            rows: (n,), labeled images.
            labels: (n, C).
            unbiased: (n, C) bool.
        """
        if len(self.events) * labels.shape[1] > MAX_CELLS:
            return []
        sure = unbiased & ((labels == PRESENT) | (labels == ABSENT))
        result, keys = np.empty((len(self.events), labels.shape[1]), np.float32), self._compute_keys()
        for start in range(0, labels.shape[1], CLASSES_PER_CHUNK):
            some = slice(start, start + CLASSES_PER_CHUNK)
            result[:, some] = _compute_log_odds(*keys, rows, labels[:, some] == PRESENT, sure[:, some])
        return [] if np.isnan(result).all() else [result]

    def _compute_keys(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return numbers from 0 for the event, the place, and the place with hour of each image, (N,) each."""
        events, event = np.unique(self.events, return_inverse=True)
        first = np.full(len(events), np.inf)  # the hour of an event is that of its first image, so it is at one place
        np.fmin.at(first, event, self.times)
        known = np.isfinite(first)
        hours = np.where(
            known, np.where(known, first, 0) % DAY_SECONDS * PARTS_OF_DAY // DAY_SECONDS, PARTS_OF_DAY
        ).astype(np.int64)
        places = np.unique(self.places, return_inverse=True)[1]
        return event, places, places * (PARTS_OF_DAY + 1) + hours[event]


def _compute_log_odds(
    event: np.ndarray,
    places: np.ndarray,
    place_hours: np.ndarray,
    rows: np.ndarray,
    present: np.ndarray,
    sure: np.ndarray,
) -> np.ndarray:
    """Return log odds of presence at each image's place and hour, less those of all images, (N, C)."""
    events = int(event.max()) + 1
    # An event counts once, however many of its images were answered: they look alike.
    times_answered = np.maximum(_sum_by_key(sure.astype(np.float64), event[rows], events)[event[rows]].toarray(), 1)
    answered, positive = sure / times_answered, (present & sure) / times_answered
    own = [_sum_by_key(values, event[rows], events)[event] for values in (positive, answered)]

    def elsewhere(keys: np.ndarray) -> list[np.ndarray]:
        """Return the positives and the answers with the same key in other events than the image's own, (N, C) each."""
        totals = [_sum_by_key(values, keys[rows], int(keys.max()) + 1)[keys] for values in (positive, answered)]
        return [(total - of_event).toarray() for total, of_event in zip(totals, own, strict=True)]

    found, answers = elsewhere(np.zeros(len(places), np.int64))
    base = (found + 0.5) / (answers + 1)
    found, answers = elsewhere(places)
    unknown = answers == 0
    rate = (found + PRIOR_EVENTS * base) / (answers + PRIOR_EVENTS)
    found, answers = elsewhere(place_hours)
    rate = (found + PRIOR_EVENTS * rate) / (answers + PRIOR_EVENTS)
    result = np.clip(logit(rate) - logit(base), -MAX_INPUT, MAX_INPUT).astype(np.float32)
    result[unknown] = np.nan
    return result


def _sum_by_key(values: np.ndarray, keys: np.ndarray, count: int) -> sparse.csr_matrix:
    """Sum the rows of `values` that have the same key, (count, C)."""
    ones = np.ones(len(keys))
    return sparse.csr_matrix((ones, (keys, np.arange(len(keys)))), (count, len(keys))) @ sparse.csr_matrix(values)
