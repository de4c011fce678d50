"""Our losses and procedures against figures made by running the code that the papers published.

golden_losses.json holds, for each published function, logits, labels, the loss and its gradient in float64, and the
commit it was read from. Where nothing was published, or the paper says something else than its code, the figure was
derived from the paper instead; those tests have "derived" in their name. A file of the same form can be checked
instead: SPML_GOLDEN=figures.json pytest ...

A new loss: add a line to BUILT. A new block: add a test, and its name to BLOCKS.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from spmll.losses import make_loss
from spmll.losses.base import unknown_name_error
from spmll.losses.opml import rank_penalty

OURS = Path(__file__).resolve().parents[1].joinpath("golden_losses.json")
FILE = Path(os.environ.get("SPML_GOLDEN") or OURS)
GOLDEN = json.loads(FILE.read_text())

# Beside the vectors and what describes them; every block has a test below.
BLOCKS = (
    "apl_procedure",
    "gr_schedule_official",
    "ll_k_per_epoch",
    "onecycle",
    "single_positive_sampling",
    "splits",
    "metric",
    "metric_asl_style",
    "role_init",
)

Inputs = dict[str, Tensor]
Params = dict


def array(value: str | list) -> Tensor:
    """Numbers given in place, or by their name in the file's list of inputs; "inf" and "nan" are written as strings."""

    def numbers(x):
        return [numbers(y) for y in x] if isinstance(x, list) else float(x)

    if isinstance(value, str):
        if value not in GOLDEN["inputs"]:
            raise unknown_name_error("input", value, GOLDEN["inputs"])
        value = GOLDEN["inputs"][value]
    return torch.tensor(numbers(value), dtype=torch.float64)


def flat(params: Params) -> Params:
    """The constants of a vector, those of nested groups too."""
    out = {}
    for name, value in params.items():
        out |= flat(value) if isinstance(value, dict) else {name: value}
    return out


def reduction(vector: dict) -> str:
    """Our name for the way a vector was averaged."""
    given = vector["reduction"]
    known = {"mean over B*C": "cells", "sum over C, mean over B": "images", "sum over B*C": "sum"}
    if given.startswith("per-sample"):
        return "images"
    if given not in known:
        raise unknown_name_error("reduction", given, known)
    return known[given]


def cellwise(name: str, constants: Callable[[Params], Params]) -> Callable[[dict, Inputs, Params], Tensor]:
    """A loss of our table on the logits and labels as they are."""

    def price(vector: dict, at: Inputs, p: Params) -> Tensor:
        return make_loss(name, reduction(vector), **constants(p))(at["logits"], at["labels"])

    return price


def on_full_truth(name: str, constants: Callable[[Params], Params]) -> Callable[[dict, Inputs, Params], Tensor]:
    """A loss of our table where a label of 0 means that the class is absent, which we write as -1."""

    def price(vector: dict, at: Inputs, p: Params) -> Tensor:
        labels = torch.where(at["labels"] > 0, 1.0, -1.0)
        return make_loss(name, reduction(vector), **constants(p))(at["logits"], labels)

    return price


def on_soft_labels(name: str, constants: Callable[[Params], Params]) -> Callable[[dict, Inputs, Params], Tensor]:
    """A loss of our table where labels are probabilities: we write q as -q, and a certain 1 as 1."""

    def price(vector: dict, at: Inputs, p: Params) -> Tensor:
        labels = torch.where(at["labels"] >= 1, 1.0, -at["labels"])
        return make_loss(name, reduction(vector), **constants(p))(at["logits"], labels)

    return price


def eps(p: Params) -> Params:
    return {"eps": p.get("eps", 0.0)}


def smoothing(p: Params) -> Params:
    return {"positive": p["ls_coef"], "negative": p["ls_coef"], **eps(p)}


def focus(p: Params) -> Params:
    names = {"gamma_pos": p["gamma_pos"], "gamma_neg": p["gamma_neg"], "detached": p.get("weight_detached", True)}
    return names | {"eps": p.get("eps", 1e-8)}


