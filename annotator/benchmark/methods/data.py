"""The images of a comparison: loading, fingerprint and embeddings."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from annotator.benchmark import datasets
from annotator.benchmark.boxes import read_boxes
from annotator.benchmark.datasets import DataSet, Part
from annotator.benchmark.datasets.clicks import draw_clicks
from annotator.benchmark.scratch import print_progress
from annotator.errors import AnnotatorError, combine_problems
from annotator.settings import SAMPLE_DATA_FOLDER
from annotator.store.pictures.bands import NO_BAND_CHOICES
from annotator.store.pictures.files import escape_path
from annotator.worker.features.embed import EmbeddedBatch, embed_images
from spmll.backbones.frozen_backbone import load_backbone

PART_NAMES = ("train", "val", "test")


def read_dataset(
    images: Path | None,
    truth: Path | None,
    name: str | None,
    root: Path | None,
    *,
    boxes: Path | None = None,
    split: bool = True,
) -> DataSet:
    """Read the chosen data set: a folder with truth, a published set, or the sample data.

    Args:
        name: Published set, None to recognize it.

    Raises:
        AnnotatorError: For conflicting options, an unreadable set, or a part without classes.
    """
    own, paper = (images, truth), (name, root)
    if any(own) and any(paper):
        raise AnnotatorError("Give either --images and --truth, or --dataset and --root: one set at a time.")
    if any(own) and not all(own):
        raise AnnotatorError("Images and their truth belong together: give both --images and --truth, or neither.")
    if boxes and not images:
        raise AnnotatorError("--boxes are those of a folder of images: give --images and --truth as well.")
    if name and root is None:
        raise AnnotatorError(f"--dataset {name} needs --root: the folder that holds the set.")
    if root is not None:
        dataset = datasets.load_dataset(name, root)
    else:
        dataset = datasets.load_dataset(
            "folder", images or SAMPLE_DATA_FOLDER / "images", truth or SAMPLE_DATA_FOLDER / "truth.csv"
        )
    for note in dataset.notes:
        print_progress(f"note: {note}")
    empty = [name for name in PART_NAMES if not getattr(dataset, name).truth.any()]
    if empty and split:
        raise AnnotatorError(f"No image shows anything in: {', '.join(empty)}. Nothing can be compared on this set.")
    dataset = dataset if split else merge_parts(dataset)
    if root is None and (boxes or not images):
        dataset = add_areas(dataset, images or SAMPLE_DATA_FOLDER / "images", boxes or SAMPLE_DATA_FOLDER / "boxes.csv")
    return dataset


def add_areas(dataset: DataSet, folder: Path, boxes: Path) -> DataSet:
    """Return the set with the object area per training image and class: the sum of its boxes, in pixels.

    A label without a box gets the median of its class, or else of all. Raises AnnotatorError if boxes do not match.
    """
    names = [escape_path(path.relative_to(folder).as_posix()) for path in join_parts(dataset).paths]
    areas = np.zeros((len(names), len(dataset.classes)))
    for cell, placed in read_boxes(boxes, names, dataset.classes).items():
        areas[cell] = sum((right - left) * (bottom - top) for left, top, right, bottom in placed)
    if not areas.any():
        raise AnnotatorError(f"{boxes} has no box: nothing says how large things are.")
    areas, shown = areas[: len(dataset.train)], dataset.train.truth  # training images come first
    bare = shown & (areas == 0)
    usual = [float(np.median(column[column > 0])) if column.any() else np.nan for column in areas.T]
    areas = np.where(bare, np.nan_to_num(usual, nan=float(np.median(areas[areas > 0]))), areas)
    left = int(bare.sum())
    notes = [f"{left:,} of {int(shown.sum()):,} labels of training images have no box: they count as of usual size"]
    return replace(dataset, areas=areas, notes=dataset.notes + (tuple(notes) if left else ()))


def merge_parts(dataset: DataSet) -> DataSet:
    """Return a folder's set with all images for training, as in a project. Rejects published sets (AnnotatorError)."""
    if dataset.official_rows is not None:
        raise AnnotatorError(f"{dataset.name} comes with its split; --no-split is for a folder of images.")
    whole = join_parts(dataset)
    none = whole.rows(np.zeros(0, np.int64))
    return replace(dataset, train=whole, val=none, test=none, observed=draw_clicks(whole.truth, 1.0, 0))


def join_parts(dataset: DataSet) -> Part:
    """Return the images of all parts in the order training, validation, test."""
    parts = [getattr(dataset, name) for name in PART_NAMES]
    return Part(tuple(path for part in parts for path in part.paths), np.concatenate([part.truth for part in parts]))


def compute_fingerprint(dataset: DataSet) -> str:
    """Return a short hash of the data set's files with their dates, its labels and its parts."""
    digest = hashlib.sha256()
    for name in PART_NAMES:
        part = getattr(dataset, name)
        digest.update(f"{name} {part.truth.shape}".encode() + np.packbits(part.truth).tobytes())
        for path in part.paths:
            facts = path.stat()
            digest.update(f"{path} {facts.st_size} {facts.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]


def embed_dataset(dataset: DataSet, backbone: str, device: str) -> np.ndarray:
    """Return the embeddings that a worker would store, (N, 1 + R, D) float16: of whole images, then of R regions.

    Raises AnnotatorError that names failed images, and ValueError from `load_backbone`.
    """
    paths = join_parts(dataset).paths
    print_progress(f"embedding {len(paths):,} images with {backbone}")
    batches = list(embed_images(paths, load_backbone(backbone, device), regions=True, bands=NO_BAND_CHOICES))
    failures = [f"{paths[place]}: {reason}" for batch in batches for place, reason in batch.failures]
    if failures:
        raise combine_problems(
            f"{len(failures)} of {len(paths):,} images cannot be read. Repair them, or take them away:",
            failures,
            max_listed=10,
        )
    features = np.concatenate([_join_vectors(batch) for batch in batches])
    strange = np.flatnonzero(~np.isfinite(features).all((1, 2)))
    if len(strange):
        raise combine_problems(
            f"{backbone} makes numbers that are not finite of {len(strange)} of {len(paths):,} images:",
            [str(paths[row]) for row in strange],
            max_listed=10,
        )
    return features


def _join_vectors(batch: EmbeddedBatch) -> np.ndarray:
    assert batch.regions is not None, "embed() was asked for regions"
    return np.concatenate([batch.features[:, None].astype(np.float16), batch.regions], axis=1)
