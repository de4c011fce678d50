"""What holds for every loss in the table, and one number worked out by hand for each."""

import math

import pytest
import torch

from models.labels import ABSENT, PRESENT, UNSEEN
from models.losses import LOSSES, make_loss
from models.losses.base import negative_log

every_loss = pytest.mark.parametrize("name", LOSSES)


def cells(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def gradient(loss, logits, labels, mask=None):
    logits = logits.clone().requires_grad_()
    loss(logits, labels, mask).backward()
    return logits.grad


@every_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("eps", [None, 0.0])
def test_value_and_gradient_stay_finite_at_extreme_logits(name, dtype, eps):
    loss = make_loss(name) if eps is None else make_loss(name, eps=eps)
    logits = torch.tensor([-100.0, -17.0, 0.0, 17.0, 100.0]).to(dtype)
    for label in (PRESENT, ABSENT, UNSEEN, -0.3):
        at = logits[:, None].clone().requires_grad_()
        value = loss(at, torch.full((5, 1), float(label)))
        value.backward()
        assert torch.isfinite(value), label
        assert torch.isfinite(at.grad).all(), label
        assert value.dtype == torch.float32
        assert at.grad.dtype == dtype


@every_loss
def test_a_loss_pulls_present_up_and_absent_down(name):
    slope = gradient(make_loss(name), cells([0.3, 0.3]), cells([PRESENT, ABSENT]))
    assert slope[0, 0] < 0 < slope[0, 1]


@every_loss
def test_a_persons_absent_costs_the_full_log_loss(name):
    value = make_loss(name, eps=0.0)(cells([0.7]), cells([ABSENT]))
    assert value.item() == pytest.approx(math.log(1 + math.exp(0.7)), rel=1e-12)


@every_loss
def test_the_loss_does_not_depend_on_the_order_of_images_or_classes(name):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 4, generator=generator, dtype=torch.float64)
    labels = torch.randint(-1, 2, (5, 4), generator=generator)
    rows, columns = torch.tensor([3, 0, 4, 1, 2]), torch.tensor([2, 0, 3, 1])
    loss = make_loss(name)
    moved = loss(logits[rows][:, columns], labels[rows][:, columns])
    torch.testing.assert_close(loss(logits, labels), moved, rtol=1e-12, atol=0)


@every_loss
def test_two_positives_cost_what_they_cost_one_by_one(name):
    loss = make_loss(name)
    together = loss(cells([0.2, -0.9]), cells([PRESENT, PRESENT])) * 2
    apart = loss(cells([0.2]), cells([PRESENT])) + loss(cells([-0.9]), cells([PRESENT]))
    assert together.item() == pytest.approx(apart.item(), rel=1e-12)


@every_loss
def test_a_cell_left_out_neither_teaches_nor_counts(name):
    logits, labels = cells([0.5, math.nan, -1.0]), cells([PRESENT, ABSENT, UNSEEN])
    mask = torch.tensor([[True, False, True]])
    loss = make_loss(name)
    assert gradient(loss, cells([0.5, 3.0, -1.0]), labels, mask)[0, 1] == 0
    rest = loss(cells([0.5, -1.0]), cells([PRESENT, UNSEEN]))
    assert loss(logits, labels, mask).item() == pytest.approx(rest.item(), rel=1e-12)


@every_loss
def test_nothing_to_learn_from_costs_nothing(name):
    slope = gradient(make_loss(name), cells([2.0]), cells([PRESENT]), torch.tensor([[False]]))
    assert slope.tolist() == [[0.0]]
    assert make_loss(name)(torch.zeros(0, 3), torch.zeros(0, 3)).item() == 0


@every_loss
def test_whole_number_labels_are_understood(name):
    logits = cells([0.4, -0.2, 1.0])
    as_int8 = torch.tensor([[PRESENT, UNSEEN, ABSENT]], dtype=torch.int8)
    assert make_loss(name)(logits, as_int8).item() == make_loss(name)(logits, as_int8.double()).item()


@every_loss
def test_shapes_that_differ_are_named_with_a_likely_reason(name):
    loss = make_loss(name)
    with pytest.raises(ValueError, match=r"Logits are \(8, 20\) but labels are \(8, 21\).*Were classes added"):
        loss(torch.zeros(8, 20), torch.zeros(8, 21))
    with pytest.raises(ValueError, match=r"The mask is \(8, 1\)"):
        loss(torch.zeros(8, 20), torch.zeros(8, 20), torch.ones(8, 1, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"torch.bool"):
        loss(torch.zeros(8, 20), torch.zeros(8, 20), torch.ones(8, 20))
    with pytest.raises(TypeError, match="must be floats"):
        loss(torch.zeros(8, 20, dtype=torch.int64), torch.zeros(8, 20))


@every_loss
def test_a_table_entry_is_filed_under_its_own_name(name):
    assert LOSSES[name].name == name


def test_unknown_loss_lists_the_known_ones_and_guesses_what_was_meant():
    with pytest.raises(ValueError, match="Did you mean 'assume_negative'") as caught:
        make_loss("asume_negative")
    assert all(name in str(caught.value) for name in LOSSES)
    with pytest.raises(ValueError, match="no loss 'xyzzy'") as caught:
        make_loss("xyzzy")
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("assume_negative", {"eps": -1e-5}),
        ("entropy_maximization", {"alpha": -1.0}),
        ("entropy_maximization", {"beta": math.nan}),
        ("generalized_robust", {"sigma": 0.0}),
        ("generalized_robust", {"q3": -1.0}),
    ],
)
def test_a_constant_that_makes_no_sense_is_named(name, constants):
    with pytest.raises(ValueError, match=next(iter(constants))):
        make_loss(name, **constants)


