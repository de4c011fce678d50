"""Methods that weigh something beside labels: scores of names, and prototypes. Each figure is derived here again."""

import numpy as np
import pytest
import torch

from spmll.linear.prototypes import compute_prototype_p_values
from spmll.linear.training import Head, fit
from spmll.methods import METHODS, make_method

LABELS = np.array([[1, 0, 0, -1], [0, 0, 1, 0]], np.int8)
SCORES = np.array([[0.9, 0.8, 0.3, 0.9], [np.nan, 0.31, 0.2, 0.05]], np.float32)
LOGITS = np.array([[1.5, -0.4, 2.0, 0.3], [-1.0, 0.7, 0.1, -2.5]])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def loss_of(name, evidence, epoch=1, **parameters):
    """The loss of all cells in one batch, in an epoch of four."""
    method = make_method(name, **parameters)
    method.evidence = None if evidence is None else torch.from_numpy(evidence)
    method.begin(torch.from_numpy(LABELS), None, 4, torch.Generator())
    method.begin_epoch(epoch)
    return method.loss(torch.from_numpy(LOGITS), torch.arange(2)).item()


def test_vlpl_loss_equals_its_published_formula():
    # Marked: -log p. The unseen cells with a score above 0.3 (0.8 and 0.31; not 0.3, 0.05, nor the unknown one) are
    # pseudo-labels: 0.7 (0.9 (-log p) + 0.1 (-log (1 - p))). The others cost minus 0.2 times their entropy. A person's
    # "absent", which the code does not know, costs -log (1 - p). Every logarithm has 1e-5 added; the mean of all cells.
    p, eps = sigmoid(LOGITS), 1e-5
    present, absent = -np.log(p + eps), -np.log(1 - p + eps)
    pseudo = 0.7 * (0.9 * present + 0.1 * absent)
    unknown = -0.2 * (p * present + (1 - p) * absent)
    cells = [
        [present[0, 0], pseudo[0, 1], unknown[0, 2], absent[0, 3]],
        [unknown[1, 0], pseudo[1, 1], present[1, 2], unknown[1, 3]],
    ]
    assert loss_of("vlpl", SCORES) == pytest.approx(np.mean(cells), rel=1e-6)
    assert loss_of("vlpl", None) == pytest.approx(loss_of("em", None), rel=1e-12)
    assert loss_of("vlpl", SCORES, sure=0.5, softness=0.0, beta=1.0, alpha=0.0, eps=0.0) == pytest.approx(
        np.sum([-np.log(p)[0, 0], -np.log(p)[0, 1], -np.log(1 - p)[0, 3], -np.log(p)[1, 2]]) / 8, rel=1e-5
    )


def test_text_scores_blend_into_the_label_estimate_of_gr_loss():
    # In epoch 3 of 4 w and b have gone 2/4 of their way from 0, -2 to 2, -2; mu and sigma 3/4 of theirs from 0.5, 2 to
    # 0.8, 0.5. Where there is a score s, the share of a positive is 0.5 k + 0.5 s, s between 0.001 and 0.999.
    w, b, mu, sigma = 1.0, -2.0, 0.725, 0.875
    p = sigmoid(LOGITS)
    k, v = sigmoid(w * p + b), np.exp(-((p - mu) ** 2) / (2 * sigma**2))
    share = np.where(np.isnan(SCORES), k, 0.5 * k + 0.5 * SCORES)
    unseen = v * (share * (1 - p**0.01) / 0.01 + (1 - share) * p)
    cells = unseen.copy()
    cells[0, 0], cells[1, 2], cells[0, 3] = (
        -np.log(p[0, 0] + 1e-7),
        -np.log(p[1, 2] + 1e-7),
        -np.log(1 - p[0, 3] + 1e-7),
    )
    assert loss_of("gr+names", SCORES, epoch=3) == pytest.approx(cells.mean(), rel=1e-6)
    assert loss_of("gr+names", SCORES, epoch=3, trust=0.0) == pytest.approx(loss_of("gr", None, epoch=3), rel=1e-6)
    assert loss_of("gr+names", None, epoch=3) == pytest.approx(loss_of("gr", None, epoch=3), rel=1e-12)


