"""Numbers worked out by hand for every loss, and what sets single losses apart. Rules for all: test_losses.py."""

import math

import pytest
import torch
from harness.tables import over

from spmll.labels import ABSENT, PRESENT, UNSEEN
from spmll.losses import LOSSES, make_loss
from spmll.losses.expected_positive_regularization import expected_count_penalty
from spmll.losses.opml import rank_penalty


def cells(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def gradient(loss, logits, labels):
    logits = logits.clone().requires_grad_()
    loss(logits, labels).backward()
    return logits.grad


# By hand: p is 3/4 at logit log 3, 1/2 at 0, 1/4 at -log 3.
UP, DOWN, LOG2, LOG43, LOG4 = math.log(3), -math.log(3), math.log(2), math.log(4 / 3), math.log(4)


BY_HAND = [
    # Present at 3/4 costs log 4/3, absent at 1/4 too; unseen nothing. Guess of 1/4 at 3/4: (log 4/3 + 3 log 4) / 4.
    ("binary_cross_entropy", {"eps": 0}, [UP, DOWN, 0.0], [PRESENT, ABSENT, UNSEEN], 2 * LOG43),
    ("binary_cross_entropy", {"eps": 0}, [UP], [-0.25], LOG43 / 4 + 3 * LOG4 / 4),
    # Right with 0.8, wrong with 0.2; in the paper's way 0.9 and 0.1. Absent is the mirror of present.
    ("binary_cross_entropy_smoothed", {"smoothing": 0.2, "eps": 0}, [UP], [PRESENT], 0.8 * LOG43 + 0.2 * LOG4),
    ("binary_cross_entropy_smoothed", {"smoothing": 0.2, "eps": 0}, [DOWN], [ABSENT], 0.8 * LOG43 + 0.2 * LOG4),
    (
        "binary_cross_entropy_smoothed",
        {"smoothing": 0.2, "form": "paper", "eps": 0},
        [UP, 0.0],
        [PRESENT, UNSEEN],
        0.9 * LOG43 + 0.1 * LOG4,
    ),
    ("ignore_unobserved", {"eps": 0}, [UP, UP, UP], [PRESENT, ABSENT, UNSEEN], LOG43 + LOG4),
    ("ignore_unobserved_negatives", {"eps": 0}, [UP, UP, UP], [PRESENT, ABSENT, UNSEEN], LOG43 + LOG4),
    (
        "ignore_unobserved_negatives",
        {"form": "code", "eps": 0},
        [UP, UP, UP],
        [PRESENT, ABSENT, UNSEEN],
        LOG43,
    ),
    ("assume_negative", {"eps": 0}, [UP, 0.0], [PRESENT, UNSEEN], LOG43 + LOG2),
    (
        "assume_negative_smoothed",
        {"positive": 0.1, "negative": 0.2, "eps": 0},
        [UP, UP],
        [PRESENT, UNSEEN],
        0.9 * LOG43 + 0.1 * LOG4 + 0.8 * LOG4 + 0.2 * LOG43,
    ),
    (
        "assume_negative_smoothed",
        {"positive": 0.0, "negative": 0.2, "form": "paper", "eps": 0},
        [UP, UP],
        [PRESENT, UNSEEN],
        LOG43 + 0.9 * LOG4 + 0.1 * LOG43,
    ),
    # Three classes: an assumed negative weighs 1/2, a certain one 1.
    ("weak_assume_negative", {"eps": 0}, [UP, UP, 0.0], [PRESENT, ABSENT, UNSEEN], LOG43 + LOG4 + LOG2 / 2),
    # Two present (3/4, 1/4) against one other (1/2): (1 - 3/4 + 1/2) + (1 - 1/4 + 1/2).
    ("pairwise_ranking", {}, [UP, DOWN, 0.0], [PRESENT, PRESENT, UNSEEN], 2.0),
    ("pairwise_ranking", {}, [UP, 0.0], [UNSEEN, ABSENT], 0.0),
    ("entropy_maximization", {"alpha": 0.2, "beta": 0.5, "eps": 0}, [0.0, 0.0], [UNSEEN, -0.25], 0.3 * LOG2),
    # At 1/2 the entropy is log 2; what is absent costs the log loss.
    (
        "entropy_minimization",
        {"alpha": 0.5, "eps": 0},
        [UP, 0.0, UP],
        [PRESENT, UNSEEN, ABSENT],
        LOG43 + LOG2 / 2 + LOG4,
    ),
    # With w = b = 0 k is 1/2, with mu = 1/2 v is 1; q2 = q3 = 1: both shares cost 1/2.
    ("generalized_robust", {"w": 0, "b": 0, "mu": 0.5, "sigma": 1, "q2": 1, "q3": 1}, [0.0], [UNSEEN], 0.5),
    # k is 1/2 again; a guess of 3/4, trusted half, makes it 5/8. At 3/4 (v = 1) a positive costs 1/4, a negative 3/4.
    (
        "generalized_robust_guided",
        {"w": 0, "b": 0, "mu": 0.75, "sigma": 1, "q2": 1, "q3": 1, "trust": 0.5},
        [UP],
        [-0.75],
        5 / 8 * 1 / 4 + 3 / 8 * 3 / 4,
    ),
    # (1/4)^2 log 4/3, then (3/4)^1 log 4, then a certain absence in full.
    (
        "focal",
        {"gamma_pos": 2, "gamma_neg": 1, "eps": 0},
        [UP, UP, UP],
        [PRESENT, UNSEEN, ABSENT],
        LOG43 / 16 + 3 * LOG4 / 4 + LOG4,
    ),
    # Clipped by 1/4 a probability of 3/4 becomes 1/2 and one of 1/4 nothing.
    (
        "asymmetric",
        {"gamma_pos": 1, "gamma_neg": 3, "clip": 0.25, "eps": 0},
        [UP, UP, DOWN - 1e-9, UP],
        [PRESENT, UNSEEN, UNSEEN, ABSENT],
        LOG43 / 4 + LOG2 / 8 + LOG4,
    ),
    # The margin takes log 3 + 1 down to 3/4: (1/4)^2 log 4/3. The hill at 1/2: (1.5 - 0.5) / 4.
    ("hill", {}, [UP + 1, 0.0, UP], [PRESENT, UNSEEN, ABSENT], LOG43 / 16 + 0.25 + LOG4),
    ("hill", {"form": "gr", "eps": 0}, [UP, 0.0], [PRESENT, UNSEEN], LOG43 + 0.25),
    # Unseen at 3/4 is above 0.6 and counts as present, without the margin; at 1/2 it is a focal negative.
    (
        "self_paced_correction",
        {},
        [UP + 1, UP, 0.0, UP],
        [PRESENT, UNSEEN, UNSEEN, ABSENT],
        LOG43 / 16 + LOG43 / 16 + LOG2 / 4 + LOG4,
    ),
    ("self_paced_correction", {"correcting": False}, [UP], [UNSEEN], 9 * LOG4 / 16),
    # log(1 + 1/3) + log(1 + 1 + 3); a guess of 1/4 at 0 is 1/4 above and 3/4 below.
    ("zlpr", {}, [UP, 0.0, UP], [PRESENT, UNSEEN, ABSENT], LOG43 + math.log(5)),
    ("zlpr", {}, [0.0], [-0.25], math.log(1.25) + math.log(1.75)),
    # The constants 2 and 3 in the places of the 1.
    ("opml", {"a": LOG2, "b": UP}, [UP, 0.0, UP], [PRESENT, UNSEEN, ABSENT], math.log(7 / 3) + math.log(7)),
    ("opml", {"a": LOG2, "b": UP}, [0.0], [-0.25], math.log(2.25) + math.log(3.75)),
    ("expected_negative", {}, [UP, UP, UP], [PRESENT, ABSENT, UNSEEN], LOG43 + LOG4),
]


@over(name__constants__logits__labels__expected=BY_HAND)
def test_loss_equals_the_value_worked_out_by_hand(name, constants, logits, labels, expected):
    value = make_loss(name, "sum", **constants)(cells(logits), cells(labels))
    assert value.item() == pytest.approx(expected, rel=1e-8)


def test_expected_positive_regularization_equals_the_value_worked_out_by_hand():
    # Two images, probabilities 3/4 and 1/4 each: one class an image, two expected, of C = 2: R_k = (1/2)^2.
    logits, labels = cells([UP, DOWN], [UP, DOWN]), cells([PRESENT, UNSEEN], [UNSEEN, ABSENT])
    constants = {"k": 2.0, "strength": 3.0, "eps": 0.0}
    code = make_loss("expected_positive_regularization", **constants)
    paper = make_loss("expected_positive_regularization", form="paper", **constants)
    assert code(logits, labels).item() == pytest.approx(2 * LOG43 / 4 + 3 / 4, rel=1e-12)
    assert paper(logits, labels).item() == pytest.approx(2 * LOG43 / 2 + 3 / 4, rel=1e-12)


def test_every_loss_has_a_hand_computed_test_value():
    assert {name for name, *_ in BY_HAND} | {"expected_positive_regularization"} == set(LOSSES)


def test_expected_count_penalty_ignores_masked_labels():
    # Of four classes two are usable, at 1/2 each: that is 2 of 4 expected, so k = 2 costs nothing.
    probabilities = cells([0.5, 0.5, 0.9, math.nan])
    usable = torch.tensor([[True, True, False, False]])
    assert expected_count_penalty(probabilities, 2.0, usable).item() == pytest.approx(0.0, abs=1e-15)
    assert expected_count_penalty(probabilities, 4.0, usable).item() == pytest.approx(0.25, rel=1e-12)
    assert expected_count_penalty(probabilities, 4.0, usable & False).item() == 0


def test_rank_penalty_equals_the_value_worked_out_by_hand():
    # Rows (1, 0, 0) and (0, 1, 0): P P^T is the identity, its determinant with delta = 1 is 4.
    apart, alike = cells([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]), cells([1.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    assert rank_penalty(apart).item() == pytest.approx(-math.log(4), rel=1e-12)
    assert rank_penalty(apart.T).item() == pytest.approx(-math.log(4), rel=1e-12)
    assert rank_penalty(apart, form="singular").item() == pytest.approx(0.0, abs=1e-12)
    assert rank_penalty(alike).item() > rank_penalty(apart).item()


@over(
    form=["logdet", "singular"],
    shape=[(0, 3), (1, 1), (5, 3), (3, 5)],
    dtype=[torch.float32, torch.bfloat16, torch.float16],
)
def test_rank_penalty_and_its_gradient_are_finite_for_identical_images(form, shape, dtype):
    for value in (0.0, 0.7, 1.0):
        probabilities = torch.full(shape, value).to(dtype).requires_grad_()
        penalty = rank_penalty(probabilities, delta=1e-3, form=form)
        penalty.backward()
        assert torch.isfinite(penalty)
        assert torch.isfinite(probabilities.grad).all()


def test_rank_penalty_refuses_zero_delta_and_an_unknown_form():
    with pytest.raises(ValueError, match="delta = 0"):
        rank_penalty(cells([0.5]), delta=0.0)
    with pytest.raises(ValueError, match="Did you mean 'logdet'"):
        rank_penalty(cells([0.5]), form="log_det")


def test_assume_negative_treats_absent_and_unseen_alike():
    loss, logits = make_loss("assume_negative"), cells([0.8, -1.3])
    assert loss(logits, cells([UNSEEN, UNSEEN])).item() == loss(logits, cells([ABSENT, ABSENT])).item()


def test_weak_assume_negative_equals_assume_negative_for_one_class():
    logits, labels = cells([0.8], [-1.3]), cells([UNSEEN], [PRESENT])
    weak, plain = make_loss("weak_assume_negative"), make_loss("assume_negative")
    assert weak(logits, labels).item() == plain(logits, labels).item()


def test_zlpr_equals_opml_with_default_constants():
    logits, labels = cells([0.8, -1.3, 2.0]), cells([PRESENT, UNSEEN, -0.4])
    assert make_loss("opml")(logits, labels).item() == make_loss("zlpr")(logits, labels).item()


def test_hill_gradient_vanishes_for_likely_unseen_labels_but_not_for_absent_labels():
    loss = make_loss("hill")
    unseen = gradient(loss, cells([0.0, 6.0]), cells([UNSEEN, UNSEEN]))
    assert unseen[0, 1] < 0.01 * unseen[0, 0]
    said = gradient(loss, cells([0.0, 6.0]), cells([ABSENT, ABSENT]))
    assert said[0, 1] > said[0, 0]


def test_a_detached_focal_weight_changes_the_gradient_and_not_the_value():
    logits, labels = cells([0.8, -1.3]), cells([PRESENT, UNSEEN])
    fixed, moving = (make_loss("focal", detached=detached) for detached in (True, False))
    assert fixed(logits, labels).item() == moving(logits, labels).item()
    assert (gradient(fixed, logits, labels).abs() < gradient(moving, logits, labels).abs()).all()


def test_entropy_maximization_moves_unseen_labels_toward_one_half():
    loss = make_loss("entropy_maximization", eps=0.0)
    slope = gradient(loss, cells([-2.0, 0.0, 2.0]), cells([UNSEEN, UNSEEN, UNSEEN]))
    assert slope[0, 0] < 0
    assert slope[0, 1] == pytest.approx(0.0, abs=1e-15)
    assert slope[0, 2] > 0


@pytest.mark.parametrize("name", ["entropy_maximization", "binary_cross_entropy"])
def test_gradient_of_a_soft_label_is_zero_at_its_probability(name):
    # q = 0.25: the slope changes its sign there.
    loss = make_loss(name, eps=0.0)
    at = math.log(0.25 / 0.75)
    slope = gradient(loss, cells([at - 0.1, at, at + 0.1]), cells([-0.25, -0.25, -0.25]))
    assert slope[0, 0] < 0
    assert slope[0, 1] == pytest.approx(0.0, abs=1e-15)
    assert slope[0, 2] > 0


def test_generalized_robust_has_the_gradient_of_equation_18():
    w, b, mu, sigma, q2, q3 = 3.0, -2.0, 0.6, 0.4, 0.3, 1.5
    logits = torch.linspace(-6, 6, 25, dtype=torch.float64)[None]
    slope = gradient(make_loss("generalized_robust", w=w, b=b, mu=mu, sigma=sigma, q2=q2, q3=q3), logits, logits * 0)
    p = torch.sigmoid(logits)
    k = torch.sigmoid(w * p + b)
    v = torch.exp(-((p - mu) ** 2) / (2 * sigma**2))
    expected = v * ((1 - k) * (1 - p) ** q3 * p - k * p**q2 * (1 - p)) / logits.numel()
    torch.testing.assert_close(slope, expected, rtol=1e-12, atol=1e-15)


def test_generalized_robust_raises_confident_unseen_logits_and_lowers_the_others():
    # Late in training k is high where p is high: there an unseen cell is pulled up, elsewhere down.
    loss = make_loss("generalized_robust", w=10.0, b=-8.0)
    slope = gradient(loss, cells([4.0, -1.0]), cells([UNSEEN, UNSEEN]))
    assert slope[0, 0] < 0 < slope[0, 1]


def test_power_loss_approaches_the_log_loss_as_its_exponent_goes_to_zero():
    logits, labels = cells([0.5, -3.0]), cells([PRESENT, PRESENT])
    nearly = make_loss("generalized_robust", q1=1e-9)(logits, labels)
    assert nearly.item() == pytest.approx(make_loss("generalized_robust", eps=0.0)(logits, labels).item(), rel=1e-7)
