"""Parts of images in a worker: kept from one training to the next, and runs of the default method from end to end."""

import json

import numpy as np
import pytest
import torch
from harness.answers import answer_cell
from harness.audit_answers import say
from harness.feature_shards import add_features, add_shard, read_made
from harness.trained_projects import shown
from PIL import Image as Picture

from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import open_data_set
from annotator.records import UNSURE
from annotator.settings import DEFAULT_BACKBONE
from annotator.snapshot.project_status import collect_status
from annotator.snapshot.run_predictions import read_predictions
from annotator.store.classes import classes
from annotator.store.features.feature_cache import open_features
from annotator.store.networks import configuration
from annotator.store.runs import runs
from annotator.worker.duties.explain import Explainer
from annotator.worker.features.region_cache import RegionCache
from annotator.worker.process import Worker
from annotator.worker.training import calibrate
from annotator.worker.training.train import train
from spmll.backbones.cam import compute_heat_map
from spmll.backbones.frozen_backbone import load_backbone
from spmll.ensemble.regions import encode_regions
from spmll.linear.training import Head

pytestmark = pytest.mark.training

DIMENSIONS = 12


def filled(db):
    with open_data_set(db, Choices(unknown="model")) as data:
        return data.fill


def grown(folder, first, count, seed=0):
    """Adds a shard of `count` images, numbered from `first`."""
    regions = drawn(first, count, seed)
    add_shard(folder, np.arange(first, first + count), regions.mean(1), regions)


def drawn(first, count, seed=0):
    rng = np.random.default_rng([seed, first])
    return np.maximum(rng.normal(size=(count, 9, DIMENSIONS)), 0).astype(np.float16)


@pytest.fixture
def cache(tmp_path):
    grown(tmp_path / "features", 1, 20)
    return read_made(tmp_path / "features")


def same(parts, others):
    return torch.equal(parts.codes, others.codes) and torch.equal(parts.lengths, others.lengths)


def test_region_cache_compresses_only_the_regions_of_new_images(cache):
    memory, told = RegionCache(), []
    first = memory.get_codes(cache, lambda: told.append(None))
    assert len(first) == 20 and told
    told.clear()
    assert memory.get_codes(cache, lambda: told.append(None)) is first and not told
    old_shard = next(cache.folder.iterdir())
    grown(cache.folder, 21, 15)
    cache.refresh()
    old_shard.rename(old_shard.with_suffix(".away"))  # nothing of it may be read again
    second = memory.get_codes(cache, lambda: told.append(None))
    old_shard.with_suffix(".away").rename(old_shard)
    assert len(second) == 35 and second.basis is first.basis and told
    assert same(second[:20], first)
    from_scratch = encode_regions(first.basis, cache.regions)
    assert (second.codes.int() - from_scratch.codes.int()).abs().max() <= 1
    assert torch.allclose(second.lengths, from_scratch.lengths, rtol=1e-5)


def test_region_compression_basis_is_learned_again_after_the_images_more_than_double(cache):
    memory = RegionCache()
    first = memory.get_codes(cache)
    grown(cache.folder, 21, 21)
    cache.refresh()
    second = memory.get_codes(cache)
    assert len(second) == 41 and second.basis is not first.basis
    assert same(second, RegionCache().get_codes(cache))


def test_region_compression_basis_is_fixed_and_raw_regions_deleted_from_1000_images_on(tmp_path):
    grown(tmp_path, 1, 1000)
    cache, memory = read_made(tmp_path), RegionCache()
    first = memory.get_codes(cache)
    grown(tmp_path, 1001, 1500)
    cache.refresh()
    second = memory.get_codes(cache)
    assert torch.equal(second.basis.axes, first.basis.axes) and len(second) == 2500
    again = read_made(tmp_path)
    assert not again.list_uncoded_parts(), "settled on the disk"
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 2500 * 9 * DIMENSIONS * 2, (
        "regions are no longer there"
    )
    grown(tmp_path, 1, 1000)  # as if the worker had been killed before it deleted these
    again.refresh()
    left = set(tmp_path.iterdir())
    RegionCache().get_codes(again)
    assert len(left - set(tmp_path.iterdir())) == 1 and len(again) == 2500
    some, rows = np.argsort(cache.image_ids)[::97], np.argsort(again.image_ids)[::97]
    assert same(RegionCache().get_codes(again)[rows], second[some])
    assert np.array_equal(again.features[rows], cache.features[some])


