"""Measurement of how often the hottest spot of a class's heat map lies in a box of the class.

The pointing game of Zhang et al., "Top-down Neural Attention by Excitation Backprop", ECCV 2016,
https://arxiv.org/abs/1608.00507, without its margin of 15 pixels. Some images get one of their true labels each,
drawn at random. The default method is trained on them, and heat maps are drawn as the worker draws them, for present
classes that were not clicked: those that a page would show. The floors are the centre of the image and a random point,
which hits as often as the boxes are large.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from annotator.benchmark.boxes import Box, read_boxes
from annotator.benchmark.scratch import print_progress
from annotator.benchmark.truth import read_truth
from annotator.errors import AnnotatorError
from annotator.records import PRESENT
from annotator.settings import DEFAULT_BACKBONE, MIN_HEATMAP_POSITIVES, SAMPLE_DATA_FOLDER
from annotator.store.pictures.bands import NO_BAND_CHOICES
from annotator.store.pictures.decoding import check_image, open_rgb
from annotator.store.pictures.files import list_files, unescape_path
from annotator.store.pictures.picture_kinds import IMAGE_SUFFIXES
from annotator.worker.features.embed import embed_images
from spmll.backbones.cam import compute_heat_map
from spmll.backbones.frozen_backbone import Backbone, load_backbone
from spmll.backbones.occlusion import compute_logit_gains, find_confused_class
from spmll.ensemble.regions import RegionCodes, encode_regions, learn_region_basis
from spmll.labels import UNSEEN
from spmll.methods import make_method
from spmll.trainers import make_trainer
from spmll.trainers.base import MapSource, Progress, TrainingLabels

LABEL_COUNTS = (20, 40, 80, 160)
POSITIVE_BINS = (1, 5, 10, MIN_HEATMAP_POSITIVES)  # positives that the training has seen of a class, from so many on


@dataclass(frozen=True)
class EmbeddedImages:
    """The images as trainers read them (spmll/trainers/base.py), with their names, and those of the C classes.

    Attributes:
        features: (N, D) float16.
        codes: The codes of their regions.
    """

    features: np.ndarray
    codes: RegionCodes
    names: list[str]
    classes: list[str]

    @property
    def memory(self) -> dict[str, Any]:
        """An empty dict, because a result must not depend on earlier trainings."""
        return {}

    def region_codes(self, progress: Progress) -> RegionCodes:
        """Return the codes of the regions of all images."""
        return self.codes

    def maps(self) -> MapSource:
        """Raise ValueError: there are no feature maps here."""
        raise ValueError("There are no feature maps here.")

    def name_scores(self) -> np.ndarray:
        """Raise ValueError: there are no scores of names here."""
        raise ValueError("There are no scores of names here.")


@dataclass(frozen=True)
class PointingResult:
    """The result for one heat map.

    Attributes:
        positives: The number of positives of its class that the training had seen.
        hit: Whether its hottest spot lies in a box of its class.
        centre: Whether the centre of the image does.
        area: The share of the image that the boxes of its class cover.
        on_another: Whether it misses, and lies in a box of another class.
        warned: Whether it is marked as possibly showing another class (backbones/occlusion.py).
    """

    positives: int
    hit: bool
    centre: bool
    area: float
    on_another: bool
    warned: bool


def measure(
    images: Path | None = None,
    truth: Path | None = None,
    boxes: Path | None = None,
    *,
    labels: Sequence[int] = LABEL_COUNTS,
    backbone: str = DEFAULT_BACKBONE,
    seed: int = 0,
) -> dict:
    """Measure how often the hottest spot of a heat map lies in a box of its class, by the number of labels.

    Args:
        images: A folder of images, searched recursively; None: the sample data.
        truth: A CSV `image,labels` (or `image,class,state`) with every label of every image; None: the sample data's.
        boxes: A CSV `image,class,left,top,right,bottom` in pixels of the upright image; None: the sample data's.
        labels: Numbers of images that get one click each; larger numbers than there are images mean all images.
        backbone: The name of the network.
        seed: Decides all that is random.

    Returns:
        {"bench", "figures", "ratios"}: `labels_<n>_hits` and `_maps`; `positives_<from>_hits` and `_maps` over all
        numbers of labels; `centre_share` and `random_share`, the floors, in [0, 1]; of the maps that hit, and of those
        that miss in a box of another class, how many are said to show another one: `hit_warned` of `hit_maps`,
        `on_another_warned` of `on_another_maps`.

    Raises:
        AnnotatorError: Only some of the files are given or when they do not fit together.
    """
    given = (images, truth, boxes)
    if any(given) and not all(given):
        raise AnnotatorError("Images, their truth and their boxes belong together: give all three, or none.")
    folder = images or SAMPLE_DATA_FOLDER / "images"
    embedded_images, shown = embed_folder(folder, truth or SAMPLE_DATA_FOLDER / "truth.csv", backbone)
    placed = read_boxes(boxes or SAMPLE_DATA_FOLDER / "boxes.csv", embedded_images.names, embedded_images.classes)
    network = load_backbone(backbone)
    figures: dict[str, float] = {}
    maps: list[PointingResult] = []
    for count in labels:
        chance = np.random.default_rng(seed)
        clicked = draw_clicks(shown, min(count, int(shown.any(1).sum())), chance)
        pointed = list(_point_heatmaps(folder, embedded_images, clicked, placed, network, seed))
        hits = sum(map_.hit for map_ in pointed)
        print_progress(f"{count} labels: {hits} of {len(pointed)} heat maps point at their class")
        figures |= {f"labels_{count}_hits": hits, f"labels_{count}_maps": len(pointed)}
        maps += pointed
    if not maps:
        raise AnnotatorError("No class with a box is left to point at: all were clicked, or none was learned.")
    for low, high in zip(POSITIVE_BINS, (*POSITIVE_BINS[1:], 1 << 60), strict=True):
        binned = [map_ for map_ in maps if low <= map_.positives < high]
        figures |= {f"positives_{low}_hits": sum(map_.hit for map_ in binned), f"positives_{low}_maps": len(binned)}
    for kind in ("hit", "on_another"):
        of_kind = [map_ for map_ in maps if getattr(map_, kind)]
        figures |= {f"{kind}_warned": sum(map_.warned for map_ in of_kind), f"{kind}_maps": len(of_kind)}
    share = sum(map_.hit for map_ in maps) / len(maps)
    centre, area = (float(np.mean([getattr(map_, name) for map_ in maps])) for name in ("centre", "area"))
    figures |= {"hit_share": share, "centre_share": centre, "random_share": area}
    return {
        "bench": "heatmaps",
        "figures": {name: round(value, 4) for name, value in figures.items()},
        "ratios": {f"heatmaps_over_{name}": round(share / max(floor, 1e-9), 3) for name, floor in
                   (("centre", centre), ("random", area))},
    }  # fmt: skip


def embed_folder(folder: Path, truth: Path, backbone: str) -> tuple[EmbeddedImages, np.ndarray]:
    """Embed the readable images of a folder as the worker does; return them, and their truth (N, C) bool.

    Raises:
        AnnotatorError: The folder has no images, or the truth no label `present`.
    """
    names = list_files(folder, leave_out=truth).list_images()
    if not names:
        raise AnnotatorError(f"There are no images in {folder}. Read are {', '.join(sorted(IMAGE_SUFFIXES))}.")
    given = [label for label in read_truth(truth, names) if label.state == PRESENT]
    listed = {label.image for label in given}
    columns = {name: column for column, name in enumerate(sorted({label.class_name for label in given}))}
    if not columns:
        raise AnnotatorError(f"{truth} has no label 'present': there is nothing to find.")
    bare = len(names) - len(listed)
    print_progress(f"embedding {len(names):,} images ({bare:,} of them without a label), {len(columns)} classes")
    parts = list(
        embed_images(
            [folder / unescape_path(name) for name in names],
            load_backbone(backbone),
            regions=True,
            bands=NO_BAND_CHOICES,
        )
    )
    readable = [names[place] for part in parts for place in part.indices]
    rows = {name: row for row, name in enumerate(readable)}
    shown = np.zeros((len(readable), len(columns)), bool)
    for label in given:
        if label.image in rows:
            shown[rows[label.image], columns[label.class_name]] = True
    features = np.concatenate([part.features for part in parts]).astype(np.float16)
    # embed() was asked for regions: no part is without them.
    regions = np.concatenate([part.regions for part in parts if part.regions is not None])
    return EmbeddedImages(
        features, encode_regions(learn_region_basis(features, regions), regions), readable, list(columns)
    ), shown


def draw_clicks(shown: np.ndarray, count: int, chance: np.random.Generator) -> np.ndarray:
    """Draw one true label for each of `count` images that show anything; return (N, C) int8, all other cells unseen."""
    labels = np.zeros(shown.shape, np.int8)
    for row in chance.choice(np.flatnonzero(shown.any(1)), count, replace=False):
        labels[row, chance.choice(np.flatnonzero(shown[row]))] = PRESENT
    return labels


def _point_heatmaps(
    folder: Path,
    images: EmbeddedImages,
    clicked: np.ndarray,
    boxes_by_cell: dict[tuple[int, int], list[Box]],
    network: Backbone,
    seed: int,
) -> Iterator[PointingResult]:
    """Yield a Pointed for each cell that has a box, was not clicked, and whose class the training knows."""
    positives = (clicked == PRESENT).sum(0)
    labeled = np.flatnonzero(clicked.any(1))
    trainer = make_trainer(make_method(), images, TrainingLabels(labeled, clicked[labeled]), seed=seed)
    for _ in trainer.epochs():
        pass
    head = trainer.build_outcome().head
    wanted: dict[int, list[int]] = defaultdict(list)
    for row, column in sorted(boxes_by_cell):
        if clicked[row, column] == UNSEEN and positives[column]:
            wanted[row].append(column)
    side = network.input_size
    for row, columns in wanted.items():
        path = folder / images.names[row]
        facts = check_image(path)
        image = network.preprocess(open_rgb(path, at_least=(side, side)))
        others = [column for column in range(len(images.classes)) if (row, column) in boxes_by_cell]
        heats = compute_heat_map(network, head.weight, head.bias, image, columns)
        gained = compute_logit_gains(network, head.weight, head.bias, image, heats)
        for column, heat, gain in zip(columns, heats, gained, strict=True):
            down, across = np.unravel_index(int(heat.argmax()), heat.shape)
            spot = ((across + 0.5) / heat.shape[1] * facts.width, (down + 0.5) / heat.shape[0] * facts.height)
            boxes = boxes_by_cell[row, column]
            hit = bool(heat.any()) and _is_inside(spot, boxes)
            yield PointingResult(
                int(positives[column]),
                hit,
                _is_inside((facts.width / 2, facts.height / 2), boxes),
                _compute_area_share(boxes, facts.width, facts.height),
                not hit and any(_is_inside(spot, boxes_by_cell[row, other]) for other in others if other != column),
                find_confused_class(gain, column, others) is not None,
            )


def _is_inside(spot: tuple[float, float], boxes: list[Box]) -> bool:
    return any(left <= spot[0] < right and top <= spot[1] < bottom for left, top, right, bottom in boxes)


def _compute_area_share(boxes: list[Box], width: int, height: int) -> float:
    """Return the share of the image that the union of its boxes covers."""
    covered = np.zeros((height, width), bool)
    for left, top, right, bottom in boxes:
        covered[max(0, round(top)) : max(0, round(bottom)), max(0, round(left)) : max(0, round(right))] = True
    return float(covered.mean())
