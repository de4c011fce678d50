"""What holds for every loss in the table. Numbers worked out by hand are in test_losses_by_hand.py."""

import math
from itertools import product

import pytest
import torch
from harness.tables import over

from spmll.labels import ABSENT, PRESENT, UNSEEN
from spmll.losses import LOSSES, make_loss
from spmll.losses.base import REDUCTIONS, PerImageLoss, negative_log_sigmoid

# In these the cells of an image, or of a batch, are priced together, so the price of one depends on the others.
TOGETHER = {"pairwise_ranking", "expected_positive_regularization", "zlpr", "opml"}

# In these a person's -1 does not cost -log(1 - p): the smoothed ones put a little of it on the other answer, as they do
# with a present cell; the ranking ones have no logarithm of a single cell.
NOT_THE_LOG_LOSS = {
    "binary_cross_entropy_smoothed",
    "assume_negative_smoothed",
    "pairwise_ranking",
    "zlpr",
    "opml",
}

# Other constants than the defaults, worth testing like losses of their own.
VARIANTS = [
    ("asymmetric", {"gamma_neg": 0.5, "detached": False}),
    ("asymmetric", {"gamma_pos": 1, "clip": 0, "detached": False}),
    ("assume_negative_smoothed", {"positive": 0, "form": "paper"}),
    ("binary_cross_entropy_smoothed", {"form": "paper"}),
    ("expected_positive_regularization", {"form": "paper"}),
    ("focal", {"gamma_pos": 0.5, "gamma_neg": 0.5, "detached": False}),
    ("generalized_robust", {"q1": 0.01, "q3": 1.5}),
    ("generalized_robust_guided", {"trust": 1.0, "q3": 1.5}),
    ("hill", {"form": "gr"}),
    ("hill", {"gamma": 0.5}),
    ("ignore_unobserved_negatives", {"form": "code"}),
    ("opml", {"a": -2.0, "b": 3.0}),
    ("pairwise_ranking", {"form": "paper"}),
    ("self_paced_correction", {"correcting": False}),
]

FORMS = [(name, {}) for name in LOSSES] + VARIANTS

every_loss = over(name=LOSSES)
every_form = over(name__constants=FORMS)


def losses_but(names):
    """Every loss but those for which a test does not hold."""
    assert names <= set(LOSSES), "an exception names a loss there is not"
    return over(name=[name for name in LOSSES if name not in names])


def takes_a_weight_as_constant(name, constants):
    """Whether the published gradient is meant to be another one than that of the value."""
    return name.startswith("generalized_robust") or getattr(make_loss(name, **constants), "detached", False)


def cells(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def gradient(loss, logits, labels, mask=None):
    logits = logits.clone().requires_grad_()
    loss(logits, labels, mask).backward()
    return logits.grad


def without_batch_term(name):
    """The loss with what belongs to no single cell taken out: R_k is not zero on an empty image."""
    return make_loss(name, **({"strength": 0.0} if name == "expected_positive_regularization" else {}))


WITHOUT_EPS = [(name, constants | {"eps": 0.0}) for name, constants in FORMS if hasattr(make_loss(name), "eps")]


@over(name__constants=FORMS + WITHOUT_EPS, dtype=[torch.float32, torch.bfloat16, torch.float16])
def test_loss_value_and_gradient_are_finite_at_extreme_logits(name, constants, dtype):
    loss = make_loss(name, **constants)
    logits = torch.tensor([-100.0, -17.0, 0.0, 17.0, 100.0]).to(dtype).repeat(4, 1)
    labels = torch.tensor([[PRESENT], [ABSENT], [UNSEEN], [-0.3]]).expand(4, 5)
    for shape in ((4, 5), (20, 1)):  # all of one label in one image, or each alone in its own
        at = logits.reshape(shape).clone().requires_grad_()
        value = loss(at, labels.reshape(shape))
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(at.grad).all()
        assert value.dtype == torch.float32
        assert at.grad.dtype == dtype


@every_form
def test_loss_value_and_gradient_are_finite_with_mixed_labels_at_extreme_logits(name, constants):
    logits = torch.tensor([[-100.0, 100.0, 100.0, -100.0, 0.0]]).repeat(5, 1).requires_grad_()
    labels = torch.tensor([[PRESENT, ABSENT, UNSEEN, -0.3, UNSEEN]])
    value = make_loss(name, **constants)(logits, torch.cat([labels.roll(shift, 1) for shift in range(5)]))
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(logits.grad).all()


@over(name__constants=[form for form in FORMS if not takes_a_weight_as_constant(*form)])
def test_loss_gradient_matches_the_numeric_gradient(name, constants):
    generator = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(3, 4, generator=generator, dtype=torch.float64)
    labels = torch.tensor([[1, 0, -1, -0.3], [0, 0, 0, 0], [1, 1, 0, -0.9]])
    mask = torch.tensor([[True, True, False, True]] * 3)
    loss = make_loss(name, **constants)
    assert torch.autograd.gradcheck(lambda z: loss(z, labels, mask), logits.requires_grad_())


@every_loss
def test_loss_raises_present_logits_and_lowers_absent_logits(name):
    slope = gradient(make_loss(name), cells([0.3, 0.3]), cells([PRESENT, ABSENT]))
    assert slope[0, 0] < 0 < slope[0, 1]


@losses_but(NOT_THE_LOG_LOSS)
def test_absent_label_costs_the_full_log_loss(name):
    loss = without_batch_term(name)
    loss.eps = 0.0
    value = loss(cells([0.7]), cells([ABSENT]))
    assert value.item() == pytest.approx(math.log(1 + math.exp(0.7)), rel=1e-12)


@every_loss
def test_absent_label_has_at_least_the_gradient_of_an_unseen_label(name):
    loss = without_batch_term(name)
    for logit in (-2.0, 0.3, 5.0):
        at = cells([0.0, logit])
        said = gradient(loss, at, cells([PRESENT, ABSENT]))[0, 1]
        assumed = gradient(loss, at, cells([PRESENT, UNSEEN]))[0, 1]
        assert said > 0
        assert said >= assumed


@every_loss
def test_loss_ignores_the_order_of_images_and_classes(name):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 4, generator=generator, dtype=torch.float64)
    labels = torch.randint(-1, 2, (5, 4), generator=generator)
    rows, columns = torch.tensor([3, 0, 4, 1, 2]), torch.tensor([2, 0, 3, 1])
    loss = make_loss(name)
    moved = loss(logits[rows][:, columns], labels[rows][:, columns])
    torch.testing.assert_close(loss(logits, labels), moved, rtol=1e-12, atol=0)


