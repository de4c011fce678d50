"""Boosted class activation maps, by hand."""

import math

import pytest
import torch

from spmll.labels import PRESENT
from spmll.methods import make_method
from spmll.methods.published.boostlu import BoostedMap, boost_positive_scores


def test_boosting_scales_only_positive_scores():
    assert boost_positive_scores(torch.tensor([-2.0, 0.0, 0.5]), 5.0).tolist() == [-2.0, 0.0, 2.5]


def test_boostlu_logit_is_the_mean_of_the_boosted_activation_map():
    network = BoostedMap(2, 1, alpha=5.0)
    with torch.no_grad():
        network.classifier.weight.copy_(torch.tensor([1.0, -1.0]).view(1, 2, 1, 1))
        network.classifier.bias.fill_(0.5)
        # Three places with the features (1, 0), (0, 1) and (2, 2): scores 1.5, -0.5 and 0.5, boosted 7.5, -0.5 and 2.5.
        maps = torch.tensor([[[[1.0, 0.0, 2.0]], [[0.0, 1.0, 2.0]]]])
        assert network(maps).item() == pytest.approx(9.5 / 3, rel=1e-6)


def test_network_without_boosting_equals_a_linear_classifier_on_pooled_features():
    network = make_method("boostlu", alpha=1.0).build_network(6, 3, torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    maps = torch.randn(4, 6, 5, 5, generator=generator)
    with torch.no_grad():
        network.classifier.weight.normal_(generator=generator)
        network.classifier.bias.normal_(generator=generator)
        pooled = maps.mean((2, 3)) @ network.classifier.weight[:, :, 0, 0].T + network.classifier.bias
        assert torch.allclose(network(maps), pooled, atol=1e-5)


# Four cells at logits 0, 2, -1, 1; the first is marked, the others are unseen. In the second epoch a quarter of them is
# rejected: the one at 2, which as an absent one costs most. log(1 + e^x) is the cost of absence.
COST = {x: math.log(1 + math.exp(x)) for x in (0, 2, -2, -1, 1)}
MARKED, REST = COST[0], COST[-1] + COST[1]


@pytest.mark.parametrize(
    ("scheme", "rejected"), [("an", COST[2]), ("ll_r", 0.0), ("ll_ct", COST[-2]), ("ll_cp", COST[-2])]
)
def test_boostlu_schemes_reject_or_correct_the_unseen_label_with_the_highest_loss(scheme, rejected):
    method = make_method("boostlu", scheme=scheme, delta=25.0)
    method.begin(torch.tensor([[1, 0], [0, 0]], dtype=torch.int8), None, 10, torch.Generator())
    method.begin_epoch(2)
    loss = method.loss(torch.tensor([[0.0, 2.0], [-1.0, 1.0]]), torch.arange(2))
    assert loss.item() == pytest.approx((MARKED + rejected + REST) / 4, rel=1e-6)


def test_boostlu_ll_cp_corrects_only_labels_with_a_loss_above_the_threshold():
    method = make_method("boostlu", scheme="ll_cp", delta=50.0)
    method.begin(torch.tensor([[1, 0], [0, 0]], dtype=torch.int8), None, 10, torch.Generator())
    method.begin_epoch(2)
    method.loss(torch.tensor([[0.0, 2.0], [-1.0, 1.0]]), torch.arange(2))
    # Two of four cells are rejected; the bar is the cost of the second, so only the first lies above it.
    assert (method.targets == PRESENT).tolist() == [[True, True], [False, False]]