def test_region_cache_learns_a_new_compression_basis_for_another_feature_cache(cache, tmp_path):
    memory = RegionCache()
    first = memory.get_codes(cache)
    grown(tmp_path / "other", 1, 20, seed=1)
    other = read_made(tmp_path / "other")
    second = memory.get_codes(other)
    assert len(second) == 20 and second.basis is not first.basis and not same(first, second)


def test_compressed_regions_are_in_feature_cache_order_instead_of_image_id_order(tmp_path):
    for first in (7, 1, 4):
        grown(tmp_path, first, 3)
    cache = read_made(tmp_path)
    grown(tmp_path, 0, 1)
    cache.refresh()
    assert cache.image_ids[-1] == 0
    parts = RegionCache().get_codes(cache)
    one = encode_regions(parts.basis, cache.regions[np.array([9, 2])])
    assert torch.allclose(parts.lengths[[9, 2]], one.lengths, rtol=1e-5)


@pytest.fixture
def labelled(db):
    """A project with made-up features, in which class k lights channel k of one region; ten images have a click."""
    rng = np.random.default_rng(0)
    regions = np.abs(rng.normal(size=(24, 9, 1280))).astype(np.float16) * 0.3
    for image_id in range(1, 25):
        for class_id in shown(image_id):
            regions[image_id - 1, rng.integers(9), class_id] += 6
    add_features(db, DEFAULT_BACKBONE, np.arange(1, 25), regions.mean(1), regions)
    for image_id in range(1, 13):
        if shown(image_id):
            answer_cell(db, image_id, shown(image_id)[0])
    return db


def read(db):
    return open_features(db, DEFAULT_BACKBONE)


def test_training_publishes_probabilities_and_a_linear_head_that_approximates_them(labelled):
    told, cache = [], read(labelled)
    run = train(labelled, cache, "auto", {}, DEFAULT_BACKBONE, on_step=lambda *one: told.append(one))
    found = read_predictions(labelled)
    assert found.probabilities.shape == (24, 3) and np.isfinite(found.probabilities).all()
    assert (run.method, run.epochs, len(run.loss), run.threshold) == ("auto", 12, 12, 0.3)
    assert ("training", 12, 12) in told and {state for state, *_ in told} == {
        "training",
        "looking at regions of images",
    }
    head = Head.load(labelled.paths.run(run.id) / "head.safetensors", 1280, 3)
    given = head.probabilities(cache.features)
    assert np.corrcoef(given.ravel(), found.probabilities[:].astype(float).ravel())[0, 1] > 0.9
    backbone = load_backbone(DEFAULT_BACKBONE)
    picture = backbone.preprocess(Picture.new("RGB", (300, 300), (20, 200, 90)))
    heats = compute_heat_map(backbone, head.weight, head.bias, picture, [0, 2])
    assert len(heats) == 2 and all(np.isfinite(heat).all() for heat in heats)


def test_class_without_a_positive_has_no_predictions_and_no_heat_map_weights(labelled):
    classes.add_classes(labelled, [("lynx", "")])
    run = train(labelled, read(labelled), "auto", {}, DEFAULT_BACKBONE)
    found = read_predictions(labelled)
    assert np.isnan(found.probabilities[:, 3].astype(float)).all() and np.isfinite(found.probabilities[:, :3]).all()
    assert Head.load(labelled.paths.run(run.id) / "head.safetensors").modeled_classes.tolist() == [True] * 3 + [False]


