"""Hidden AP of `auto` on each variant's features, and its embedding seconds beside those of the default.

All images of a collection are training images, as in a project; a share of them has one label, drawn at random, and
what is found of the rest is counted. Two made-up collections with small objects are measured beside those given.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from annotator.benchmark.datasets import DataSet
from annotator.benchmark.datasets.clicks import draw_clicks
from annotator.benchmark.harness.child_processes import print_progress
from annotator.benchmark.harness.projects import SAMPLE_FOLDER
from annotator.benchmark.harness.scratch import scratch_folder
from annotator.benchmark.methods import data
from annotator.benchmark.methods.task import make_task
from annotator.benchmark.variants.passes import Pass, compute_vectors, time_passes
from annotator.benchmark.variants.small_objects import SMALL_OBJECT_COLLECTIONS, draw_collection
from annotator.benchmark.variants.variants import DEFAULT_VARIANT, VARIANTS, Variant
from annotator.errors import AnnotatorError
from spmll.ensemble.regions import RegionCodes, encode_regions, learn_region_basis
from spmll.methods import make_method
from spmll.statistics.metrics import hidden_average_precision
from spmll.trainers import make_trainer
from spmll.trainers.base import Progress

LABELED_SHARES = (0.2, 1.0)  # of the images that have a label
TIMING_ROUNDS = 5  # of timing


def measure(
    collections: Sequence[Path] = (),
    *,
    most: int = 1500,
    drawn: int = 600,
    seeds: int = 2,
    work: Path | None = None,
    variants: Sequence[Variant] = VARIANTS,
) -> dict[str, Any]:
    """Compare the variants on these collections, the sample data and two made-up ones.

    Args:
        collections: Folders that hold `images` and `truth.csv`.
        most: The largest number of images of each collection that take part, chosen by a hash of their names.
        drawn: The number of images of a made-up collection.
        seeds: The number of seeds; figures are means over them.
        work: A folder that keeps vectors for the next call; None: none is kept.
        variants: The variants to compare.

    Returns:
        {"bench", "setting", "rows": [{"variant", "times", each collection's and the mean hidden AP}]}; times: embedding
        seconds over those of the default, forward passes only.

    Raises:
        AnnotatorError: A folder is no such collection.
    """
    places = {path.name: path for path in collections} | {"sample_data": SAMPLE_FOLDER}
    with scratch_folder() as scratch:
        for name in SMALL_OBJECT_COLLECTIONS:
            draw_collection(scratch / name, name, drawn)
            places[name] = scratch / name
        sets = {name: _choose_images(path, most) for name, path in places.items()}
        kept = work or scratch / "vectors"
        kept.mkdir(parents=True, exist_ok=True)
        aps: dict[str, dict[str, float]] = {variant.name: {} for variant in variants}
        for name, dataset in sets.items():
            for variant in variants:
                parts = [_load_vectors(kept, way, name, dataset) for way in variant.passes]
                found = _measure_hidden_ap(CollectionImages(variant.combine(parts)), dataset, seeds)
                aps[variant.name][name] = found
                print_progress(f"{name}, {variant.name}: hidden AP {100 * found:.1f}")
    ways = sorted({way for variant in (DEFAULT_VARIANT, *variants) for way in variant.timed_passes}, key=repr)
    seconds = time_passes(ways, TIMING_ROUNDS)
    rows = [_build_row(variant, aps[variant.name], seconds) for variant in variants]
    setting = {"images": {name: len(dataset.train) for name, dataset in sets.items()}, "shares": list(LABELED_SHARES)}
    return {"bench": "variants", "setting": setting | {"seeds": seeds}, "rows": rows}


def build_table(result: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of a table; hidden AP in percent."""
    names = [*result["setting"]["images"], "mean"]
    rows = [[row["variant"], f"{row['times']:.2f}", *(f"{100 * row[name]:.1f}" for name in names)]
            for row in result["rows"]]  # fmt: skip
    return ["variant", "times", *names], rows


class CollectionImages:
    """The images of a collection as their vectors (spmll.trainers.base.Images)."""

    def __init__(self, vectors: np.ndarray):
        self.features, self._regions = np.ascontiguousarray(vectors[:, 0]), vectors[:, 1:]
        self._codes: RegionCodes | None = None

    @property
    def memory(self) -> dict[str, Any]:
        """An empty dict, because a result must not depend on earlier trainings."""
        return {}

    def region_codes(self, progress: Progress) -> RegionCodes:
        """Return the codes of the regions, made when they are first asked for."""
        if self._codes is None:
            self._codes = encode_regions(learn_region_basis(self.features, self._regions), self._regions)
        return self._codes

    def maps(self) -> Any:
        """Raise ValueError: vectors have no maps."""
        raise ValueError("Vectors have no maps.")

    def name_scores(self) -> np.ndarray:
        """Raise ValueError: vectors have no scores of names."""
        raise ValueError("Vectors have no scores of names.")


def _measure_hidden_ap(images: CollectionImages, dataset: DataSet, seeds: int) -> float:
    """Return the mean hidden AP over shares and seeds, in [0, 1]."""
    found: list[float] = []
    for share in LABELED_SHARES:
        for seed in range(seeds):
            task = make_task(dataset, share, seed)
            trainer = make_trainer(make_method("auto"), images, task.make_training_labels(False), seed=seed)
            for _ in trainer.epochs():
                pass
            probabilities = trainer.build_outcome().probabilities[task.train]
            found.append(hidden_average_precision(probabilities, task.labels, task.truth[task.train]).cells)
    return float(np.mean(found))


def _build_row(variant: Variant, aps: dict[str, float], seconds: dict[Pass, float]) -> dict[str, Any]:
    ours, default = (sum(seconds[way] for way in of.timed_passes) for of in (variant, DEFAULT_VARIANT))
    return {"variant": variant.name, "times": ours / default, **aps, "mean": float(np.mean(list(aps.values())))}


def _choose_images(folder: Path, most: int) -> DataSet:
    """Return at most `most` images of a folder, chosen by a hash of their names, all as training images."""
    whole = data.read_dataset(folder / "images", folder / "truth.csv", None, None, split=False)
    digests = [hashlib.sha256(path.name.encode()).digest() for path in whole.train.paths]
    order = sorted(range(len(digests)), key=lambda row: digests[row])
    train = whole.train.rows(np.sort(np.array(order[:most], np.int64)))
    if not train.truth.any():
        raise AnnotatorError(f"The {len(train)} images that take part show nothing.")
    return replace(whole, train=train, observed=draw_clicks(train.truth, 1.0, 0))


def _load_vectors(folder: Path, way: Pass, name: str, dataset: DataSet) -> np.ndarray:
    """Return the vectors of a pass, read from the folder or computed and saved there."""
    names = "\n".join(path.name for path in dataset.train.paths)
    path = folder / f"{name}-{hashlib.sha256(f'{way!r} {names}'.encode()).hexdigest()[:12]}.npy"
    if not path.exists():
        print_progress(f"{name}: {way.network} at {way.size}{', mirrored' if way.is_mirrored else ''}")
        part = path.with_suffix(".part.npy")
        np.save(part, compute_vectors(way, dataset.train.paths), allow_pickle=False)
        part.replace(path)
    return np.load(path, allow_pickle=False)
