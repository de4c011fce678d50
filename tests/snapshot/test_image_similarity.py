"""Images like one image or several: an exact order by features, in the Gallery, with its filters."""

import re

import numpy as np
import pytest
from harness import projects
from harness.contexts import Contexts
from harness.person import open_page
from harness.served import serving
from playwright.sync_api import expect

from annotator.errors import AnnotatorError
from annotator.records import Decision
from annotator.snapshot import gallery_listing
from annotator.snapshot.filters import GalleryFilter
from annotator.snapshot.gallery_listing import Sorting
from annotator.snapshot.similarity import exact_similarity, image_similarity
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache
from annotator.store.features.project_contents import ProjectContents
from annotator.store.features.stored_image_codes import save_codes
from annotator.store.labels import decisions
from annotator.store.networks import configuration
from annotator.worker.features.region_coding import to_stored_basis
from spmll.ensemble.incremental_update import encode_images, learn_image_basis

IMAGES = 24


@pytest.fixture
def features(db: Database) -> np.ndarray:
    """Random features of all 24 images."""
    features = np.abs(np.random.default_rng(1).normal(size=(IMAGES, 16))).astype(np.float16)
    projects.save_features(db, features)
    return features


def expected(features: np.ndarray, row: int) -> list[int]:
    """The ids of all images by the cosine of roots of features about their mean, worked out the plain way."""
    roots = np.sqrt(features.astype(np.float64))
    centred = roots - roots.mean(0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    return (np.argsort(-(unit @ unit[row])) + 1).tolist()


def test_gallery_order_by_similarity_equals_an_exact_search(db: Database, features: np.ndarray):
    for example in (1, 7, 24):
        shown = gallery_listing.get_window(db, GalleryFilter(), Sorting("like", like=(example,)), 0, IMAGES)
        ids = [tile.image.id for tile in shown.images]
        assert ids[0] == example and shown.measures[example] == "100%"
        values = image_similarity.compute_similarities(db, np.arange(1, IMAGES + 1), [example])
        assert np.all(np.diff(values[np.array(ids) - 1]) <= 1e-3), "float16 sorts them"
        assert ids[:5] == expected(features, example - 1)[:5]


def test_several_examples_come_first_followed_by_images_similar_to_their_mean(db: Database, features: np.ndarray):
    examples = (3, 9, 20)
    shown = gallery_listing.get_window(db, GalleryFilter(), Sorting("like", like=examples), 0, IMAGES)
    ids = [tile.image.id for tile in shown.images]
    roots = np.sqrt(features.astype(np.float64))
    centred = roots - roots.mean(0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    mean = unit[np.array(examples) - 1].mean(0)
    values = np.delete(unit @ mean / np.linalg.norm(mean), np.array(examples) - 1)
    others = np.delete(np.arange(1, IMAGES + 1), np.array(examples) - 1)
    assert set(ids[:3]) == set(examples) and ids[3:8] == others[np.argsort(-values)][:5].tolist()
    with pytest.raises(AnnotatorError, match="17 examples are too many"):
        image_similarity.compute_similarities(db, np.arange(1, 5), range(1, 18))


def test_similarities_from_compressed_embeddings_approximate_exact_similarities(
    db: Database, features: np.ndarray, monkeypatch
):
    every = np.arange(1, IMAGES + 1)
    exact = image_similarity.compute_similarities(db, every, [3])
    cache = FeatureCache(db.paths.features(configuration.get_backbone(db)), ProjectContents(db))
    cache.refresh()
    codes = encode_images(learn_image_basis(cache.features), cache.features)
    save_codes(
        cache.folder,
        to_stored_basis(codes.basis),
        cache.image_ids,
        *cache.features.get_shard_index(),
        codes.steps.numpy(),
    )
    monkeypatch.setattr(image_similarity, "MAX_EXACT_IMAGES", 3)
    coded = image_similarity.compute_similarities(Database(db.paths.project), every, [3])
    assert np.abs(coded - exact).max() < 0.03 and not np.array_equal(coded, exact)


def test_compressed_similarity_search_reranks_its_first_results_with_exact_embeddings(db: Database, monkeypatch):
    features = np.abs(np.random.default_rng(2).normal(size=(IMAGES, 400))).astype(np.float16)
    features[12] = features[4] + np.linspace(0, 0.02, 400).astype(np.float16)  # like 5, by what a code rounds away
    projects.save_features(db, features)
    cache = FeatureCache(db.paths.features(configuration.get_backbone(db)), ProjectContents(db))
    cache.refresh()
    codes = encode_images(learn_image_basis(cache.features), cache.features)
    coarse = (codes.steps.numpy() // 24) * 24
    save_codes(cache.folder, to_stored_basis(codes.basis), cache.image_ids, *cache.features.get_shard_index(), coarse)
    monkeypatch.setattr(image_similarity, "MAX_EXACT_IMAGES", 3)
    every = np.arange(1, IMAGES + 1)
    by_codes = image_similarity.compute_similarities(Database(db.paths.project), every, [5])
    monkeypatch.setattr(exact_similarity, "RECOMPARED_IMAGES", 20)
    monkeypatch.setattr(exact_similarity, "TAIL_IMAGES", 4)
    corrected = image_similarity.compute_similarities(Database(db.paths.project), every, [5])
    exact = expected(features, 4)
    assert (np.argsort(-corrected)[:4] + 1).tolist() == exact[:4] != (np.argsort(-by_codes)[:4] + 1).tolist()
    for path in cache.folder.glob("*.safetensors"):
        path.unlink()
    assert np.allclose(image_similarity.compute_similarities(Database(db.paths.project), every, [5]), by_codes), (
        "codes alone, then"
    )


def test_similarity_search_applies_filters_and_refuses_missing_or_unknown_examples(db: Database, features: np.ndarray):
    decisions.save(db, [Decision("u", "label", "Ann", "click", 7, 1, 1)])
    shown = gallery_listing.get_window(db, GalleryFilter.build(open=[1]), Sorting("like", like=(7,)), 0, IMAGES)
    assert len(shown.images) == IMAGES - 1 and 7 not in [tile.image.id for tile in shown.images]
    with pytest.raises(AnnotatorError, match="There is no image 99"):
        gallery_listing.get_window(db, GalleryFilter(), Sorting("like", like=(99,)), 0, 1)
    with pytest.raises(AnnotatorError, match="name the image"):
        gallery_listing.get_window(db, GalleryFilter(), Sorting("like"), 0, 1)


def test_similarity_search_without_embeddings_raises_an_error(db: Database):
    with pytest.raises(AnnotatorError, match="No image is analyzed yet"):
        gallery_listing.get_window(db, GalleryFilter(), Sorting("like", like=(1,)), 0, 1)


@pytest.mark.slow
@pytest.mark.browser
def test_s_key_sorts_the_gallery_by_similarity_to_the_selected_images(
    browser: Contexts, db: Database, features: np.ndarray
):
    with serving(db.paths.project) as served:
        page = open_page(browser, served, "Ann", "/gallery")
        page.locator(".thumb img").nth(4).click()
        page.keyboard.press("s")
        expect(page).to_have_url(re.compile("sort=like&like="))
        example = int(page.url.rpartition("like=")[2])
        names = dict(db.tuples("SELECT id, name FROM image"))
        wanted = [names[image_id] for image_id in expected(features, example - 1)[:3]]
        for place, name in enumerate(wanted):
            expect(page.locator(".thumb").nth(place)).to_contain_text(name)
        expect(page.locator(".thumb").first).to_contain_text("100%")
        page.locator("#gallery-0").click()
        page.locator("#gallery-2").click(modifiers=["Control"])
        expect(page.locator(".thumb[aria-selected=true]")).to_have_count(2)
        page.keyboard.press("s")
        expect(page).to_have_url(re.compile(r"like=\d+(,|%2C)\d+$"))
        for place in range(2):
            expect(page.locator(".thumb").nth(place)).to_contain_text("100%")
        page.reload()
        expect(page.locator(".thumb").nth(1)).to_contain_text("100%")
