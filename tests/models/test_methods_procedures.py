"""What each paper does around its loss, one procedure at a time."""

import math

import pytest
import torch

from spmll.labels import ABSENT, PRESENT, UNSEEN
from spmll.linear.training import Adam
from spmll.losses.base import negative_log_sigmoid
from spmll.methods import make_method
from spmll.methods.published.en import estimate_positive_counts
from spmll.methods.published.large_loss import count_rejections, large_loss
from spmll.methods.published.opml_sp import compute_observed_ap, correct_labels, smooth_targets
from spmll.methods.published.ranks import select_lowest
from spmll.methods.published.role import draw_initial_estimates, inverse_sigmoid, role_loss
from spmll.statistics.metrics import average_precision


def begun(name, labels, mask=None, epochs=10, **parameters):
    method = make_method(name, **parameters)
    method.begin(torch.as_tensor(labels, dtype=torch.int8), mask, epochs, torch.Generator().manual_seed(0))
    return method


def random_labels(images, classes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.zeros(images, classes, dtype=torch.int8)
    labels[torch.arange(images), torch.randint(classes, (images,), generator=generator)] = PRESENT
    return labels, torch.randn(images, classes, generator=generator)


def test_select_lowest_prefers_the_earlier_row_of_ties_and_respects_the_count():
    values = torch.tensor([[2.0, 1.0], [1.0, 1.0], [1.0, 1.0], [0.0, torch.inf]])
    assert select_lowest(values, torch.tensor([2, 2])).T.tolist() == [
        [False, True, False, True],
        [True, True, False, False],
    ]
    assert not select_lowest(values, torch.tensor([0, 0])).any()
    assert select_lowest(values, torch.tensor([9, 4])).all()


# Large loss


def test_large_loss_rejection_count_grows_by_a_constant_percentage_after_the_first_epoch():
    assert [count_rejections(epoch, 100, 12.5) for epoch in (1, 2, 3, 5)] == [0, 13, 25, 50]
    assert [count_rejections(epoch, 100, 12.5, constant=True) for epoch in (1, 2, 3, 5)] == [0, 13, 13, 13]


def test_large_loss_rejection_count_rounds_like_the_published_repeated_subtraction():
    # 1 - 0.999 is a little more than 0.001 in floating point, so the published code rejects 2 of 1000 cells, not 1.
    assert count_rejections(2, 1000, 0.1) == math.ceil(1000 * (1 - (1 - 0.001))) == 2
    assert count_rejections(2, 1000, 0.1, constant=True) == 1


def test_large_loss_rejection_count_never_exceeds_the_number_of_labels():
    assert count_rejections(30, 12, 50.0) == 12
    assert count_rejections(5, 12, 0.0) == 0


def test_large_loss_drops_or_flips_the_unseen_labels_with_the_highest_loss():
    logits = torch.tensor([[3.0, 9.0, 2.0], [-1.0, 1.0, 8.0]])
    labels = torch.tensor([[0, 1, 0], [0, 0, -1]])
    absent, present = torch.nn.functional.softplus(logits), torch.nn.functional.softplus(-logits)
    plain = torch.where(labels == PRESENT, present, absent)
    left_out, turned = plain.clone(), plain.clone()
    for row, column in ((0, 0), (0, 2)):
        left_out[row, column], turned[row, column] = 0, present[row, column]
    for correct, cells in ((False, left_out), (True, turned)):
        loss, above = large_loss(logits, labels, 2, correct)
        assert loss == pytest.approx(cells.mean().item())
        assert above.nonzero().tolist() == [[0, 0]]  # strictly above the second highest: one of the two
    assert large_loss(logits, labels, 0, True)[0] == pytest.approx(plain.mean().item())


def test_large_loss_never_rejects_given_labels():
    logits = torch.full((2, 3), 5.0)
    labels = torch.tensor([[1, -1, -1], [1, -1, 1]])
    loss, above = large_loss(logits, labels, 6, True)
    assert loss == large_loss(logits, labels, 0, True)[0]
    assert not above.any()


def test_large_loss_ignores_masked_labels():
    logits, labels = torch.tensor([[9.0, 2.0, 1.0]]), torch.zeros(1, 3)
    loss, above = large_loss(logits, labels, 2, False, torch.tensor([[False, True, True]]))
    assert loss == 0
    assert above.tolist() == [[False, True, False]]


@pytest.mark.parametrize("name", ["ll_r", "ll_ct", "ll_cp"])
def test_large_loss_methods_reject_no_labels_in_the_first_epoch(name):
    labels, logits = random_labels(20, 5)
    method = begun(name, labels, delta=5.0)
    method.begin_epoch(1)
    exact = torch.where(labels == PRESENT, negative_log_sigmoid(logits), negative_log_sigmoid(-logits)).mean()
    assert method.loss(logits, torch.arange(20)) == pytest.approx(exact.item())
    method.begin_epoch(2)
    assert method.loss(logits, torch.arange(20)) < exact


def test_ll_r_rejects_more_labels_each_epoch_and_ll_cp_a_constant_number():
    labels, _ = random_labels(20, 5)
    growing, constant = begun("ll_r", labels, delta=12.5), begun("ll_cp", labels, delta=12.5)
    released = begun("ll_cp", labels, delta=12.5, released=True)
    counts = []
    for epoch in (1, 2, 3, 4):
        for method in (growing, constant, released):
            method.begin_epoch(epoch)
        counts.append((growing.count_rejected(100), constant.count_rejected(100), released.count_rejected(100)))
    assert counts == [(0, 0, 0), (13, 13, 13), (25, 13, 25), (38, 13, 38)]


def test_ll_cp_permanently_corrects_only_labels_strictly_above_the_threshold():
    labels = torch.tensor([[1, 0, 0], [0, 1, 0]])
    logits = torch.tensor([[0.0, 3.0, 1.0], [2.0, 0.0, -1.0]])
    method = begun("ll_cp", labels, delta=50.0)  # three of six cells
    method.begin_epoch(1)
    method.loss(logits, torch.arange(2))
    assert torch.equal(method.targets, labels.float())
    method.begin_epoch(2)
    method.loss(logits, torch.arange(2))
    assert method.targets.tolist() == [[1, 1, 0], [1, 1, 0]]
    method.begin_epoch(3)
    method.loss(-logits, torch.arange(2))
    assert method.targets[0, 1] == method.targets[1, 0] == PRESENT  # unlikely by now, but corrected is corrected


@pytest.mark.parametrize(("name", "parameters"), [("ll_ct", {}), ("ll_r", {}), ("ll_cp", {"released": True})])
def test_large_loss_methods_without_permanent_correction_never_change_targets(name, parameters):
    labels, logits = random_labels(20, 5)
    method = begun(name, labels, delta=20.0, **parameters)
    for epoch in (1, 2, 3):
        method.begin_epoch(epoch)
        method.loss(logits, torch.arange(20))
    assert torch.equal(method.targets, labels.float())


# Self-paced correction


def test_splc_corrects_from_the_second_epoch_and_resets_for_a_new_training():
    sure = torch.tensor([[5.0, 5.0]], requires_grad=True)
    method, slopes = begun("splc", [[1, 0]]), []
    for epoch in (1, 2):
        method.begin_epoch(epoch)
        (slope,) = torch.autograd.grad(method.loss(sure, torch.tensor([0])), sure)
        slopes.append(slope[0, 1].item())
    assert slopes[0] > 0 > slopes[1]
    assert method.targets.tolist() == [[1, 0]]
    method.begin(torch.tensor([[1, 0]], dtype=torch.int8), None, 4, torch.Generator())
    method.begin_epoch(1)
    assert not method.loss_function.correcting


def test_splc_never_corrects_an_absent_label():
    method = begun("splc", [[1, -1]])
    method.begin_epoch(5)
    sure = torch.tensor([[5.0, 5.0]], requires_grad=True)
    method.loss(sure, torch.tensor([0])).backward()
    assert sure.grad[0, 1] > 0.4


# Expected negative


def test_en_treats_labels_with_the_lowest_average_probability_as_absent():
    labels, _ = random_labels(40, 4)
    method = begun("en", labels, k=2.0, momentum=0.5)
    rows = torch.arange(40)
    first, second = random_labels(40, 4, seed=1)[1], random_labels(40, 4, seed=2)[1]
    for epoch, logits in ((1, first), (2, second)):
        method.begin_epoch(epoch)
        method.loss(logits, rows)
    method.begin_epoch(3)
    average = 0.5 * torch.sigmoid(first) + 0.5 * torch.sigmoid(second)
    expected = estimate_positive_counts(labels, torch.ones(40, 4, dtype=torch.bool), 2.0)
    assert ((method.targets == ABSENT).sum(0) == 40 - expected).all()
    for column in range(4):
        negative = method.targets[:, column] == ABSENT
        spared = method.targets[:, column] == UNSEEN
        assert average[negative, column].max() < average[spared, column].min()


def test_en_expected_positives_are_k_times_the_present_labels_and_at_least_as_many():
    labels = torch.zeros(30, 3)
    labels[:20, 0], labels[20:, 1] = PRESENT, PRESENT
    everything = torch.ones(30, 3, dtype=torch.bool)
    assert estimate_positive_counts(labels, everything, 1.5).tolist() == [30, 15, 0]
    assert estimate_positive_counts(labels, everything, 1.2).tolist() == [24, 12, 0]
    assert estimate_positive_counts(labels, everything, 0.1).tolist() == [20, 10, 0]  # what is marked is there


def test_expected_negative_method_treats_unseen_labels_as_absent_in_the_first_epoch():
    method = begun("en", [[1, 0], [0, 1], [-1, 1]])
    method.begin_epoch(1)
    assert method.targets.tolist() == [[1, -1], [-1, 1], [-1, 1]]


def test_expected_negative_method_counts_absent_labels_toward_the_expected_number():
    labels = torch.zeros(10, 1, dtype=torch.int8)
    labels[0], labels[1:5] = PRESENT, ABSENT
    method = begun("en", labels, k=0.4)  # four of ten are expected
    method.begin_epoch(1)
    method.loss(torch.linspace(-3, 3, 10)[:, None], torch.arange(10))
    method.begin_epoch(2)
    assert (method.targets == ABSENT)[:, 0].tolist() == [False] + [True] * 6 + [False] * 3  # 4 and 2


# ROLE


def test_role_initial_estimates_equal_those_of_the_paper():
    labels = torch.zeros(400, 3, dtype=torch.int8)
    labels[:5, 0], labels[5:9, 1] = PRESENT, ABSENT
    phi = draw_initial_estimates(labels, torch.Generator().manual_seed(0))
    assert phi[:5, 0].tolist() == pytest.approx([5.293305] * 5)
    assert phi[5:9, 1].tolist() == pytest.approx([-5.293305] * 4)
    unseen = phi[labels == UNSEEN]
    assert -0.405466 < unseen.min() < -0.39 and 0.39 < unseen.max() < 0.405466


def test_inverse_sigmoid_is_clipped_at_zero_and_one():
    assert inverse_sigmoid(0.5) == 0
    assert inverse_sigmoid(torch.tensor([0.0, 1.0])).tolist() == pytest.approx([-11.5129, 11.5129], abs=2e-3)


def test_role_initial_estimates_depend_on_the_seed():
    labels, _ = random_labels(6, 3)
    one, same, other = make_method("role"), make_method("role"), make_method("role")
    for method, seed in ((one, 1), (same, 1), (other, 2)):
        method.begin(labels, None, 3, torch.Generator().manual_seed(seed))
    assert torch.equal(one.phi, same.phi) and not torch.equal(one.phi, other.phi)


def test_optimizer_momentum_moves_role_estimates_of_images_outside_the_batch():
    labels, logits = random_labels(4, 3)
    method, optimiser = begun("role", labels), Adam()
    for group in method.parameter_groups():
        optimiser.add_parameters(group["params"], 1e-3 * group["lr_scale"], 0.0)
    for rows in (torch.tensor([0, 1]), torch.tensor([2, 3])):
        before = method.phi.detach().clone()
        method.loss(logits[rows], rows).backward()
        optimiser.step()
    assert (method.phi[:2] != before[:2]).all()
    begun_again = begun("role", labels)
    assert not begun_again.phi.grad and (begun_again.phi[2:] == before[2:]).all()


def test_role_loss_equals_the_value_worked_out_by_hand():
    zero = torch.zeros(1, 2, dtype=torch.float64)
    labels = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    # p = 0.5 everywhere: per cell two cross-entropies of log 2, and two more where it is marked; one class is expected.
    by_hand = 0.5 * (6 * math.log(2) / 2) + 0.5 * 2 * ((1 - 1.5) / 2) ** 2
    assert role_loss(zero, zero, labels, k=1.5, eps=0) == pytest.approx(by_hand)
    in_paper = 0.5 * ((4 + 2 * 2) * math.log(2) / 2) + 0.5 * 2 * ((1 - 1.5) / 2) ** 2
    assert role_loss(zero, zero, labels, k=1.5, eps=0, form="paper") == pytest.approx(in_paper)
    assert role_loss(zero, zero, -labels, k=1.5, eps=0) == pytest.approx(by_hand)  # absent is as certain as present


def test_role_with_linear_init_resets_optimizer_and_estimates_once():
    labels, _ = random_labels(5, 3)
    method = begun("role+linear_init", labels, epochs=35)
    with torch.no_grad():
        method.phi.mul_(100)
    afresh, frozen = [], []
    for epoch in range(1, 36):
        afresh.append(method.restarts_optimizer(epoch))
        frozen.append(method.freezes_backbone(epoch))
        before = method.phi.detach().clone()
        method.begin_epoch(epoch)
        if epoch == 26:
            assert before.abs().max() > 100
            assert method.phi.abs().max() < 11.6
            assert torch.equal(method.phi.sign(), before.sign())
        else:
            assert torch.equal(method.phi, before)
    assert afresh.index(True) == 25 and sum(afresh) == 1
    assert frozen == [True] * 25 + [False] * 10


@pytest.mark.parametrize("linear", [0.0, 1.0])
def test_role_with_linear_init_never_restarts_when_one_stage_has_all_epochs(linear):
    method = begun("role+linear_init", [[1, 0]], epochs=4, linear=linear)
    assert not any(method.restarts_optimizer(epoch) for epoch in range(1, 5))


def test_expected_positive_count_is_limited_to_the_number_of_classes():
    assert begun("epr", [[1], [0]], k=3.0).loss_function.k == 1
    logits = torch.full((2, 1), 20.0)
    method = begun("role", [[1], [0]], k=3.0)
    assert method.loss(logits, torch.arange(2)) < 5


# OPML for single positives


def test_observed_ap_equals_average_precision_over_the_usable_labels():
    labels, logits = random_labels(50, 4)
    labels[:, 3] = UNSEEN
    scores = torch.sigmoid(logits).mul(20).round() / 20  # with ties
    mask = torch.rand(50, 4, generator=torch.Generator().manual_seed(3)) < 0.8
    for column, found in enumerate(compute_observed_ap(scores, labels, mask).tolist()):
        use = mask[:, column]
        truth = (labels[use, column] == PRESENT).numpy()
        expected = average_precision(scores[use, column].numpy(), truth) if truth.any() else 0
        assert found == pytest.approx(expected)


def test_opml_sp_smooths_targets_by_score_and_class_reliability():
    p, reliability = torch.tensor([[0.5, 0.5]]), torch.tensor([0.8, 0.2])
    assert smooth_targets(p, reliability, 2.0)[0].tolist() == pytest.approx([0.16, 0.01])
    assert smooth_targets(p, reliability, 2.0, "ap")[0].tolist() == pytest.approx([0.32, 0.02])
    assert (smooth_targets(torch.ones(1, 1), torch.ones(1), 1.0) < 1).all()  # a soft -1 would be a person's word


def test_opml_sp_corrects_fewer_labels_of_reliable_classes_and_at_most_the_kappa_limit():
    labels = torch.zeros(100, 3)
    labels[:10, 0], labels[10:20, 1], labels[20:22, 2], labels[50, :] = PRESENT, PRESENT, PRESENT, ABSENT
    probabilities = torch.linspace(0, 1, 100)[:, None].repeat(1, 3)
    reliability = torch.tensor([0.5, 0.9, 0.0])
    new = correct_labels(probabilities, labels, reliability, rho=0.1, kappa=1.5)
    added = (new == PRESENT) & (labels != PRESENT)
    assert added.sum(0).tolist() == [5, 1, 3]  # 0.1 x 100 x 0.5; 0.1 x 100 x 0.1 (just above, rounded down); 1.5 x 2
    assert added[95:, 0].all() and added[99, 1] and added[97:, 2].all()
    assert torch.equal(new[labels != UNSEEN], labels[labels != UNSEEN])


@pytest.mark.parametrize(("correct", "kept"), [("every", False), ("once", True)])
def test_opml_sp_corrects_labels_every_epoch_or_once_depending_on_its_setting(correct, kept):
    labels = torch.zeros(20, 1, dtype=torch.int8)
    labels[:4] = PRESENT
    method = begun("opml_sp", labels, epochs=6, rho=0.2, kappa=1.0, correct=correct, warm_up=0.5)
    up, down = torch.linspace(0.1, 0.9, 20)[:, None], torch.linspace(0.9, 0.1, 20)[:, None]
    for epoch in (1, 2):
        method.end_epoch(epoch, lambda: up)
        assert torch.equal(method.targets, labels.float())
    method.end_epoch(3, lambda: up)
    assert method.targets[18:].eq(PRESENT).all()
    method.end_epoch(4, lambda: down)
    assert method.targets[18:].eq(PRESENT).all() == kept


def test_opml_sp_computes_no_predictions_it_does_not_use():
    method = begun("opml_sp", [[1, 0], [0, 1]], epochs=2)
    method.end_epoch(2, lambda: pytest.fail("asked after the last epoch"))
    method = begun("opml_sp", [[1, 0], [0, 1]], gamma=0.0, rho=0.0)
    method.end_epoch(1, lambda: pytest.fail("asked though nothing depends on it"))


def test_opml_sp_with_its_extra_terms_disabled_equals_opml():
    labels, logits = random_labels(6, 4)
    plain = begun("opml", labels, a=1.0, b=-1.0)
    bare = begun("opml_sp", labels, a=1.0, b=-1.0, gamma=0.0, rho=0.0, strength=0.0)
    assert bare.loss(logits, torch.arange(6)) == plain.loss(logits, torch.arange(6))
    ranked = begun("opml_sp", labels, a=1.0, b=-1.0, gamma=0.0, rho=0.0, strength=0.1)
    assert ranked.loss(logits, torch.arange(6)) < plain.loss(logits, torch.arange(6))  # -log det of at least I


# The oracle


def test_oracle_ignores_unseen_labels():
    labels = torch.tensor([[1, 0, -1], [-1, 1, 0]])
    logits = torch.zeros(2, 3, requires_grad=True)
    method = begun("oracle", labels)
    loss = method.loss(logits, torch.arange(2))
    loss.backward()
    assert (logits.grad[labels == UNSEEN] == 0).all()
    assert logits.grad.sign()[labels != UNSEEN].tolist() == [-1, 1, 1, -1]
    assert loss.item() == pytest.approx(math.log(2), abs=1e-4)  # the mean of the four known cells
