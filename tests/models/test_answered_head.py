"""The regression on answered cells: what it learns from regions, and that its slope is that of its loss."""

import pytest
import torch
from torch.nn import functional as F

from spmll.ensemble import answered_head
from spmll.ensemble.answered_head import AnsweredHead, fit_answered_head
from spmll.ensemble.basis import center_and_normalize, signed_sqrt
from spmll.ensemble.regions import RegionCodes, encode_regions, learn_region_basis
from spmll.statistics.metrics import average_precision

IMAGES, REGIONS, DIMENSIONS, CLASSES = 600, 9, 40, 3


@pytest.fixture(scope="module")
def photos() -> tuple[torch.Tensor, RegionCodes, torch.Tensor]:
    """Units (N, D) of whole images, their region codes, and what is there (N, C): each thing in one region alone."""
    chance = torch.Generator().manual_seed(5)
    there = torch.rand(IMAGES, CLASSES, generator=chance) < 0.2
    regions = torch.randn(IMAGES, REGIONS, DIMENSIONS, generator=chance)
    regions += torch.randn(IMAGES, 1, DIMENSIONS, generator=chance)  # the light and the place of each photo
    looks = 1.5 * torch.randn(CLASSES, DIMENSIONS, generator=chance)
    place = torch.randint(REGIONS, (IMAGES, CLASSES), generator=chance)
    regions[torch.arange(IMAGES)[:, None], place] += there[..., None] * looks
    wholes = regions.mean(1)
    basis = learn_region_basis(wholes, regions.numpy())
    return center_and_normalize(signed_sqrt(wholes), basis.centre), encode_regions(basis, regions.numpy()), there


def precision(head: AnsweredHead, photos, some: slice) -> float:
    units, regions, there = photos
    best = (regions[some].products(head.weight) / regions[some].lengths).amax(1)
    scores = (units[some] @ head.weight).lerp(best, answered_head.BEST_REGION_SHARE) + head.bias
    return average_precision(scores.flatten().numpy(), there[some].flatten().numpy())


def test_head_trained_on_image_regions_ranks_small_objects_better_than_on_whole_images(photos):
    units, regions, there = photos
    learned, rest = slice(0, 300), slice(300, IMAGES)
    answers = there[learned].float(), torch.ones(300, CLASSES)
    of_wholes = fit_answered_head(units[learned], *answers)
    of_regions = fit_answered_head(units[learned], *answers, regions=regions[learned].__getitem__)
    assert precision(of_regions, photos, rest) > 1.3 * precision(of_wholes, photos, rest)


def test_answered_head_ignores_image_regions_when_training_examples_are_few(photos):
    units, regions, there = (values[:60] for values in photos)
    answers = there.float(), torch.ones(60, CLASSES)
    of_wholes = fit_answered_head(units, *answers)
    torch.testing.assert_close(fit_answered_head(units, *answers, regions=regions.__getitem__).weight, of_wholes.weight)


@pytest.mark.parametrize("with_regions", [False, True])
def test_answered_head_loss_and_its_gradient_match_autograd(photos, with_regions, monkeypatch):
    monkeypatch.setattr(answered_head, "IMAGES_PER_CHUNK", 16)  # several blocks, the last one short
    monkeypatch.setattr(answered_head, "REGION_IMAGES_PER_CHUNK", 16)
    units, regions, there = (values[:40] for values in photos)
    chance = torch.Generator().manual_seed(0)
    labels, counts = there.float(), torch.rand(40, CLASSES, generator=chance)
    weight = torch.randn(DIMENSIONS, CLASSES, generator=chance).requires_grad_()
    bias = torch.randn(CLASSES, generator=chance).requires_grad_()

    logits = units @ weight
    ridge = answered_head.RIDGE_PER_IMAGE
    if with_regions:
        rows = (regions.codes * regions.basis.scales) @ regions.basis.axes.T / regions.lengths
        logits, ridge = (
            logits.lerp((rows @ weight).amax(1), answered_head.BEST_REGION_SHARE),
            answered_head.REGION_RIDGE_PER_IMAGE,
        )
    errors = F.binary_cross_entropy_with_logits(logits + bias, labels, weight=counts, reduction="sum")
    loss = errors + ridge * 40 * weight.square().sum()
    loss.backward()

    objective = answered_head._Objective(units, labels, counts, regions if with_regions else None, lambda: None)
    value, slope = objective.evaluate(torch.cat([weight.detach().flatten(), bias.detach()]))
    assert value == pytest.approx(float(loss.detach()), rel=1e-5)
    torch.testing.assert_close(slope, torch.cat([weight.grad.flatten(), bias.grad]), rtol=1e-4, atol=1e-4)
