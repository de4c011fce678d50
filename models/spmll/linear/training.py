"""Training of a linear head on cached features, one epoch at a time.

It takes about a second. Between epochs, callers of the generator `fit` may do other work or stop.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F

from spmll.labels import ABSENT, PRESENT
from spmll.methods.base import Method, check_positive, to_evidence_tensor
from spmll.rows import Rows

Array = np.ndarray | Tensor
Features = Array | Rows

ROWS_PER_CHUNK = 4096  # rows of features handled at once outside the batches: 21 MB of 1280-d float32
HEAD_FORMAT = "linear head, version 1"
MAX_FINITE_FEATURE = 1e15  # a feature so large is taken for one that is not finite

# Optimiser settings. One set for all methods, chosen on two photograph collections (1830 and 2000 images, 20 and 14
# classes, 1280-d features of an EfficientNet-Lite2) with one click on 5, 20, 50 and 100 % of the images, by the average
# precision of the hidden positives. Epochs and learning rate are the method's (spmll/methods/base.py).
#
# FEATURE_SCALE: features are centred, then all divided by the same number, so that the deviations of one image sum to
# about FEATURE_SCALE however many dimensions there are. Dividing each dimension by its own deviation was worse: it
# blows up dimensions that hardly ever speak. Small features mean slow weights beside a fast bias (Adam moves both by
# about the learning rate a step): how frequent a class is gets learned before what it looks like, and single clicks are
# memorised late.
FEATURE_SCALE = 160.0
WEIGHT_DECAY = 1e-4  # Adam's own, added to the gradient; helps most with a click on every image, where memorising hurts
STEPS_PER_EPOCH = 20  # batches an epoch, so that a training takes about as long for 100 images as for 10,000
MIN_BATCH_IMAGES, MAX_BATCH_IMAGES = 4, 1024


@dataclass(frozen=True)
class Epoch:
    """A record of a finished epoch."""

    number: int  # from 1
    total: int
    loss: float  # average of the batches, weighted by images
    seconds: float  # of this epoch alone


@dataclass(frozen=True)
class TrainingSettings:
    """Length and pace of a training. None selects defaults.

    Attributes:
        batch: Images per step. The default of `fit` is N / 20, between 4 and 1024.
        every_class: Train classes without positives too, as published code does.
    """

    epochs: int | None = None
    lr: float | None = None
    batch: int | None = None
    every_class: bool = False


class Head:
    """A linear classifier per class: p = sigmoid(features @ weight.T + bias).

    weight (C, D) and bias (C,) fit unscaled backbone features. Classes without positives have weight 0 and bias nan.
    """

    def __init__(self, dimensions: int, classes: int):
        """Create an untrained head, with nan probabilities. Raises ValueError."""
        if dimensions < 1 or classes < 1:
            raise ValueError(f"A head needs at least one dimension and one class, not {dimensions} and {classes}.")
        self.weight = torch.zeros(classes, dimensions)
        self.bias = torch.full((classes,), torch.nan)

    @property
    def dimensions(self) -> int:
        """Return D, the feature length."""
        return self.weight.shape[1]

    @property
    def classes(self) -> int:
        return self.weight.shape[0]

    @property
    def modeled_classes(self) -> np.ndarray:
        """Return which classes have a model, (C,) bool."""
        return torch.isfinite(self.bias).numpy()

    def probabilities(self, features: Features) -> np.ndarray:
        """Return (N, C) float32 probabilities of features (N, D), read in chunks, nan for classes without a model."""
        out = np.empty((len(features), self.classes), np.float32)
        for start, chunk in iterate_chunks(check_features(features, self.dimensions)):
            out[start : start + len(chunk)] = torch.sigmoid(F.linear(chunk.cpu(), self.weight, self.bias)).numpy()
        return out

    def save(self, path: str | Path) -> None:
        """Write weight and bias as safetensors."""
        save_file({"weight": self.weight, "bias": self.bias}, path, metadata={"format": HEAD_FORMAT})

    @classmethod
    def load(cls, path: str | Path, dimensions: int | None = None, classes: int | None = None) -> "Head":
        """Load a saved head, requiring `dimensions` and `classes` if given.

        Raises:
            FileNotFoundError: The file is missing.
            ValueError: The file is not a head of these sizes.
        """
        if not Path(path).is_file():
            raise FileNotFoundError(f"There is no head at {path}.")
        try:
            with safe_open(path, framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        except SafetensorError as error:
            raise ValueError(f"{path} is not a safetensors file, or not all of it was written ({error}).") from None
        wrong = find_head_faults(tensors, dimensions, classes)
        if wrong:
            raise ValueError(f"{path} is not a head that fits here: {'; '.join(wrong)}.")
        head = cls(tensors["weight"].shape[1], tensors["weight"].shape[0])
        head.weight, head.bias = tensors["weight"], tensors["bias"]
        return head


def find_head_faults(tensors: dict[str, Tensor], dimensions: int | None, classes: int | None) -> list[str]:
    """Return why these tensors are not a head with these sizes, one phrase per problem."""
    wrong = [f"it has no {name!r}" for name in ("weight", "bias") if name not in tensors]
    if wrong:
        return wrong
    weight, bias = tensors["weight"], tensors["bias"]
    if weight.ndim != 2 or bias.shape != weight.shape[:1] or not weight.numel():
        return [
            f"weight is {tuple(weight.shape)} and bias {tuple(bias.shape)}, not (classes, dimensions) and (classes,)"
        ]
    if weight.dtype != torch.float32 or bias.dtype != torch.float32:
        wrong.append(f"weight is {weight.dtype} and bias {bias.dtype}, not float32")
    if not torch.isfinite(weight).all() or torch.isinf(bias).any():
        wrong.append("some weights are not finite")
    if dimensions is not None and weight.shape[1] != dimensions:
        wrong.append(
            f"it was trained on {weight.shape[1]}-d features, and these are {dimensions}-d (another backbone?)"
        )
    if classes is not None and weight.shape[0] != classes:
        wrong.append(f"it knows {weight.shape[0]} classes, and there are {classes} (classes were added since?)")
    return wrong


def fit(
    head: Head,
    features: Features,
    labels: Array,
    method: Method,
    settings: TrainingSettings = TrainingSettings(),
    *,
    mask: Array | None = None,
    evidence: Array | None = None,
    seed: int = 0,
    should_stop: Callable[[], bool] | None = None,
) -> Iterator[Epoch]:
    """Train the head from scratch, updating it per epoch of the iterator.

    Args:
        head: Overwritten.
        features: (N, D), labeled images only, since losses also use unseen cells.
        labels: (N, C) int8, 1 present, -1 absent, 0 unseen.
        mask: (N, C) bool, usable cells.
        evidence: (N, C), presence probabilities from elsewhere for Method.evidence, or nan.
        should_stop: Called per batch. True ends the iterator.

    Raises:
        ValueError: Invalid arguments, raised at once, or a loss that is not finite, raised while iterating.
    """
    if method.reads != "features":
        raise ValueError(
            f"Method {method.name!r} reads {method.reads}; pooled features are not enough for it. "
            "Train it with what is made for them (maps: spmll/finetune, regions: "
            "spmll/ensemble), or choose a method that reads features."
        )
    features = to_feature_tensor(features, head.dimensions)
    labels, mask = check_labels(labels, mask, len(features), head.classes)
    epochs = method.epochs if settings.epochs is None else settings.epochs
    batch = settings.batch
    if batch is None:
        batch = min(max(len(features) // STEPS_PER_EPOCH, MIN_BATCH_IMAGES), MAX_BATCH_IMAGES)
    if epochs < 1 or batch < 1:
        raise ValueError(f"There must be at least one epoch and one image a batch, not {epochs} and {batch}.")
    lr = method.lr if settings.lr is None else settings.lr
    check_positive(lr=lr)
    mean, scale = compute_standardization(features)
    labels = labels.to(features.device)
    mask = None if mask is None else mask.to(features.device)
    method.evidence = None if evidence is None else to_evidence_tensor(evidence, labels)
    method.features = features if method.wants_features else None
    training = Training(head, features, labels, mask, method, mean, scale, seed, epochs, lr)
    if settings.every_class:
        training.modeled[:] = True
    return training.run_epochs(batch, should_stop or (lambda: False))


class Training:
    """A linear head's training in progress, on standardized features."""

    def __init__(self, head, features, labels, mask, method, mean, scale, seed, epochs, lr):
        self.head, self.features, self.method = head, features, method
        self.mean, self.scale, self.epochs = mean, scale, epochs
        # Everything random comes from here, on the CPU: the global generator is left alone, and devices agree.
        self.generator = torch.Generator().manual_seed(seed)
        marked = labels == PRESENT
        self.modeled = (marked if mask is None else marked & mask).any(0)
        self.weight = torch.zeros(head.classes, head.dimensions, device=features.device, requires_grad=True)
        self.bias = torch.zeros(head.classes, device=features.device, requires_grad=True)
        method.begin(labels, mask, epochs, self.generator)
        self.lr = lr
        self.learned = method.parameter_groups()
        self.optimiser = self.create_optimizer()

    def create_optimizer(self) -> "Adam":
        """Create an optimizer of the head and the method's parameters."""
        optimiser = Adam()
        optimiser.add_parameters([self.weight, self.bias], self.lr, WEIGHT_DECAY)
        for group in self.learned:
            # Weight decay is for the classifier; what a method estimates has no reason to be small.
            optimiser.add_parameters(group["params"], self.lr * group["lr_scale"], 0.0)
        return optimiser

    def run_epochs(self, batch: int, should_stop: Callable[[], bool]) -> Iterator[Epoch]:
        for number in range(1, self.epochs + 1):
            started = time.perf_counter()
            with one_thread():
                loss = self.train_epoch(number, batch, should_stop)
            if loss is None:
                return
            yield Epoch(number, self.epochs, loss, time.perf_counter() - started)

    def train_epoch(self, number: int, batch: int, should_stop: Callable[[], bool]) -> float | None:
        """Train one epoch, and return its mean loss or None if stopped."""
        if self.method.restarts_optimizer(number):
            self.optimiser = self.create_optimizer()
        self.method.begin_epoch(number)
        total = 0.0
        for rows in torch.randperm(len(self.features), generator=self.generator).split(batch):
            if should_stop():
                return None
            total += self.train_batch(rows.to(self.features.device)) * len(rows)
        if not np.isfinite(total):
            raise ValueError(
                f"The loss of {self.method.name} in epoch {number} is {total}. Is the learning rate of {self.lr:g} too "
                "high, or a parameter out of all proportion?"
            )
        self.write_head()
        self.method.end_epoch(number, self.predict)
        return total / len(self.features)

    def train_batch(self, rows: Tensor) -> float:
        logits = F.linear(self.features.index_select(0, rows).float(), *self.unstandardize_weights())
        loss = self.method.loss(logits, rows) + self.method.penalty([self.weight])
        loss.backward()
        self.optimiser.step()
        return loss.item()

    def unstandardize_weights(self) -> tuple[Tensor, Tensor]:
        """Return weight and bias for plain features: w (x - m) s + b = (w s) x + (b - w s m)."""
        weight = self.weight * self.scale
        return weight, self.bias - weight @ self.mean

    @torch.no_grad()
    def write_head(self) -> None:
        weight, bias = self.unstandardize_weights()
        self.head.weight = torch.where(self.modeled[:, None], weight, 0).cpu()
        self.head.bias = torch.where(self.modeled, bias, torch.nan).cpu()

    @torch.no_grad()
    def predict(self) -> Tensor:
        """Return training probabilities (N, C), also for classes without a model."""
        weight, bias = self.unstandardize_weights()
        return torch.cat([torch.sigmoid(F.linear(chunk, weight, bias)) for _, chunk in iterate_chunks(self.features)])


