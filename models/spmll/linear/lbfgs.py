"""L-BFGS with a line search (Nocedal and Wright 2006, algorithms 7.4, 7.5 and 3.5).

Equal to torch.optim.LBFGS, which would load torch's compiler first (four seconds).
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.optim.lbfgs import (
    _strong_wolfe,  # pyright: ignore[reportPrivateUsage] - there is no public line search in torch
)

HISTORY_STEPS = 8  # steps that the curvature is estimated from
GRADIENT_TOLERANCE, CHANGE_TOLERANCE = 1e-7, 1e-9  # where it ends before its time
MIN_CURVATURE = 1e-10

Objective = Callable[[Tensor], tuple[float, Tensor]]
"""From a point (n,) to its value and its gradient (n,)."""


@torch.no_grad()
def minimize(objective: Objective, start: Tensor, steps: int) -> Tensor:
    """Minimize `objective` in at most `steps` steps from `start` (n,), and return the last point."""
    point, most = start.clone(), steps * 5 // 4
    value, slope = objective(point)
    evaluations, length = 1, 1.0
    if slope.abs().max() <= GRADIENT_TOLERANCE:
        return point
    changes: list[tuple[Tensor, Tensor, Tensor]] = []  # of the slope, of the point, 1 / their product
    direction, before, scale = slope.neg(), slope, torch.ones(())

    def along(point: Tensor, length: float, direction: Tensor) -> tuple[float, Tensor]:
        return objective(point.add(direction, alpha=float(length)))

    for step in range(steps):
        if step:
            of_slope, of_point = slope - before, direction * length
            product = of_slope.dot(of_point)
            if product > MIN_CURVATURE:
                changes = [*changes[-HISTORY_STEPS + 1 :], (of_slope, of_point, 1.0 / product)]
                scale = product / of_slope.dot(of_slope)
            direction = _compute_direction(slope, changes, scale)
        length = 1.0 if step else torch.clamp(1.0 / slope.abs().sum(), max=1.0)
        downhill = slope.dot(direction)
        if downhill > -CHANGE_TOLERANCE:
            break
        before, value_before = slope, value
        value, slope, length, taken = _strong_wolfe(
            along, point, length, direction, value, slope, downhill, max_ls=most - evaluations
        )
        length = float(length)
        point = point.add(direction, alpha=length)
        evaluations += taken
        moved = float((direction * length).abs().max())
        if evaluations >= most or moved <= CHANGE_TOLERANCE or abs(value - value_before) < CHANGE_TOLERANCE:
            break
        if slope.abs().max() <= GRADIENT_TOLERANCE:
            break
    return point


def _compute_direction(slope: Tensor, changes: list[tuple[Tensor, Tensor, Tensor]], scale: Tensor) -> Tensor:
    """Return minus the approximate inverse Hessian times the slope."""
    direction, shares = slope.neg(), []
    for of_slope, of_point, factor in reversed(changes):
        shares.append(of_point.dot(direction) * factor)
        direction = direction.add(of_slope, alpha=-float(shares[-1]))
    direction = direction * scale
    for (of_slope, of_point, factor), share in zip(changes, reversed(shares), strict=True):
        direction = direction.add(of_point, alpha=float(share - of_slope.dot(direction) * factor))
    return direction
