"""Training of a whole network or a map head with any method (spmll/methods/base.py).

A training is a generator of epochs. With a checkpoint (ResumePoint) it survives a kill, on a CPU with equal weights.
"""

import copy
import hashlib
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from spmll.finetune import checkpoints
from spmll.finetune.best_epoch import BestEpoch
from spmll.finetune.linear_start import compute_pooled_features, fit_linear_start
from spmll.finetune.optimizers import OptimizerStepper, compute_average_decay, create_optimizer, update_average
from spmll.finetune.parallel_process import ParallelProcess
from spmll.finetune.resume_point import ResumePoint
from spmll.finetune.views import Examples, iterate_in_order
from spmll.linear.training import Array, Epoch, check_labels
from spmll.losses.base import unknown_name_error
from spmll.methods.base import Method, check_positive
from spmll.methods.training_recipes import TrainingRecipe

__all__ = ["NetworkTraining", "fit_linear_start", "fit_network", "predict"]

PRECISIONS = ("auto", "fp32", "bf16", "fp16")
PREDICT_BATCH_IMAGES = 64


def fit_network(
    network: nn.Module,
    examples: Examples,
    labels: Array,
    method: Method,
    settings: TrainingRecipe,
    *,
    mask: Array | None = None,
    seed: int = 0,
    resume: ResumePoint = ResumePoint(),
    should_stop: Callable[[], bool] | None = None,
    parallel: ParallelProcess | None = None,
) -> "NetworkTraining":
    """Return a training of `network` from its current weights, one epoch per iteration.

    Args:
        network: Changed in place. Its first output is logits (V x B, C), for V = method.views views of B images.
            Its `classifier` gets settings.head_lr_scale times the learning rate.
        labels: (N, C) int8, 1 present, -1 absent, 0 unanswered.
        mask: (N, C) bool, usable cells.
        resume: State to continue from, by default none.
        should_stop: Called per batch. True ends the iterator.
        parallel: One of several processes with equal calls and equal `should_stop`, or None.

    Raises:
        ValueError: Invalid arguments or checkpoint, an unreadable image, or a loss that is not finite.
    """
    labels, mask = check_labels(labels, mask, len(examples), _count_columns(labels))
    if settings.epochs < 1 or settings.batch < 1:
        raise ValueError(
            f"There must be at least one epoch and one image a batch, not {settings.epochs} and {settings.batch}."
        )
    check_positive(lr=settings.lr)
    training = NetworkTraining(network, examples, labels, mask, method, settings, seed, parallel)
    training.best, training.should_stop = resume.best, should_stop or (lambda: False)
    if resume.learned is not None:
        training.load_learned_tensors(resume.learned)
    if resume.checkpoint is not None:
        training.resume_from(resume.checkpoint)
    return training


