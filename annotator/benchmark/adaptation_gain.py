"""Measurement of adapting a network: test mAP of a linear head on frozen features, against the adapted network.

A share of all cells of the training images is answered, drawn at random, present or absent. Rows of the table, all told
the same answers:

    frozen head      a linear head on the features of the pretrained network
    adapted          the adapted network with its own classifier
    head on adapted  a linear head on the features of the adapted network, which is what a project trains on afterwards

and the same told all cells. Test images take no part in any decision, but for the intervals: a paired bootstrap over
them.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from annotator.benchmark.datasets.folder import read_image_folder
from annotator.benchmark.harness.scratch import scratch_folder
from annotator.errors import AnnotatorError
from annotator.store.pictures.bands import NO_BAND_CHOICES
from annotator.worker.features.map_cache import MapFiles, StoredMaps
from models.backbones.frozen_backbone import DEFAULT_BACKBONE, Backbone
from models.backbones.pretrained import load_pretrained
from models.finetune.adapt import (
    DEFAULT_EPOCHS,
    WEAK_VIEWS,
    adapt_last_stages,
    compute_stage_features,
    make_adaptation_recipe,
)
from models.finetune.last_stages import StageInputs, split_network
from models.finetune.linear_probe import score_with_probe
from models.finetune.views import MapExamples
from models.methods import make_method
from models.statistics.metrics import mean_average_precision
from models.statistics.paired_bootstrap import compare_scorings


def measure(
    images: Path,
    truth: Path,
    *,
    share: float = 0.3,
    epochs: int = DEFAULT_EPOCHS,
    seeds: range = range(1),
    backbone: str = DEFAULT_BACKBONE,
    device: str = "cpu",
    bound: bool = True,
) -> dict[str, Any]:
    """Adapt a network to answers, and compare it with frozen features on the test images.

    Args:
        images: The folder of the images.
        truth: A CSV with every label of every image.
        share: The share of the training cells that is answered.
        epochs: The epochs of each adaptation.
        seeds: One comparison is made with each seed; figures are means over them.
        backbone: The name of the network.
        device: The device that computes, such as "cpu".
        bound: Whether the methods are also told all cells.

    Returns:
        {"bench", "figures": {name: mean over the seeds}}; shares in [0, 1], and minutes.

    Raises:
        AnnotatorError: Images or truth do not fit.
        ValueError: The network cannot be adapted.
    """
    data = read_image_folder(images, truth)
    train_paths = [*data.train.paths, *data.val.paths]
    shown = np.concatenate([data.train.truth, data.val.truth])
    figures: dict[str, list[float]] = {}
    with scratch_folder() as scratch:
        source = load_pretrained(backbone)
        inputs, _, _ = split_network(Backbone(backbone, source, device), source)
        began = time.perf_counter()
        train = _cache_maps(scratch / "train", inputs, train_paths, views=True, device=device)
        test = _cache_maps(scratch / "test", inputs, list(data.test.paths), views=False, device=device)
        figures["inputs minutes"] = [(time.perf_counter() - began) / 60]
        for seed in seeds:
            answered = np.random.default_rng(seed).random(shown.shape) < share
            told = np.where(shown, 1, -1).astype(np.int8)
            results = _compare_networks(
                inputs, backbone, train, test, np.where(answered, told, 0), data.test.truth, epochs, seed, ""
            )
            if bound:
                results |= _compare_networks(
                    inputs, backbone, train, test, told, data.test.truth, epochs, seed, ", all cells told"
                )
            for name, value in results.items():
                figures.setdefault(name, []).append(value)
    facts = {"training images": len(train_paths), "test images": len(data.test), "classes": len(data.classes)}
    facts |= {"answered": share, "epochs": epochs, "seeds": len(seeds)}
    means = {name: float(np.mean(values)) for name, values in figures.items()}
    return {"bench": "adapting", "backbone": backbone, "figures": facts | means, "ratios": {}}


def _cache_maps(folder: Path, inputs: StageInputs, paths: list[Path], *, views: bool, device: str) -> MapExamples:
    files = MapFiles(folder, inputs, strong=0, bands=NO_BAND_CHOICES)
    items = list(enumerate(paths))
    for _, failures in files.make_maps(items, views):
        for key, reason in failures.items():
            raise AnnotatorError(f"{paths[key]} cannot be read: {reason}")
    return MapExamples(StoredMaps(files, range(len(paths))), weak=WEAK_VIEWS, device=device)


def _compare_networks(
    inputs: StageInputs, name: str, train: MapExamples, test: MapExamples, labels: np.ndarray, truth: np.ndarray,
    epochs: int, seed: int, suffix: str,
) -> dict[str, float]:  # fmt: skip
    source = load_pretrained(name)
    _, last_stages, _ = split_network(Backbone(name, source, str(inputs.backbone.device)), source)
    unbiased, mask, method = labels != 0, np.ones(labels.shape, bool), make_method("auto")

    def score_head() -> np.ndarray:
        features, of_test = (compute_stage_features(last_stages, examples, lambda: False) for examples in (train, test))
        return score_with_probe(features, labels, mask, unbiased, of_test)

    scores = {"frozen head": score_head()}
    began = time.perf_counter()
    training = adapt_last_stages(
        last_stages, train, labels, mask, unbiased, method, make_adaptation_recipe(epochs), seed=seed
    )
    for _ in training:
        pass
    minutes = (time.perf_counter() - began) / 60
    scores["adapted"] = training.predict(test)
    scores["head on adapted"] = score_head()
    results = {f"{name} test mAP{suffix}": mean_average_precision(score, truth) for name, score in scores.items()}
    known = np.where(truth, 1, -1)
    for better in ("adapted", "head on adapted"):
        compared = compare_scorings(scores["frozen head"], scores[better], known)
        results |= {
            f"{better} over frozen head{suffix}": compared.ap.value,
            f"{better} over frozen head, low{suffix}": compared.ap.low,
            f"{better} over frozen head, high{suffix}": compared.ap.high,
            f"log loss of {better}{suffix}": compared.log_loss.second,
        }
        results[f"log loss of frozen head{suffix}"] = compared.log_loss.first
    return results | {f"training minutes{suffix}": minutes}
