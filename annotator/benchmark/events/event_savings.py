"""What the events of a set save, Autopilot with them and without them, and what the model learns from their places."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from annotator.benchmark.effort import curves
from annotator.benchmark.effort.effort_measurement import make_project, resolve_images_and_truth
from annotator.benchmark.effort.play import NOISY_PERSON, PERFECT_PERSON, Play, play_all
from annotator.benchmark.events.context import measure_context
from annotator.benchmark.events.scenes import Recipe, make_event_set
from annotator.benchmark.finish.sets import read_folder
from annotator.benchmark.harness.scratch import scratch_folder
from annotator.store.database.database import Database
from annotator.store.events import project_events

PLAYED_POLICY = "autopilot"
CONTEXT_SEEDS = 3  # draws of the answered events for what the context brings
WITH_EVENTS, WITHOUT_EVENTS = "with_events", "without_events"


def measure(
    images_folder: Path | None = None,
    truth: Path | None = None,
    *,
    recipe: Recipe,
    noisy: bool = True,
    seeds: int = 1,
    most: float = 1.0,
    keep: Path | None = None,
) -> dict:
    """Make a set with events, work on it with and without them, and return what that cost.

    Args:
        images_folder: A folder of photos; None: the sample data.
        truth: A CSV `image,labels` of all that they show; None: the sample data's.
        recipe: How the set is made.
        noisy: Whether a person who makes mistakes plays as well.
        seeds: The number of plays of each.
        most: A play stops after this times as many actions as a form for every image takes.
        keep: A folder for the set, which is then kept; None: it is deleted.

    Returns:
        {"bench", "figures", "ratios", "curves"}. Ratios are the cost of recall 0.95 at precision 0.99 without events
        over that with them, None where a play does not get there. Figures have hidden AP with and without context.

    Raises:
        AnnotatorError: Images and truth do not fit together.
    """
    images_folder, truth = resolve_images_and_truth(images_folder, truth)
    with scratch_folder() as scratch:
        folder = scratch if keep is None else keep
        photos = read_folder("photos", "", images_folder, truth, scratch / "photos")
        table = make_event_set(folder / "set", photos, recipe)
        plain = scratch / "plain"
        shown = make_project(plain, folder / "set", table)
        grouped = scratch / "grouped"
        shutil.copytree(plain, grouped)
        sizes = np.bincount(np.unique(project_events.find_and_save(Database(grouped)).events, return_inverse=True)[1])
        gained = measure_context(grouped, shown, CONTEXT_SEEDS)
        limit = most * (shown.sum() + len(shown))
        people = [PERFECT_PERSON, *([NOISY_PERSON] if noisy else [])]
        plays = [Play(PLAYED_POLICY, person, seed) for person in people for seed in range(seeds)]
        played = {
            name: play_all(project, scratch, shown, plays, limit)
            for name, project in ((WITHOUT_EVENTS, plain), (WITH_EVENTS, grouped))
        }
    figures = {
        "images": len(shown),
        "classes": shown.shape[1],
        "labels_per_image": round(float(shown.sum() / len(shown)), 3),
        "empty_images": round(float((~shown.any(1)).mean()), 3),
        "events": len(sizes),
        "largest_event": int(sizes.max()),
        **gained,
    }
    ratios = {}
    for person in people:
        costs = {name: _summarize_costs(played[name], person) for name in played}
        for name, curve_ends in costs.items():
            figures |= {f"{person}_{name}_{key}": value for key, value in curve_ends.items()}
        for cost in curves.COST_KINDS:
            without, used = costs[WITHOUT_EVENTS][cost], costs[WITH_EVENTS][cost]
            ratios[f"{person}_{cost}_without_over_with_events"] = without and used and round(without / used, 2)
    told = [
        {"events": name == WITH_EVENTS, "person": play.person, "seed": play.seed, "points": curve}
        for name, by_play in played.items()
        for play, curve in by_play.items()
    ]
    return {"bench": "events", "figures": figures, "ratios": ratios, "curves": told}


def _summarize_costs(played: Mapping[Play, list[dict]], person: str) -> dict[str, float | None]:
    """Return the mean cost of the goal over the plays of a person, and how the plays ended."""
    own = [curve for play, curve in played.items() if play.person == person]
    reached = [curves.find_goal_point(curve) for curve in own]
    result: dict[str, float | None] = {
        cost: round(sum(at[cost] for at in reached if at) / len(reached), 1) if all(reached) else None
        for cost in curves.COST_KINDS
    }
    for key in ("copied", "miscopied"):
        result[key] = round(sum(curve[-1][key] for curve in own) / len(own), 1)
    for key in ("recall", "precision"):
        result[f"final_{key}"] = round(sum(curve[-1]["decided"][key] for curve in own) / len(own), 4)
    return result
