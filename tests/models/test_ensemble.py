"""What `auto` is trained by: two models, regions of images, and images that nobody has labelled."""

import numpy as np
import pytest
import torch

from spmll.ensemble.fit_ensemble import IMAGES_PER_BLOCK, Ensemble, LabeledImages, fit_ensemble
from spmll.ensemble.regions import encode_regions, learn_region_basis
from spmll.linear.training import Epoch, TrainingSettings
from spmll.methods import make_method
from spmll.statistics.metrics import hidden_average_precision

CLASSES, DIMENSIONS = 4, 24


def photos(images=160, share=0.5, seed=0):
    """Features (N, D), their region codes, rows with a label, those labels (n, C), and the truth (N, C) bool.

    Every class is a small object: it lights one of nine regions, so the average of the image hardly shows it.
    """
    rng = np.random.default_rng(seed)
    truth = rng.random((images, CLASSES)) < 0.3
    truth[np.arange(images), rng.integers(0, CLASSES, images)] = True
    regions = np.abs(rng.normal(size=(images, 9, DIMENSIONS))) * 0.5
    for image, number in np.argwhere(truth):
        regions[image, rng.integers(9), number] += 4
    rows = np.sort(rng.permutation(images)[: round(share * images)])
    labels = np.zeros((len(rows), CLASSES), np.int8)
    for place, row in enumerate(rows):
        labels[place, rng.choice(np.flatnonzero(truth[row]))] = 1
    features, regions = regions.mean(1).astype(np.float32), regions.astype(np.float32)
    return features, encode_regions(learn_region_basis(features, regions), regions), rows, labels, truth


def trained(features, region_codes, rows, labels, parameters=None, mask=None, seed=0, **settings):
    model = Ensemble(make_method("auto", **(parameters or {})), features.shape[1], labels.shape[1])
    images = LabeledImages(features, region_codes, rows, labels, mask)
    for _ in fit_ensemble(model, images, TrainingSettings(**settings), seed=seed):
        pass
    return model.probabilities(features, region_codes)


def of_all(rows, labels, images):
    whole = np.zeros((images, labels.shape[1]), np.int8)
    whole[rows] = labels
    return whole


@pytest.mark.parametrize("seed", range(3))
def test_region_embeddings_improve_average_precision_for_small_objects(seed):
    features, region_codes, rows, labels, truth = photos(seed=seed)
    known = of_all(rows, labels, len(truth))
    whole, with_parts = (
        hidden_average_precision(trained(features, some, rows, labels, seed=seed), known, truth).cells
        for some in (None, region_codes)
    )
    assert whole > truth[known == 0].mean() + 0.3
    assert with_parts > whole + 0.03


@pytest.mark.slow
def test_training_on_unlabeled_images_improves_average_precision():
    found = {"as it is": [], "labels alone": [], "no weight on them": []}
    for seed in range(4):
        features, region_codes, rows, labels, truth = photos(share=0.15, seed=seed)
        known = of_all(rows, labels, len(truth))
        for case, parameters in zip(found, ({}, {"rounds": 0}, {"unlabelled": 0.0}), strict=True):
            p = trained(features, region_codes, rows, labels, parameters)
            found[case].append(hidden_average_precision(p, known, truth).cells)
    assert found["labels alone"] == found["no weight on them"]
    assert np.mean(found["as it is"]) > np.mean(found["labels alone"]) + 0.01


def test_training_on_fully_labeled_images_ignores_the_head_parameter():
    made = photos(images=60, share=1.0)[:4]
    usual, *others = (trained(*made, parameters, epochs=2) for parameters in ({}, {"head": 0.9}, {"head_of_all": 0.9}))
    np.testing.assert_array_equal(usual, others[0])
    assert not np.array_equal(usual, others[1])
    few = photos(images=60, share=0.2)[:4]
    assert not np.array_equal(trained(*few, {}, epochs=2), trained(*few, {"head": 0.9}, epochs=2))


