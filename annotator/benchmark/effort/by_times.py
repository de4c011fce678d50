"""Autopilot and its rivals under several sets of times, in one run.

A policy whose choices depend on the person's times is played again with every set; the plays of all others are the same
for everyone and only cost other seconds. Equal answers take the person times that vary (pace.taken), and the project
learns them from the milliseconds of the answers alone: Autopilot has to follow. `autopilot-known` is the same person
after a long speed test; `handed_out` compares what both are asked for.
"""

from collections.abc import Sequence
from pathlib import Path

from annotator.benchmark.effort import curves
from annotator.benchmark.effort.comparison import (
    GOALS,
    OURS,
    Curves,
    choose_settings,
    compare,
    cost_of,
    mean_of_all,
    policies_of,
    ratios_by_seed,
    spread,
)
from annotator.benchmark.effort.measure import given_or_sample, make_project, policies_named
from annotator.benchmark.effort.play import PERFECT, Play, all_curves
from annotator.benchmark.effort.policies import POLICIES, SETTINGS
from annotator.benchmark.effort.time_sets import TimeSet
from annotator.benchmark.harness.scratch import scratch_folder
from annotator.store.database.database import Database
from annotator.store.networks import configuration

KNOWN = "autopilot-known"
COMPARED = ("form", "grid-only", "best-mixture", OURS, KNOWN)
FOLLOWED = 600.0  # seconds of work after which Autopilot should ask for what suits the person
WINDOWS = ((0.0, FOLLOWED), (FOLLOWED, 2 * FOLLOWED))


def measure_by_times(
    sets: Sequence[TimeSet],
    images_folder: Path | None = None,
    truth: Path | None = None,
    *,
    policies: Sequence[str] = (),
    seed: int = 0,
    seeds: int = 1,
    jobs: int = 1,
    most: float = 1.0,
    work: Path | None = None,
    backbone: str | None = None,
) -> dict:
    """Play with a perfect person of each set of times, and return what every policy costs them.

    Args:
        sets: As read_time_sets returns them.
        images_folder: A folder of images; None: the sample data.
        truth: Every label of every image, as of measure.measure; None: the sample data's.
        policies: Names in POLICIES; (): COMPARED. Autopilot is always among them.
        seed: The first seed.
        seeds: The number of seeds from `seed` on: every policy is played with each, figures are means.
        jobs: The number of processes that play at the same time; the result is the same.
        most: The number of actions after which a play stops, in actions of the form.
        work: A folder that keeps the embedded project for the next time; None: it is not kept.
        backbone: The network; None: the usual one.

    Returns:
        {"bench", "figures", "ratios", "sets", "policies", "backbone", "seeds"}, and "costs": {"set", "policy", "goal",
        "actions", "seconds", "reached", "seeds", "ratio"}, spreads over the seeds, the ratio being the policy's seconds
        over Autopilot's (None unless both reach the goal with every seed); "range": {"policy", "goal", "seconds",
        "ratio"}, the lowest and the highest mean over all sets that reach it; "handed_out": as of `handed_out`;
        "searched": as of comparison.choose_settings, with the set.

    Raises:
        AnnotatorError: Images and truth do not fit together, or a policy does not exist.
    """
    names = list(dict.fromkeys([*(policies_named(policies) or COMPARED), OURS]))
    images_folder, truth = given_or_sample(images_folder, truth)
    with scratch_folder() as folder:
        template = folder / "project" if work is None else work
        shown = make_project(template, images_folder, truth, backbone)
        limit = most * (shown.sum() + len(shown))
        plays = [
            _play(setting, seed + number, times)
            for number in range(seeds)
            for times in sets
            for name in names
            for setting in POLICIES[name].settings or (name,)
        ]
        played = all_curves(template, folder, shown, list(dict.fromkeys(plays)), limit, jobs)
        used = configuration.backbone(Database(template))
    result: dict = {"costs": [], "handed_out": [], "searched": [], "lead": []}
    for times in sets:
        own, searched = _curves_of(played, names, range(seed, seed + seeds), times)
        result["costs"] += _cost_rows(own, times.name)
        result["handed_out"] += [{"set": times.name, **row} for row in handed_out(own)]
        result["searched"] += [{"set": times.name, **row} for row in searched]
        result["lead"] += [{"set": times.name, **row} for row in compare(own)["lead"] if row["cost"] == "seconds"]
    figures = {"images": len(shown), "classes": shown.shape[1], "labels_per_image": round(shown.sum() / len(shown), 3)}
    return {
        "bench": "effort",
        "figures": figures | _figures(result),
        "ratios": _ratios(result),
        "sets": [times.as_json() for times in sets],
        **result,
        "range": _range_rows(result["costs"]),
        "policies": {name: POLICIES[name].about for name in names},
        "backbone": used,
        "seeds": list(range(seed, seed + seeds)),
    }


