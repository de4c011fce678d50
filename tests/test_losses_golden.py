"""Our losses against figures made by running the code that the papers published.

golden_losses.json holds logits, labels, and for each published function the loss and its gradient in float64,
together with the commit it was read from. A larger file of the same form can be checked instead:
SPML_GOLDEN=figures.json pytest ...

A new loss: move its methods from NOT_BUILT to BUILT.
"""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
import torch

from models.losses.assume_negative import AssumeNegative
from models.losses.base import Loss
from models.losses.entropy_maximization import EntropyMaximization
from models.losses.generalized_robust import GeneralizedRobust
from models.methods import make_method
from models.methods.em_apl import give_up_on_lowest

FILE = Path(os.environ.get("SPML_GOLDEN") or Path(__file__).with_name("golden_losses.json"))
GOLDEN = json.loads(FILE.read_text())


def generalized_robust(p: dict) -> Loss:
    return GeneralizedRobust(
        p["w"], p["b"], p["mu"], p["sigma"], p.get("q1", 0.0), p["q2"], p["q3"], p.get("eps_pos", 0.0)
    )


# The name of a method in the file -> our loss, built from the constants of a vector.
BUILT = {
    "AN": lambda p: AssumeNegative(p.get("eps", 0.0)),
    "EM": lambda p: EntropyMaximization(alpha=p["alpha"], eps=p["eps"]),
    "EM+APL": lambda p: EntropyMaximization(p["alpha"], p["beta"], p["eps"]),
    "GR": generalized_robust,
}

# Methods whose losses are still to be written, and how many vectors of each the complete file has.
NOT_BUILT = {
    "AN-LS": 2,
    "AN-LS(0,0.1)": 1,
    "ASL": 4,
    "BCE": 2,
    "BCE-LS": 1,
    "EPR": 2,
    "Focal": 2,
    "Hill": 2,
    "Hill (GR repo variant)": 1,
    "IU": 1,
    "IUN": 3,
    "LAGC L_AN+L_PLC": 4,
    "LAGC L_LAC": 2,
    "LL-Cp": 2,
    "LL-Ct": 3,
    "LL-R": 3,
    "OPML": 8,
    "OPML high-rank": 3,
    "OPML-soft": 2,
    "PR": 1,
    "ROLE": 1,
    "SPLC": 5,
    "WAN": 1,
    "ZLPR": 3,
    "ZLPR-soft": 1,
}

CHECKED = [vector for vector in GOLDEN["vectors"] if vector["method"] in BUILT]


def matrix(value: str | list) -> torch.Tensor:
    """A matrix given in place, or by its name in the file's list of inputs."""
    return torch.tensor(GOLDEN["inputs"][value] if isinstance(value, str) else value, dtype=torch.float64)


def cells_per_share(vector: dict, cells: torch.Tensor) -> float:
    """What our average over all cells has to be multiplied with to be summed as this vector was."""
    return {
        "mean over B*C": 1.0,
        "sum over C, mean over B": float(cells.shape[1]),
        "sum over B*C": float(cells.numel()),
    }[vector["reduction"]]


def test_every_vector_is_checked_or_counted_as_not_built():
    assert not BUILT.keys() & NOT_BUILT.keys()
    waiting = Counter(vector["method"] for vector in GOLDEN["vectors"] if vector["method"] not in BUILT)
    unexpected = {method: count for method, count in waiting.items() if count > NOT_BUILT.get(method, 0)}
    assert not unexpected, f"{FILE.name} has vectors that are neither checked nor listed in NOT_BUILT: {unexpected}"
    assert len(CHECKED) >= 24
    assert {vector["method"] for vector in CHECKED} == BUILT.keys()
    print(f"{len(CHECKED)} of {len(GOLDEN['vectors'])} vectors checked; waiting for a loss: {dict(waiting)}")


@pytest.mark.parametrize("vector", CHECKED, ids=lambda vector: vector["name"])
def test_value_and_gradient_are_those_of_the_published_code(vector):
    logits = matrix(vector["inputs"]["logits"]).requires_grad_()
    loss = BUILT[vector["method"]](vector["params"])(logits, matrix(vector["inputs"]["labels"]))
    loss = loss * cells_per_share(vector, logits)
    loss.backward()
    torch.testing.assert_close(loss.item(), vector["loss"], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(logits.grad, matrix(vector["grad"]["logits"]), rtol=1e-9, atol=1e-9)


def test_pseudo_negatives_are_those_of_the_published_code_after_every_call():
    block = GOLDEN["apl_procedure"]
    probabilities = torch.sigmoid(matrix(block["logits"]))
    targets = matrix(block["obs0"])
    counts = torch.tensor(block["per_class_count"])
    for epoch, expected in sorted(block["labels_after_epoch"].items(), key=lambda item: int(item[0])):
        give_up_on_lowest(targets, probabilities, counts)
        torch.testing.assert_close(targets, matrix(expected), rtol=1e-9, atol=1e-9, msg=f"after epoch {epoch}")


def test_em_apl_gives_up_on_cells_when_and_as_often_as_the_published_code():
    block = GOLDEN["apl_procedure"]
    constants = block["params"]
    epochs = constants["num_epochs"]
    method = make_method("em_apl", negatives=constants["neg_proportion"], warm_up=constants["warmup_epoch"] / epochs)
    labels = matrix(block["obs0"])
    method.begin(labels.to(torch.int8), None, epochs, torch.Generator())
    assert method.counts.tolist() == block["per_class_count"]
    probabilities = torch.sigmoid(matrix(block["logits"])).float()
    expected = labels
    for epoch in range(
        1, epochs
    ):  # the last call of the published code comes after the last epoch: nothing is learned from it
        method.begin_epoch(epoch)
        method.end_epoch(epoch, lambda: probabilities)
        if str(epoch) in block["labels_after_epoch"]:
            expected = matrix(block["labels_after_epoch"][str(epoch)])
        torch.testing.assert_close(method.targets, expected.float(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("epochs", [8, 10])
def test_gr_moves_its_curves_as_the_published_code(epochs):
    method = make_method("gr", w=3.0, b=5.0, mu=0.9, sigma=0.25, w_start=1.0, b_start=-3.0)
    method.begin(torch.tensor([[1, 0]], dtype=torch.int8), None, epochs, torch.Generator())
    for point in GOLDEN["gr_schedule_official"]["fractions"][f"T{epochs}"]:
        method.begin_epoch(point["epoch"])
        now = method.loss_function
        assert now.w == pytest.approx(1.0 + 2.0 * point["beta_frac"], rel=1e-12)
        assert now.b == pytest.approx(-3.0 + 8.0 * point["beta_frac"], rel=1e-12)
        assert now.mu == pytest.approx(0.5 + 0.4 * point["alpha_frac"], rel=1e-12)
        assert now.sigma == pytest.approx(2.0 - 1.75 * point["alpha_frac"], rel=1e-12)
