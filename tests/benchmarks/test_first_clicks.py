"""First clicks as people make them: which class is named, and that everything else is as with random clicks."""

import hashlib
import json

import numpy as np
import pytest
from harness.tiny_sets import make_coco, make_voc

from annotator.benchmark.datasets import draw_clicks, draw_observed_labels, load_dataset
from annotator.benchmark.first_named_class import Naming, choose_first_classes, compute_naming_rates


def test_random_clicks_equal_those_of_earlier_versions():
    truth = np.random.default_rng(0).random((200, 6)) < 0.3
    digest = hashlib.sha256(draw_clicks(truth, 0.5, 3).tobytes()).hexdigest()[:16]
    assert digest == "a4ad49511aaddd7f", "figures that were published with the same seed would no longer compare"


def test_zero_click_weights_equal_random_clicks():
    truth, chance = np.random.default_rng(1).random((300, 5)) < 0.5, np.random.default_rng(2)
    uniform = chance.random(truth.shape)
    assert np.array_equal(
        choose_first_classes(truth, uniform), choose_first_classes(truth, uniform, np.zeros(truth.shape))
    )


def test_simulated_click_names_a_present_class_in_proportion_to_its_weight():
    truth = np.tile([True, False, True, True], (40_000, 1))
    named = choose_first_classes(truth, np.random.default_rng(0).random(truth.shape), np.log([[1, 50, 3, 6]]))
    assert np.bincount(named, minlength=4) / len(named) == pytest.approx([0.1, 0, 0.3, 0.6], abs=0.01)


def test_odds_of_salient_clicks_with_strength_2_follow_the_squared_object_areas():
    # One class twice as long as the other: with strength 2 its weight is four times as large, besides its salience.
    truth = np.ones((60_000, 2), bool)
    areas = np.where(np.arange(60_000)[:, None] % 2 == [0, 1], 400.0, 100.0)
    named = draw_clicks(truth, 1.0, 5, Naming("salient", 2), areas) == 1
    odds = [named[first::2, 0].mean() / named[first::2, 1].mean() for first in (0, 1)]
    assert odds[0] / odds[1] == pytest.approx(16, rel=0.1)


def test_biased_clicks_favor_frequent_classes_in_proportion_to_frequency():
    truth = np.zeros((30_000, 2), bool)
    truth[:, 0], truth[::4, 1] = True, True
    both = (draw_clicks(truth, 1.0, 0, Naming("biased", 1)) == 1)[::4]
    assert both.mean(0) == pytest.approx([0.8, 0.2], abs=0.02)
    both = (draw_clicks(truth, 1.0, 0, Naming("biased", 2)) == 1)[::4]
    assert both.mean(0) == pytest.approx([16 / 17, 1 / 17], abs=0.02)


@pytest.mark.parametrize("naming", [Naming("salient", 2), Naming("biased", 1)])
def test_all_click_strategies_label_the_same_images_with_nested_fractions(naming):
    truth = np.random.default_rng(0).random((300, 8)) < np.linspace(0.1, 0.8, 8)
    small, large = draw_clicks(truth, 0.1, 7, naming), draw_clicks(truth, 0.6, 7, naming)
    assert np.array_equal(large[small == 1], small[small == 1]) and truth[large == 1].all()
    assert np.array_equal(large.any(1), draw_clicks(truth, 0.6, 7).any(1))
    assert (large != draw_clicks(truth, 0.6, 7)).any()


def test_salient_clicks_omit_classes_at_unequal_rates_that_depend_on_the_seed():
    truth = np.random.default_rng(0).random((4000, 8)) < 0.5
    rates = [compute_naming_rates(truth, draw_clicks(truth, 1.0, seed, Naming("salient", 2))) for seed in (0, 1)]
    even = compute_naming_rates(truth, draw_clicks(truth, 1.0, 0))
    assert np.ptp(even) < 0.05 < 0.3 < np.ptp(rates[0]) and abs(rates[0] - rates[1]).max() > 0.2


def test_salient_clicks_give_one_true_label_per_image_of_a_published_dataset(tmp_path):
    dataset = load_dataset("voc", make_voc(tmp_path))
    labels = draw_observed_labels(dataset, 1.0, 0, Naming("salient", 2))
    assert (labels.sum(1) == 1).all() and dataset.train.truth[labels == 1].all()


def test_coco_loader_reads_object_areas_when_annotations_have_them(tmp_path):
    root = make_coco(tmp_path)
    assert load_dataset("coco", root).areas is None
    for part in ("train", "val"):
        path = root / f"annotations/instances_{part}2014.json"
        content = json.loads(path.read_text())
        for entry in content["annotations"]:
            entry["area"] = 10 * entry["image_id"] + 1
        path.write_text(json.dumps(content))
    dataset = load_dataset("coco", root)
    assert dataset.areas is not None and dataset.areas.shape == dataset.train.truth.shape
    assert ((dataset.areas > 0) == dataset.train.truth).all()