@pytest.mark.slow
def test_compressed_regions_are_kept_between_trainings_with_different_parameters(labelled):
    memory, cache = RegionCache(), read(labelled)
    answer_cell(labelled, 1, 2, UNSURE)
    first = train(labelled, cache, "auto", {"parts_of_ridge": 0.3}, DEFAULT_BACKBONE, regions=memory)
    kept = memory.get_codes(cache)
    second = train(labelled, cache, "auto", {"parts_of_ridge": 0.0}, DEFAULT_BACKBONE, regions=memory)
    assert memory.get_codes(cache) is kept
    assert (first.parameters["parts_of_ridge"], second.parameters["parts_of_ridge"]) == (0.3, 0.0)
    one, two = (np.load(labelled.paths.run(run.id) / "probabilities.npy") for run in (first, second))
    assert not np.array_equal(one, two)


def test_stop_interrupts_a_training_and_nothing_is_published(labelled):
    class Stopped(Exception):
        pass

    def stop(state, done, of):
        if done == 3:
            raise Stopped

    with pytest.raises(Stopped):
        train(labelled, read(labelled), "auto", {}, DEFAULT_BACKBONE, on_step=stop)
    assert runs.load_current_run(labelled) is None


def test_worker_reuses_compressed_regions_in_its_next_training(labelled):
    worker = Worker(labelled.paths.project)
    try:
        first = worker.train()
        codes = worker.training._regions._codes._codes
        answer_cell(labelled, 14, 2)
        second = worker.train()
        assert (first.method, second.method) == ("auto", "auto") and second.last_decision_id > first.last_decision_id
        assert worker.training._regions._codes._codes is codes
    finally:
        worker.close()


def test_unknown_method_parameter_is_reported_with_a_suggestion(labelled):
    assert train(labelled, read(labelled), "auto", {"sharpnes": 2.0}, DEFAULT_BACKBONE).parameters["sharpness"] != 2.0
    assert "Did you mean 'sharpness'" in collect_status(labelled)["left_out"][0]


@pytest.mark.process
def test_train_and_worker_commands_train_on_image_files_and_a_heat_map_is_drawn(db, project, annotator):
    for image_id in range(1, 13):
        if shown(image_id):
            answer_cell(db, image_id, shown(image_id)[0])
    told = annotator("train", project, "--method", "auto", "--set", "rounds=1").stdout
    assert "Run 1: auto" in told and configuration.get_parameters(db) == {"rounds": 1}
    answer_cell(db, 14, 2)
    assert "Run 2: auto" in annotator("worker", project, "--once").stdout
    found = read_predictions(db)
    assert found.run.id == 2 and np.isfinite(found.probabilities).all()
    Explainer(db, load_backbone(DEFAULT_BACKBONE)).draw(2, 20, [1, 3])
    with Picture.open(db.paths.heatmap(2, 20, 3)) as picture:
        assert max(picture.size) <= 160 and picture.mode == "RGBA"
    status = json.loads(annotator("status", project, "--json").stdout)
    assert (status["method"], status["run"]["method"], status["last_error"]) == ("auto", "auto", None)


def test_export_reports_predictions_as_calibrated_after_a_training_with_enough_answers(db):
    regions = drawn(1, 24)
    add_features(db, configuration.get_backbone(db), np.arange(1, 25), regions.mean(1), regions)
    found = open_features(db, configuration.get_backbone(db))
    answers = [(image_id, class_id) for image_id in range(1, 19) for class_id in (1, 2, 3)]
    say(db, answers[:12], "grid")
    run = train(db, found, "auto", {}, configuration.get_backbone(db))
    assert run.calibration is None and not filled(db).calibrated, "too few answers"
    say(db, answers[12:], "grid")
    run = train(db, found, "auto", {}, configuration.get_backbone(db))
    assert run.calibration["kind"] == "stacked" and filled(db).calibrated
    before = read_predictions(db).probabilities
    logged = calibrate.load_logged_answers(db, "auto", configuration.get_backbone(db), run.class_ids)
    assert not logged.left_out and np.isfinite(before).any()
    assert train(db, found, "auto", {}, configuration.get_backbone(db)).calibration == run.calibration
