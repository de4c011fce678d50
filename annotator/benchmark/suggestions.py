"""One click an image on a share of the images: how well each method finds the labels that nobody gave.

The images are embedded once, by the worker's own code. Then, for each method and each seed, a share of the images get
one of their true labels, drawn at random, as a person who takes the first thing they see would give it; the method is
trained as the worker trains it, on those images only, and ranks all cells that nobody has answered, in all images.
Chance is what a random order of these cells would score. `annotator bench methods` compares more: all methods, on
validation and test images, tuned.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotator.benchmark.harness.processes import say
from annotator.errors import AnnotatorError, did_you_mean, several
from annotator.exchange.formats.label_csv import read_labels
from annotator.records import PRESENT
from annotator.settings import DEFAULT_BACKBONE
from annotator.store.files import list_files, unescaped
from annotator.store.pixels import IMAGE_SUFFIXES
from annotator.worker.embed import embed
from models.backbones.networks import load_backbone
from models.ensemble.fit_ensemble import Ensemble, fit_ensemble
from models.ensemble.regions import RegionCodes, encode, learn_basis
from models.labels import UNSEEN
from models.linear.training import Head, fit
from models.methods import DEFAULT_METHOD, METHODS, make_method
from models.statistics.metrics import hidden_average_precision, precision_at

SAMPLE = Path(__file__).resolve().parents[2] / "sample_data"
FIRST = 100  # suggestions that a person would look at in one sitting
RIVAL = "an"  # always measured: the others are given as multiples of it


@dataclass(frozen=True)
class Seen:
    """Features (N, D) float16 and parts of the images, the images' names, and those of the C classes."""

    features: np.ndarray
    parts: RegionCodes
    names: list[str]
    classes: list[str]


def measure(
    images: Path | None = None,
    truth: Path | None = None,
    *,
    share: float = 0.5,
    seeds: int = 3,
    methods: Sequence[str] = (),
    backbone: str = DEFAULT_BACKBONE,
) -> dict:
    """How well the hidden positives are ranked, for each method, against chance and against `an`.

    images     folder of images, searched recursively; None: the sample data
    truth      CSV `image,labels` (or `image,class,state`) with every label of every image; None: the sample data's
    share      in (0, 1]: share of the images that get their one click
    seeds      repetitions, each with other images and other clicks
    methods    besides `an`; none: em_apl, gr and the default method; ("all",): every method that learns from single
               labels and needs no feature maps
    returns    {"bench", "figures", "ratios"}: `<method>_hidden_ap`, average precision over all unanswered cells in one
               ranking, mean over the seeds, and its standard deviation `_std`; `<method>_precision_100`, share of true
               ones among the first 100 suggestions; `chance_hidden_ap`, share of positives among those cells

    Raises AnnotatorError when only one of images and truth is given, when they do not fit together, when share or
    seeds make no sense, or for a method that is not measured here; ValueError from load_backbone.
    """
    names = _names(methods)
    if (images is None) != (truth is None):
        raise AnnotatorError("Images and their truth belong together: give both --images and --truth, or neither.")
    if not 0 < share <= 1 or seeds < 1:
        raise AnnotatorError(f"The share is {share} and the seeds {seeds}; it must be in (0, 1], and at least one.")
    seen, there = embedded(images or SAMPLE / "images", truth or SAMPLE / "truth.csv", backbone)
    clicked = min(round(share * len(there)), int(there.any(1).sum()))
    if clicked < 1:
        raise AnnotatorError(f"A share of {share} of {len(there)} images, of which some have no label, is no image.")
    scores: dict[str, list[float]] = {}
    for seed in range(seeds):
        labels = clicks(there, clicked, np.random.default_rng(seed))
        hidden = there[labels == UNSEEN]
        if not hidden.any():
            raise AnnotatorError("Every label of every image was clicked: there is nothing hidden to find.")
        scores.setdefault("chance_hidden_ap", []).append(float(hidden.mean()))
        for name in names:
            probabilities = trained(name, seen, labels, seed)
            ranked = hidden_average_precision(probabilities, labels, there).cells
            first = precision_at(probabilities[labels == UNSEEN], hidden, FIRST)
            scores.setdefault(f"{name}_hidden_ap", []).append(ranked)
            scores.setdefault(f"{name}_precision_{FIRST}", []).append(first)
            say(f"seed {seed}: {name} finds hidden positives with AP {ranked:.3f} (chance {hidden.mean():.3f})")
    mean = {name: statistics.fmean(values) for name, values in scores.items()}
    ratios = {f"{name}_over_chance": mean[f"{name}_hidden_ap"] / mean["chance_hidden_ap"] for name in names}
    rival = mean[f"{RIVAL}_hidden_ap"]
    ratios |= {f"{name}_over_{RIVAL}": mean[f"{name}_hidden_ap"] / rival for name in names if name != RIVAL}
    deviations = {f"{name}_std": statistics.pstdev(values) for name, values in scores.items() if name[-3:] == "_ap"}
    sizes = {"images": len(there), "classes": there.shape[1], "clicked_images": clicked, "seeds": seeds}
    return {
        "bench": "suggestions",
        "figures": {name: round(value, 4) for name, value in (mean | deviations).items()} | sizes,
        "ratios": {name: round(value, 3) for name, value in ratios.items()},
    }