class Adam:
    """Adam with weight decay in the gradient (Kingma and Ba 2015, algorithm 1).

    torch.optim.Adam would load torch's compiler first (two seconds).
    """

    def __init__(self, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8):
        self.betas, self.eps = betas, eps
        self.moved: list[tuple[Tensor, Tensor, Tensor, float, float]] = []
        self.steps = 0

    def add_parameters(self, params: list[Tensor], lr: float, weight_decay: float) -> None:
        self.moved += [(p, torch.zeros_like(p), torch.zeros_like(p), lr, weight_decay) for p in params]

    @torch.no_grad()
    def step(self) -> None:
        """Update the tensors that have a gradient, and clear their gradients."""
        self.steps += 1
        first, second = self.betas
        # Bias correction: both averages start at 0.
        fresh, fresh_squares = 1 - first**self.steps, 1 - second**self.steps
        for p, mean, squares, lr, weight_decay in self.moved:
            if p.grad is None:
                continue
            slope = p.grad.add_(p, alpha=weight_decay)
            mean.lerp_(slope, 1 - first)
            squares.mul_(second).addcmul_(slope, slope, value=1 - second)
            p.addcdiv_(mean, (squares / fresh_squares).sqrt_().add_(self.eps), value=-lr / fresh)
            p.grad = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread inside the block.

    Batches are small, and thread synchronization made trainings ten times slower on shared cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def compute_standardization(features: Tensor | Rows) -> tuple[Tensor, Tensor]:
    """Return the offset and scale that standardize features, each (D,) float32.

    All dimensions have the same scale, but constant ones have 0.

    Raises:
        ValueError: Some rows, named, are not finite.
    """
    images, dimensions = features.shape
    device = features.device if isinstance(features, Tensor) else None
    total = torch.zeros(dimensions, dtype=torch.float64, device=device)
    squares = torch.zeros_like(total)
    for _, chunk in iterate_chunks(features):
        total += chunk.sum(0)
    mean = (total / images).float()
    for _, chunk in iterate_chunks(features):
        squares += (chunk - mean).square_().sum(0)
    if not torch.isfinite(squares).all():
        raise _make_not_finite_error(features)
    # Equal values differ by rounding once their mean is taken off; Adam would make steps of that as of anything else.
    varies = (squares / images).sqrt() > 1e-5 * mean.abs()
    spread = squares[varies].sum().div(images * dimensions).sqrt()
    return mean, torch.where(varies, FEATURE_SCALE / (dimensions * spread), 0).float()


