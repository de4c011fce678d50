"""What a project can look like when it has hardly begun: every method trains on it without a nan."""

import math

import numpy as np
import pytest
import torch
from harness.tables import over

from spmll.linear.training import Head, TrainingSettings, fit
from spmll.methods import METHODS, get_default_parameters, make_method

pytestmark = pytest.mark.training

ON_FEATURES = [name for name in METHODS if METHODS[name].reads == "features"]


def one_click(images, classes, seed=0):
    labels = np.zeros((images, classes), np.int8)
    labels[np.arange(images), np.random.default_rng(seed).integers(0, classes, images)] = 1
    return labels


def without_last_class(labels):
    labels = labels.copy()
    labels[:, -1] = 0
    return labels


CASES = {
    "a class nobody marked": (without_last_class(one_click(12, 3)), None),
    "one image": (one_click(1, 3), None),
    "one class": (one_click(9, 1), None),
    "one image of one class": (one_click(1, 1), None),
    "everything present": (np.ones((9, 3), np.int8), None),
    "everything absent": (-np.ones((9, 3), np.int8), None),
    "nothing said": (np.zeros((9, 3), np.int8), None),
    "more classes than images": (one_click(3, 11), None),
    "everything masked": (one_click(9, 3), np.zeros((9, 3), bool)),
    "one cell not masked": (one_click(9, 3), np.arange(27).reshape(9, 3) == 4),
    "a class masked": (one_click(9, 3), np.repeat([[True, False, True]], 9, axis=0)),
}


@pytest.mark.slow
@over(name=ON_FEATURES, case=CASES, batch=[1, 4])
def test_every_method_trains_to_finite_values_on_unusual_labels(name, case, batch):
    labels, mask = CASES[case]
    images, classes = labels.shape
    features = np.random.default_rng(1).normal(size=(images, 5)).astype(np.float32)
    method, head = make_method(name), Head(5, classes)
    for epoch in fit(head, features, labels, method, TrainingSettings(epochs=4, batch=batch), mask=mask):
        assert np.isfinite(epoch.loss)
        assert torch.isfinite(method.targets).all()
        assert (method.targets.abs() <= 1).all()
    usable = labels if mask is None else np.where(mask, labels, 0)
    assert (head.modeled_classes == (usable == 1).any(0)).all()
    assert np.isfinite(head.probabilities(features)[:, head.modeled_classes]).all()


@over(name=ON_FEATURES, size=[30.0, 100.0], dtype=[torch.float32, torch.bfloat16])
def test_method_losses_have_finite_gradients_at_saturated_logits_in_every_epoch(name, size, dtype):
    labels = torch.tensor([[1, 0, 0], [0, 1, -1], [1, 0, 1]], dtype=torch.int8)
    method = make_method(name)
    method.begin(labels, None, 4, torch.Generator())
    logits = size * torch.tensor([[1.0, 1.0, -1.0], [-1.0, 1.0, 1.0], [-1.0, -1.0, 1.0]])
    for epoch in range(1, 5):
        leaf = logits.to(dtype, copy=True).requires_grad_()
        method.begin_epoch(epoch)
        loss = method.loss(leaf, torch.arange(3))
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(leaf.grad).all()
        method.end_epoch(epoch, lambda: torch.sigmoid(logits))


@over(name=ON_FEATURES)
def test_training_targets_keep_given_labels_in_every_epoch(name):
    labels = one_click(30, 4)
    labels[:10][labels[:10] == 0] = -1
    features = np.random.default_rng(2).normal(size=(30, 5)).astype(np.float32)
    before, method = labels.copy(), make_method(name)
    for _ in fit(Head(5, 4), features, labels, method, TrainingSettings(epochs=6, lr=0.1)):
        said = labels != 0
        assert (method.targets.numpy()[said] == labels[said]).all()
    assert (labels == before).all()


@over(name=METHODS)
def test_make_method_refuses_nan_and_unknown_words_for_every_parameter(name):
    for key, default in get_default_parameters(name).items():
        wrong = math.nan if isinstance(default, int | float) and not isinstance(default, bool) else "no such word"
        if isinstance(default, int | float | str) and not isinstance(default, bool):
            with pytest.raises(ValueError, match=rf"{key}|no_such|no such"):
                make_method(name, **{key: wrong})
