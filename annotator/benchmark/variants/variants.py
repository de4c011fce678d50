"""Other ways to make features with the packaged networks. Each is made of passes, and of what is done with them.

What joins several vectors brings each to the same length first, as spmll/backbones/joined_networks.py does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from annotator.benchmark.variants.passes import POOLED_BY, Pass

LARGER_NETWORK, SMALLER_NETWORK = "efficientnet_lite2", "efficientnet_lite0"
PLAIN_PASS = Pass(LARGER_NETWORK, 260, is_pooled=True)  # its first third is what the network gives as published
VARIANCE_SHRINKAGE = 0.1  # of a mean variance, added to all of them before they are made alike
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
    def timed_passes(self) -> tuple[Pass, ...]:
        """The passes that this variant would take by itself; pooling in other ways takes no measurable time."""
        return tuple(Pass(way.network, way.size, way.is_mirrored) for way in self.passes)


def join_vectors(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate vectors, after bringing each part to the same length."""
    wide = [part.astype(np.float32) for part in parts]
    wide = [part / np.maximum(np.linalg.norm(part, axis=2, keepdims=True), 1e-6) for part in wide]
    return (np.concatenate(wide, 2) * np.sqrt(wide[0].shape[2])).astype(np.float16)


def average_parts(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean of the parts."""
    return np.mean([part.astype(np.float32) for part in parts], 0).astype(np.float16)


def build_pooling(*ways: str) -> Combine:
    """Return a function that takes some of the poolings of POOLED_BY."""

    def combine(parts: list[np.ndarray]) -> np.ndarray:
        each = np.split(parts[0], len(POOLED_BY), 2)
        chosen = [each[POOLED_BY.index(way)] for way in ways]
        return chosen[0] if len(chosen) == 1 else join_vectors(chosen)

    return combine


def select_average(part: np.ndarray) -> np.ndarray:
    """Return the average-pooled part of the features of PLAIN_PASS, which is what the default network gives."""
    return part[:, :, : part.shape[2] // len(POOLED_BY)]


def build_whitening(power: float) -> Combine:
    """Return a function that raises variances along the roots' principal axes to 1 - power; 1: all become equal.

    The roots are what `auto` learns from.
    """

    def combine(parts: list[np.ndarray]) -> np.ndarray:
        vectors = select_average(parts[0]).astype(np.float32)
        roots = np.sqrt(np.abs(vectors)) * np.sign(vectors)
        centred = roots - roots[:, 0].mean(0)
        rows = centred.reshape(-1, centred.shape[2])
        values, axes = np.linalg.eigh(rows.T @ rows / len(rows))
        scales = (np.maximum(values, 0) + VARIANCE_SHRINKAGE * values.mean()) ** (-power / 2)
        turned = centred @ ((axes * (scales / scales.mean())) @ axes.T)
        return (turned * np.abs(turned)).astype(np.float16)  # roots of these are what was turned

    return combine


def _take_only_part(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0]


def _join_with_default(parts: list[np.ndarray]) -> np.ndarray:
    return join_vectors([select_average(parts[0]), *parts[1:]])


DEFAULT_VARIANT = Variant(f"{LARGER_NETWORK} at 260, as it is", (PLAIN_PASS,), build_pooling("average"))
VARIANTS = (
    DEFAULT_VARIANT,
    Variant("the same, maximum", (PLAIN_PASS,), build_pooling("maximum")),
    Variant("the same, generalized mean", (PLAIN_PASS,), build_pooling("generalized mean")),
    Variant("the same, average and maximum", (PLAIN_PASS,), build_pooling("average", "maximum")),
    Variant("the same, whitened by a quarter", (PLAIN_PASS,), build_whitening(0.25)),
    Variant("the same, whitened by half", (PLAIN_PASS,), build_whitening(0.5)),
    Variant("at 320", (Pass(LARGER_NETWORK, 320),), _take_only_part),
    Variant("at 352", (Pass(LARGER_NETWORK, 352),), _take_only_part),
    Variant("at 260 and 192", (PLAIN_PASS, Pass(LARGER_NETWORK, 192)), _join_with_default),
    Variant(
        "with its mirror image",
        (PLAIN_PASS, Pass(LARGER_NETWORK, 260, is_mirrored=True)),
        lambda parts: average_parts([select_average(parts[0]), parts[1]]),
    ),
    Variant(f"beside {SMALLER_NETWORK} at 224", (PLAIN_PASS, Pass(SMALLER_NETWORK, 224)), _join_with_default),
    Variant(f"beside {SMALLER_NETWORK} at 320", (PLAIN_PASS, Pass(SMALLER_NETWORK, 320)), _join_with_default),
    Variant(f"{SMALLER_NETWORK} at 224", (Pass(SMALLER_NETWORK, 224),), _take_only_part),
    Variant(f"{SMALLER_NETWORK} at 320", (Pass(SMALLER_NETWORK, 320),), _take_only_part),
    Variant(f"{SMALLER_NETWORK} at 448", (Pass(SMALLER_NETWORK, 448),), _take_only_part),
)