def robust(p: Params) -> Params:
    return {name: p[name] for name in ("w", "b", "mu", "sigma", "q1", "q2", "q3") if name in p} | {
        "eps": p.get("eps_pos", 0.0)
    }


def hill(p: Params) -> Params:
    return {"lamb": p.get("lamb", p.get("lambda")), "margin": p["margin"], "gamma": p["gamma"]}


def self_paced(p: Params) -> Params:
    correcting = p["epoch_zero_based"] >= p["change_epoch"]
    return {"tau": p["tau"], "margin": p["margin"], "gamma": p["gamma"], "correcting": correcting}


def exponents(p: Params) -> Params:
    return {name: p[name] if name in p else math.log(p[e]) for name, e in (("a", "tau"), ("b", "zeta"))}


def cross_entropy(vector: dict, at: Inputs, p: Params) -> Tensor:
    """BCE is Cole's loss on the full truth, or ASL without its focus, where 0 is a negative like any other."""
    if "gamma_neg" in p:
        return cellwise("asymmetric", lambda p: focus(p) | {"clip": p["clip"]})(vector, at, p)
    return on_full_truth("binary_cross_entropy", eps)(vector, at, p)


def all_negatives(vector: dict, at: Inputs, p: Params) -> Tensor:
    """IUN: labels are 1 observed, -1 truly absent, 0 hidden. Cole's code looks for -1 and finds none in 0 and 1."""
    absent = (at["true"] <= 0) & (at["labels"] <= 0)
    labels = torch.where(absent, -1.0, (at["labels"] > 0).double())
    none_found = vector["source"].startswith("elijahcole") and not (at["true"] < 0).any()
    loss = make_loss("ignore_unobserved_negatives", reduction(vector), form="code" if none_found else "paper", **eps(p))
    return loss(at["logits"], labels)


def rank(vector: dict, at: Inputs, p: Params) -> Tensor:
    probabilities = torch.sigmoid(at["logits"])
    return rank_penalty(probabilities, p["delta"]) if "delta" in p else rank_penalty(probabilities, form="singular")


def role(vector: dict, at: Inputs, p: Params) -> Tensor:
    from spmll.methods.published.role import role_loss

    return role_loss(
        at["logits"], at["phi"], at["labels"], k=p["k"], strength=p.get("lambda", 1.0), eps=p.get("eps", 0.0)
    )


def large(correct: bool) -> Callable[[dict, Inputs, Params], Tensor]:
    def price(vector: dict, at: Inputs, p: Params) -> Tensor:
        from spmll.methods.published.large_loss import large_loss

        loss, above = large_loss(at["logits"], at["labels"], p["k"], correct)
        if vector.get("aux"):
            assert above.nonzero().tolist() == sorted(map(list, zip(*vector["aux"], strict=True)))
        return loss

    return price


def consistency(vector: dict, at: Inputs, p: Params) -> Tensor:
    from spmll.methods.published.lagc_losses import consistency_loss

    form = "paper" if "sum over C" in vector["reduction"] else "code"
    strength = p.get("lambda_plc", 1.0)
    return consistency_loss(
        at["logits"], at["strong"], at["labels"], threshold=p["threshold"], weight=strength, form=form
    )


def contrastive(vector: dict, at: Inputs, p: Params) -> Tensor:
    from spmll.methods.published.lagc_losses import contrastive_loss

    form = "paper" if "paper" in vector["source"] else "code"
    return contrastive_loss(at["features"], at["labels"].long(), p["temperature"], form=form)