def check_features_finite(features: Tensor | Rows) -> None:
    """Raise ValueError that names rows with infinite, nan or far too large values."""
    for start in range(0, len(features), ROWS_PER_CHUNK):
        rows = features[start : start + ROWS_PER_CHUNK]
        chunk = rows if isinstance(rows, Tensor) else torch.from_numpy(rows)
        if chunk.dtype == torch.float16:  # compared as integers, which the processor can do directly
            finite = int((chunk.view(torch.int16) & 0x7FFF).amax()) < 0x7C00
        else:
            finite = bool(chunk.abs().amax() < MAX_FINITE_FEATURE)
        if not finite:
            raise _make_not_finite_error(features)


def _make_not_finite_error(features: Tensor | Rows) -> ValueError:
    # Not "not finite" but "not small": a huge number overflows when squared, and nan compares as false.
    bad = [
        start + (~(chunk.abs().amax(1) < MAX_FINITE_FEATURE)).nonzero()[:, 0]
        for start, chunk in iterate_chunks(features)
    ]
    rows = torch.cat(bad).tolist()
    named = ", ".join(map(str, rows[:10])) + (", ..." if len(rows) > 10 else "")
    return ValueError(
        f"The features of {len(rows)} of {len(features)} images are not finite (rows {named}). "
        "Were these images embedded in half precision, or is the feature file damaged? Embed them again."
    )


