"""What relations of classes save, Autopilot with them and without them, and what obeying them does to the model.

The classes of a set get a tree of three levels: in the order of their names every three are a kind of a group, and
every three groups a kind of a whole. Two groups of which exactly one is present are made, too: how many classes an
image shows (none, one, several), and whether it is dark or bright. Both plays ask for all of these classes; one is
told the relations.
"""

import csv
import shutil
from pathlib import Path

import numpy as np
from PIL import Image

from annotator.benchmark.effort import curves
from annotator.benchmark.effort.measure import given_or_sample, make_project
from annotator.benchmark.effort.play import PERFECT, Play, all_curves
from annotator.benchmark.finish.sets import TestSet, read_folder
from annotator.benchmark.harness.processes import say
from annotator.benchmark.harness.scratch import scratch_folder
from annotator.errors import AnnotatorError
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.features.cache import open_features
from annotator.store.labels import audits
from annotator.store.networks import configuration
from annotator.store.relations import relations
from annotator.store.relations.edits import EXACTLY_ONE, IS_A, Declared
from annotator.worker.features.region_cache import RegionCache
from annotator.worker.training.project_images import ProjectImages
from annotator.worker.training.relations import related_columns
from models.ensemble.stacking import fit_stacked
from models.labels import ABSENT, PRESENT, UNSEEN
from models.methods.auto import Auto
from models.statistics.metrics import hidden_average_precision

POLICIES = ("autopilot", "form")
KINDS = 3  # classes of a group, and groups of a whole
NUMBER, LIGHT = ("no kind", "one kind", "several kinds"), ("dark", "bright")
BY = "bench"
ANSWERED = 0.2  # of the images, in every class, for what obeying does to hidden AP
WITH, WITHOUT = "with_relations", "without_relations"
ROUNDED = 1e-3  # by which a rounded probability may break a relation


def measure(
    images_folder: Path | None = None, truth: Path | None = None, *, seeds: int = 1, jobs: int = 1, most: float = 1.0
) -> dict:
    """Work on a set with relations of its classes and without them, and return what that cost.

    Args:
        images_folder: A folder of photos; None: the sample data.
        truth: A CSV `image,labels` of all that they show; None: the sample data's.
        seeds: The number of plays of each.
        jobs: The number of processes that play at the same time.
        most: A play stops after this times as many actions as a form for every image takes.

    Returns:
        {"bench", "figures", "ratios"}. Ratios are the cost of recall 0.95 at precision 0.99 without relations over that
        with them, None where a play does not get there.

    Raises:
        AnnotatorError: Images and truth do not fit together.
    """
    images_folder, truth = given_or_sample(images_folder, truth)
    with scratch_folder() as folder:
        photos = read_folder("photos", "", images_folder, truth, folder / "photos")
        table, tree = _with_wholes(photos, images_folder, folder / "table.csv")
        plain, related = folder / "plain", folder / "related"
        shown = make_project(plain, images_folder, table)
        shutil.copytree(plain, related)
        declared = _declare(Database(related), tree)
        obeying = _obeying(related, shown, seeds)
        limit = most * (shown.sum() + len(shown))
        plays = [Play(policy, PERFECT, seed) for policy in POLICIES for seed in range(seeds)]
        played = {
            name: all_curves(project, folder, shown, plays, limit, jobs)
            for name, project in ((WITHOUT, plain), (WITH, related))
        }
    figures = {
        "images": len(shown),
        "classes": shown.shape[1],
        "labels_per_image": round(float(shown.sum() / len(shown)), 3),
        "relations": declared,
        **obeying,
    }
    ratios = {}
    for policy in POLICIES:
        costs = {
            name: [curves.reached(curve) for play, curve in of.items() if play.policy == policy]
            for name, of in played.items()
        }
        for cost in curves.COSTS:
            means = {
                name: float(np.mean([at[cost] for at in of if at])) if all(of) else None for name, of in costs.items()
            }
            figures |= {f"{policy}_{name}_{cost}": mean for name, mean in means.items()}
            without, used = means[WITHOUT], means[WITH]
            ratios[f"{policy}_{cost}_without_over_with"] = without and used and round(without / used, 2)
    return {"bench": "relations", "figures": figures, "ratios": ratios}


