"""Other ways to make features with the packaged networks. Each is made of passes, and of what is done with them.

What joins several vectors brings each to the same length first, as models/backbones/joined.py does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from annotator.benchmark.variants.passes import POOLED_BY, Pass

LARGER, SMALLER = "efficientnet_lite2", "efficientnet_lite0"
PLAIN = Pass(LARGER, 260, is_pooled=True)  # its first third is what the network gives as published
SHRINKAGE = 0.1  # of a mean variance, added to all of them before they are made alike
Combine = Callable[[list[np.ndarray]], np.ndarray]


@dataclass(frozen=True)
class Variant:
    """A way to make features out of passes.

    Attributes:
        passes: The passes that it takes.
        combine: Their vectors, (N, 1 + R, D) each -> (N, 1 + R, D).
    """

    name: str
    passes: tuple[Pass, ...]
    combine: Combine

    @property
    def timed(self) -> tuple[Pass, ...]:
        """The passes that this variant would take by itself; pooling in other ways takes no measurable time."""
        return tuple(Pass(way.network, way.size, way.is_mirrored) for way in self.passes)


def side_by_side(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate vectors, after bringing each part to the same length."""
    wide = [part.astype(np.float32) for part in parts]
    wide = [part / np.maximum(np.linalg.norm(part, axis=2, keepdims=True), 1e-6) for part in wide]
    return (np.concatenate(wide, 2) * np.sqrt(wide[0].shape[2])).astype(np.float16)


def mean(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean of the parts."""
    return np.mean([part.astype(np.float32) for part in parts], 0).astype(np.float16)


def pooled_by(*ways: str) -> Combine:
    """Return a function that takes some of the poolings of POOLED_BY."""

    def combine(parts: list[np.ndarray]) -> np.ndarray:
        each = np.split(parts[0], len(POOLED_BY), 2)
        chosen = [each[POOLED_BY.index(way)] for way in ways]
        return chosen[0] if len(chosen) == 1 else side_by_side(chosen)

    return combine


def average(part: np.ndarray) -> np.ndarray:
    """Return the average-pooled part of the features of PLAIN, which is what the default network gives."""
    return part[:, :, : part.shape[2] // len(POOLED_BY)]


def whitened(power: float) -> Combine:
    """Return a function that raises variances along the roots' principal axes to 1 - power; 1: all become equal.

    The roots are what `auto` learns from.
    """

    def combine(parts: list[np.ndarray]) -> np.ndarray:
        vectors = average(parts[0]).astype(np.float32)
        roots = np.sqrt(np.abs(vectors)) * np.sign(vectors)
        centred = roots - roots[:, 0].mean(0)
        rows = centred.reshape(-1, centred.shape[2])
        values, axes = np.linalg.eigh(rows.T @ rows / len(rows))
        scales = (np.maximum(values, 0) + SHRINKAGE * values.mean()) ** (-power / 2)
        turned = centred @ ((axes * (scales / scales.mean())) @ axes.T)
        return (turned * np.abs(turned)).astype(np.float16)  # roots of these are what was turned

    return combine


def _only(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0]


def _beside_default(parts: list[np.ndarray]) -> np.ndarray:
    return side_by_side([average(parts[0]), *parts[1:]])


DEFAULT = Variant(f"{LARGER} at 260, as it is", (PLAIN,), pooled_by("average"))
VARIANTS = (
    DEFAULT,
    Variant("the same, maximum", (PLAIN,), pooled_by("maximum")),
    Variant("the same, generalized mean", (PLAIN,), pooled_by("generalized mean")),
    Variant("the same, average and maximum", (PLAIN,), pooled_by("average", "maximum")),
    Variant("the same, whitened by a quarter", (PLAIN,), whitened(0.25)),
    Variant("the same, whitened by half", (PLAIN,), whitened(0.5)),
    Variant("at 320", (Pass(LARGER, 320),), _only),
    Variant("at 352", (Pass(LARGER, 352),), _only),
    Variant("at 260 and 192", (PLAIN, Pass(LARGER, 192)), _beside_default),
    Variant(
        "with its mirror image",
        (PLAIN, Pass(LARGER, 260, is_mirrored=True)),
        lambda parts: mean([average(parts[0]), parts[1]]),
    ),
    Variant(f"beside {SMALLER} at 224", (PLAIN, Pass(SMALLER, 224)), _beside_default),
    Variant(f"beside {SMALLER} at 320", (PLAIN, Pass(SMALLER, 320)), _beside_default),
    Variant(f"{SMALLER} at 224", (Pass(SMALLER, 224),), _only),
    Variant(f"{SMALLER} at 320", (Pass(SMALLER, 320),), _only),
    Variant(f"{SMALLER} at 448", (Pass(SMALLER, 448),), _only),
)
