"""The order in which Annotate shows images: as it was chosen, whoever else is at work, and before there is a run."""

import uuid

import numpy as np
import pytest
from harness.feature_shards import add_features

from annotator.errors import AnnotatorError
from annotator.queues import image_queue, query_order
from annotator.records import Decision, WantedImages
from annotator.store.features.feature_cache import FeatureCache, open_features
from annotator.store.images import images
from annotator.store.labels import decisions
from annotator.store.networks import configuration
from annotator.store.people import leases
from annotator.worker.features.worker_context import WorkerContext
from annotator.worker.training.first_orders import FirstOrderPublisher
from annotator.worker.training.train import train
from spmll.query_strategies import STRATEGIES


@pytest.fixture
def trained(db) -> FeatureCache:
    """24 images of which nine are labeled, five of them as a fox, and a run of a method that is quick."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((24, 6)).astype(np.float16)
    features[:, 0] = np.linspace(3, -3, 24)  # foxes first
    for image_id in range(1, 25):
        if image_id % 3 == 1 or image_id == 2:
            decide(db, "label", image_id, 1, 1 if image_id < 12 else -1)
    add_features(db, "made up", np.arange(24, 0, -1), features[::-1], np.zeros((24, 1, 6), np.float16))
    cache = open_features(db, "made up")
    train(db, cache, "an", {}, "made up")
    return cache


def decide(db, action: str, image_id: int, class_id: int | None = None, state: int | None = None) -> None:
    one = Decision(str(uuid.uuid4()), action, "Ann", "click", image_id=image_id, class_id=class_id, state=state)
    assert not decisions.save(db, [one]).refused


def taken(db, holder: str = "tab", have=(), want: int = 3, **more) -> list[int]:
    wanted = WantedImages("annotate", holder, "Ann", have, want, **more)
    return [item.image.id for item in image_queue.lease_next_work(db, wanted).items]


def by_chance(db) -> list[int]:
    return [image.id for image in sorted(images.load_all_images(db), key=lambda image: image.sha256)]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in STRATEGIES if name != "random"])
def test_annotate_shows_images_in_the_order_stored_by_the_training(db, trained, name):
    order = query_order.load(db, name).tolist()
    free = [image_id for image_id in range(1, 25) if image_id % 3 != 1 and image_id != 2]
    assert sorted(order) == free
    assert taken(db, order=name) == order[:3]
    decide(db, "label", order[3], 2, 1)
    assert taken(db, have=order[:3], order=name) == order[4:7], "one labeled since came again"
    assert set(taken(db, "other", order=name)).isdisjoint(order[:7])


def test_annotate_order_expected_missing_shows_images_with_most_probable_classes_first(db, trained):
    assert sorted(taken(db, order="expected_missing")) == [3, 5, 6]  # of one class with a model, foxes first


def test_changed_order_applies_immediately_and_releases_the_previous_images(db, trained):
    before = taken(db, order="diversity")
    now = taken(db, have=(), order="expected_missing")
    assert now == query_order.load(db, "expected_missing").tolist()[:3]
    assert before != now
    assert {row[0] for row in db.tuples("SELECT image_id FROM lease")} == set(now)


def test_reloaded_annotate_page_shows_the_same_images_as_before(db, trained):
    before = taken(db, order="diversity")
    assert set(taken(db, "tab-2", instead="tab", order="diversity")) == set(before)


def test_every_annotate_order_is_random_before_the_first_training(db):
    for name in STRATEGIES:
        assert taken(db, name, want=1, order=name) == [next(one for one in by_chance(db) if not held(db, one, name))]


def test_representative_order_is_published_from_embeddings_before_the_first_training(db):
    rng = np.random.default_rng(0)
    features = rng.random((24, 6)).astype(np.float16)
    add_features(db, configuration.get_backbone(db), np.arange(1, 13), features[:12], np.zeros((12, 1, 6), np.float16))
    decide(db, "label", 5, 1, 1)
    first = FirstOrderPublisher(WorkerContext(db))
    assert first.publish_if_due(all_embedded=False) and not first.publish_if_due(all_embedded=True)
    published = query_order.load(db, "representative").tolist()
    assert sorted(published) == [*range(1, 5), *range(6, 13)]
    assert taken(db, order="representative") == published[:3]

    more = WorkerContext(db)
    add_features(db, configuration.get_backbone(db), np.arange(13, 25), features[12:], np.zeros((12, 1, 6), np.float16))
    assert FirstOrderPublisher(more).publish_if_due(all_embedded=True)
    assert len(query_order.load(db, "representative")) == 23, "the images that came since were left out"
    for image_id in range(6, 12):
        decide(db, "label", image_id, 1, 1)
    train(db, more.get_features(), "an", {}, configuration.get_backbone(db))
    assert len(query_order.load(db, "representative")) == 17, "the order of the run was not taken"
    assert not FirstOrderPublisher(more).publish_if_due(all_embedded=True)


def held(db, image_id: int, but: str) -> bool:
    return (image_id, leases.WHOLE_IMAGE) in db.tuples("SELECT image_id, class_id FROM lease WHERE holder != ?", [but])


def test_stored_order_is_followed_by_images_unlabeled_through_undo_and_then_skipped_ones(db, trained):
    first, *others = query_order.load(db, "mix").tolist()
    decide(db, "skip", first)
    # The run knew it as labeled.
    reopened = 22
    labeled = db.value("SELECT uuid FROM decision WHERE image_id = ?", [reopened])
    decisions.save(db, [Decision(str(uuid.uuid4()), "undo", "Ann", "click", undoes=labeled)])
    for image_id in others:
        decide(db, "label", image_id, 1, 1)
    assert taken(db, want=1, order="mix") == [reopened]
    decide(db, "label", reopened, 1, 1)
    assert taken(db, want=1, order="mix") == [first]


def test_default_annotate_order_of_the_project_applies_unless_a_page_requests_another(db, trained):
    query_order.set_default(db, "expected_missing")
    assert taken(db) == query_order.load(db, "expected_missing").tolist()[:3]
    assert taken(db, "other", order="random", want=1) == [
        next(one for one in by_chance(db) if one % 3 != 1 and one != 2 and not held(db, one, "other"))
    ]


def test_unknown_order_is_refused_with_a_suggestion(db):
    with pytest.raises(AnnotatorError, match=r"Did you mean.*diversity"):
        taken(db, order="diversty")
    with pytest.raises(AnnotatorError, match="expected_missing"):
        query_order.set_default(db, "best")
    assert query_order.get_default_name(db) == "random"


def test_each_training_orders_a_new_random_sample_when_images_exceed_the_limit(db, monkeypatch):
    monkeypatch.setattr(query_order, "MAX_ORDER_IMAGES", 5)
    arrays = (np.ones((24, 2), np.float16), np.full((24, 3), 0.5), np.zeros((24, 3), np.int8))
    samples = [query_order.build(db, np.arange(1, 25), *arrays, seed)["mix"].tolist() for seed in range(2)]
    assert [len(one) for one in samples] == [5, 5] and sorted(samples[0]) != sorted(samples[1])
