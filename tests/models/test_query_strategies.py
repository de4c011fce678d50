"""Selection strategies: each does what it says, whatever the order of the images, and with whatever is missing."""

import numpy as np
import pytest

from spmll.labels import ABSENT, PRESENT
from spmll.query_strategies import STRATEGIES, order_candidates
from spmll.query_strategies.diversity import MAX_CENTERS
from spmll.query_strategies.expected_missing import count_expected_missing
from spmll.query_strategies.mix import MIXED_STRATEGIES
from spmll.query_strategies.representative import MAX_SAMPLED_IMAGES

ROWS, CLASSES = 60, 5


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    """60 images, 5 classes of which the fourth has no model, the first ten images answered in part."""
    rng = np.random.default_rng(5)
    probabilities = rng.random((ROWS, CLASSES)).astype(np.float16)
    probabilities[:, 3] = np.nan
    labels = np.zeros((ROWS, CLASSES), np.int8)
    labels[:10] = rng.choice([0, PRESENT, ABSENT], (10, CLASSES))
    features = rng.standard_normal((ROWS, 8)).astype(np.float16)
    return {"features": features, "probabilities": probabilities, "labels": labels, "candidates": np.arange(5, ROWS)}


def rows(name: str, arrays: dict, seed: int = 0, **other) -> list[int]:
    return order_candidates(name, **{**arrays, **other}, rng=np.random.default_rng(seed)).rows.tolist()


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_returns_each_candidate_once_despite_missing_inputs(name, arrays):
    nothing = np.full((ROWS, CLASSES), np.nan)
    one_class = {"probabilities": arrays["probabilities"][:, :1], "labels": arrays["labels"][:, :1]}
    no_class = {"probabilities": np.zeros((ROWS, 0)), "labels": np.zeros((ROWS, 0), np.int8)}
    all_alike = {"features": np.ones((ROWS, 8)), "probabilities": np.full((ROWS, CLASSES), 0.5)}
    for other in ({}, {"probabilities": nothing}, {"features": None}, one_class, no_class, all_alike):
        assert sorted(rows(name, arrays, **other)) == list(range(5, ROWS)), other.keys()
    assert rows(name, arrays, candidates=np.zeros(0, np.int64)) == []


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name not in ("random", "mix")])
def test_strategy_order_does_not_depend_on_the_row_order(name, arrays):
    places = np.random.default_rng(1).permutation(ROWS)
    moved = {key: arrays[key][places] for key in ("features", "probabilities", "labels")}
    moved["candidates"] = np.flatnonzero(places >= 5)
    assert [places[row] for row in rows(name, moved)] == rows(name, arrays)


@pytest.mark.parametrize("name", [name for name, one in STRATEGIES.items() if one.needs])
def test_strategy_without_its_input_falls_back_to_random_and_reports_it(name, arrays):
    assert order_candidates(name, **arrays, rng=np.random.default_rng(0)).fallback == ""
    lacking = {"model": {"probabilities": None}, "features": {"features": None}}[STRATEGIES[name].needs]
    found = order_candidates(name, **{**arrays, **lacking}, rng=np.random.default_rng(0))
    assert "random instead" in found.fallback
    assert found.rows.tolist() == rows("random", arrays)


def test_random_strategy_ranks_every_image_first_equally_often():
    labels = np.zeros((8, 1), np.int8)
    rng = np.random.default_rng(0)
    firsts = [order_candidates("random", None, None, labels, np.arange(8), rng).rows[0] for _ in range(4000)]
    # 500 each; 6 standard deviations are 125.
    assert np.abs(np.bincount(firsts, minlength=8) - 500).max() < 125


def test_class_without_a_model_does_not_change_the_selection_order_of_images(arrays):
    without = {key: np.delete(arrays[key], 3, 1) for key in ("probabilities", "labels")}
    arrays["labels"][:, 3] = 0
    for name in ("uncertainty", "expected_missing", "class_balance", "diversity", "representative"):
        assert rows(name, arrays) == rows(name, arrays, **without), name


def test_answered_labels_count_neither_as_uncertain_nor_as_missing():
    probabilities = np.array([[0.5, 0.01], [0.4, 0.01], [0.1, 0.2]])
    labels = np.array([[ABSENT, 0], [0, 0], [0, 0]], np.int8)
    for name in ("uncertainty", "expected_missing"):
        found = order_candidates(
            name, None, probabilities, labels, np.arange(3), np.random.default_rng(0)
        ).rows.tolist()
        assert found[-1] == 0, name
    assert count_expected_missing(probabilities, labels) == pytest.approx([0.01, 0.41, 0.3])


def test_uncertainty_ranks_images_by_the_sum_over_their_classes():
    # One even chance: 0.69 nats; three cells of 0.8: 1.50; four of 0.99: 0.22.
    probabilities = np.array([[0.5, 0, 0, 0], [0.8, 0.8, 0.8, 0], [0.99, 0.99, 0.99, 0.99]])
    found = order_candidates(
        "uncertainty", None, probabilities, np.zeros((3, 4), np.int8), np.arange(3), np.random.default_rng(0)
    )
    assert found.rows.tolist() == [1, 0, 2]


def test_class_balance_ranks_a_rare_class_first_until_it_is_no_longer_rare():
    # Class 0 was seen nine times, class 1 never; ten images of each wait.
    probabilities = np.repeat(np.array([[0.9, 0.0], [0.0, 0.9]]), [20, 10], 0)
    labels = np.zeros((30, 2), np.int8)
    labels[:9, 0] = PRESENT
    found = order_candidates(
        "class_balance", None, probabilities, labels, np.arange(10, 30), np.random.default_rng(0)
    ).rows
    assert (found[:8] >= 20).all()
    assert set(found[:14] >= 20) == {True, False}


