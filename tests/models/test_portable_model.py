"""The portable form of a model gives the probabilities of its training, from codes and from a network's output."""

import numpy as np
import pytest
import torch

from spmll.ensemble.basis import signed_sqrt, to_float_tensor
from spmll.ensemble.fit_ensemble import fit_second_model
from spmll.ensemble.portable import PortableEnsemble
from spmll.ensemble.regions import encode_regions, learn_region_basis
from spmll.ensemble.stacking import AnsweredImages, fit_stacked
from spmll.ensemble.training_subset import TrainingSubset
from spmll.linear.training import TrainingSettings
from spmll.methods.auto import Auto

IMAGES, CLASSES, DIMENSIONS, REGIONS = 240, 5, 24, 9


def made_up(seed: int = 0):
    """Features (N, D), regions (N, R, D) and truth (N, C): a class shows in one region."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(CLASSES, DIMENSIONS))
    truth = rng.random((IMAGES, CLASSES)) < 0.3
    regions = rng.normal(size=(IMAGES, REGIONS, DIMENSIONS))
    for image, class_ in zip(*np.nonzero(truth), strict=True):
        regions[image, rng.integers(REGIONS)] += 3 * directions[class_]
    regions = np.abs(regions).astype(np.float32)
    return regions.mean(1), regions, truth


def trained(answered: int, marked: int = 200):
    """A training of `auto` on one mark an image, with the first images answered in every class."""
    features, regions, truth = made_up()
    codes = encode_regions(learn_region_basis(features, regions), regions)
    labels = np.zeros((IMAGES, CLASSES), np.int8)
    for image in range(marked):
        shown = np.flatnonzero(truth[image])
        if len(shown):
            labels[image, shown[image % len(shown)]] = 1
    labels[:, -1] = 0  # nobody has marked the last class
    unbiased = np.zeros(labels.shape, bool)
    labels[:answered, :-1] = np.where(truth[:answered, :-1], 1, -1)
    unbiased[:answered, :-1] = True
    rows = np.flatnonzero((labels != 0).any(1))
    model = fit_stacked(
        Auto(), AnsweredImages(features, codes, rows, labels[rows], unbiased=unbiased[rows]), TrainingSettings(epochs=3)
    )
    for _ in model.epochs():
        pass
    return model, codes, features, regions, np.arange(answered, IMAGES)


@pytest.mark.parametrize("answered", [0, 60])
def test_saved_portable_model_returns_the_probabilities_computed_in_training(answered, tmp_path):
    model, codes, features, regions, unanswered = trained(answered)
    assert model.calibrated == bool(answered)
    assert model.model is not None and model.probabilities is not None
    built = PortableEnsemble.build(model.model, codes.basis)
    assert built is not None and built.has_stackers == bool(answered)
    built.save(tmp_path / "model.safetensors")
    loaded = PortableEnsemble.load(tmp_path / "model.safetensors")
    assert loaded is not None
    # Marks of other images count as known in the stacker, and here nothing is known: images without any label.
    free = unanswered[unanswered >= 200]
    wanted = model.probabilities[free]
    from_codes = torch.sigmoid(loaded.forward_codes(features[free], codes[free])).numpy()
    np.testing.assert_allclose(from_codes, wanted, atol=2e-5)
    assert np.isnan(wanted[:, -1]).all() and np.isnan(from_codes[:, -1]).all()
    from_output = torch.sigmoid(loaded(torch.from_numpy(features[free]), torch.from_numpy(regions[free]))).numpy()
    np.testing.assert_allclose(from_output, wanted, atol=0.02)  # codes are rounded to a byte
    assert float(np.nanstd(wanted)) > 0.1


def test_portable_model_includes_the_reordering_of_the_second_model():
    model, codes, features, _, _ = trained(0)
    second = model.ensemble.second
    if second is None:  # the marks of made-up images are easy to tell apart: it is fitted as if they were not
        model.ensemble.doubt = 1.0
        rows = model.rows
        learned = TrainingSubset(np.arange(len(rows)), signed_sqrt(to_float_tensor(features[rows])), None)
        known = torch.from_numpy(model.labels)
        model.ensemble.second = fit_second_model(
            model.ensemble, features, codes, rows, learned, known, None, 0.5, lambda: None
        )
    wanted = model.ensemble.probabilities(features, codes)
    built = PortableEnsemble.build(model.model, codes.basis)
    assert built is not None and built.has_second
    # Between two knots that nearly touch, the rounding of a sum is stretched.
    np.testing.assert_allclose(torch.sigmoid(built.forward_codes(features, codes)).numpy(), wanted, atol=5e-4)


def test_truncated_or_missing_portable_model_loads_as_none(tmp_path):
    model, codes, *_ = trained(0)
    built = PortableEnsemble.build(model.model, codes.basis)
    built.save(tmp_path / "model")
    (tmp_path / "model").write_bytes((tmp_path / "model").read_bytes()[:-10])
    assert PortableEnsemble.load(tmp_path / "model") is None
    assert PortableEnsemble.load(tmp_path / "nothing") is None
