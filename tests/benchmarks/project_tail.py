"""Simulation of a whole project by Autopilot: its kinds of actions, and the time left as estimated and as it was.

    python -m benchmarks.project_tail [--images 300] [--classes 28] [--seed 0] [--pace 1.0]

The queue, the store and the account are the program's own. Predictions are drawn, and become sharper with the number
of known positives, so a project takes seconds instead of an hour.
"""

import argparse
import json
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from harness.projects import write_noise_images

from annotator.exchange.project_setup import set_up_project
from annotator.queues.autopilot import planner
from annotator.queues.autopilot.actions import Action
from annotator.queues.autopilot.complete_project import EXTRA_KINDS
from annotator.records import ABSENT, PRESENT, Batch, Decision, WantedActions, list_sources
from annotator.settings import MIN_IMAGES_FOR_FIRST_RUN
from annotator.snapshot import project_progress
from annotator.snapshot.time_model import DEFAULT_TIMES, TIME_PARTS, TimeModel
from annotator.store.classes import classes
from annotator.store.database.arrays import save_array
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions, project_counts
from annotator.store.runs import runs
from annotator.worker.training.schedule import MIN_NEW_DECISION_SHARE, MIN_NEW_DECISIONS

ANNOTATOR_NAME = "Ann"
ANSWERS_PER_RUN = 4  # between two versions of the model
MAX_ACTIONS = 3000
ACTIONS_PER_ESTIMATE = 6  # between two looks at the time left
MIN_SECONDS_LEFT, MAX_RATIO = (30.0, 1.5)  # of an estimate that counts, and between it and the truth
SHARES_OF_TIME = (0.1, 0.25, 0.5, 0.75, 0.9)  # of a project's seconds at which the estimate is compared
SECONDS_BETWEEN_TRAININGS = 120.0  # of a training of a minute and its rest
RAREST_POSITIVES, MOST_FREQUENT_SHARE = (3, 0.4)
SCORE_DISTANCES = (1.2, 3.2)  # between the scores of absent and present cells, of the hardest and easiest class
POSITIVES_FOR_HALF_SHARPNESS = 6.0
SPREAD_OF_SECONDS = 0.4  # standard deviation of log seconds of equal answers
RECALL_GOALS = (0.8, 0.9, 0.95, 0.99)
PACED_PARTS = ("tile", "change", "check")  # of the time model, which the pace of a person multiplies
FEW_OPEN_CLASSES = 2  # an image with at most so many open classes is counted as a remnant


@dataclass(frozen=True)
class TimedAction:
    """One action with its cells, changed answers, new positives, seconds, and the estimate before it in seconds."""

    kind: str
    source: str
    cells: int
    changed: int
    positives: int
    seconds: float
    left: tuple[float, float, float] | None


def draw_truth(rng: np.random.Generator, image_count: int, class_count: int) -> np.ndarray:
    """Draw (N, C) bool with class frequencies that fall geometrically down to RAREST_POSITIVES."""
    counts = np.geomspace(MOST_FREQUENT_SHARE * image_count, RAREST_POSITIVES, class_count).round().astype(int)
    truth = np.zeros((image_count, class_count), bool)
    for column, count in enumerate(counts.tolist()):
        truth[rng.permutation(image_count)[:count], column] = True
    return truth


