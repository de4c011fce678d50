"""Optimizers, schedules and weight averages of the papers for whole networks."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import OneCycleLR

from spmll.losses.base import unknown_name_error
from spmll.methods.published.lagc_losses import make_one_cycle_schedule
from spmll.methods.training_recipes import TrainingRecipe

OPTIMIZERS = ("adam", "sgd", "adamw_onecycle")


def create_optimizer(
    network: nn.Module, learned: list[dict[str, Any]], settings: TrainingRecipe, steps: int, frozen: bool
) -> tuple[Optimizer, OneCycleLR | None]:
    """Return a new optimizer and its schedule or None.

    Args:
        learned: Method parameters, without weight decay.
        steps: Maximum number, for the schedule.
        frozen: Train only the classifier.

    Raises:
        ValueError: Unknown optimizer or nothing to train.
    """
    classifier = getattr(network, "classifier", None)
    top = list(classifier.parameters()) if isinstance(classifier, nn.Module) else []
    below = [p for p in network.parameters() if p.requires_grad and not any(p is classifier for classifier in top)]
    lr = (settings.linear_lr if frozen else None) or settings.lr
    scale = 1.0 if frozen else settings.head_lr_scale
    groups = [] if frozen or not below else [{"params": below, "lr": lr, "weight_decay": settings.weight_decay}]
    if top:
        groups.append({"params": top, "lr": lr * scale, "weight_decay": settings.weight_decay})
    groups += [{"params": group["params"], "lr": lr * group["lr_scale"], "weight_decay": 0.0} for group in learned]
    if not groups:
        raise ValueError(f"{type(network).__name__} has no parameter that requires a gradient: nothing to train.")
    if settings.optimiser == "adam":
        return Adam(groups), None
    if settings.optimiser == "sgd":
        return SGD(groups, momentum=settings.momentum), None
    if settings.optimiser == "adamw_onecycle":
        optimiser = AdamW(groups)
        return optimiser, make_one_cycle_schedule(optimiser, steps, [group["lr"] for group in groups])
    raise unknown_name_error("optimiser", settings.optimiser, OPTIMIZERS)


class OptimizerStepper:
    """An optimizer with its schedule and float16 gradient scaling."""

    def __init__(self, optimiser: Optimizer, schedule: OneCycleLR | None, scaled: bool):
        self.optimiser, self.schedule = optimiser, schedule
        # Scaling keeps small gradients of float16 from becoming 0; bfloat16 has the range of float32 and needs none.
        self.scaler = torch.amp.GradScaler("cuda", enabled=scaled)

    def step(self, loss: Tensor) -> None:
        """Take one optimizer step on this loss, with gradient scaling and schedule."""
        self.optimiser.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimiser)
        self.scaler.update()
        if self.schedule is not None and self.schedule.last_epoch + 1 < self.schedule.total_steps:
            self.schedule.step()

    def state_dict(self) -> dict[str, Any]:
        return {
            "optimiser": self.optimiser.state_dict(),
            "schedule": None if self.schedule is None else self.schedule.state_dict(),
            "scaler": self.scaler.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.optimiser.load_state_dict(state["optimiser"])
        if self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])
        self.scaler.load_state_dict(state["scaler"])


@torch.no_grad()
def update_average(average: nn.Module, network: nn.Module, decay: float) -> None:
    """Move the averaged network's state_dict towards the network's, in place (`decay`: weight of the old average)."""
    averages, weights = average.state_dict(), network.state_dict()
    floats = [name for name, tensor in averages.items() if tensor.is_floating_point()]
    lerp_all = torch._foreach_lerp_  # pyright: ignore[reportPrivateImportUsage]  # the public lerp_ takes one tensor
    lerp_all([averages[name] for name in floats], [weights[name] for name in floats], 1 - decay)
    for name in averages.keys() - set(floats):
        averages[name].copy_(weights[name])


def compute_average_decay(decay: float, step: int) -> float:
    """Return min(decay, (1 + step) / (10 + step)), as in TensorFlow's ExponentialMovingAverage.

    At 0.9997 alone, the average needs 3,000 steps to forget its start.
    """
    return min(decay, (1 + step) / (10 + step))