def test_prototype_p_value_is_the_rank_among_leave_one_out_similarities():
    chance = np.random.default_rng(0)
    features, labels = chance.normal(size=(40, 6)), np.zeros((40, 3), np.int8)
    labels[:9, 0] = labels[9:13, 1] = 1  # a class with nine marked images, one with four, one with none
    unit = features - features.mean(0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    marked = unit[:9]

    def cosine(image, others):
        prototype = others.mean(0)
        return image @ prototype / np.linalg.norm(prototype)

    references = [cosine(marked[at], np.delete(marked, at, 0)) for at in range(9)]
    expected = [(1 + sum(one <= cosine(image, marked) for one in references)) / 10 for image in unit]
    found = compute_prototype_p_values(features.astype(np.float32), labels)
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-6)
    assert np.isnan(found[:, 1:]).all(), "nothing is said with fewer than five marked images"
    hidden = np.ones(labels.shape, bool)
    hidden[5:9, 0] = False
    masked = compute_prototype_p_values(features.astype(np.float32), labels, hidden)
    assert set(np.round(6 * masked[:, 0], 5).tolist()) <= {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}


def test_prototype_p_values_of_images_with_the_class_are_uniform():
    chance = np.random.default_rng(1)
    shows = np.arange(4000) < 2000
    features = chance.normal(size=(4000, 8)) + 1.5 * shows[:, None]
    labels = (np.arange(4000) < 1000)[:, None].astype(np.int8)
    unmarked = compute_prototype_p_values(features.astype(np.float32), labels)[1000:, 0]
    for level in (0.1, 0.5, 0.9):
        assert np.mean(unmarked[:1000] >= level) == pytest.approx(1 - level, abs=0.05)
    assert np.mean(unmarked[1000:] >= 0.1) < 0.05


def test_prototypes_adjust_gr_loss_of_unanswered_labels_only():
    # In the last of four epochs: w = 1.5, b = -2, mu = 0.8, sigma = 0.5. The share is 0.95 k + 0.05 alikeness^4.
    p = sigmoid(LOGITS)
    k, v = sigmoid(1.5 * p - 2), np.exp(-((p - 0.8) ** 2) / 0.5)
    share = np.where(np.isnan(SCORES), k, 0.95 * k + 0.05 * np.clip(SCORES**4, 0.001, 0.999))
    cells = v * (share * (1 - p**0.01) / 0.01 + (1 - share) * p)
    cells[0, 0], cells[1, 2], cells[0, 3] = (
        -np.log(p[0, 0] + 1e-7),
        -np.log(p[1, 2] + 1e-7),
        -np.log(1 - p[0, 3] + 1e-7),
    )
    assert loss_of("gr+prototypes", SCORES, epoch=4) == pytest.approx(cells.mean(), rel=1e-6)
    assert loss_of("gr+prototypes", None, epoch=4) == pytest.approx(loss_of("gr", None, epoch=4), rel=1e-12)


def test_vlpl_training_refuses_text_scores_of_the_wrong_shape_and_clears_earlier_ones():
    features, labels = np.ones((4, 3), np.float32), np.eye(4, 2, dtype=np.int8)
    method = make_method("vlpl")
    with pytest.raises(ValueError, match=r"evidence is \(4, 3\).*must be \(4, 2\) of floats. Were classes added"):
        fit(Head(3, 2), features, labels, method, evidence=np.zeros((4, 3), np.float32))
    fit(Head(3, 2), features, labels, method, evidence=np.ones((4, 2), np.float32))
    assert method.evidence is not None
    fit(Head(3, 2), features, labels, method)
    assert method.evidence is None


def test_every_method_needs_at_most_one_of_text_scores_and_prototypes():
    for name, method in METHODS.items():
        assert set(method.needs) <= {"text", "prototypes"}, name
        assert len(method.needs) <= 1, "there is one evidence"
        assert not method.needs or method.reads == "features", name