class TailSimulation:
    """One person who follows Autopilot on a project with drawn predictions until nothing is open."""

    def __init__(self, folder: Path, truth: np.ndarray, times: TimeModel, seed: int):
        self.truth, self.times, self.rng = truth, times, np.random.default_rng([seed, 1])
        write_noise_images(folder / "photos", len(truth), (24, 24))
        (folder / "classes.txt").write_text("\n".join(f"class {number:02d}" for number in range(truth.shape[1])))
        set_up_project(folder / "project", images_folder=folder / "photos", class_file=folder / "classes.txt")
        self.db = Database(folder / "project")
        self.image_ids = np.array(sorted(images.load_ids_by_name(self.db).values()))
        self.class_ids = [class_.id for class_ in classes.load_active_classes(self.db)]
        self.distances = self.rng.uniform(*SCORE_DISTANCES, truth.shape[1])
        self.noise = self.rng.normal(size=truth.shape)
        self.has_model, self.trained_decision, self.trained_at = np.zeros(truth.shape[1], bool), 0, 0.0
        self.actions: list[TimedAction] = []

    def play(self) -> None:
        while len(self.actions) < MAX_ACTIONS:
            if len(self.actions) % ANSWERS_PER_RUN == 0:
                self.publish_model()
            left = load_time_left(self.db) if len(self.actions) % ACTIONS_PER_ESTIMATE == 0 else None
            extras = EXTRA_KINDS if project_counts.count_open_cells(self.db) > 0 else ()
            wanted = WantedActions("tab", ANNOTATOR_NAME, (), 1, extras=extras)
            if not (items := planner.lease_next_actions(self.db, wanted).items):
                return
            self.answer(items[0], left)

    def publish_model(self) -> None:
        """Publish probabilities as a model would have that was trained on the labels so far, nan without a positive."""
        counts = project_counts.count_labels_by_class(self.db)
        newest = decisions.get_newest_decision_id(self.db)
        if newest < MIN_IMAGES_FOR_FIRST_RUN:
            return
        self.train_model(counts, newest)
        columns = []
        for column, class_id in enumerate(self.class_ids):
            present = max(counts[class_id][0], 1)
            if not self.has_model[column]:
                columns.append(np.full(len(self.truth), np.nan))
                continue
            distance = self.distances[column] * np.sqrt(present / (present + POSITIVES_FOR_HALF_SHARPNESS))
            shown = self.truth[:, column]
            score = self.noise[:, column] + distance * (shown - 0.5)
            prior = (shown.sum() * (1 + 1 / np.sqrt(present))) / len(shown)  # rare classes are overestimated at first
            prior = min(prior, 0.9)
            columns.append(1 / (1 + np.exp(-(distance * score + np.log(prior / (1 - prior))))))
        more = {"method": "gr", "parameters": {}, "backbone": "none", "class_ids": self.class_ids}
        run_id = runs.begin(self.db, **more, images=len(self.truth), last_decision_id=newest, threshold=0.5)
        save_array(self.db.paths.run(run_id) / "image_ids.npy", self.image_ids)
        save_array(self.db.paths.run(run_id) / "probabilities.npy", np.stack(columns, 1).astype(np.float16))
        runs.publish(self.db, run_id, epochs=1, seconds=0.1, loss=[0.5])

    def train_model(self, counts: dict[int, tuple[int, int, int]], newest: int) -> None:
        """Give each class with a positive a model whenever the worker would, which rests between trainings."""
        now = sum(action.seconds for action in self.actions)
        if self.trained_decision and now < self.trained_at + SECONDS_BETWEEN_TRAININGS:
            return
        has_positive = np.array([counts[class_id][0] > 0 for class_id in self.class_ids])
        least = max(MIN_NEW_DECISIONS, MIN_NEW_DECISION_SHARE * sum(map(sum, counts.values())))
        if (has_positive & ~self.has_model).any() or newest - self.trained_decision >= least:
            self.has_model, self.trained_decision, self.trained_at = has_positive, newest, now

    def answer(self, action: Action, left: tuple[float, float, float] | None) -> None:
        """Answer an action as the truth says."""
        if action.grid:
            cells = [(tile.image.id, action.grid.class_id) for tile in action.grid.tiles]
            chances: list[float | None] = [tile.probability for tile in action.grid.tiles]
            start = [action.grid.start == "yes"] * len(cells)
        else:
            assert action.item is not None
            answered = {label.class_id for label in action.item.labels}
            open_ids = [class_id for class_id in self.class_ids if class_id not in answered]
            cells = [(action.item.image.id, class_id) for class_id in open_ids]
            chances = [dict(action.scores).get(class_id) for class_id in open_ids]
            start = [class_id in action.preset for class_id in open_ids]
        rows = np.searchsorted(self.image_ids, [image_id for image_id, _ in cells])
        shown = self.truth[rows, [self.class_ids.index(class_id) for _, class_id in cells]]
        kind = "grid" if action.grid else "image" if action.kind == "reading" else action.kind
        changed = int((shown != np.array(start)).sum())
        counts = {
            "grid": {"begin": 1, "submit": 1, "tile": len(cells), "change": changed},
            "image": {"look": 1, "submit": 1, "check": len(cells), "change": changed},
            "click": {"click": 1},
        }[kind]
        seconds = sum(count * getattr(self.times, part) for part, count in counts.items())
        seconds *= float(np.exp(self.rng.normal(0, SPREAD_OF_SECONDS) - SPREAD_OF_SECONDS**2 / 2))
        positives = int(shown.sum()) if action.source != "relabel" else 0
        if kind == "click":
            positives = min(1, positives)
        self.actions.append(TimedAction(kind, action.source, len(cells), changed, positives, seconds, left))
        taken = round(1000 * seconds)
        if kind == "click":
            present = np.flatnonzero(shown)
            shared: dict[str, Any] = {"annotator": ANNOTATOR_NAME, "source": "click", "milliseconds": taken}
            image_id, action_kind = cells[0][0], "label" if len(present) else "done"
            if len(present):
                shared |= {"class_id": cells[int(self.rng.choice(present))][1], "state": PRESENT}
            given: Batch | Decision = Decision(str(uuid.uuid4()), action_kind, image_id=image_id, **shared)
        else:
            said = [
                (*cell, PRESENT if yes else ABSENT, chance)
                for cell, yes, chance in zip(cells, shown.tolist(), chances, strict=True)
            ]
            run = runs.load_current_run(self.db)
            given = Batch(str(uuid.uuid4()), ANNOTATOR_NAME, action.source, said, run.id if run else None, taken)
        refused = decisions.save(self.db, [given]).refused
        assert not refused, refused


