"""Soft labels from the labels of images that look alike, by hand."""

import math

import numpy as np
import pytest
import torch

from spmll.labels import ABSENT, UNSEEN
from spmll.linear.training import Head, fit
from spmll.methods import make_method
from spmll.methods.published.label_enhancement import (
    average_over_neighbors,
    beta_divergence,
    enhancement_loss,
    find_nearest_neighbors,
)


def test_beta_divergence_matches_closed_form_and_numerical_integration():
    # Beta(2, 1) has the density 2x, Beta(1, 1) the density 1: the integral of 2x log(2x) over [0, 1] is
    # log 2 + 2 x (the integral of x log x, which is -1/4) = log 2 - 1/2. Beta(1, 2) is its mirror image.
    alpha, beta = torch.tensor([[2.0, 1.0, 1.0]]), torch.tensor([[1.0, 2.0, 1.0]])
    assert beta_divergence(alpha, beta, 1.0, 1.0)[0].tolist() == pytest.approx(
        [math.log(2) - 0.5, math.log(2) - 0.5, 0.0], abs=1e-6
    )
    # Against a prior with unequal parameters, by the midpoint rule on densities that are written out.
    x = (np.arange(1_000_000) + 0.5) / 1_000_000

    def density(a, b):
        return x ** (a - 1) * (1 - x) ** (b - 1) * math.gamma(a + b) / (math.gamma(a) * math.gamma(b))

    ours, prior = density(1.5, 2.5), density(0.2, 0.8)
    by_numbers = float(np.mean(ours * np.log(ours / prior)))
    exact = beta_divergence(torch.tensor([[1.5]]), torch.tensor([[2.5]]), 0.2, 0.8).item()
    assert exact == pytest.approx(by_numbers, rel=1e-4)


def test_nearest_neighbors_list_the_image_itself_first():
    features = torch.tensor([[1.0, 0.1], [-1.0, 0.0], [0.9, 0.2], [-1.0, -0.3]])
    assert find_nearest_neighbors(features, 1, torch.Generator()).tolist() == [[0, 2], [1, 3], [2, 0], [3, 1]]
    assert find_nearest_neighbors(features[:1], 5, torch.Generator()).tolist() == [[0]]  # one image has no neighbour
    assert find_nearest_neighbors(features, 9, torch.Generator()).shape == (4, 4)


def test_average_over_neighbors_matches_hand_computed_features_and_labels():
    features, labels = torch.tensor([[3.0], [1.0], [-4.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    # The mean is 0, the mean length 8/3. The first two are linked with each other, the third with the second.
    links = torch.tensor([[0, 1], [1, 0], [2, 1]])
    by_hand = [[2 * 3 / 8, 0.5, 0.5], [2 * 3 / 8, 0.5, 0.5], [-1.5 * 3 / 8, 0.0, 0.5]]
    assert torch.allclose(average_over_neighbors(features, labels, links).float(), torch.tensor(by_hand))


def test_enhancement_loss_matches_a_hand_computed_value():
    soft, linked = torch.tensor([[0.5], [0.25]]), torch.eye(2, dtype=torch.bool)
    labels, usable = torch.tensor([[1.0], [0.0]]), torch.ones(2, 1, dtype=torch.bool)
    divergence = torch.tensor([[0.1], [0.3]])
    # Marks at logit 0 cost log 2 each; the marked cell costs -log 0.5 twice more. The graph: d.d' is 1/4, 1/8, 1/16.
    s = [1 / (1 + math.exp(-x)) for x in (1 / 4, 1 / 8, 1 / 16)]
    graph = ((1 - s[0]) ** 2 + 2 * s[1] ** 2 + (1 - s[2]) ** 2) / 4
    cells = (2 * math.log(2) + 0.4 + 2 * math.log(2)) / 2
    loss = enhancement_loss(soft, torch.zeros(2, 1), divergence, linked, labels, usable, 2.0)
    assert loss.item() == pytest.approx(cells + graph, rel=1e-6)


def test_masked_labels_count_only_in_the_graph_term_of_the_smile_enhancement_loss():
    soft, linked = torch.tensor([[0.5, 0.9]]), torch.ones(1, 1, dtype=torch.bool)
    labels, usable = torch.tensor([[0.0, 1.0]]), torch.tensor([[True, False]])
    marks, divergence = torch.zeros(1, 2), torch.tensor([[0.0, 9.0]])
    graph = 2 * (1 - 1 / (1 + math.exp(-(0.25 + 0.81)))) ** 2
    assert enhancement_loss(soft, marks, divergence, linked, labels, usable, 1.0).item() == pytest.approx(
        math.log(2) + graph, rel=1e-6
    )


@pytest.fixture(scope="module")
def trained():
    """Two kinds of images, each with two classes of its own, of which one is marked."""
    random = np.random.default_rng(0)
    kind = np.arange(80) % 2
    truth = np.stack([kind == 0, kind == 0, kind == 1, kind == 1], 1)
    features = (random.normal(size=(80, 10)) + 3 * kind[:, None] * (np.arange(10) < 3)).astype(np.float32)
    labels = np.zeros((80, 4), np.int8)
    labels[np.arange(80), 2 * kind + random.integers(2, size=80)] = 1
    labels[0, 2] = ABSENT
    method, before = make_method("smile"), torch.get_rng_state()
    for _ in fit(Head(10, 4), features, labels, method, seed=1):
        pass
    return method, truth, labels, torch.equal(before, torch.get_rng_state())


def test_soft_labels_are_higher_for_hidden_positives_than_for_absent_classes(trained):
    method, truth, labels, _ = trained
    soft = -method.targets.numpy()
    unseen = labels == UNSEEN
    assert soft[unseen & truth].min() > soft[unseen & ~truth].max()
    assert soft[unseen].min() > 0 and soft[unseen].max() < 1


def test_smile_keeps_given_labels_and_the_global_random_generator(trained):
    method, _, labels, untouched = trained
    assert np.array_equal(method.targets.numpy()[labels != UNSEEN], labels[labels != UNSEEN])
    assert untouched


def test_smile_treats_unseen_cells_as_absent_during_warm_up():
    method = make_method("smile", warm_up=0.5)
    method.begin(torch.tensor([[1, 0], [0, 1]], dtype=torch.int8), None, 4, torch.Generator())
    method.begin_epoch(2)
    assert method.targets.tolist() == [[1, -1], [-1, 1]]
    method.begin_epoch(3)
    assert ((method.targets > ABSENT) & (method.targets < UNSEEN)).tolist() == [[False, True], [True, False]]


def test_smile_ignores_embeddings_of_an_earlier_training():
    method = make_method("smile")
    method.features = torch.ones(5, 3)  # of an earlier training
    method.begin(torch.tensor([[1, 0], [0, 1]], dtype=torch.int8), None, 4, torch.Generator())
    assert method.inputs.shape == (2, 4)  # log odds and marks of two classes
