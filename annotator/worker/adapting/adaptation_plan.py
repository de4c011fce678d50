"""The plan file of an adaptation: its images, labels, and images withheld for evaluation.

Later labels do not change a resumed training. Image content alone decides which images are held out, so no later
adaptation trains on them. Images of one event are held out together.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from annotator.errors import NothingToLearn
from annotator.humanize import format_count
from annotator.store.classes import classes
from annotator.store.database.arrays import replace_file_atomically
from annotator.store.database.database import Database
from annotator.store.events import membership
from annotator.store.features.feature_cache import open_features
from annotator.store.images import images
from annotator.store.networks import adaptation, adapted_networks, configuration
from annotator.worker.training.training_set import load_training_set

PLAN_FILE = "plan.safetensors"
HELD_OUT_ONE_IN = 5  # images is held out
MIN_TRAINING_IMAGES = 20  # to train on
MIN_ANSWERS_PER_STATE = 3  # unbiased answers of either state that a class needs among held-out images
IMAGES_PER_LOOKUP = 10_000  # images looked up
ARRAY_FIELDS = ("image_ids", "labels", "mask", "unbiased", "held_out", "class_ids")


@dataclass(frozen=True, eq=False)
class AdaptationPlan:
    """The plan of one adaptation: its images, labels and training parameters."""

    # (n,) int64
    image_ids: np.ndarray
    # (n, C) int8, 1 present, -1 absent, 0 unanswered
    labels: np.ndarray
    # mask, unbiased: (n, C) bool, see `TrainingSet`
    mask: np.ndarray
    unbiased: np.ndarray
    # (n,) bool, withheld from training for evaluation
    held_out: np.ndarray
    # (C,) int64
    class_ids: np.ndarray
    class_names: list[str]
    name: str
    parent: str
    method: str
    parameters: dict[str, Any]
    epochs: int
    newest_decision: int
    # whether all inputs are prepared
    is_settled: bool = False
    # number of labels in the project at planning time
    known_answers: int = 0

    @property
    def fitted_rows(self) -> np.ndarray:
        """Return the rows of the images that are trained on."""
        return np.flatnonzero(~self.held_out)

    @property
    def held_out_rows(self) -> np.ndarray:
        """Return the rows of the images that are withheld for evaluation."""
        return np.flatnonzero(self.held_out)

    @property
    def held_out_labels(self) -> np.ndarray:
        """Return unbiased labels of the m held-out images: (m, C) int8, 0 elsewhere."""
        rows = self.held_out_rows
        return np.where(self.unbiased[rows] & self.mask[rows], self.labels[rows], 0).astype(np.int8)

    def count_judged_classes(self) -> int:
        """Count the classes with at least MIN_ANSWERS_PER_STATE held-out unbiased labels of each state."""
        held = self.held_out_labels
        return int((((held > 0).sum(0) >= MIN_ANSWERS_PER_STATE) & ((held < 0).sum(0) >= MIN_ANSWERS_PER_STATE)).sum())

    def select_rows(self, rows: np.ndarray) -> "AdaptationPlan":
        """Return the plan restricted to these images, given by row."""
        arrays = {name: getattr(self, name)[rows] for name in ARRAY_FIELDS if name != "class_ids"}
        return replace(self, **arrays)

    def write(self, folder: Path) -> None:
        """Write the plan file. Raises DiskFull."""
        arrays = {name: np.ascontiguousarray(getattr(self, name)) for name in ARRAY_FIELDS}
        facts = {name: value for name, value in asdict(self).items() if name not in ARRAY_FIELDS}
        with replace_file_atomically(folder / PLAN_FILE) as temporary:
            save_file(arrays, temporary, {"plan": json.dumps(facts)})


def read_plan(folder: Path) -> AdaptationPlan | None:
    """Return the plan of an unfinished adaptation, or None if it is missing or damaged."""
    try:
        file: Any = safe_open(folder / PLAN_FILE, framework="numpy")
        with file as opened:
            arrays = {name: opened.get_tensor(name) for name in ARRAY_FIELDS}
            return AdaptationPlan(**arrays, **json.loads((opened.metadata() or {})["plan"]))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None


def make_plan(db: Database, parent: str, epochs: int) -> AdaptationPlan:
    """Plan a new adaptation. Raises NothingToLearn."""
    cache = open_features(db, parent)
    known = load_training_set(db, cache)
    image_ids = cache.image_ids[known.rows]
    names = {class_.id: class_.name for class_ in classes.load_active_classes(db)}
    plan = AdaptationPlan(
        image_ids=image_ids,
        labels=known.labels,
        mask=known.mask,
        unbiased=known.unbiased,
        held_out=_choose_held_out(db, image_ids),
        class_ids=np.array(known.class_ids, np.int64),
        class_names=[names[class_id] for class_id in known.class_ids],
        name=adapted_networks.find_free_name(db, parent),
        parent=parent,
        method=configuration.get_method(db),
        parameters=configuration.get_parameters(db),
        epochs=epochs,
        newest_decision=known.newest_decision_id,
        known_answers=adaptation.count_answers(db),
    )
    check_plan(plan)
    return plan


def check_plan(plan: AdaptationPlan) -> None:
    """Raise NothingToLearn if the plan has too few labels to train or to evaluate."""
    fitted = plan.fitted_rows
    if len(fitted) < MIN_TRAINING_IMAGES or not (plan.labels[fitted] > 0).any():
        raise NothingToLearn(
            f"There are {format_count(len(fitted), 'image')} with answers and features to adapt the network to; it "
            f"takes {MIN_TRAINING_IMAGES}, and some labels 'present'. Label more images first."
        )
    if not plan.count_judged_classes():
        raise NothingToLearn(
            f"Whether an adapted network is better could not be judged: no class has {MIN_ANSWERS_PER_STATE} unbiased "
            f"answers 'present' and {MIN_ANSWERS_PER_STATE} 'absent' on the images that are held out for that (one of "
            f"{HELD_OUT_ONE_IN}).\n"
            "    Unbiased are answers that were not chosen by the model: complete images, audits, exploration. "
            "Complete some more images."
        )


def _choose_held_out(db: Database, image_ids: np.ndarray) -> np.ndarray:
    held_out = np.zeros(len(image_ids), bool)
    together = membership.load_split_groups(db, image_ids)  # an event is held out as the image that it is named after
    for start in range(0, len(image_ids), IMAGES_PER_LOOKUP):
        ids = together[start : start + IMAGES_PER_LOOKUP].tolist()
        registered = images.load_images(db, ids)
        held_out[start : start + len(ids)] = [int(registered[i].sha256[:12], 16) % HELD_OUT_ONE_IN == 0 for i in ids]
    return held_out