def test_eps_bounds_the_loss_of_a_saturated_mistake_and_lets_go_of_it():
    far = torch.tensor([-60.0], dtype=torch.float64, requires_grad=True)
    value = negative_log(far, 1e-5)
    value.backward()
    assert value.item() == pytest.approx(-math.log(1e-5))
    assert abs(far.grad.item()) < 1e-15
    assert negative_log(torch.tensor([-60.0])).item() == pytest.approx(60.0)


def test_assume_negative_by_hand():
    # Present at p = 3/4, unseen at p = 1/2: (log 4/3 + log 2) / 2.
    value = make_loss("assume_negative", eps=0.0)(cells([math.log(3), 0.0]), cells([PRESENT, UNSEEN]))
    assert value.item() == pytest.approx((math.log(4 / 3) + math.log(2)) / 2, rel=1e-12)


def test_assume_negative_makes_no_difference_between_absent_and_unseen():
    loss, logits = make_loss("assume_negative"), cells([0.8, -1.3])
    assert loss(logits, cells([UNSEEN, UNSEEN])).item() == loss(logits, cells([ABSENT, ABSENT])).item()


def test_entropy_maximization_by_hand():
    # Unseen at p = 1/2 has entropy log 2, weighed with alpha. Guess of 1/4 at p = 1/2 costs beta log 2.
    loss = make_loss("entropy_maximization", alpha=0.2, beta=0.5, eps=0.0)
    value = loss(cells([0.0, 0.0]), cells([UNSEEN, -0.25]))
    assert value.item() == pytest.approx((-0.2 + 0.5) * math.log(2) / 2, rel=1e-12)


def test_entropy_maximization_pushes_unseen_cells_towards_one_half():
    loss = make_loss("entropy_maximization", eps=0.0)
    slope = gradient(loss, cells([-2.0, 0.0, 2.0]), cells([UNSEEN, UNSEEN, UNSEEN]))
    assert slope[0, 0] < 0
    assert slope[0, 1] == pytest.approx(0.0, abs=1e-15)
    assert slope[0, 2] > 0


def test_a_guess_has_its_rest_at_the_guessed_probability():
    # q = 0.25: the slope changes its sign there.
    loss = make_loss("entropy_maximization", eps=0.0)
    at = math.log(0.25 / 0.75)
    slope = gradient(loss, cells([at - 0.1, at, at + 0.1]), cells([-0.25, -0.25, -0.25]))
    assert slope[0, 0] < 0
    assert slope[0, 1] == pytest.approx(0.0, abs=1e-15)
    assert slope[0, 2] > 0


def test_generalized_robust_by_hand():
    # At p = 1/2 with w = b = 0 k is 1/2, with mu = 1/2 v is 1; q2 = q3 = 1: both shares cost 1/2.
    loss = make_loss("generalized_robust", w=0.0, b=0.0, mu=0.5, sigma=1.0, q2=1.0, q3=1.0)
    assert loss(cells([0.0]), cells([UNSEEN])).item() == pytest.approx(0.5, rel=1e-12)


def test_generalized_robust_has_the_gradient_of_equation_18():
    w, b, mu, sigma, q2, q3 = 3.0, -2.0, 0.6, 0.4, 0.3, 1.5
    logits = torch.linspace(-6, 6, 25, dtype=torch.float64)[None]
    slope = gradient(make_loss("generalized_robust", w=w, b=b, mu=mu, sigma=sigma, q2=q2, q3=q3), logits, logits * 0)
    p = torch.sigmoid(logits)
    k = torch.sigmoid(w * p + b)
    v = torch.exp(-((p - mu) ** 2) / (2 * sigma**2))
    expected = v * ((1 - k) * (1 - p) ** q3 * p - k * p**q2 * (1 - p)) / logits.numel()
    torch.testing.assert_close(slope, expected, rtol=1e-12, atol=1e-15)


def test_generalized_robust_of_a_confident_cell_lets_it_be_present():
    # Late in training k is high where p is high: there an unseen cell is pulled up, elsewhere down.
    loss = make_loss("generalized_robust", w=10.0, b=-8.0)
    slope = gradient(loss, cells([4.0, -1.0]), cells([UNSEEN, UNSEEN]))
    assert slope[0, 0] < 0 < slope[0, 1]


def test_power_loss_becomes_the_log_loss_as_its_exponent_vanishes():
    logits, labels = cells([0.5, -3.0]), cells([PRESENT, PRESENT])
    nearly = make_loss("generalized_robust", q1=1e-9)(logits, labels)
    assert nearly.item() == pytest.approx(make_loss("generalized_robust", eps=0.0)(logits, labels).item(), rel=1e-7)