def handed_out(played: Curves) -> list[dict]:
    """Return what Autopilot asked for in the first ten minutes of work, and in the ten after.

    Args:
        played: Plays with one set of times; seconds are those of the set.

    Returns:
        {"policy", "window", "grids", "images", "clicks", "whole"} for OURS and KNOWN: `window` in seconds, the numbers
        of answers, and `whole`, the share of the pairs of an image and a class that were answered as a whole image and
        not in a grid. Means over the seeds; None where no work was left.
    """
    rows = []
    for policy in (name for name in policies_of(played, PERFECT) if name in (OURS, KNOWN)):
        of_policy = [curve for play, curve in played.items() if play.policy == policy]
        for start, end in WINDOWS:
            asked = [_asked(curve, start, end) for curve in of_policy if curve[-1]["seconds"] > start]
            means = {
                name: mean_of_all([one[name] for one in asked if one[name] is not None], 3)
                for name in ("grids", "images", "clicks", "whole")
            }
            rows.append({"policy": policy, "window": [start, end], **means})
    return rows


def _asked(curve: Sequence[dict], start: float, end: float) -> dict[str, float | None]:
    before, after = curves.parts_at(curve, start), curves.parts_at(curve, end)
    parts = {part: after[part] - before[part] for part in after}
    pairs = parts["tile"] + parts["check"]
    whole = parts["check"] / pairs if pairs else None
    return {"grids": parts["begin"], "images": parts["look"], "clicks": parts["click"], "whole": whole}


def _play(name: str, seed: int, times: TimeSet) -> Play:
    timed = (POLICIES | SETTINGS)[name].timed
    return Play(name, PERFECT, seed, times.times, varies=True) if timed else Play(name, PERFECT, seed)


def _curves_of(played: Curves, names: Sequence[str], seeds: Sequence[int], times: TimeSet) -> tuple[Curves, list[dict]]:
    """Return the curves in the seconds of one set, by plays that do not name the set, and the searched settings."""
    own: Curves = {}
    for name in names:
        for setting in POLICIES[name].settings or (name,):
            for seed in seeds:
                own[Play(setting, PERFECT, seed)] = curves.costed(played[_play(setting, seed, times)], times.times)
    searched: list[dict] = []
    for name in names:
        if POLICIES[name].settings:
            own, rows = choose_settings(own, name, POLICIES[name].settings)
            searched += rows
    return own, searched


def _cost_rows(own: Curves, name: str) -> list[dict]:
    def seconds(policy: str, goal: float) -> list[float | None]:
        return cost_of(own, policy, PERFECT, goal, lambda point: point["seconds"])

    rows = []
    for row in compare(own)["goals"]:
        ratios = ratios_by_seed(seconds(row["policy"], row["goal"]), seconds(OURS, row["goal"]))
        kept = ("policy", "goal", "actions", "seconds", "reached", "seeds")
        ratio = spread(ratios, 3) if None not in ratios else None
        rows.append({"set": name, **{column: row[column] for column in kept}, "ratio": ratio})
    return rows


def _range_rows(costs: Sequence[dict]) -> list[dict]:
    rows = []
    for policy in dict.fromkeys(row["policy"] for row in costs):
        for goal in GOALS:
            of_goal = [row for row in costs if (row["policy"], row["goal"]) == (policy, goal)]
            seconds = [row["seconds"]["mean"] for row in of_goal if row["reached"] == row["seeds"]]
            ratios = [row["ratio"]["mean"] for row in of_goal if row["ratio"]]
            rows.append({"policy": policy, "goal": goal, "seconds": _ends(seconds), "ratio": _ends(ratios)})
    return rows


def _ends(values: Sequence[float]) -> dict[str, float | int] | None:
    return {"low": min(values), "high": max(values), "sets": len(values)} if values else None


def _figures(result: dict) -> dict[str, float | None]:
    figures = {
        f"{row['set']}: {row['policy']}, seconds to recall {row['goal']:.2f}": row["seconds"] and row["seconds"]["mean"]
        for row in result["costs"]
        if row["reached"] == row["seeds"]
    }
    return figures | {
        f"{row['set']}: {row['policy']}, share answered as whole images, minutes {row['window'][0] / 60:.0f} to "
        f"{row['window'][1] / 60:.0f}": row["whole"]
        for row in result["handed_out"]
    }


def _ratios(result: dict) -> dict[str, float]:
    return {
        f"{row['set']}: {row['policy']} over autopilot, seconds to recall {row['goal']:.2f}": row["ratio"]["mean"]
        for row in result["costs"]
        if row["ratio"] and row["policy"] != OURS
    }