@losses_but(TOGETHER)
def test_loss_of_two_present_labels_equals_the_sum_of_their_separate_losses(name):
    loss = make_loss(name)
    together = loss(cells([0.2, -0.9]), cells([PRESENT, PRESENT])) * 2
    apart = loss(cells([0.2]), cells([PRESENT])) + loss(cells([-0.9]), cells([PRESENT]))
    assert together.item() == pytest.approx(apart.item(), rel=1e-12)


@every_loss
def test_loss_ignores_a_masked_label(name):
    logits, labels = cells([0.5, math.nan, -1.0]), cells([PRESENT, ABSENT, UNSEEN])
    mask = torch.tensor([[True, False, True]])
    # Some losses have constants that stand for a number of classes: left as they are by a mask, given here for both.
    constants = {
        "weak_assume_negative": {"gamma": 0.4},
        "expected_positive_regularization": {"k": 0.0},
    }
    loss = make_loss(name, **constants.get(name, {}))
    slope = gradient(loss, logits, labels, mask)
    assert slope[0, 1] == 0
    assert torch.isfinite(slope).all()
    rest = loss(cells([0.5, -1.0]), cells([PRESENT, UNSEEN]))
    assert loss(logits, labels, mask).item() == pytest.approx(rest.item(), rel=1e-12)


@over(name=LOSSES, reduction=REDUCTIONS)
def test_loss_ignores_a_masked_image(name, reduction):
    logits, labels = cells([0.5, -1.0], [math.nan, 4.0]), cells([PRESENT, UNSEEN], [ABSENT, PRESENT])
    mask = torch.tensor([[True, True], [False, False]])
    loss = make_loss(name, reduction)
    assert loss(logits, labels, mask).item() == pytest.approx(loss(logits[:1], labels[:1]).item(), rel=1e-12)


@every_form
def test_loss_of_empty_or_fully_masked_input_is_zero(name, constants):
    loss = make_loss(name, **constants)
    slope = gradient(loss, cells([2.0]), cells([PRESENT]), torch.tensor([[False]]))
    assert slope.tolist() == [[0.0]]
    for shape in ((0, 3), (3, 0), (0, 0)):
        assert loss(torch.zeros(shape), torch.zeros(shape)).item() == 0
        assert loss(torch.zeros(shape), torch.zeros(shape), torch.zeros(shape, dtype=torch.bool)).item() == 0


@every_form
def test_loss_is_finite_for_small_batches_of_one_label(name, constants):
    loss = make_loss(name, **constants)
    for shape, label in product([(1, 1), (1, 5), (4, 1), (3, 5)], [PRESENT, ABSENT, UNSEEN, -0.5]):
        at = torch.linspace(-3, 3, shape[0] * shape[1]).reshape(shape).requires_grad_()
        value = loss(at, torch.full(shape, float(label)))
        value.backward()
        assert torch.isfinite(value), (shape, label)
        assert torch.isfinite(at.grad).all(), (shape, label)


