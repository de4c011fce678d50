"""The second model of `auto`: the order within a class changes, the values of the class do not."""

import numpy as np
import pytest
import torch

from spmll.ensemble.answered_head import AnsweredHead
from spmll.ensemble.fit_ensemble import Ensemble, LabeledImages, fit_ensemble
from spmll.ensemble.regions import encode_regions, learn_region_basis
from spmll.ensemble.second_model import SecondModel, estimate_difficulty
from spmll.ensemble.stacking import AnsweredImages, fit_stacked
from spmll.linear.training import TrainingSettings
from spmll.methods.auto import Auto


def second(logits: torch.Tensor, scores: torch.Tensor, weight: float = 0.5) -> SecondModel:
    head = AnsweredHead(torch.zeros(1, logits.shape[1]), torch.zeros(logits.shape[1]), (torch.zeros(1), torch.zeros(1)))
    return SecondModel.build(head, logits, scores, weight)


def random_pair(images: int = 300, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(images, classes, generator=generator) * 2 - 3, torch.randn(images, classes, generator=generator)


def test_second_model_reorders_images_of_a_class_but_keeps_its_set_of_logits():
    logits, scores = random_pair()
    after = second(logits, scores).reorder(logits, scores, None)
    torch.testing.assert_close(after.sort(0).values, logits.sort(0).values, atol=1e-4, rtol=0)
    assert not torch.equal(after.argsort(0), logits.argsort(0))


def test_second_model_orders_images_by_the_weighted_normal_scores_of_both_models():
    logits, scores = random_pair(5, 1)
    normal = torch.distributions.Normal(0.0, 1.0).icdf((torch.arange(5) + 0.5) / 5)
    both = normal[logits[:, 0].argsort().argsort()] + 0.5 * normal[scores[:, 0].argsort().argsort()]
    after = second(logits, scores).reorder(logits, scores, None)
    torch.testing.assert_close(after[:, 0].argsort(), both.argsort())


def test_second_model_leaves_a_class_without_logits_unchanged():
    logits, scores = random_pair()
    logits[:, 1] = torch.nan
    after = second(logits, scores).reorder(logits, scores, None)
    assert after[:, 1].isnan().all() and not after[:, [0, 2]].isnan().any()


def test_second_model_with_zero_weight_changes_no_logits():
    logits, scores = random_pair()
    torch.testing.assert_close(second(logits, scores, 0.0).reorder(logits, scores, None), logits, atol=1e-4, rtol=0)
    beyond = logits.max() + torch.tensor([[0.5], [1.0], [3.0]]).expand(3, 3)
    after = second(logits, scores).reorder(beyond, scores.max() + beyond, None)
    assert (after.diff(dim=0) > 0).all() and (after > logits.max(0).values - 1e-4).all()


def test_label_difficulty_is_zero_for_separable_classes_and_one_for_random_predictions():
    marked = torch.rand(400, 4, generator=torch.Generator().manual_seed(1)) < 0.2
    noise = torch.rand(400, 4, generator=torch.Generator().manual_seed(2))
    assert estimate_difficulty(noise, marked) == 1.0
    assert estimate_difficulty(noise * 0.1 + marked, marked) == 0.0


def puzzle(share: float) -> tuple:
    """Features without any sign of the classes, region codes, the rows with a label and their labels."""
    rng = np.random.default_rng(0)
    features, regions = rng.random((60, 16), np.float32), rng.random((60, 9, 16), np.float32)
    rows = np.arange(round(60 * share))
    labels = np.zeros((len(rows), 3), np.int8)
    labels[rows, rng.integers(0, 3, len(rows))] = 1
    return features, encode_regions(learn_region_basis(features, regions), regions), rows, labels


@pytest.mark.parametrize(
    ("share", "parameters", "corrected"), [(1.0, {}, True), (1.0, {"second": 0.0}, False), (0.2, {}, False)]
)
def test_second_model_is_trained_only_if_enabled_and_most_images_have_labels(share, parameters, corrected):
    features, codes, rows, labels = puzzle(share)
    model = Ensemble(Auto(**parameters), 16, 3)
    for _ in fit_ensemble(model, LabeledImages(features, codes, rows, labels), TrainingSettings(epochs=2)):
        pass
    after = model.probabilities(features, codes)
    assert (model.second is not None) == corrected and np.isfinite(after).all()
    model.second = None
    before = model.probabilities(features, codes)
    np.testing.assert_allclose(np.sort(after, 0), np.sort(before, 0), atol=1e-4)
    assert np.array_equal(after.argsort(0), before.argsort(0)) != corrected


def test_auto_with_unbiased_answers_disables_the_second_model_by_default():
    assert Auto().with_answer_parameters().second == 0


def test_second_model_enabled_explicitly_is_used_with_unbiased_answers():
    features, codes, rows, labels = puzzle(1.0)
    unbiased = np.zeros(labels.shape, bool)
    labels[:20], unbiased[:20] = np.where(np.random.default_rng(1).random((20, 3)) < 0.5, 1, -1), True
    training = fit_stacked(
        Auto(second=0.6), AnsweredImages(features, codes, rows, labels, unbiased=unbiased), TrainingSettings(epochs=2)
    )
    for _ in training.epochs():
        pass
    assert training.ensemble.second is not None and training.calibrated and training.probabilities is not None
    assert training.probabilities.shape == (60, 3) and np.isfinite(training.probabilities).all()