def load_time_left(db: Database) -> tuple[float, float, float] | None:
    """Return the low end, the middle and the high end of the seconds left that the header shows."""
    progress = project_progress.load_progress(db, ANNOTATOR_NAME)
    if progress.seconds_left is None or progress.seconds_range is None:
        return None
    low, high = progress.seconds_range
    return low, progress.seconds_left, high


def summarize_actions(actions: list[TimedAction]) -> dict[str, Any]:
    """Return the counts of kinds, the random share, remnants, re-checks, and estimated against true time left."""
    seconds = np.array([action.seconds for action in actions])
    sources = np.array([action.source for action in actions])
    is_random = np.isin(sources, list_sources(chosen_by="chance")) & (sources != "exploration")
    found = np.cumsum([action.positives for action in actions])
    relabels = [action for action in actions if action.source == "relabel"]
    total, before = float(seconds.sum()), seconds.cumsum() - seconds
    estimates = [
        (float(start / total), *map(round, (*action.left, total - start)))
        for action, start in zip(actions, before.tolist(), strict=True)
        if action.left and start >= SHARES_OF_TIME[0] * total and total - start >= MIN_SECONDS_LEFT
    ]
    ratios = [max(middle / true, true / middle) for _, _, middle, _, true in estimates]
    shown = [min(estimates, key=lambda row: abs(row[0] - share), default=None) for share in SHARES_OF_TIME]
    return {
        "seconds": round(total),
        "actions": len(actions),
        "seconds_at_recall": {
            str(goal): round(float(seconds.cumsum()[np.searchsorted(found, goal * found[-1])])) for goal in RECALL_GOALS
        },
        "by_source": {
            source: [int((sources == source).sum()), round(float(seconds[sources == source].sum()))]
            for source in dict.fromkeys(sources.tolist())
        },
        "remnant_images": sum(action.kind == "image" and action.cells <= FEW_OPEN_CLASSES for action in actions),
        "random_share_of_actions": round(float(is_random.mean()), 3),
        "random_share_of_seconds": round(float(seconds[is_random].sum() / total), 3),
        "relabel_tiles": sum(action.cells for action in relabels),
        "relabel_changes": sum(action.changed for action in relabels),
        "share_low_middle_high_true": shown,
        "within_1.5": round(float(np.mean([ratio <= MAX_RATIO for ratio in ratios])), 3) if ratios else None,
        "worst_ratio": round(max(ratios), 2) if ratios else None,
        "range_holds": round(float(np.mean([low <= true <= high for _, low, _, high, true in estimates])), 3),
    }


def measure(image_count: int = 300, class_count: int = 28, seed: int = 0, pace: float = 1.0) -> dict[str, Any]:
    """Play one project, and return its summary.

    Args:
        pace: Factor on the person's seconds for tiles, changes and classes of an image.
    """
    truth = draw_truth(np.random.default_rng(seed), image_count, class_count)
    times = TimeModel(
        **{part: getattr(DEFAULT_TIMES, part) * (pace if part in PACED_PARTS else 1) for part in TIME_PARTS}
    )
    started = time.perf_counter()
    project_progress.PACE_CACHE_SECONDS = 1e-3  # a simulated project takes less than the minute that a pace is kept
    with tempfile.TemporaryDirectory() as folder:
        simulation = TailSimulation(Path(folder), truth, times, seed)
        simulation.play()
        found = summarize_actions(simulation.actions)
        return found | {
            "open_cells": project_counts.count_open_cells(simulation.db),
            "computing": round(time.perf_counter() - started, 1),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--classes", type=int, default=28)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pace", type=float, default=1.0)
    words = parser.parse_args()
    print(json.dumps(measure(words.images, words.classes, words.seed, words.pace), indent=1))


if __name__ == "__main__":
    main()
