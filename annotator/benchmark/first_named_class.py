"""The class that a person names first on an image: the click model of simulated annotators.

It is drawn by object weights (Spain and Perona, IJCV 2011), which depend on category, size and context (Berg et al.,
CVPR 2012). See also Arroyo, Perona and Cole, 2023, https://arxiv.org/abs/2305.15584.

    random     all weights are 1
    salient    (class salience x object length) ^ strength
    biased     (share of images with the class) ^ strength

Class salience is exp(z), z standard normal per class and seed. Object length is the square root of the box
area, otherwise exp(z) per cell. Strength 2 weights by area, as in Arroyo et al.
"""

from dataclasses import dataclass

import numpy as np

NAMING_KINDS = ("random", "salient", "biased")
MAX_STRENGTH = 10.0  # e^10 times as salient for one standard deviation: beyond it, all is decided


@dataclass(frozen=True)
class Naming:
    """A click model: how annotators choose the one class that they name first on an image.

    `strength` is the exponent of the weights. 0 means random.
    """

    kind: str = "random"
    strength: float = 1.0

    @property
    def label(self) -> str:
        """Return the kind and the strength as text for reports."""
        return self.kind if self.kind == "random" else f"{self.kind} {self.strength:g}"


RANDOM_NAMING = Naming()


def draw_class_salience(classes: int, strength: float, chance: np.random.Generator) -> np.ndarray:
    """Draw log-normal salience factors of classes, (C,). `strength` is the standard deviation of their log."""
    return np.exp(strength * chance.normal(size=classes))


def compute_log_weights(truth: np.ndarray, naming: Naming, seed: int, areas: np.ndarray | None = None) -> np.ndarray:
    """Return the log weight of naming each class first, per image and class (n, C).

    `areas` (n, C) are object areas, above 0 where truth is True.
    """
    if naming.kind == "random":
        return np.zeros(truth.shape)
    if naming.kind == "biased":
        return np.broadcast_to(naming.strength * np.log(np.maximum(truth.sum(0), 1)), truth.shape)
    # A stream of its own: which images are clicked does not depend on what is named.
    chance = np.random.default_rng([seed, 3])
    of_class = np.log(draw_class_salience(truth.shape[1], naming.strength, chance))
    drawn = chance.normal(size=truth.shape)
    log_lengths = drawn if areas is None else np.log(np.where(truth, areas, 1)) / 2
    return of_class + naming.strength * log_lengths


def choose_first_classes(truth: np.ndarray, uniform: np.ndarray, log_weights: np.ndarray | None = None) -> np.ndarray:
    """Return the class named first per image, (n,) int64, 0 if none.

    The largest u^(1 / weight) is a weighted draw (Efraimidis and Spirakis, Information Processing Letters, 2006).

    Args:
        uniform: (n, C) in [0, 1).
    """
    keys = uniform
    if log_weights is not None:
        with np.errstate(divide="ignore"):  # a number of exactly 0 has the lowest key there is
            keys = log_weights - np.log(-np.log(uniform))
    return np.where(truth, keys, -np.inf).argmax(1) if truth.size else np.zeros(len(truth), np.int64)


def compute_naming_rates(truth: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return per class, (C,), the share of clicked images showing it whose click names it, nan without images."""
    clicked = (labels == 1).any(1)
    shown = truth[clicked].sum(0)
    return np.where(shown, (labels[clicked] == 1).sum(0) / np.maximum(shown, 1), np.nan)
