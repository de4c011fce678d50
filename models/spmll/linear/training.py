"""Training a linear head on cached features: the whole loop, one epoch at a time.

The backbone is frozen and its pooled features are computed once, so a training takes about a second and can be repeated
as people label. `fit` is a generator: between two epochs its caller may write a heartbeat, do other work, or stop.
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
    """One finished epoch."""

    number: int  # from 1
    total: int
    loss: float  # average of the batches, weighted by images
    seconds: float  # of this epoch alone


class Head:
    """One linear classifier a class, on features as the backbone gives them: p = sigmoid(features @ weight.T + bias).

    weight (C, D) float32 and bias (C,) float32 fit the classifier of the network that made the features, so a heat map
    needs no conversion. A class that nobody has marked present has no model: its weights are 0, its bias and its
    probabilities nan.
    """

    def __init__(self, dimensions: int, classes: int):
        """Make an untrained head: every probability is nan. Raise ValueError for a size below 1."""
        if dimensions < 1 or classes < 1:
            raise ValueError(f"A head needs at least one dimension and one class, not {dimensions} and {classes}.")
        self.weight = torch.zeros(classes, dimensions)
        self.bias = torch.full((classes,), torch.nan)

    @property
    def dimensions(self) -> int:
        """Return the length of a feature vector."""
        return self.weight.shape[1]

    @property
    def classes(self) -> int:
        """Return the number of classes, with or without a model."""
        return self.weight.shape[0]

    @property
    def modeled_classes(self) -> np.ndarray:
        """Return which classes have a model, (C,) bool."""
        return torch.isfinite(self.bias).numpy()

    def probabilities(self, features: Features) -> np.ndarray:
        """Return the probability of every class in every image.

        Args:
            features: (N, D) float16, float32 or float64; features on the disk are read a few thousand rows at a time.

        Returns:
            (N, C) float32 in [0, 1], nan in the columns of classes without a model.

        Raises:
            ValueError: The features have another length than those the head was trained on.
        """
        out = np.empty((len(features), self.classes), np.float32)
        for start, chunk in iterate_chunks(check_features(features, self.dimensions)):
            out[start : start + len(chunk)] = torch.sigmoid(F.linear(chunk.cpu(), self.weight, self.bias)).numpy()
        return out

    def save(self, path: str | Path) -> None:
        """Write weight and bias as safetensors, replacing an existing file."""
        save_file({"weight": self.weight, "bias": self.bias}, path, metadata={"format": HEAD_FORMAT})

    @classmethod
    def load(cls, path: str | Path, dimensions: int | None = None, classes: int | None = None) -> "Head":
        """Return the head that `save` wrote.

        Args:
            path: The file.
            dimensions: The D that is required; None accepts any.
            classes: The C that is required; None accepts any.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is not a head of that size; the message names every fault.
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
    """Return why these tensors are not a head of that size, one phrase for each fault."""
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
    *,
    mask: Array | None = None,
    evidence: Array | None = None,
    epochs: int | None = None,
    lr: float | None = None,
    batch: int | None = None,
    seed: int = 0,
    every_class: bool = False,
    should_stop: Callable[[], bool] | None = None,
) -> Iterator[Epoch]:
    """Train the head from scratch, one epoch at each step of the iterator; the head is up to date after every step.

    Args:
        head: Is overwritten; its earlier weights are not used.
        features: (N, D) float16 or float32, the images that have a label. Leave out images nobody has looked at: the
            losses would take their empty rows for knowledge.
        labels: (N, C) int8, 1 present, -1 absent, 0 not looked at (spmll/labels.py).
        method: From make_method.
        mask: (N, C) bool, True where a cell may be used; None: all.
        evidence: (N, C) float32 in [0, 1] or nan: Method.evidence; None: no evidence.
        epochs: The number of epochs; None: the method's own.
        lr: The learning rate; None: the method's own.
        batch: Images a step; None: a twentieth of the images, between 4 and 1024.
        seed: Decides the start and the order; the same seed gives the same head on the same machine.
        every_class: Train a model for classes that nobody marked, too, as published code does. A person would get
            suggestions of such a class from nothing but what the method assumes of unseen cells.
        should_stop: Called before every batch; once it returns True the iterator ends without finishing the epoch.

    Raises:
        ValueError: At once, not at the first step: the method reads more than pooled features, shapes do not fit, there
            is no image, a label is not 1, 0 or -1, the learning rate is not a positive number, or features are not
            finite (the rows are named). At a step: the loss is not finite.
    """
    if method.reads != "features":
        raise ValueError(
            f"Method {method.name!r} reads {method.reads}; pooled features are not enough for it. "
            "Train it with what is made for them (maps: spmll/finetune, regions: "
            "spmll/ensemble), or choose a method that reads features."
        )
    features = to_feature_tensor(features, head.dimensions)
    labels, mask = check_labels(labels, mask, len(features), head.classes)
    epochs = method.epochs if epochs is None else epochs
    batch = min(max(len(features) // STEPS_PER_EPOCH, MIN_BATCH_IMAGES), MAX_BATCH_IMAGES) if batch is None else batch
    if epochs < 1 or batch < 1:
        raise ValueError(f"There must be at least one epoch and one image a batch, not {epochs} and {batch}.")
    lr = method.lr if lr is None else lr
    check_positive(lr=lr)
    mean, scale = compute_standardization(features)
    labels = labels.to(features.device)
    mask = None if mask is None else mask.to(features.device)
    method.evidence = None if evidence is None else to_evidence_tensor(evidence, labels)
    method.features = features if method.wants_features else None
    training = Training(head, features, labels, mask, method, mean, scale, seed, epochs, lr)
    if every_class:
        training.modeled[:] = True
    return training.run_epochs(batch, should_stop or (lambda: False))


class Training:
    """One training in progress: the weights on standardised features, and their optimiser."""

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
        """Create an optimiser of the head and of what the method learns."""
        optimiser = Adam()
        optimiser.add_parameters([self.weight, self.bias], self.lr, WEIGHT_DECAY)
        for group in self.learned:
            # Weight decay is for the classifier; what a method estimates has no reason to be small.
            optimiser.add_parameters(group["params"], self.lr * group["lr_scale"], 0.0)
        return optimiser

    def run_epochs(self, batch: int, should_stop: Callable[[], bool]) -> Iterator[Epoch]:
        """Run `fit` as a generator."""
        for number in range(1, self.epochs + 1):
            started = time.perf_counter()
            with one_thread():
                loss = self.train_epoch(number, batch, should_stop)
            if loss is None:
                return
            yield Epoch(number, self.epochs, loss, time.perf_counter() - started)

    def train_epoch(self, number: int, batch: int, should_stop: Callable[[], bool]) -> float | None:
        """Make one pass over the images; return its average loss, or None if should_stop() returned True."""
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
        """Train on one batch; return its loss."""
        logits = F.linear(self.features.index_select(0, rows).float(), *self.unstandardize_weights())
        loss = self.method.loss(logits, rows) + self.method.penalty([self.weight])
        loss.backward()
        self.optimiser.step()
        return loss.item()

    def unstandardize_weights(self) -> tuple[Tensor, Tensor]:
        """Return weight and bias for plain features: w (x - m) s + b = (w s) x + (b - w s m).

        Computed at every step, as there are fewer weights than features in a batch.
        """
        weight = self.weight * self.scale
        return weight, self.bias - weight @ self.mean

    @torch.no_grad()
    def write_head(self) -> None:
        """Write the current weights into the head."""
        weight, bias = self.unstandardize_weights()
        self.head.weight = torch.where(self.modeled[:, None], weight, 0).cpu()
        self.head.bias = torch.where(self.modeled, bias, torch.nan).cpu()

    @torch.no_grad()
    def predict(self) -> Tensor:
        """Return (N, C) float32 probabilities of all training images, also for classes without a model."""
        weight, bias = self.unstandardize_weights()
        return torch.cat([torch.sigmoid(F.linear(chunk, weight, bias)) for _, chunk in iterate_chunks(self.features)])


class Adam:
    """Adam with weight decay added to the gradient (Kingma and Ba, ICLR 2015, algorithm 1).

    torch.optim.Adam takes the same steps, but the first one of a process loads torch's compiler: two seconds and more
    before the first training of a worker can begin.
    """

    def __init__(self, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8):
        self.betas, self.eps = betas, eps
        self.moved: list[tuple[Tensor, Tensor, Tensor, float, float]] = []
        self.steps = 0

    def add_parameters(self, params: list[Tensor], lr: float, weight_decay: float) -> None:
        """Add leaf tensors to be trained."""
        self.moved += [(p, torch.zeros_like(p), torch.zeros_like(p), lr, weight_decay) for p in params]

    @torch.no_grad()
    def step(self) -> None:
        """Make one step on every tensor with a gradient, and reset the gradients."""
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

    A batch is so small that a second thread gains a fifth at best. Threads synchronise at every operation; with other
    processes on the same cores this was measured to make a training ten times slower.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def compute_standardization(features: Tensor | Rows) -> tuple[Tensor, Tensor]:
    """Return the offset and the scale of every dimension, each (D,) float32.

    The scale is the same for all dimensions, except 0 for constant ones, which are ignored in other images too. With a
    single image, or only equal ones, nothing but the bias is learned.

    Raises:
        ValueError: Some rows are not finite; the message names them.
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
    """Raise ValueError naming the rows of features (N, D) that are not finite, or extremely large."""
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
    """Return features as a tensor that shares their memory; those on the disk are read. Raise as `check_features`."""
    features = check_features(features, dimensions)
    return features if isinstance(features, Tensor) else torch.from_numpy(features[:])


def check_features(features: Features, dimensions: int) -> Tensor | Rows:
    """Return features, an array as a tensor. Raise ValueError unless they are (N, dimensions) of floats."""
    features = torch.from_numpy(features) if isinstance(features, np.ndarray) else features
    floats = features.is_floating_point() if isinstance(features, Tensor) else features.dtype.kind == "f"
    if features.ndim != 2 or features.shape[1] != dimensions or not floats:
        raise ValueError(
            f"Features are {tuple(features.shape)} of {features.dtype}; they must be (images, {dimensions}) of floats. "
            "Were they made with another backbone than this head?"
        )
    return features


def check_labels(labels: Array, mask: Array | None, images: int, classes: int) -> tuple[Tensor, Tensor | None]:
    """Return labels and mask as tensors. Raise ValueError for wrong shapes, types or values, or no image."""
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
    """Yield (first row, rows as float32), a few thousand rows at a time."""
    for start in range(0, len(features), ROWS_PER_CHUNK):
        rows = features[start : start + ROWS_PER_CHUNK]
        yield start, (rows if isinstance(rows, Tensor) else torch.from_numpy(rows)).float()