@every_loss
def test_loss_of_integer_labels_equals_that_of_float_labels(name):
    logits = cells([0.4, -0.2, 1.0])
    as_int8 = torch.tensor([[PRESENT, UNSEEN, ABSENT]], dtype=torch.int8)
    assert make_loss(name)(logits, as_int8).item() == make_loss(name)(logits, as_int8.double()).item()


@every_loss
def test_loss_refuses_mismatched_shapes_and_wrong_dtypes(name):
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
def test_key_in_the_losses_registry_equals_the_name_of_the_loss(name):
    assert LOSSES[name].name == name


@every_loss
def test_loss_reductions_differ_only_by_their_divisor(name):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    labels = torch.randint(-1, 2, (3, 4), generator=generator)
    constants = {"strength": 0.0} if name == "expected_positive_regularization" else {}
    mean, images, total = (make_loss(name, each, **constants)(logits, labels).item() for each in REDUCTIONS)
    assert total == pytest.approx(3 * images, rel=1e-12)
    assert total == pytest.approx(12 * mean, rel=1e-12)


def test_losses_average_over_images_if_defined_per_image_and_otherwise_over_labels():
    for name, kind in LOSSES.items():
        assert make_loss(name).reduction == ("images" if issubclass(kind, PerImageLoss) else "cells")


def test_per_cell_values_of_a_loss_defined_per_image_are_refused():
    with pytest.raises(TypeError, match="whole images"):
        make_loss("zlpr").per_cell(cells([0.0]), cells([PRESENT]))


def test_make_loss_refuses_unknown_names_with_a_suggestion():
    with pytest.raises(ValueError, match="Did you mean 'assume_negative'") as caught:
        make_loss("asume_negative")
    assert all(name in str(caught.value) for name in LOSSES)
    with pytest.raises(ValueError, match="no loss 'xyzzy'") as caught:
        make_loss("xyzzy")
    assert "Did you mean" not in str(caught.value)
    with pytest.raises(ValueError, match=r"constant of loss 'focal': 'gama_pos'. Did you mean 'gamma_pos'"):
        make_loss("focal", gama_pos=1.0)
    with pytest.raises(ValueError, match=r"no reduction 'image'. Did you mean 'images'"):
        make_loss("focal", "image")
    with pytest.raises(ValueError, match=r"no form 'papper'. Did you mean 'paper'"):
        make_loss("pairwise_ranking", form="papper")
    loss = make_loss("focal")
    loss.reduction = "mean"
    with pytest.raises(ValueError, match="no reduction 'mean'"):
        loss(cells([0.0]), cells([PRESENT]))


@over(
    name__constants=[
        ("assume_negative", {"eps": -1e-5}),
        ("assume_negative_smoothed", {"negative": 1.5}),
        ("asymmetric", {"clip": 1.0}),
        ("asymmetric", {"gamma_neg": -1.0}),
        ("binary_cross_entropy", {"eps": math.nan}),
        ("binary_cross_entropy_smoothed", {"smoothing": -0.1}),
        ("entropy_maximization", {"alpha": -1.0}),
        ("entropy_maximization", {"beta": math.nan}),
        ("expected_negative", {"eps": -1.0}),
        ("expected_positive_regularization", {"k": -1.0}),
        ("focal", {"gamma_pos": math.nan}),
        ("generalized_robust", {"sigma": 0.0}),
        ("generalized_robust", {"q3": -1.0}),
        ("hill", {"margin": math.inf}),
        ("ignore_unobserved", {"eps": -1.0}),
        ("ignore_unobserved_negatives", {"form": "released"}),
        ("opml", {"a": math.inf}),
        ("pairwise_ranking", {"form": "poem"}),
        ("self_paced_correction", {"tau": 60.0}),
        ("weak_assume_negative", {"gamma": -1.0}),
    ]
)
def test_make_loss_refuses_an_invalid_constant_by_name(name, constants):
    with pytest.raises(ValueError, match=next(iter(constants))):
        make_loss(name, **constants)


def test_eps_bounds_the_log_loss_of_a_confident_mistake_and_its_gradient_vanishes():
    far = torch.tensor([-60.0], dtype=torch.float64, requires_grad=True)
    value = negative_log_sigmoid(far, 1e-5)
    value.backward()
    assert value.item() == pytest.approx(-math.log(1e-5))
    assert abs(far.grad.item()) < 1e-15
    assert negative_log_sigmoid(torch.tensor([-60.0])).item() == pytest.approx(60.0)
