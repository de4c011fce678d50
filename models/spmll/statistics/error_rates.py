"""Sensitivity and specificity by person and class, from cells with several answers.

Binary Dawid & Skene (1979) per class: a cell is present with pi_c, and person j answers rightly with s_jc if
present, t_jc if absent, independently. Equal answers form one pattern.

Priors: s_jc ~ Beta(PRIOR_STRENGTH m_j, PRIOR_STRENGTH (1 - m_j)), m_j ~ Beta(MEAN_PRIOR), t_jc alike, pi_c ~
Beta(1, 1). A person's classes inform each other. Gibbs sampling, with means on a grid, because fixed means
gave too narrow intervals. Shared mistakes count as right.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

PRIOR_STRENGTH = 10.0  # cells that a person's mean counts for in each class
MEAN_PRIOR = (6.0, 1.0)  # the prior of a person's mean: most are right more often than not
WARM_UP_DRAWS, POSTERIOR_DRAWS = 200, 2000
# Probabilities alone: in simulations 2 % of the cells on which three people differ change between sure (90 %) and not
# against 2,000 draws, 1 % between two runs of 2,000, and none from sure to sure of the opposite.
BRIEF_WARM_UP_DRAWS, BRIEF_DRAWS = 50, 400
INTERVAL_LEVEL = 0.95
MEAN_GRID = np.arange(0.005, 1, 0.01)

Pattern = tuple[int, tuple[tuple[int, bool], ...]]
"""A class, and the people who answered with what each said (True: present)."""


@dataclass(frozen=True)
class ErrorRates:
    """The estimated sensitivity and specificity of P people, and the probability of presence by answer pattern.

    Attributes:
        sensitivity, specificity: (P, C, 3): mean, and ends of the 95% interval.
        present, absent: (P, C), expected present and absent cells that a person answered.
        probability: Pattern -> P(present).
    """

    sensitivity: np.ndarray
    specificity: np.ndarray
    present: np.ndarray
    absent: np.ndarray
    probability: dict[Pattern, float]


class _Answers:
    """The answers of all answer patterns as arrays. A rater is a pair of person and class."""

    def __init__(self, patterns: Mapping[Pattern, int], people: int, classes: int):
        self.people, self.classes = people, classes
        self.cells = np.array(list(patterns.values()), np.int64)
        self.class_ = np.array([class_ for class_, _ in patterns], np.int64)
        answers = [
            (index, person * classes + class_, said)
            for index, (class_, row) in enumerate(patterns)
            for person, said in row
        ]
        self.pattern, self.rater, said = np.array(answers, np.int64).reshape(-1, 3).T
        self.said = said.astype(bool)

    def sum_by_rater(self, cells: np.ndarray, selected: np.ndarray) -> np.ndarray:
        """Sum the cell counts of patterns over the selected answers, (P, C)."""
        size = self.people * self.classes
        return np.bincount(self.rater, cells[self.pattern] * selected, size).reshape(self.people, self.classes)

    def sum_by_class(self, cells: np.ndarray) -> np.ndarray:
        return np.bincount(self.class_, cells, self.classes)

    def compute_probability(self, share: np.ndarray, sensitivity: np.ndarray, specificity: np.ndarray) -> np.ndarray:
        """Return the probability of presence per pattern by Bayes' rule."""
        from scipy.special import expit, logit

        if_present, if_absent = logit(sensitivity).ravel(), logit(specificity).ravel()
        # log s / (1 - t) where present was said, log (1 - s) / t where absent was.
        base = np.log1p(-sensitivity).ravel() - np.log(specificity).ravel()
        weight = base[self.rater] + np.where(self.said, (if_present + if_absent)[self.rater], 0.0)
        return expit(logit(share)[self.class_] + np.bincount(self.pattern, weight, len(self.cells)))

    def count_answers(self, present: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the numbers of right and of all answers to present cells, then to absent cells, each (P, C)."""
        absent = self.cells - present
        everything = np.ones(len(self.said), bool)
        return (
            self.sum_by_rater(present, self.said),
            self.sum_by_rater(present, everything),
            self.sum_by_rater(absent, ~self.said),
            self.sum_by_rater(absent, everything),
        )


def estimate_error_rates(patterns: Mapping[Pattern, int], people: int, classes: int, seed: int = 0) -> ErrorRates:
    """Estimate the rates from cells with two or more answers.

    Args:
        patterns: (class, ((person, whether present), ...)) -> number of cells. Classes and people are numbered from 0.

    Raises:
        ValueError: A pattern has fewer than two answers.
    """
    _check_two_answers(patterns)
    start = _make_start(people, classes)
    return sample_error_rates(patterns, start, start, seed, holds_means=False)


def estimate_probabilities(
    patterns: Mapping[Pattern, int], people: int, classes: int, seed: int = 0
) -> dict[Pattern, float]:
    """Approximate `estimate_error_rates(...).probability`, five times faster."""
    _check_two_answers(patterns)
    answers, start = _Answers(patterns, people, classes), _make_start(people, classes)
    total = np.zeros(len(answers.cells))
    for *_, probability in _sample_draws(answers, start, start, seed, False, BRIEF_WARM_UP_DRAWS, BRIEF_DRAWS):
        total += probability
    return dict(zip(patterns, (total / BRIEF_DRAWS).tolist(), strict=True))


def sample_error_rates(
    patterns: Mapping[Pattern, int],
    mean_sensitivity: np.ndarray,
    mean_specificity: np.ndarray,
    seed: int = 0,
    holds_means: bool = True,
) -> ErrorRates:
    """Sample the rates, given prior means (P, C). They stay fixed if `holds_means`, otherwise they only start."""
    answers = _Answers(patterns, *mean_sensitivity.shape)
    drawn = np.zeros((2, POSTERIOR_DRAWS, *mean_sensitivity.shape))
    total = np.zeros(len(answers.cells))
    draws = _sample_draws(
        answers, mean_sensitivity, mean_specificity, seed, holds_means, WARM_UP_DRAWS, POSTERIOR_DRAWS
    )
    for draw, (sensitivity, specificity, probability) in enumerate(draws):
        drawn[:, draw] = sensitivity, specificity
        total += probability
    probability = total / POSTERIOR_DRAWS
    _, shown, _, empty = answers.count_answers(probability * answers.cells)
    figures = _summarize_draws(drawn)
    return ErrorRates(figures[0], figures[1], shown, empty, dict(zip(patterns, probability.tolist(), strict=True)))


def _check_two_answers(patterns: Mapping[Pattern, int]) -> None:
    if alone := [pattern for pattern in patterns if len(pattern[1]) < 2]:
        raise ValueError(f"Only cells that two people or more answered can be used; this has one answer: {alone[0]}")


def _make_start(people: int, classes: int) -> np.ndarray:
    return np.full((people, classes), MEAN_PRIOR[0] / sum(MEAN_PRIOR))


def _sample_draws(
    answers: _Answers,
    mean_sensitivity: np.ndarray,
    mean_specificity: np.ndarray,
    seed: int,
    holds_means: bool,
    warm_up: int,
    draws: int,
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield draws of sensitivity, specificity and pattern probability after the warm-up."""
    rng = np.random.default_rng(seed)
    sensitivity, specificity = mean_sensitivity, mean_specificity
    share = np.full(mean_sensitivity.shape[1], 0.5)
    for draw in range(-warm_up, draws):
        probability = answers.compute_probability(share, sensitivity, specificity)
        present = rng.binomial(answers.cells, probability)
        right, shown, rejected, empty = answers.count_answers(present)
        sensitivity = _draw_rates(rng, right, shown, mean_sensitivity)
        specificity = _draw_rates(rng, rejected, empty, mean_specificity)
        in_class = answers.sum_by_class(present)
        if not holds_means:
            mean_sensitivity = _draw_means(rng, sensitivity)
            mean_specificity = _draw_means(rng, specificity)
        share = _clip_rates(rng.beta(in_class + 1, answers.sum_by_class(answers.cells) - in_class + 1))
        if draw >= 0:
            yield sensitivity, specificity, probability


def _summarize_draws(drawn: np.ndarray) -> np.ndarray:
    return np.stack(
        [drawn.mean(1), *np.quantile(drawn, [(1 - INTERVAL_LEVEL) / 2, (1 + INTERVAL_LEVEL) / 2], axis=1)], -1
    )


def _draw_rates(rng: np.random.Generator, right: np.ndarray, total: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return _clip_rates(rng.beta(right + PRIOR_STRENGTH * mean, total - right + PRIOR_STRENGTH * (1 - mean)))


def _draw_means(rng: np.random.Generator, rates: np.ndarray) -> np.ndarray:
    """Draw each person's mean rate on a grid, (P, C)."""
    from scipy.special import betaln

    a, b = PRIOR_STRENGTH * MEAN_GRID, PRIOR_STRENGTH * (1 - MEAN_GRID)
    log = (MEAN_PRIOR[0] - 1) * np.log(MEAN_GRID) + (MEAN_PRIOR[1] - 1) * np.log(1 - MEAN_GRID)
    log = log - rates.shape[1] * betaln(a, b) + np.log(rates).sum(1)[:, None] * a + np.log1p(-rates).sum(1)[:, None] * b
    weight = np.exp(log - log.max(1, keepdims=True)).cumsum(1)
    index = (weight < rng.random((len(rates), 1)) * weight[:, -1:]).sum(1)
    return np.repeat(MEAN_GRID[index][:, None], rates.shape[1], 1)


def _clip_rates(rates: np.ndarray) -> np.ndarray:
    return np.clip(rates, 1e-9, 1 - 1e-9)
