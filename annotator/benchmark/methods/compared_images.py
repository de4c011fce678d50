"""The images of a comparison as inputs of trainers, computed once for all trainings."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from annotator.benchmark.datasets import DataSet
from annotator.benchmark.methods import data
from annotator.benchmark.methods.comparison_options import Options
from annotator.benchmark.methods.finished_results import Work
from annotator.benchmark.scratch import print_progress
from annotator.errors import combine_problems
from annotator.store.pictures.bands import NO_BAND_CHOICES
from annotator.worker.features.map_cache import WEAK_VIEW_COUNT, MapFiles, StoredMaps
from spmll.backbones.feature_maps import FeatureMaps
from spmll.backbones.frozen_backbone import load_backbone
from spmll.backbones.pretrained import load_pretrained
from spmll.backbones.text_image import TextImageNetwork
from spmll.ensemble.regions import RegionCodes, encode_regions, learn_region_basis
from spmll.trainers.base import Progress
from spmll.zero_shot.first_guess import guess_probabilities
from spmll.zero_shot.patch_scores import average_class_vectors
from spmll.zero_shot.prompts import build_prompts, list_names


class ComparedImages:
    """The embeddings of all training, validation and test images (in this order) by a frozen backbone."""

    def __init__(self, dataset: DataSet, options: Options):
        """Compute missing embeddings.

        Raises ValueError for an unknown backbone, AnnotatorError for an unreadable image.
        """
        self._options, self._paths = options, data.join_parts(dataset).paths
        self._work = Work(options.work, {"data": data.compute_fingerprint(dataset), "backbone": options.backbone})
        both = self._work.get_array("features", lambda: data.embed_dataset(dataset, options.network, options.device))
        self.features, self._regions = np.ascontiguousarray(both[:, 0]), both[:, 1:]
        self._train, self._classes = len(dataset.train), dataset.classes

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for other machines, without files and feature maps."""
        if self._options.reads_regions:
            _ = self._region_codes  # made once, here
        if self._options.reads_names:
            _ = self._name_scores
        return {name: value for name, value in vars(self).items() if name not in ("_regions", "_maps")}

    @property
    def memory(self) -> dict[str, Any]:
        """Return an empty dict, because results must not depend on earlier trainings."""
        return {}

    def region_codes(self, progress: Progress) -> RegionCodes:
        """Return the region codes of all images, on a basis fitted to training images alone."""
        return self._region_codes

    def maps(self) -> "ComparedMaps":
        return self._maps

    def name_scores(self) -> np.ndarray:
        """Return the similarity of each training image to the class names, (N, C) float32, nan for other images."""
        return self._name_scores

    @cached_property
    def _name_scores(self) -> np.ndarray:
        print_progress("comparing images with the names of classes")
        name, device = self._options.network, self._options.device
        network = TextImageNetwork(load_backbone(name, device), load_pretrained(name))
        of_classes = [build_prompts(list_names(class_)) for class_ in self._classes]
        of_texts = network.encode_texts([text for of_class in of_classes for text in of_class])
        vectors = average_class_vectors(of_texts, [len(of_class) for of_class in of_classes])
        of_images = network.project_features(torch.from_numpy(self.features[: self._train]).float()) @ vectors.T
        scores = np.full((len(self.features), len(vectors)), np.nan, np.float32)
        scores[: self._train] = guess_probabilities(of_images.numpy())
        return scores

    @cached_property
    def _region_codes(self) -> RegionCodes:
        print_progress("looking at regions of images")
        return encode_regions(
            learn_region_basis(self.features[: self._train], self._regions[: self._train]), self._regions
        )

    @cached_property
    def _maps(self) -> "ComparedMaps":
        network = FeatureMaps(load_backbone(self._options.network, self._options.device))
        return ComparedMaps(MapFiles(self._work.get_path("maps"), network, bands=NO_BAND_CHOICES), self._paths)


class ComparedMaps:
    """A reader of feature maps: of all augmented views for training images, without augmentation for others."""

    def __init__(self, files: MapFiles, paths: Sequence[Path]):
        self._files, self._paths = files, paths
        self.channels, self.weak, self.device = files.network.shape[0], WEAK_VIEW_COUNT, files.network.backbone.device

    def views(self, rows: np.ndarray, progress: Progress) -> tuple[np.ndarray, Sequence[np.ndarray]]:
        """Return the feature maps of all views of `rows`, computing missing ones. May raise AnnotatorError."""
        self._make_missing(rows, True)
        return np.ones(len(rows), bool), StoredMaps(self._files, rows.tolist())

    def plain(self, rows: np.ndarray, progress: Progress) -> Iterator[tuple[np.ndarray, Sequence[np.ndarray]]]:
        """Yield the unaugmented feature maps of all `rows`, in one part that is read when used.

        Raises AnnotatorError that names unreadable images.
        """
        self._make_missing(np.arange(len(self._paths)), False)
        yield np.arange(len(rows)), StoredMaps(self._files, rows.tolist())

    def _make_missing(self, rows: np.ndarray, views: bool) -> None:
        items = [(row, self._paths[row]) for row in rows.tolist() if not self._files.has_maps(row, views)]
        if not items:
            return
        print_progress(f"making feature maps of {len(items):,} images" + (", several views of each" if views else ""))
        failures: dict = {}
        for _, failed in self._files.make_maps(items, views):
            failures |= failed
        if failures:
            problems = [f"{self._paths[row]}: {why}" for row, why in failures.items()]
            raise combine_problems("Images that cannot be read:", problems, 10)