def to_feature_tensor(features: Features, dimensions: int) -> Tensor:
    """Return checked features as a tensor, sharing memory."""
    features = check_features(features, dimensions)
    return features if isinstance(features, Tensor) else torch.from_numpy(features[:])


def check_features(features: Features, dimensions: int) -> Tensor | Rows:
    """Return the features. Raise ValueError unless they are floats of shape (N, dimensions)."""
    features = torch.from_numpy(features) if isinstance(features, np.ndarray) else features
    floats = features.is_floating_point() if isinstance(features, Tensor) else features.dtype.kind == "f"
    if features.ndim != 2 or features.shape[1] != dimensions or not floats:
        raise ValueError(
            f"Features are {tuple(features.shape)} of {features.dtype}; they must be (images, {dimensions}) of floats. "
            "Were they made with another backbone than this head?"
        )
    return features


def check_labels(labels: Array, mask: Array | None, images: int, classes: int) -> tuple[Tensor, Tensor | None]:
    """Return labels and mask as tensors, or raise ValueError."""
    labels = torch.from_numpy(labels) if isinstance(labels, np.ndarray) else labels
    mask = torch.from_numpy(mask) if isinstance(mask, np.ndarray) else mask
    if images == 0:
        raise ValueError("There is no image to train on. Label at least one first.")
    if tuple(labels.shape) != (images, classes):
        raise ValueError(
            f"Labels are {tuple(labels.shape)}; with {images} feature rows and {classes} classes they must be "
            f"({images}, {classes}). Were classes added after this head was made?"
        )
    if mask is not None and (mask.shape != labels.shape or mask.dtype != torch.bool):
        raise ValueError(f"The mask is {tuple(mask.shape)} of {mask.dtype}; it must be {tuple(labels.shape)} of bool.")
    for block in labels.split(ROWS_PER_CHUNK):  # masks of all cells at once would be large
        strange = torch.unique(block[(block != PRESENT) & (block != ABSENT) & (block != 0)]).tolist()
        if strange:
            raise ValueError(f"Labels must be 1, 0 or -1; there is also {', '.join(map(str, strange[:5]))}.")
    return labels, mask


def iterate_chunks(features: Tensor | Rows) -> Iterator[tuple[int, Tensor]]:
    """Yield (first row, float32 rows) in chunks."""
    for start in range(0, len(features), ROWS_PER_CHUNK):
        rows = features[start : start + ROWS_PER_CHUNK]
        yield start, (rows if isinstance(rows, Tensor) else torch.from_numpy(rows)).float()
