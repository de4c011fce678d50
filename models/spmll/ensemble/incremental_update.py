"""Fast corrections of a trained model by a few new decisions.

Each class gets a logistic regression on decisions since the training, offset by the model's logits. Weights shrink to
0, so a decision moves only similar images. Mean average precision rises by up to 0.02 (docs/learning-loop.md).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import logit
from torch import Tensor

from spmll.ensemble.basis import Basis, center_and_normalize, signed_sqrt, to_float_tensor
from spmll.labels import PRESENT
from spmll.linear.training import Features
from spmll.statistics.logistic import fit_logistic

BASIS_SAMPLE_IMAGES = 2000  # images whose features say which directions matter
IMAGES_PER_CHUNK = 2048  # images encoded or scored at once: a few MB, which a cache can hold
WEIGHT_VARIANCE = 4.0  # how far a logit may move for images exactly like the answered one (before: mean 0)
BIAS_VARIANCE = 0.05  # and for all images of the class: people are shown the likely ones, which says little of the rest
ArrayFactory = Callable[[tuple[int, ...], type[np.generic]], np.ndarray]  # makes an array of this shape and type
# probabilities are clipped to what float16 can still tell from 0 and 1
MIN_PROBABILITY, MAX_PROBABILITY = (1e-6, 1 - 2**-12)


def limit_thread_to_one_core() -> None:
    """Limit torch to one thread in the calling thread, permanently.

    `one_thread` would undo the setting of a concurrent training on exit.
    """
    torch.set_num_threads(1)


def fix_thread_count() -> None:
    """Fix this thread's torch thread count before another thread limits its own.

    New threads otherwise inherit the last setting.
    """
    torch.set_num_threads(torch.get_num_threads())


def learn_image_basis(features: Features, seed: int = 0) -> Basis:
    """Learn a basis for image codes: the principal axes of centered square-root features of length 1.

    Args:
        features: (N, D), pooled. Rows that are not finite are skipped.
    """
    rows = np.sort(np.random.default_rng(seed).permutation(len(features))[:BASIS_SAMPLE_IMAGES])
    roots = signed_sqrt(to_float_tensor(features[rows]))
    roots = roots[torch.isfinite(roots).all(1)]
    centre = roots.mean(0)
    return Basis.build(centre, [center_and_normalize(roots, centre)])


@dataclass(frozen=True)
class ImageCodes:
    """The codes of images: int8 coordinates `steps` (N, K) along the K axes of `basis`."""

    basis: Basis
    steps: Tensor

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, rows: np.ndarray | slice) -> Tensor:
        """Return (n, K) float32 coordinates of some images, 0 where features are not finite."""
        chosen = torch.from_numpy(rows) if isinstance(rows, np.ndarray) else rows
        return self.steps[chosen].float() * self.basis.scales

    def products(self, rows: np.ndarray, weights: Tensor) -> Tensor:
        """Return the coordinates of the images `rows` times weights (K, c): (n, c)."""
        if len(rows) and (np.diff(rows) == 1).all():  # neighbours, as all images of a run mostly are, are not copied
            steps = self.steps[int(rows[0]) : int(rows[-1]) + 1]
        else:
            steps = self.steps[torch.from_numpy(rows)]
        return steps.float() @ (self.basis.scales[:, None] * weights)

    def join(self, others: "ImageCodes", empty: ArrayFactory = np.empty) -> "ImageCodes":
        """Concatenate codes on the same basis."""
        steps = torch.from_numpy(empty((len(self) + len(others), self.steps.shape[1]), np.int8))
        steps[: len(self)], steps[len(self) :] = self.steps, others.steps
        return ImageCodes(self.basis, steps)


def encode_images(basis: Basis, features: Features, first: int = 0, empty: ArrayFactory = np.empty) -> ImageCodes:
    """Return the codes of the images from row `first` on.

    Args:
        features: (N, D).
        empty: Allocates the codes, for example on disk.
    """
    codes = torch.from_numpy(empty((len(features) - first, basis.axes.shape[1]), np.int8))
    for start in range(0, len(codes), IMAGES_PER_CHUNK):
        block = features[first + start : first + start + IMAGES_PER_CHUNK]
        codes[start : start + IMAGES_PER_CHUNK] = basis.quantize(
            center_and_normalize(signed_sqrt(to_float_tensor(block)), basis.centre).nan_to_num(0, 0, 0)
        )
    return ImageCodes(basis, codes)


def fit_correction(codes: Tensor, base: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return one class's logit correction (K + 1,): weights, then bias. Zeros if n is 0.

    Penalized logistic regression with an offset (Hastie et al. 2009, sec. 4.4 and 18.4).

    Args:
        codes: (n, K), coordinates of images answered since the training.
        base: (n,), their trained probabilities.
        states: (n,), 1 present, -1 absent.
    """
    spread = np.concatenate(
        [codes.numpy() * WEIGHT_VARIANCE**0.5, np.full((len(codes), 1), BIAS_VARIANCE**0.5)], axis=1, dtype=np.float64
    )
    basis, along = np.linalg.qr(spread.T)  # (K + 1, m), (m, n): m the smaller of K + 1 and n
    offset, size = logit(np.clip(base.astype(np.float64), MIN_PROBABILITY, MAX_PROBABILITY)), len(along)
    fitted = fit_logistic(along.T, states == PRESENT, np.zeros(size), np.ones(size), offset=offset)
    correction = basis @ fitted.coefficients[0]
    correction[:-1] *= WEIGHT_VARIANCE**0.5
    correction[-1] *= BIAS_VARIANCE**0.5
    return correction


def apply_corrections(codes: ImageCodes, images: np.ndarray, base: np.ndarray, corrections: np.ndarray) -> np.ndarray:
    """Return corrected probabilities (N, c) float16 of c classes.

    Args:
        images: (N,), row in `codes` per row of `base`.
        base: (N, c), trained probabilities, nan stays.
        corrections: (c, K + 1).
    """
    weights, biases = torch.from_numpy(corrections[:, :-1].T).float(), torch.from_numpy(corrections[:, -1]).float()
    out = np.empty(base.shape, np.float16)
    for start in range(0, len(base), IMAGES_PER_CHUNK):
        rows = slice(start, start + IMAGES_PER_CHUNK)
        chances = torch.from_numpy(np.ascontiguousarray(base[rows], np.float32))
        logits = (
            torch.logit(chances.clamp(MIN_PROBABILITY, MAX_PROBABILITY))
            + codes.products(images[rows], weights)
            + biases
        )
        out[rows] = torch.sigmoid(logits).numpy()
    return out