def test_diversity_visits_every_cluster_without_labels_before_repeating_one():
    rng = np.random.default_rng(2)
    middles = rng.standard_normal((6, 100)) * 5
    sizes = (200, 100, 50, 10, 3, 1)
    of = np.repeat(np.arange(6), sizes)
    features = (middles[of] + rng.standard_normal((len(of), 100)) * 0.3).astype(np.float16)
    labels = np.zeros((len(of), 1), np.int8)
    found = order_candidates("diversity", features, None, labels, np.arange(len(of)), rng).rows
    assert sorted(of[found[:6]]) == list(range(6))
    labels[of < 2] = ABSENT
    found = order_candidates("diversity", features, None, labels, np.flatnonzero(of > 1), rng).rows
    assert sorted(of[found[:4]]) == [2, 3, 4, 5], "clusters with answers were visited again"


def test_representative_ranks_the_largest_groups_without_labels_first():
    rng = np.random.default_rng(2)
    middles = rng.standard_normal((6, 100)) * 5
    of = np.repeat(np.arange(6), (100, 80, 60, 40, 20, 1))
    features = (middles[of] + rng.standard_normal((len(of), 100)) * 0.3).astype(np.float16)
    labels = np.zeros((len(of), 1), np.int8)
    found = order_candidates("representative", features, None, labels, np.arange(len(of)), rng).rows
    assert of[found[:6]].tolist() == [0, 1, 2, 3, 4, 5]
    labels[[0, 200]] = PRESENT  # of the first and the third group
    left = np.delete(np.arange(len(of)), [0, 200])
    assert of[order_candidates("representative", features, None, labels, left, rng).rows[:4]].tolist() == [1, 3, 4, 5]


def test_representative_maximizes_the_added_coverage_at_each_step():
    rng = np.random.default_rng(0)
    features = rng.random((80, 12)).astype(np.float16)
    found = order_candidates("representative", features, None, np.zeros((80, 1), np.int8), np.arange(80), rng).rows
    vectors = np.sqrt(features.astype(np.float64))
    vectors -= vectors.mean(0)
    cosines = vectors @ vectors.T / np.outer(*[np.linalg.norm(vectors, axis=1)] * 2)
    likeness, best = np.where(cosines > 0, cosines, 0) ** 2, np.zeros(80)
    for place in found[:40]:
        totals = np.maximum(likeness, best).sum(1)
        assert totals[place] == pytest.approx(totals.max(), rel=1e-5)
        best = np.maximum(best, likeness[place])


@pytest.mark.parametrize(("name", "most"), [("representative", MAX_SAMPLED_IMAGES), ("diversity", MAX_CENTERS)])
def test_strategy_orders_all_images_beyond_its_sampling_limit(name, most):
    many = most + 50
    features = np.random.default_rng(0).standard_normal((many, 4)).astype(np.float16)
    labels = np.zeros((many, 1), np.int8)
    found = order_candidates(name, features, None, labels, np.arange(many), np.random.default_rng(1))
    assert sorted(found.rows.tolist()) == list(range(many))


def test_mix_strategy_draws_a_fifth_of_its_images_at_random():
    """As many of its images as turns would give to chance are drawn evenly, whatever the model says."""
    rng = np.random.default_rng(3)
    images = 4000
    probabilities = rng.random((images, 3))
    features = rng.standard_normal((images, 4)).astype(np.float16)
    arrays = (features, probabilities, np.zeros((images, 3), np.int8), np.arange(images))
    first = order_candidates("mix", *arrays, np.random.default_rng(1)).rows[:500]
    # The same without chance: what comes only now came through the random turns.
    chosen = [
        order_candidates(name, *arrays, np.random.default_rng(1)).rows[:100]
        for name in [strategy.name for strategy in MIXED_STRATEGIES]
        if name != "random"
    ]
    led = set(np.concatenate(chosen).tolist())
    blind = [row for row in first.tolist() if row not in led]
    assert len(blind) >= 90
    assert abs(np.mean(blind) / images - 0.5) < 0.12  # a standard error is 0.03
    assert abs(probabilities[blind].sum(1).mean() - 1.5) < 0.25  # one of 0.05


def test_order_candidates_refuses_invalid_arrays_and_names(arrays):
    with pytest.raises(ValueError, match="There is: random, uncertainty"):
        rows("random_", arrays)
    with pytest.raises(ValueError, match=r"\(60, 4\).*\(60, 5\)"):
        rows("random", arrays, probabilities=arrays["probabilities"][:, :4])
    with pytest.raises(ValueError, match="a row an image"):
        rows("random", arrays, features=arrays["features"][:3])
    with pytest.raises(ValueError, match="rows 0 to 59"):
        rows("random", arrays, candidates=np.array([60]))
    with pytest.raises(ValueError, match="twice"):
        rows("random", arrays, candidates=np.array([1, 1]))
    with pytest.raises(ValueError, match="both must be"):
        count_expected_missing(np.zeros((2, 3)), np.zeros((2, 4)))


def test_every_strategy_has_a_description_and_a_reference():
    for one in STRATEGIES.values():
        assert one.about.endswith(".") and one.title and one.paper
        assert one.url.startswith("https://") or one.paper.startswith("None: ")