def test_training_is_deterministic_for_a_seed_and_differs_between_seeds():
    made = photos()[:4]
    first, second, other = (trained(*made, seed=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_training_leaves_the_global_random_state_and_thread_count_unchanged():
    torch.manual_seed(3)
    expected, threads = torch.rand(1), torch.get_num_threads()
    torch.manual_seed(3)
    trained(*photos(images=30)[:4], epochs=1)
    assert torch.rand(1) == expected and torch.get_num_threads() == threads


def one_click(images, classes, seed=0):
    labels = np.zeros((images, classes), np.int8)
    labels[np.arange(images), np.random.default_rng(seed).integers(0, classes, images)] = 1
    return labels


def nobody_marked(images, column):
    labels = one_click(images, 3)
    labels[:, column] = np.where(np.arange(images) % 2, 0, -1)
    return labels


CASES = {  # (images, labels of the first of them)
    "a class nobody marked": (20, nobody_marked(12, 1)),
    "all but one class nobody marked": (20, np.repeat([[0, 1, -1]], 12, axis=0)),
    "one image of one": (1, one_click(1, 3)),
    "one image of many": (20, one_click(1, 3)),
    "two images alike": (2, one_click(2, 3)),
    "one class": (20, one_click(9, 1)),
    "one image of one class": (1, one_click(1, 1)),
    "everything present": (20, np.ones((9, 3), np.int8)),
    "everything absent": (20, -np.ones((9, 3), np.int8)),
    "nothing said": (20, np.zeros((9, 3), np.int8)),
    "more classes than images": (8, one_click(3, 11)),
    "no image without a label": (12, one_click(12, 3)),
}


@pytest.mark.parametrize("regions", [True, False], ids=["regions", "no regions"])
@pytest.mark.parametrize("case", CASES)
def test_predictions_are_nan_exactly_for_classes_without_a_present_label(case, regions):
    images, labels = CASES[case]
    labels, before = labels.astype(np.int8), labels.copy()
    rng = np.random.default_rng(1)
    nine = np.maximum(rng.normal(size=(images, 9, 6)), 0).astype(np.float16)
    if case == "two images alike":
        nine[:] = nine[:1, :1]
    features = nine.mean(1)
    region_codes = encode_regions(learn_region_basis(features, nine), nine) if regions else None
    p = trained(features, region_codes, np.arange(len(labels)), labels, epochs=3)
    assert p.shape == (images, labels.shape[1]) and p.dtype == np.float32
    assert (np.isnan(p) == ~(labels == 1).any(0)).all()
    assert ((p >= 0) & (p <= 1))[~np.isnan(p)].all()
    np.testing.assert_array_equal(labels, before)


@pytest.mark.parametrize("absent", [0.0, 1.0])
def test_ensemble_training_ignores_the_value_of_masked_labels(absent):
    features, region_codes, rows, labels, _ = photos(images=60)
    mask = np.random.default_rng(2).random(labels.shape) < 0.7
    unseen, present, ruled_out = (
        trained(features, region_codes, rows, np.where(mask, labels, said), {"absent": absent}, mask=mask, epochs=3)
        for said in np.array([0, 1, -1], np.int8)
    )
    np.testing.assert_array_equal(unseen, present)
    np.testing.assert_array_equal(unseen, ruled_out)
    assert not np.array_equal(unseen, trained(features, region_codes, rows, labels, {"absent": absent}, epochs=3))


def test_masking_unobserved_positives_raises_their_predictions():
    features, region_codes, rows, labels, truth = photos(images=120, share=1.0)
    hidden = truth & (labels == 0)
    alone = {"head": 0.0, "head_of_all": 0.0}
    counted, masked = (trained(features, region_codes, rows, labels, alone, mask=mask) for mask in (None, ~hidden))
    assert masked[hidden].mean() > counted[hidden].mean() + 0.05


def test_class_whose_present_labels_are_all_masked_gets_no_ensemble_predictions():
    features, region_codes, rows, labels, _ = photos(images=60)
    mask = np.ones(labels.shape, bool)
    mask[:, 2] = False
    p = trained(features, region_codes, rows, labels, mask=mask, epochs=2)
    assert (np.isnan(p) == [False, False, True, False]).all()


def test_ensemble_is_complete_when_the_caller_stops_iterating_at_the_last_epoch():
    features, region_codes, rows, labels, _ = photos(images=60)
    exhausted = trained(features, region_codes, rows, labels, epochs=4)
    model = Ensemble(make_method("auto"), DIMENSIONS, CLASSES)
    for epoch in fit_ensemble(model, LabeledImages(features, region_codes, rows, labels), TrainingSettings(epochs=4)):
        assert isinstance(epoch, Epoch) and epoch.total == 4
        if epoch.number == 4:
            break
    np.testing.assert_array_equal(model.probabilities(features, region_codes), exhausted)


def test_stop_request_ends_training_within_a_batch_and_leaves_a_usable_model():
    features, region_codes, rows, labels, _ = photos()
    asked = []

    def should_stop():
        asked.append(None)
        return len(asked) > 4

    model = Ensemble(make_method("auto"), DIMENSIONS, CLASSES)
    images, settings = LabeledImages(features, region_codes, rows, labels), TrainingSettings(epochs=9, batch=40)
    training = fit_ensemble(model, images, settings, should_stop=should_stop)
    assert [epoch.number for epoch in training] == [1, 2]
    assert len(asked) == 5 and np.isfinite(model.probabilities(features, region_codes)).all()


def test_training_and_scoring_report_progress_often():
    features, region_codes, rows, labels, _ = photos(images=1100)
    model, told = Ensemble(make_method("auto"), DIMENSIONS, CLASSES), []
    images = LabeledImages(features, region_codes, rows, labels)
    for _ in fit_ensemble(model, images, TrainingSettings(epochs=1), tell=lambda: told.append(None)):
        pass
    assert len(told) >= 4
    told.clear()
    model.probabilities(features, region_codes, lambda: told.append(None))
    assert len(told) == -(-1100 // IMAGES_PER_BLOCK)


def test_probabilities_do_not_depend_on_the_number_of_images_scored_together():
    features, region_codes, rows, labels, _ = photos(images=1100)
    model = Ensemble(make_method("auto"), DIMENSIONS, CLASSES)
    for _ in fit_ensemble(model, LabeledImages(features, region_codes, rows, labels), TrainingSettings(epochs=1)):
        pass
    some = np.array([1099, 3, 600, 511, 512])
    np.testing.assert_allclose(
        model.probabilities(features[some], region_codes[some]),
        model.probabilities(features, region_codes)[some],
        atol=1e-5,
    )


def test_self_training_does_not_spread_a_class_overrepresented_among_labeled_images():
    features, region_codes, _, _, truth = photos(images=300, share=1.0)
    # Somebody has gone through suggestions of class 0: it was marked on five of six images, and two of five show it.
    there, not_there = np.flatnonzero(truth[:, 0])[:50], np.flatnonzero(~truth[:, 0])[:10]
    rows = np.concatenate([there, not_there])
    labels = one_click(60, CLASSES)
    labels[:, 0] = np.arange(60) < 50
    free = np.setdiff1d(np.arange(300), rows)
    alone, taught = (trained(features, region_codes, rows, labels, {"rounds": rounds})[free] for rounds in (0, 4))
    assert (taught.mean(0) < alone.mean(0) + 0.05).all(), (alone.mean(0), taught.mean(0))


def test_self_training_rounds_have_no_effect_without_unlabeled_images():
    made = photos(images=60, share=1.0)[:4]
    once, often = (trained(*made, {"rounds": rounds}, epochs=1) for rounds in (0, 3))
    np.testing.assert_array_equal(once, often)


def test_evened_of_head_parameter_removes_the_mean_logit_gain_of_the_best_region():
    made = photos(images=60)[:4]
    alone = {"head": 1.0, "head_of_all": 1.0}
    whole, evened, plain = (
        torch.logit(torch.from_numpy(trained(*made, alone | parameters, epochs=2)).double())
        for parameters in (
            {"parts_of_head": 0.0},
            {"parts_of_head": 0.5, "evened_of_head": 1.0},
            {"parts_of_head": 0.5, "evened_of_head": 0.0},
        )
    )
    assert torch.allclose(evened.mean(0), whole.mean(0), atol=1e-3) and not torch.allclose(evened, whole, atol=0.1)
    assert (plain.mean(0) > whole.mean(0) + 0.1).all()


def test_training_refuses_mismatched_inputs_and_reports_their_values():
    features, region_codes, rows, labels, _ = photos(images=20)

    def wrong(match, features=features, region_codes=region_codes, rows=rows, labels=labels, mask=None, lr=None):
        images, settings = LabeledImages(features, region_codes, rows, labels, mask), TrainingSettings(lr=lr)
        with pytest.raises(ValueError, match=match):
            fit_ensemble(Ensemble(make_method("auto"), DIMENSIONS, CLASSES), images, settings)

    wrong(r"to 20; there are 20", rows=np.append(rows[:-1], 20))
    wrong(r"Rows run from -1 to", rows=np.append(rows[:-1], -1))
    wrong(r"region codes of 19 images and features of 20", region_codes=region_codes[:19])
    wrong(r"Labels are \(10, 3\)", labels=labels[:, :3])
    wrong(r"Labels are \(10, 4\); with 9", rows=rows[:-1])
    wrong(r"no image to train on", rows=rows[:0], labels=labels[:0])
    wrong(r"there is also 2", labels=labels * 2)
    wrong(r"\(20, 23\).*must be \(images, 24\)", features=features[:, :23])
    wrong(r"mask is \(10, 3\)", mask=np.ones((10, 3), bool))
    wrong(r"lr", lr=-1.0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_non_finite_embeddings_are_reported_with_their_rows(value):
    features, region_codes, rows, labels, _ = photos(images=20)
    unlabelled = int(np.setdiff1d(np.arange(20), rows)[-1])
    for row in (int(rows[3]), unlabelled):
        strange = features.copy()
        strange[row, 2] = value
        with pytest.raises(ValueError, match=rf"1 of 20 images are not finite \(rows {row}\)"):
            images = LabeledImages(strange, region_codes, rows, labels)
            fit_ensemble(Ensemble(make_method("auto"), DIMENSIONS, CLASSES), images)


@pytest.mark.parametrize("absent", [0.0, 0.5])
def test_absent_labels_lower_predictions_more_than_missing_labels(absent):
    features, region_codes, rows, labels, truth = photos(images=60, share=1.0)
    answered = np.where(truth, labels, -1).astype(np.int8)
    unseen, ruled_out = (trained(features, region_codes, rows, said, {"absent": absent}) for said in (labels, answered))
    assert (ruled_out - unseen)[~truth].mean() < (ruled_out - unseen)[truth & (labels == 0)].mean()


def test_row_order_does_not_affect_training():
    features, region_codes, rows, labels, _ = photos(images=60)
    turned = trained(features, region_codes, rows[::-1].copy(), labels[::-1].copy(), {"head": 0.0, "head_of_all": 0.0})
    straight = trained(features, region_codes, rows, labels, {"head": 0.0, "head_of_all": 0.0})
    np.testing.assert_allclose(turned, straight, atol=1e-4)


def test_half_precision_embeddings_give_nearly_the_same_predictions():
    features, region_codes, rows, labels, _ = photos(images=60)
    exact = trained(features, region_codes, rows, labels, epochs=3)
    assert np.abs(trained(features.astype(np.float16), region_codes, rows, labels, epochs=3) - exact).max() < 0.02