def _with_wholes(photos: TestSet, folder: Path, table: Path) -> tuple[Path, dict[str, str]]:
    """Write the truth with groups, wholes and exclusive classes, and return its file and child -> parent."""
    names = sorted(photos.classes)
    if taken := {*NUMBER, *LIGHT} & set(names):
        raise AnnotatorError(f"The set has classes that this benchmark makes: {', '.join(sorted(taken))}.")
    tree = {name: f"group {place // KINDS + 1}" for place, name in enumerate(names)}
    groups = list(dict.fromkeys(tree.values()))
    tree |= {name: f"whole {place // KINDS + 1}" for place, name in enumerate(groups)}
    light = [float(np.asarray(Image.open(path).convert("L").resize((16, 16))).mean()) for path in photos.images]
    middle = float(np.median(light))
    with table.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "labels"])
        for path, shows, brightness in zip(photos.images, photos.truth, light, strict=True):
            own = [name for name, is_shown in zip(photos.classes, shows, strict=True) if is_shown]
            every = set(own)
            for name in own:
                every |= {tree[name], tree[tree[name]]}
            every |= {NUMBER[min(len(own), 2)], LIGHT[int(brightness >= middle)]}
            rows.writerow([path.relative_to(folder.resolve()).as_posix(), "|".join(sorted(every))])
    return table, tree


def _declare(db: Database, tree: dict[str, str]) -> int:
    """Declare the relations, and return how many there are."""
    ids = {class_.name: class_.id for class_ in classes.all_classes(db)}
    wanted = [
        Declared(IS_A, (ids[child], ids[parent])) for child, parent in tree.items() if child in ids and parent in ids
    ]
    for name, members in (("number", NUMBER), ("light", LIGHT)):
        known = tuple(ids[one] for one in members if one in ids)
        if len(known) > 1:
            wanted.append(Declared(EXACTLY_ONE, known, name))
    relations.declare(db, wanted, BY)
    return len(wanted)


def _obeying(project: Path, shown: np.ndarray, seeds: int) -> dict[str, float]:
    """Return hidden AP in percent of the model as trained and as published, and the cells that break a relation."""
    db = Database(project)
    backbone, class_ids = configuration.backbone(db), [class_.id for class_ in classes.all_classes(db)]
    related = related_columns(db, class_ids)
    assert related is not None  # some were declared
    cache = open_features(db, backbone)
    codes = ProjectImages(db, cache, backbone, None, RegionCache(), class_ids).region_codes(lambda *_: None)
    truth = shown[np.searchsorted(audits.readable_images(db), cache.image_ids)]
    measured, broken = [], 0
    for seed in range(seeds):
        rows = np.sort(np.random.default_rng(seed).permutation(len(truth))[: round(ANSWERED * len(truth))])
        labels = np.full(truth.shape, UNSEEN, np.int8)
        labels[rows] = np.where(truth[rows], PRESENT, ABSENT)
        given = np.ones((len(rows), truth.shape[1]), bool)
        model = fit_stacked(Auto(), cache.features, codes, rows, labels[rows], given, seed=seed)
        for _ in model.epochs():
            pass
        assert model.probabilities is not None
        chances = model.probabilities
        published = np.asarray(related.obeyed(chances.astype(np.float64)))
        measured.append([100 * hidden_average_precision(one, labels, truth).cells for one in (chances, published)])
        broken += sum(int((published[:, kind] > published[:, whole] + ROUNDED).sum()) for kind, whole in related.pairs)
        broken += sum(int((published[:, list(columns)].sum(1) > 1 + ROUNDED).sum()) for columns, _ in related.groups)
    trained, obeyed = np.mean(measured, 0)
    say(f"{ANSWERED:.0%} of the images answered: hidden AP {trained:.1f}, obeying the relations {obeyed:.1f}")
    return {
        "hidden_ap_as_trained": round(float(trained), 2),
        "hidden_ap_obeying": round(float(obeyed), 2),
        "cells_that_break_a_relation": broken,
    }
