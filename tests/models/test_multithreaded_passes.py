"""Long passes in several threads, and the optimiser: the same result as one thread and as torch's own."""

import threading

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from spmll.linear.blocks import run_in_blocks
from spmll.linear.lbfgs import minimize


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("rows", "size"), [(0, 10), (7, 10), (10, 10), (101, 10), (400, 1)])
def test_multithreaded_pass_processes_every_row_once_and_restores_the_torch_threads(two_threads, rows, size):
    counts = np.zeros(rows, int)

    def work(block: slice) -> None:
        assert block.stop - block.start <= size and torch.get_num_threads() == 1
        counts[block] += 1

    run_in_blocks(rows, size, work)
    assert (counts == 1).all() and torch.get_num_threads() == 2


def test_multithreaded_pass_uses_the_calling_thread_when_torch_has_one_thread(two_threads):
    torch.set_num_threads(1)
    names = set()
    run_in_blocks(100, 1, lambda block: names.add(threading.current_thread().name))
    assert names == {threading.current_thread().name}


@pytest.mark.parametrize(("where", "call"), [("work", 1), ("work", 20), ("tell", 1)])
def test_multithreaded_pass_stops_and_raises_an_error_of_any_thread(two_threads, where, call):
    done = []

    def fail(*_: object) -> None:
        done.append(1)
        if len(done) == call:
            raise LookupError("told")

    arguments = {"work": lambda block: None, "tell": lambda: None} | {where: fail}
    with pytest.raises(LookupError, match="told"):
        run_in_blocks(100_000, 1, **arguments)
    assert len(done) < 100_000 and not any(thread.name.startswith("blocks") for thread in threading.enumerate())


@pytest.mark.parametrize("steps", [1, 5, 40])
def test_optimizer_steps_match_torch_lbfgs(steps):
    generator = torch.Generator().manual_seed(steps)
    rows, answers = torch.randn(60, 12, generator=generator), torch.rand(60, generator=generator).round()

    def loss(weight: torch.Tensor) -> torch.Tensor:
        return F.binary_cross_entropy_with_logits(rows @ weight, answers, reduction="sum") + 0.1 * (weight**2).sum()

    theirs = torch.zeros(12, requires_grad=True)
    optimiser = torch.optim.LBFGS([theirs], max_iter=steps, history_size=8, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        value = loss(theirs)
        value.backward()
        return value

    def objective(point: torch.Tensor) -> tuple[float, torch.Tensor]:
        with torch.enable_grad():
            point = point.clone().requires_grad_(True)
            value = loss(point)
            value.backward()
        assert point.grad is not None
        return value.item(), point.grad

    optimiser.step(closure)
    np.testing.assert_array_equal(minimize(objective, torch.zeros(12), steps).numpy(), theirs.detach().numpy())
