"""The plane of alike images: neighbours stay neighbours, whatever the features are."""

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from spmll.embedding_2d import compute_layout


def clusters(per_cluster: int, dimensions: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features of five well-separated kinds of images, and which kind each row is."""
    chance = np.random.default_rng(seed)
    kinds = np.repeat(np.arange(5), per_cluster)
    centers = chance.normal(scale=4, size=(5, dimensions))
    return (centers[kinds] + chance.normal(size=(len(kinds), dimensions))).astype(np.float16), kinds


def nearest_kind(places: np.ndarray, kinds: np.ndarray) -> float:
    """How often the nearest other place is of the same kind."""
    distances = np.square(places[:, None] - places[None]).sum(2)
    np.fill_diagonal(distances, np.inf)
    return float((kinds[distances.argmin(1)] == kinds).mean())


def test_2d_map_layout_keeps_clusters_apart_and_similar_images_together():
    features, kinds = clusters(60)
    places = compute_layout(features)
    assert places.shape == (300, 2) and places.dtype == np.float32
    assert places.min() >= 0 and places.max() <= 1
    assert np.ptp(places, axis=0).min() > 0.9, "the square is used"
    lengths = np.linalg.norm(features.astype(np.float32), axis=1, keepdims=True)
    assert trustworthiness(features / lengths, places, n_neighbors=10) > 0.9
    assert nearest_kind(places, kinds) > 0.98


def test_map_layout_computed_from_a_subset_places_duplicates_next_to_each_other():
    features, _ = clusters(40)
    twice = np.concatenate([features, features])
    places = compute_layout(twice, landmark_count=150)
    twins = np.linalg.norm(places[:200] - places[200:], axis=1)
    strangers = np.linalg.norm(places[:200] - np.roll(places[200:], 100, axis=0), axis=1)
    assert np.median(twins) < 0.02 and np.median(strangers) > 0.2
    assert len(np.unique(places, axis=0)) == 400, "no two points hide each other"


def test_layout_is_deterministic_for_a_seed_and_differs_between_seeds():
    features, _ = clusters(20)
    assert np.array_equal(compute_layout(features, landmark_count=60), compute_layout(features, landmark_count=60))
    assert not np.array_equal(
        compute_layout(features, landmark_count=60), compute_layout(features, seed=1, landmark_count=60)
    )


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 7, 8, 12])
def test_layout_places_a_few_images_at_distinct_points(rows):
    features = np.random.default_rng(rows).normal(size=(rows, 20)).astype(np.float16)
    places = compute_layout(features)
    assert places.shape == (rows, 2) and np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == rows


@pytest.mark.parametrize("same", [1.0, 0.0])
@pytest.mark.parametrize("landmarks", [10, 3000])
def test_layout_places_identical_images_in_the_center(same, landmarks):
    places = compute_layout(np.full((50, 16), same, np.float16), landmark_count=landmarks)
    assert np.isfinite(places).all() and np.abs(places - 0.5).max() < 0.05


def test_layout_of_many_copies_of_one_image_is_finite():
    features, _ = clusters(10)
    places = compute_layout(np.concatenate([features, np.repeat(features[:1], 100, axis=0)]), landmark_count=80)
    assert np.isfinite(places).all()


def test_layout_supports_one_dimensional_embeddings():
    assert np.isfinite(compute_layout(np.linspace(-1, 1, 30, dtype=np.float16)[:, None])).all()


@pytest.mark.parametrize("landmarks", [5, 100])
def test_layout_refuses_non_finite_embeddings(landmarks):
    features, _ = clusters(4)
    features[::3, 1] = np.inf
    with pytest.raises(ValueError, match="not finite"):
        compute_layout(features, landmark_count=landmarks)


def test_layout_refuses_embeddings_of_the_wrong_shape():
    with pytest.raises(ValueError, match=r"\(4,\); they must be \(rows, dimensions\)"):
        compute_layout(np.zeros(4))
