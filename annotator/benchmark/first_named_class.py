"""The class of an image that a person names first: the model by which simulated people click.

Spain and Perona ("Measuring and predicting object importance", IJCV 2011) call the chance to be named first the
importance of an object, and model naming as drawing balls from an urn: a class is named first with its share of the
weights of all that an image shows. What decides about the weight are category and size, besides place and context
(Berg et al., "Understanding and predicting importance in images", CVPR 2012). Arroyo, Perona and Cole ("Understanding
Label Bias in Single Positive Multi-Label Learning", 2023, https://arxiv.org/abs/2305.15584) draw single positive labels
by each of these alone: by area, by place, or by a weight of the category.

    random     all weights are 1, as in the papers of methods
    salient    (salience of the class x length of the object) ^ strength; both as below
    biased     (share of the images that show the class) ^ strength: frequent classes are named, rare ones overlooked

The salience of a class is exp(z), z standard normal and drawn once for each class and seed. The length of an object is
the square root of its area, where boxes give it; otherwise exp(z) again, drawn for each cell and not to be seen in
the image. With strength 2 a weight is proportional to the area, as in Arroyo et al.
"""

from dataclasses import dataclass

import numpy as np

NAMING_KINDS = ("random", "salient", "biased")
MAX_STRENGTH = 10.0  # e^10 times as salient for one standard deviation: beyond it, all is decided


@dataclass(frozen=True)
class Naming:
    """The way in which people choose the class that they name first.

    Attributes:
        kind: One of NAMING_KINDS.
        strength: The power of the weights, in [0, MAX_STRENGTH]; 0 is random.
    """

    kind: str = "random"
    strength: float = 1.0

    @property
    def label(self) -> str:
        """Return the name for reports: the kind and, unless it is random, the strength."""
        return self.kind if self.kind == "random" else f"{self.kind} {self.strength:g}"


RANDOM_NAMING = Naming()


def draw_class_salience(classes: int, strength: float, chance: np.random.Generator) -> np.ndarray:
    """Draw (C,) positive factors by which each class is noticed more than usual; log-normal, of spread `strength`."""
    return np.exp(strength * chance.normal(size=classes))


def compute_log_weights(truth: np.ndarray, naming: Naming, seed: int, areas: np.ndarray | None = None) -> np.ndarray:
    """Return the logarithms (n, C) of the weights with which the classes of an image are named first.

    Args:
        truth: (n, C) bool.
        naming: The way in which the first class is named.
        seed: The seed of the salience of classes, and of the lengths of objects without a box.
        areas: (n, C) of what each image shows, in any unit, above 0 where truth is True; None: not known.
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
    """Return (n,) int64, the class named first on each image; 0 if the image shows nothing.

    The class with the largest u^(1 / weight) is a draw by weights (Efraimidis and Spirakis, "Weighted random sampling
    with a reservoir", Information Processing Letters, 2006).

    Args:
        truth: (n, C) bool.
        uniform: (n, C) random numbers of [0, 1).
        log_weights: (n, C); None: all are equal.
    """
    keys = uniform
    if log_weights is not None:
        with np.errstate(divide="ignore"):  # a number of exactly 0 has the lowest key there is
            keys = log_weights - np.log(-np.log(uniform))
    return np.where(truth, keys, -np.inf).argmax(1) if truth.size else np.zeros(len(truth), np.int64)


def compute_naming_rates(truth: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return for each class (C,) the share of the clicked images showing it on which it is named; nan if none shows it.

    Args:
        truth: (n, C) bool.
        labels: (n, C) int8 of the same images, 1 where a class is named.
    """
    clicked = (labels == 1).any(1)
    shown = truth[clicked].sum(0)
    return np.where(shown, (labels[clicked] == 1).sum(0) / np.maximum(shown, 1), np.nan)
