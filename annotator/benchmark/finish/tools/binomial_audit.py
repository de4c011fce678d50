"""The baselines' stopping rule: a random sample of unanswered cells, and an exact binomial bound.

The bound is by Clopper and Pearson, Biometrika 1934. The j-th audit uses confidence 1 - (1 - c) / 2^j, so that all
together err at most like one of confidence c.
"""

import math

import numpy as np
from scipy.stats import beta

from annotator.benchmark.finish.protocol import Question
from annotator.records import PRESENT
from annotator.store.labels.audits import OPEN

TILES_PER_GRID = 24
MAX_EXPECTED_SHARE = 0.5  # an audit is drawn when the model expects this share of what may be missing at most,
MIN_OPEN_DROP_SHARE = 0.1  # once so many fewer pairs are open than at the last one,
MAX_SAMPLE_SHARE = 0.5  # and when a sample of this share of the open pairs would be enough
MIN_SAMPLE_PAIRS = 20


def compute_upper_limit(positives: int, sample_pairs: int, miss: float) -> float:
    """Return the Clopper-Pearson upper limit of the share of positives, given `positives` in a random sample.

    It is wrong with probability `miss`.
    """
    return 1.0 if positives >= sample_pairs else float(beta.ppf(1 - miss, positives + 1, sample_pairs - positives))


def choose_sample_size(open_pairs: int, allowed: float, rate: float, miss: float) -> int | None:
    """Return the smallest sample that can prove at most `allowed` positives among the other unanswered cells, or None.

    `rate` is the expected share of positives, `miss` the probability of a wrong proof.
    """
    for size in np.unique(
        np.geomspace(MIN_SAMPLE_PAIRS, max(MIN_SAMPLE_PAIRS, MAX_SAMPLE_SHARE * open_pairs), 40).astype(int)
    ).tolist():
        found = math.ceil(rate * size)
        if (
            size <= MAX_SAMPLE_SHARE * open_pairs
            and compute_upper_limit(found, size, miss) * (open_pairs - size) <= allowed
        ):
            return size
    return None


class BinomialAudit:
    """The audits of one project, and whether they certify its recall."""

    def __init__(self, recall: float, confidence: float, rng: np.random.Generator):
        self.recall, self.confidence, self.rng = recall, confidence, rng
        self.certified, self._number, self._last_open = False, 0, math.inf
        self._waiting: list[Question] = []
        self._sample: tuple[np.ndarray, int, float] | None = None

    def next_question(self, labels: np.ndarray, chances: np.ndarray | None) -> Question | None:
        """Return the next question of the current or a new audit, or None if no audit is due."""
        if self._sample and not self._waiting:
            self._judge_sample(labels)
        if not self._waiting and not self.certified and chances is not None:
            self._draw_sample(labels, chances)
        return self._waiting.pop(0) if self._waiting else None

    def _draw_sample(self, labels: np.ndarray, chances: np.ndarray) -> None:
        is_open = labels == OPEN
        count = int(is_open.sum())
        allowed = (labels == PRESENT).sum() * (1 - self.recall) / self.recall
        expected = float(np.nan_to_num(chances, nan=1.0)[is_open].sum())
        miss = (1 - self.confidence) / 2 ** (self._number + 1)
        if not count or count > (1 - MIN_OPEN_DROP_SHARE) * self._last_open or expected > MAX_EXPECTED_SHARE * allowed:
            return
        if (size := choose_sample_size(count, allowed, expected / count, miss)) is None:
            return
        cells = self.rng.permutation(np.argwhere(is_open))[:size]
        for column in np.unique(cells[:, 1]).tolist():
            rows = cells[cells[:, 1] == column, 0].tolist()
            self._waiting += [
                Question("grid", tuple(rows[start : start + TILES_PER_GRID]), (column,))
                for start in range(0, len(rows), TILES_PER_GRID)
            ]
        self._number, self._last_open, self._sample = self._number + 1, count, (cells, count, miss)

    def _judge_sample(self, labels: np.ndarray) -> None:
        assert self._sample is not None
        cells, count, miss = self._sample
        self._sample = None
        found = int((labels[cells[:, 0], cells[:, 1]] == PRESENT).sum())
        missing = compute_upper_limit(found, len(cells), miss) * (count - len(cells))
        present = int((labels == PRESENT).sum())
        self.certified = present >= self.recall * (present + missing)