# The name of a method in the file -> its loss on the inputs and constants of a vector.
BUILT: dict[str, Callable[[dict, Inputs, Params], Tensor]] = {
    "BCE": cross_entropy,
    "BCE-LS": on_full_truth("binary_cross_entropy_smoothed", lambda p: {"smoothing": p["ls_coef"], **eps(p)}),
    "IU": cellwise("ignore_unobserved", eps),
    "IUN": all_negatives,
    "AN": cellwise("assume_negative", eps),
    "AN-LS": cellwise("assume_negative_smoothed", smoothing),
    "AN-LS(0,0.1)": cellwise(
        "assume_negative_smoothed",
        lambda p: {"positive": p["eps_p"], "negative": p["eps_n"], "form": "paper", **eps(p)},
    ),
    "WAN": cellwise("weak_assume_negative", lambda p: {"gamma": p["gamma"], **eps(p)}),
    "PR": cellwise("pairwise_ranking", lambda p: {}),
    "EPR": cellwise(
        "expected_positive_regularization", lambda p: {"k": p["k"], "strength": p.get("lambda", 1.0), **eps(p)}
    ),
    "ROLE": role,
    "EM": cellwise("entropy_maximization", lambda p: {"alpha": p["alpha"], **eps(p)}),
    "EM+APL": cellwise("entropy_maximization", lambda p: {"alpha": p["alpha"], "beta": p["beta"], **eps(p)}),
    "GR": cellwise("generalized_robust", robust),
    "Focal": cellwise("focal", focus),
    "ASL": cellwise("asymmetric", lambda p: focus(p) | {"clip": p["clip"]}),
    "Hill": cellwise("hill", hill),
    "Hill (GR repo variant)": cellwise("hill", lambda p: {"lamb": p["lambda"], "form": "gr", "eps": p["eps"]}),
    "SPLC": cellwise("self_paced_correction", self_paced),
    "LL-R": large(correct=False),
    "LL-Ct": large(correct=True),
    "LL-Cp": large(correct=True),
    "ZLPR": cellwise("zlpr", lambda p: {}),
    "ZLPR-soft": on_soft_labels("zlpr", lambda p: {}),
    "OPML": cellwise("opml", exponents),
    "OPML-soft": on_soft_labels("opml", exponents),
    "OPML high-rank": rank,
    "LAGC L_AN+L_PLC": consistency,
    "LAGC L_LAC": contrastive,
}


def named(vector: dict) -> str:
    return vector["name"] + ("" if vector.get("official") else "-derived")


