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
from annotator.benchmark.effort.effort_measurement import make_project, resolve_images_and_truth
from annotator.benchmark.effort.play import PERFECT_PERSON, Play, play_all
from annotator.benchmark.finish.sets import TestSet, read_folder
from annotator.benchmark.harness.child_processes import print_progress
from annotator.benchmark.harness.scratch import scratch_folder
from annotator.errors import AnnotatorError
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import open_features
from annotator.store.labels import audits
from annotator.store.networks import configuration
from annotator.store.relations import declared_relations
from annotator.store.relations.relation_edits import EXACTLY_ONE, IS_A, Declaration
from annotator.worker.features.region_cache import RegionCache
from annotator.worker.training.project_images import ProjectImages
from annotator.worker.training.related_columns import load_related_columns
from models.ensemble.stacking import AnsweredImages, FitSettings, fit_stacked
from models.labels import ABSENT, PRESENT, UNSEEN
from models.methods.auto import Auto
from models.statistics.metrics import hidden_average_precision

PLAYED_POLICIES = ("autopilot", "form")
KINDS_PER_GROUP = 3  # classes of a group, and groups of a whole
NUMBER_CLASSES, LIGHT_CLASSES = ("no kind", "one kind", "several kinds"), ("dark", "bright")
BENCH_ANNOTATOR = "bench"
ANSWERED_SHARE = 0.2  # of the images, in every class, for what obeying does to hidden AP
WITH_RELATIONS, WITHOUT_RELATIONS = "with_relations", "without_relations"
ROUNDING_TOLERANCE = 1e-3  # by which a rounded probability may break a relation


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
    images_folder, truth = resolve_images_and_truth(images_folder, truth)
    with scratch_folder() as folder:
        photos = read_folder("photos", "", images_folder, truth, folder / "photos")
        table, tree = _write_class_tree(photos, images_folder, folder / "table.csv")
        plain, related = folder / "plain", folder / "related"
        shown = make_project(plain, images_folder, table)
        shutil.copytree(plain, related)
        declared = _declare_relations(Database(related), tree)
        obeying = _measure_obedience(related, shown, seeds)
        limit = most * (shown.sum() + len(shown))
        plays = [Play(policy, PERFECT_PERSON, seed) for policy in PLAYED_POLICIES for seed in range(seeds)]
        played = {
            name: play_all(project, folder, shown, plays, limit, jobs)
            for name, project in ((WITHOUT_RELATIONS, plain), (WITH_RELATIONS, related))
        }
    figures = {
        "images": len(shown),
        "classes": shown.shape[1],
        "labels_per_image": round(float(shown.sum() / len(shown)), 3),
        "relations": declared,
        **obeying,
    }
    ratios = {}
    for policy in PLAYED_POLICIES:
        costs = {
            name: [curves.find_goal_point(curve) for play, curve in of.items() if play.policy == policy]
            for name, of in played.items()
        }
        for cost in curves.COST_KINDS:
            means = {
                name: float(np.mean([at[cost] for at in of if at])) if all(of) else None for name, of in costs.items()
            }
            figures |= {f"{policy}_{name}_{cost}": mean for name, mean in means.items()}
            without, used = means[WITHOUT_RELATIONS], means[WITH_RELATIONS]
            ratios[f"{policy}_{cost}_without_over_with"] = without and used and round(without / used, 2)
    return {"bench": "relations", "figures": figures, "ratios": ratios}


def _write_class_tree(photos: TestSet, folder: Path, table: Path) -> tuple[Path, dict[str, str]]:
    """Write the truth with groups, wholes and exclusive classes, and return its file and child -> parent."""
    names = sorted(photos.classes)
    if taken := {*NUMBER_CLASSES, *LIGHT_CLASSES} & set(names):
        raise AnnotatorError(f"The set has classes that this benchmark makes: {', '.join(sorted(taken))}.")
    tree = {name: f"group {place // KINDS_PER_GROUP + 1}" for place, name in enumerate(names)}
    groups = list(dict.fromkeys(tree.values()))
    tree |= {name: f"whole {place // KINDS_PER_GROUP + 1}" for place, name in enumerate(groups)}
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
            every |= {NUMBER_CLASSES[min(len(own), 2)], LIGHT_CLASSES[int(brightness >= middle)]}
            rows.writerow([path.relative_to(folder.resolve()).as_posix(), "|".join(sorted(every))])
    return table, tree


def _declare_relations(db: Database, tree: dict[str, str]) -> int:
    """Declare the relations, and return how many there are."""
    ids = {class_.name: class_.id for class_ in classes.load_active_classes(db)}
    wanted = [
        Declaration(IS_A, (ids[child], ids[parent])) for child, parent in tree.items() if child in ids and parent in ids
    ]
    for name, members in (("number", NUMBER_CLASSES), ("light", LIGHT_CLASSES)):
        known = tuple(ids[one] for one in members if one in ids)
        if len(known) > 1:
            wanted.append(Declaration(EXACTLY_ONE, known, name))
    declared_relations.declare(db, wanted, BENCH_ANNOTATOR)
    return len(wanted)


def _measure_obedience(project: Path, shown: np.ndarray, seeds: int) -> dict[str, float]:
    """Return hidden AP in percent of the model as trained and as published, and the cells that break a relation."""
    db = Database(project)
    backbone, class_ids = configuration.get_backbone(db), [class_.id for class_ in classes.load_active_classes(db)]
    related = load_related_columns(db, class_ids)
    assert related is not None  # some were declared
    cache = open_features(db, backbone)
    codes = ProjectImages(db, cache, backbone, None, RegionCache(), class_ids).region_codes(lambda *_: None)
    truth = shown[np.searchsorted(audits.load_readable_image_ids(db), cache.image_ids)]
    measured, broken = [], 0
    for seed in range(seeds):
        rows = np.sort(np.random.default_rng(seed).permutation(len(truth))[: round(ANSWERED_SHARE * len(truth))])
        labels = np.full(truth.shape, UNSEEN, np.int8)
        labels[rows] = np.where(truth[rows], PRESENT, ABSENT)
        given = np.ones((len(rows), truth.shape[1]), bool)
        model = fit_stacked(
            Auto(), AnsweredImages(cache.features, codes, rows, labels[rows], given), FitSettings(seed=seed)
        )
        for _ in model.epochs():
            pass
        assert model.probabilities is not None
        chances = model.probabilities
        published = np.asarray(related.enforce(chances.astype(np.float64)))
        measured.append([100 * hidden_average_precision(one, labels, truth).cells for one in (chances, published)])
        broken += sum(
            int((published[:, kind] > published[:, whole] + ROUNDING_TOLERANCE).sum()) for kind, whole in related.pairs
        )
        broken += sum(
            int((published[:, list(columns)].sum(1) > 1 + ROUNDING_TOLERANCE).sum()) for columns, _ in related.groups
        )
    trained, obeyed = np.mean(measured, 0)
    print_progress(
        f"{ANSWERED_SHARE:.0%} of the images answered: hidden AP {trained:.1f}, obeying the relations {obeyed:.1f}"
    )
    return {
        "hidden_ap_as_trained": round(float(trained), 2),
        "hidden_ap_obeying": round(float(obeyed), 2),
        "cells_that_break_a_relation": broken,
    }