def _names(asked: Sequence[str]) -> list[str]:
    """The methods to measure, the rival first. Raises AnnotatorError for those that cannot be, with those that can."""
    can = [name for name, method in METHODS.items() if method.reads != "maps" and not method.full_labels]
    if tuple(asked) == ("all",):
        return can
    wrong = []
    for name in asked:
        if name not in METHODS:
            wrong.append(f"no method is called {name!r}. {did_you_mean(name, can, len(can))}")
        elif name not in can:
            why = "is told all labels" if METHODS[name].full_labels else f"reads {METHODS[name].reads}"
            wrong.append(f"{name} {why}: it is measured by `annotator bench methods`")
    if wrong:
        raise several("These methods cannot be measured here:", wrong)
    wanted = asked or [name for name in ("em_apl", "gr", DEFAULT_METHOD) if name in can]
    return list(dict.fromkeys([RIVAL, *wanted]))


def embedded(folder: Path, truth: Path, backbone: str) -> tuple[Seen, np.ndarray]:
    """What the worker keeps of the images that can be read, and the truth (N, C) bool."""
    names = list_files(folder, leave_out=truth).images()
    if not names:
        raise AnnotatorError(f"There are no images in {folder}. Read are {', '.join(sorted(IMAGE_SUFFIXES))}.")
    given = [label for label in read_labels(truth, names, None) if label.state == PRESENT]
    listed = {label.image for label in given}
    columns = {name: column for column, name in enumerate(sorted({label.class_name for label in given}))}
    if not columns:
        raise AnnotatorError(f"{truth} has no label 'present': there is nothing to find.")
    bare = len(names) - len(listed)
    say(f"embedding {len(names):,} images ({bare:,} of them without a label), {len(columns)} classes")
    parts = list(embed([folder / unescaped(name) for name in names], load_backbone(backbone), regions=True))
    kept = [names[place] for part in parts for place in part.indices]
    rows = {name: row for row, name in enumerate(kept)}
    there = np.zeros((len(kept), len(columns)), bool)
    for label in given:
        if label.image in rows:
            there[rows[label.image], columns[label.class_name]] = True
    features = np.concatenate([part.features for part in parts]).astype(np.float16)
    regions = np.concatenate([part.regions for part in parts])
    return Seen(features, encode(learn_basis(features, regions), regions), kept, list(columns)), there


def clicks(there: np.ndarray, count: int, chance: np.random.Generator) -> np.ndarray:
    """(N, C) int8: on `count` of the images that show anything, one of what they show; everything else unseen."""
    labels = np.zeros(there.shape, np.int8)
    for row in chance.choice(np.flatnonzero(there.any(1)), count, replace=False):
        labels[row, chance.choice(np.flatnonzero(there[row]))] = PRESENT
    return labels


def trained(name: str, seen: Seen, labels: np.ndarray, seed: int) -> np.ndarray:
    """(N, C) float16 probabilities, as a run of the worker publishes them."""
    method, rows = make_method(name), np.flatnonzero(labels.any(1))
    if method.reads == "regions":
        model = Ensemble(method, seen.features.shape[1], labels.shape[1])
        for _ in fit_ensemble(model, seen.features, seen.parts, rows, labels[rows], seed=seed):
            pass
        return model.probabilities(seen.features, seen.parts).astype(np.float16)
    head = Head(seen.features.shape[1], labels.shape[1])
    for _ in fit(head, seen.features[rows], labels[rows], method, seed=seed):
        pass
    return head.probabilities(seen.features).astype(np.float16)