class NetworkTraining(Iterator[Epoch]):
    """A network training in progress: an iterator that trains one epoch per step.

    Attributes:
        average: Network of averaged weights (Method.average_decay), or None.
        history: Finished epochs, including those before it was resumed.
    """

    def __init__(self, network, examples, labels, mask, method, settings, seed, together=None):
        self.device = examples.device
        self.network: nn.Module = network.to(self.device)
        self.together: ParallelProcess | None = together
        self.forward: nn.Module = self.network if together is None else together.wrap_network(self.network)
        self.examples, self.method, self.settings = examples, method, settings
        self.best: Callable[[], BestEpoch | None] | None = None
        self.should_stop: Callable[[], bool] = lambda: False
        self.history: list[Epoch] = []
        self.amp = _choose_half_type(settings.precision, self.device)
        self.generator = torch.Generator().manual_seed(seed)
        method.begin(
            labels.to(self.device), None if mask is None else mask.to(self.device), settings.epochs, self.generator
        )
        self.learned = method.parameter_groups()
        decay = getattr(method, "average_decay", 0.0)
        self.average: nn.Module | None = _copy_network(self.network) if decay else None
        self.decay, self.averaged = decay, 0
        self.pooled: Tensor | None = None  # (N, D): features without augmentation, while the backbone is frozen
        self._begin_stage(1)
        self._checkpoint: Path | None = None
        self.identity = {
            "method": method.name,
            "parameters": repr(method.parameters),
            "settings": repr(settings).replace(type(settings).__name__, "EndToEnd", 1),
            "seed": seed,
            "images and classes": list(labels.shape),
            "labels": _hash_tensors(labels, mask),
            "network": _hash_tensors(*(torch.tensor(p.shape) for p in self.network.state_dict().values())),
        }
        self._epochs = self._run_epochs()

    # -- for callers

    def __next__(self) -> Epoch:
        return next(self._epochs)

    def close(self) -> None:
        """End the training, keeping the last checkpoint."""
        self._epochs.close()

    def networks(self) -> dict[str, nn.Module]:
        """Return the networks by name: "network" and maybe "average"."""
        return {"network": self.network} | ({} if self.average is None else {"average": self.average})

    def predict(self, examples: Examples | None = None, which: str | None = None) -> np.ndarray:
        """Return probabilities (N, C), by default of the training images, by averaged weights if any."""
        networks = self.networks()
        network = networks[which or ("average" if "average" in networks else "network")]
        return predict(network, examples or self.examples, self.method, amp=self.amp)

    def copy_weights(self, which: str = "network") -> dict[str, Tensor]:
        return {name: tensor.detach().cpu().clone() for name, tensor in self.networks()[which].state_dict().items()}

    def copy_learned_tensors(self) -> list[Tensor]:
        return [tensor.detach().cpu().clone() for group in self.learned for tensor in group["params"]]

    # -- the epochs

    def _run_epochs(self) -> Generator[Epoch, None, None]:
        for number in range(len(self.history) + 1, self.settings.epochs + 1):
            started = time.perf_counter()
            devices = [self.device.index or 0] if self.device.type == "cuda" else []
            # Dropout draws from the global generators: seed them for this epoch, and restore them afterwards.
            with torch.random.fork_rng(devices=devices):
                torch.manual_seed(int(torch.randint(2**62, (), generator=self.generator)))
                loss = self._train_epoch(number)
            if loss is None:
                return
            self.history.append(Epoch(number, self.settings.epochs, loss, time.perf_counter() - started))
            if self._checkpoint is not None:
                self._save_checkpoint(self._checkpoint)
            yield self.history[-1]

    def _begin_stage(self, epoch: int) -> None:
        """Create the optimizer of a training stage, and a learning rate schedule up to the next stage."""
        last = next(
            (e - 1 for e in range(epoch + 1, self.settings.epochs + 1) if self._needs_new_optimizer(e)),
            self.settings.epochs,
        )
        self.frozen = self.method.freezes_backbone(epoch)
        self.batch = (self.settings.linear_batch if self.frozen else None) or self.settings.batch
        steps = (last - epoch + 1) * len(self._split_into_batches(torch.arange(len(self.examples))))
        if self.frozen and not (hasattr(self.network, "classifier") and hasattr(self.network, "features")):
            raise ValueError(
                f"In epoch {epoch} {self.method.name} trains a linear classifier on features that stand still, and "
                f"{type(self.network).__name__} has no `features` and `classifier` (spmll/finetune/whole_network.py)."
            )
        optimiser, schedule = create_optimizer(self.network, self.learned, self.settings, steps, self.frozen)
        self.steps = OptimizerStepper(optimiser, schedule, scaled=self.amp == torch.float16)
        self.averaged = 0
        if self.average is not None:
            self.average.load_state_dict(self.network.state_dict())

    def _needs_new_optimizer(self, epoch: int) -> bool:
        freezes = self.method.freezes_backbone
        return self.method.restarts_optimizer(epoch) or freezes(epoch) != freezes(epoch - 1)

    def _train_epoch(self, number: int) -> float | None:
        if number > 1 and self._needs_new_optimizer(number):
            if self.method.restarts_optimizer(number):
                self._restore_best_epoch()
            self._begin_stage(number)
        self.method.begin_epoch(number)
        self.network.train(not self.frozen)
        if hasattr(self.method, "prepare"):
            self.method.prepare(self.network, number)
        parts = self._split_into_batches(torch.randperm(len(self.examples), generator=self.generator))
        total, images = torch.zeros((), device=self.device), 0
        with closing(self._load_batches(parts)) as batches:
            for rows in parts:
                if self.should_stop():
                    return None
                total += self._train_batch(next(batches), rows) * len(rows)
                images += len(rows)
        mean = float(total) / images
        if not np.isfinite(mean):
            raise ValueError(
                f"The loss of {self.method.name} in epoch {number} is {mean}. Is the learning rate of "
                f"{self.settings.lr:g} too high for this network?"
            )
        self.method.end_epoch(number, lambda: torch.from_numpy(self.predict(which="network")).to(self.device))
        return mean

    def _split_into_batches(self, order: Tensor) -> list[Tensor]:
        if self.together is not None:
            return self.together.split_into_batches(order, self.batch)
        parts = list(order.split(self.batch))
        return parts[:-1] if self.settings.drop_last and len(parts) > 1 and len(parts[-1]) < self.batch else parts

    def _load_batches(self, parts: list[Tensor]) -> Generator[Tensor, None, None]:
        """Return the inputs of each batch: images, or pooled features while only the classifier is trained."""
        if not self.frozen and self.together is not None:
            mine = [self.together.select_own_rows(part) for part in parts]
            return self.examples.batches(
                mine, self.method.views, True, self.together.make_view_generator(self.generator)
            )
        if not self.frozen:
            return self.examples.batches(parts, self.method.views, True, self.generator)
        if self.pooled is None:
            self.pooled = compute_pooled_features(self.network, self.examples, self.should_stop, self.amp)
        return (self.pooled[rows.to(self.device)] for rows in parts)

    def _train_batch(self, batch: Tensor, rows: Tensor) -> Tensor:
        weight = 1.0
        if self.together is not None:
            rows, weight = self.together.select_own_rows(rows), self.together.compute_loss_weight(rows)
        rows = rows.to(self.device)
        # _begin_stage has checked that a network with frozen epochs has a classifier.
        part = cast("nn.Module", self.network.classifier) if self.frozen else self.forward
        with torch.autocast(self.device.type, self.amp or torch.float32, enabled=self.amp is not None):
            outputs = part(batch)
        penalty = self.method.penalty(p for p in part.parameters() if p.requires_grad and p.ndim > 1)
        loss = (self.method.loss(_to_float(outputs), rows) + penalty) * weight
        self.steps.step(loss)
        if self.average is not None:
            self.averaged += 1
            warms_up = getattr(self.method, "average_warm_up", True)
            decay = compute_average_decay(self.decay, self.averaged) if warms_up else self.decay
            update_average(self.average, self.network, decay)
        return loss.detach()

    def _restore_best_epoch(self) -> None:
        best = self.best() if self.best is not None else None
        if best is not None:
            self.network.load_state_dict(best.weights)
            self.load_learned_tensors(best.learned)
        elif self.average is not None:
            self.network.load_state_dict(self.average.state_dict())

    # -- stopping and going on

    @torch.no_grad()
    def load_learned_tensors(self, learned: Sequence[Tensor]) -> None:
        """Copy another training's tensors into the method's learned tensors."""
        ours = [tensor for group in self.learned for tensor in group["params"]]
        if [tensor.shape for tensor in ours] != [tensor.shape for tensor in learned]:
            raise ValueError(
                f"{self.method.name} learns {[tuple(tensor.shape) for tensor in ours]} beside the network, and was "
                f"handed {[tuple(tensor.shape) for tensor in learned]}. Were they learned by another method, or of "
                "other images?"
            )
        for mine, other in zip(ours, learned, strict=True):
            mine.copy_(other)

    def resume_from(self, path: Path) -> None:
        """Store checkpoints in `path`, and continue from an existing one. Raises ValueError."""
        self._checkpoint = path
        state = checkpoints.load(path, self.identity)
        if state is None:
            return
        self.history = [Epoch(*epoch) for epoch in state["history"]]
        epoch = len(self.history)
        start = max(e for e in range(1, epoch + 1) if e == 1 or self._needs_new_optimizer(e))
        self._begin_stage(start)
        self.network.load_state_dict(state["network"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        checkpoints.restore_method_state(self.method, state["method"])
        self.steps.load_state_dict(state["steps"])
        self.averaged = state["averaged"]
        self.generator.set_state(state["generator"])

    def _save_checkpoint(self, path: Path) -> None:
        checkpoints.save(
            path,
            {
                "identity": self.identity,
                "history": [(epoch.number, epoch.total, epoch.loss, epoch.seconds) for epoch in self.history],
                "network": self.network.state_dict(),
                "average": None if self.average is None else self.average.state_dict(),
                "averaged": self.averaged,
                "method": checkpoints.get_method_state(self.method),
                "steps": self.steps.state_dict(),
                "generator": self.generator.get_state(),
            },
        )


@torch.no_grad()
def predict(
    network: nn.Module,
    examples: Examples,
    method: Method | None = None,
    *,
    batch: int = PREDICT_BATCH_IMAGES,
    amp: torch.dtype | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> np.ndarray:
    """Return probabilities (N, C) float32, without augmentation.

    Args:
        method: Its `probabilities(outputs)`, if any, replaces the sigmoid.
        amp: Half-precision type, or None.
        should_stop: Called per batch and may raise.
    """
    device = examples.device
    turn = getattr(method, "probabilities", None) or (lambda outputs: torch.sigmoid(_get_logits(outputs)))
    was_training = network.training
    network.eval()
    probabilities = []
    try:
        for images in iterate_in_order(examples, batch):
            should_stop()
            with torch.autocast(device.type, amp or torch.float32, enabled=amp is not None):
                outputs = network(images)
            probabilities.append(turn(_to_float(outputs)).cpu())
    finally:
        network.train(was_training)
    return torch.cat(probabilities).numpy() if probabilities else np.zeros((0, 0), np.float32)


def _choose_half_type(precision: str, device: torch.device) -> torch.dtype | None:
    if precision not in PRECISIONS:
        raise unknown_name_error("precision", precision, PRECISIONS)
    if precision == "auto":
        if device.type != "cuda":
            return None
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    return {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]


def _to_float(outputs: Any) -> Any:
    if isinstance(outputs, tuple):
        return tuple(_to_float(output) for output in outputs)
    return outputs.float()


def _get_logits(outputs: Any) -> Tensor:
    return outputs[0] if isinstance(outputs, tuple) else outputs


def _copy_network(network: nn.Module) -> nn.Module:
    return copy.deepcopy(network).requires_grad_(False).eval()


def _count_columns(labels: Array) -> int:
    return labels.shape[1] if labels.ndim == 2 else 0


def _hash_tensors(*tensors: Tensor | None) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(b"none" if tensor is None else tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