def close_where_finite(ours: Tensor, theirs: Tensor) -> None:
    """Published code that breaks in float64 is no reason to break: ours is finite there, and the same elsewhere."""
    assert torch.isfinite(ours).all()
    compared = torch.isfinite(theirs)
    torch.testing.assert_close(ours[compared], theirs[compared], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("vector", GOLDEN["vectors"], ids=named)
def test_loss_value_and_gradient_match_the_published_code(vector):
    if vector["method"] not in BUILT:
        raise unknown_name_error("method", vector["method"], BUILT)
    at = {name: array(value) for name, value in flat(vector["inputs"]).items() if value != "-"}
    for name in vector["grad"]:
        at[name].requires_grad_()
    loss = BUILT[vector["method"]](vector, at, flat(vector["params"]))
    loss.backward()
    close_where_finite(loss.detach(), array([vector["loss"]])[0])
    for name, theirs in vector["grad"].items():
        close_where_finite(at[name].grad, array(theirs))


def test_every_block_of_published_reference_values_is_used_by_a_test():
    blocks = {re.sub(r"^onecycle.*", "onecycle", name) for name in GOLDEN}
    assert blocks - {"meta", "inputs", "vectors"} <= set(BLOCKS)


def test_file_of_published_loss_values_contains_all_vectors_and_methods():
    vectors = json.loads(OURS.read_text())["vectors"]
    assert len(vectors) == 84
    assert sum(vector["official"] for vector in vectors) == 60
    assert {vector["method"] for vector in vectors} == set(BUILT)


def test_em_apl_pseudo_negatives_match_the_published_code_after_each_epoch():
    from spmll.methods.published.em_apl import write_pseudo_negatives

    block = GOLDEN["apl_procedure"]
    probabilities = torch.sigmoid(array(block["logits"]))
    targets = array(block["obs0"])
    counts = torch.tensor(block["per_class_count"])
    for epoch, expected in sorted(block["labels_after_epoch"].items(), key=lambda item: int(item[0])):
        write_pseudo_negatives(targets, probabilities, counts)
        torch.testing.assert_close(targets, array(expected), rtol=1e-9, atol=1e-9, msg=f"after epoch {epoch}")


def test_em_apl_method_targets_match_the_published_code_in_each_epoch():
    from spmll.methods import make_method

    block = GOLDEN["apl_procedure"]
    constants = block["params"]
    epochs = constants["num_epochs"]
    method = make_method("em_apl", negatives=constants["neg_proportion"], warm_up=constants["warmup_epoch"] / epochs)
    labels = array(block["obs0"])
    method.begin(labels.to(torch.int8), None, epochs, torch.Generator())
    assert method.counts.tolist() == block["per_class_count"]
    probabilities = torch.sigmoid(array(block["logits"])).float()
    expected = labels
    for epoch in range(
        1, epochs
    ):  # the last call of the published code comes after the last epoch: nothing is learned from it
        method.begin_epoch(epoch)
        method.end_epoch(epoch, lambda: probabilities)
        if str(epoch) in block["labels_after_epoch"]:
            expected = array(block["labels_after_epoch"][str(epoch)])
        torch.testing.assert_close(method.targets, expected.float(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("epochs", GOLDEN.get("gr_schedule_official", {}).get("fractions", {}))
def test_gr_schedule_matches_the_published_code(epochs):
    from spmll.methods import make_method

    method = make_method("gr", w=3.0, b=5.0, mu=0.9, sigma=0.25, w_start=1.0, b_start=-3.0)
    method.begin(torch.tensor([[1, 0]], dtype=torch.int8), None, int(epochs.removeprefix("T")), torch.Generator())
    for point in GOLDEN["gr_schedule_official"]["fractions"][epochs]:
        method.begin_epoch(point["epoch"])
        now = method.loss_function
        assert now.w == pytest.approx(1.0 + 2.0 * point["beta_frac"], rel=1e-12)
        assert now.b == pytest.approx(-3.0 + 8.0 * point["beta_frac"], rel=1e-12)
        assert now.mu == pytest.approx(0.5 + 0.4 * point["alpha_frac"], rel=1e-12)
        assert now.sigma == pytest.approx(2.0 - 1.75 * point["alpha_frac"], rel=1e-12)


@pytest.mark.parametrize("setting", GOLDEN.get("ll_k_per_epoch", {}))
def test_large_loss_rejection_counts_per_epoch_match_the_published_code(setting):
    from spmll.methods.published.large_loss import count_rejections

    batch, classes, percent = re.fullmatch(r"B(\d+)_C(\d+)_delta([\d.e-]+)%", setting).groups()
    ours = [
        count_rejections(epoch, int(batch) * int(classes), float(percent))
        for epoch, _ in enumerate(GOLDEN["ll_k_per_epoch"][setting], start=1)
    ]
    assert ours == GOLDEN["ll_k_per_epoch"][setting]


@pytest.mark.parametrize("vector", [v for v in GOLDEN["vectors"] if v["method"].startswith("LL-")], ids=named)
def test_large_loss_rejection_count_of_each_vector_matches_the_published_code(vector):
    # In the vectors delta_rel is a share, in the schedule above a percentage.
    from spmll.methods.published.large_loss import count_rejections

    p = flat(vector["params"])
    cells = array(vector["inputs"]["logits"]).numel()
    assert count_rejections(p["epoch"], cells, 100 * p["delta_rel"], constant=vector["method"] == "LL-Cp") == p["k"]


@pytest.mark.parametrize("block", [name for name in GOLDEN if name.startswith("onecycle")])
def test_one_cycle_learning_rates_match_the_published_code(block):
    from spmll.methods.published.lagc_losses import make_one_cycle_schedule

    rates = GOLDEN[block]["lrs"]
    peak, warm_up = (float(re.search(rf"{word}([\de.-]+\d)", block).group(1)) for word in ("max", "pct"))
    weight = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.AdamW([weight], lr=0.5)
    schedule = make_one_cycle_schedule(optimiser, len(rates), max_lr=peak, warm_up=warm_up)
    ours = []
    for _ in rates:
        ours.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        if len(ours) < len(rates):
            schedule.step()
    np.testing.assert_allclose(ours, rates, rtol=1e-9, atol=0)


def test_single_positive_sampling_matches_the_published_code():
    from spmll.single_positive_sampling import sample_single_positives

    block = GOLDEN["single_positive_sampling"]
    truth = array(block["labels01"]).numpy().astype(np.int8)
    assert np.array_equal(sample_single_positives(truth), array(block["observed"]).numpy())
    assert np.array_equal(sample_single_positives(truth, negatives=1), array(block["observed_1pos_1neg"]).numpy())


@pytest.mark.parametrize("data", GOLDEN.get("splits", {}).get("splits", {}))
def test_training_and_validation_split_matches_the_published_code(data):
    from spmll.single_positive_sampling import split_train_validation

    block = GOLDEN["splits"]["splits"][data]
    train, val = (np.asarray(rows) for rows in split_train_validation(block["n"]))
    assert (len(train), len(val)) == (block["n_train"], block["n_val"])
    assert train[: len(block["train_first"])].tolist() == block["train_first"]
    assert val[: len(block["val_first"])].tolist() == block["val_first"]
    assert hashlib.sha256(val.astype(np.int64).tobytes()).hexdigest() == block["sha256_val_int64"]


def test_mean_average_precision_matches_the_published_code():
    from spmll.statistics.metrics import average_precision, mean_average_precision

    block = GOLDEN["metric"]
    truth, scores = array(block["y_true"]).numpy(), array(block["y_score"]).numpy()
    each = np.nan_to_num([average_precision(s, t) for s, t in zip(scores.T, truth.T, strict=True)])
    np.testing.assert_allclose(each, array(block["ap"]), rtol=1e-9)
    assert 100 * mean_average_precision(scores, truth, empty_as_zero=True) == pytest.approx(block["map"], rel=1e-9)


def test_average_precision_matches_the_asl_code_and_scikit_learn():
    from spmll.statistics.metrics import asl_average_precision, average_precision

    block = GOLDEN["metric_asl_style"]
    truth, scores = array(block["y_true"]).numpy(), array(block["y_score"]).numpy()
    theirs = [asl_average_precision(s, t) for s, t in zip(scores.T, truth.T, strict=True)]
    np.testing.assert_allclose(theirs, array(block["ap"]), rtol=1e-9)
    usual = [average_precision(s, t) for s, t in zip(scores.T, truth.T, strict=True)]
    np.testing.assert_allclose(usual, array(block["ap_sklearn"]), rtol=1e-9)


def test_role_initial_estimates_match_the_published_code():
    from spmll.methods.published.role import draw_initial_estimates, inverse_sigmoid

    block = GOLDEN["role_init"]
    labels = array(block["obs"])
    labels[0, labels[0] == 0] = -1  # a row with absent cells too, which the published data do not have
    phi = draw_initial_estimates(labels.to(torch.int8), torch.Generator().manual_seed(0), dtype=torch.float64)
    assert phi[labels > 0].numpy() == pytest.approx(block["positive_logit"], rel=1e-9)
    assert phi[labels < 0].numpy() == pytest.approx(block["negative_logit_if_minus1"], rel=1e-9)
    bound = block["unobserved_bound"]
    assert inverse_sigmoid(torch.tensor(0.6, dtype=torch.float64)).item() == pytest.approx(bound, rel=1e-9)
    unseen = phi[labels == 0]
    assert unseen.abs().max() <= bound
    assert -bound <= block["unobserved_min"] <= block["unobserved_max"] <= bound
    assert len(unseen.unique()) == len(unseen)
    least = inverse_sigmoid(torch.tensor([0.0, 1.0], dtype=torch.float64))
    clip = block["inverse_sigmoid_clip"]
    assert least.tolist() == pytest.approx([math.log(clip / (1 - clip)), math.log((1 - clip) / clip)], rel=1e-9)
