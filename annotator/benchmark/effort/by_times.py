"""Autopilot and its rivals under several sets of times, in one run.

A policy whose choices depend on the person's times is played again with every set; the plays of all others are the same
for everyone and only cost other seconds. Equal answers take the person times that vary (pace.taken), and the project
learns them from the milliseconds of the answers alone: Autopilot has to follow. `autopilot-known` is the same person
after a long speed test; `count_handed_out` compares what both are asked for.
"""

from collections.abc import Sequence
from pathlib import Path

from annotator.benchmark.effort import curves
from annotator.benchmark.effort.comparison import (
    OUR_POLICY,
    RECALL_GOALS,
    Curves,
    choose_settings,
    compare_policies,
    compute_full_mean,
    compute_spread,
    list_costs,
    list_policies,
    ratios_by_seed,
)
from annotator.benchmark.effort.effort_measurement import check_policies, make_project, resolve_images_and_truth
from annotator.benchmark.effort.play import PERFECT_PERSON, Play, play_all
from annotator.benchmark.effort.policies import POLICIES, SETTING_POLICIES
from annotator.benchmark.effort.time_sets import TimeSet
from annotator.benchmark.scratch import scratch_folder
from annotator.store.database.database import Database
from annotator.store.networks import configuration

KNOWN_TIMES_POLICY = "autopilot-known"
COMPARED_POLICIES = ("form", "grid-only", "best-mixture", OUR_POLICY, KNOWN_TIMES_POLICY)
ADAPTATION_SECONDS = 600.0  # seconds of work after which Autopilot should ask for what suits the person
TIME_WINDOWS = ((0.0, ADAPTATION_SECONDS), (ADAPTATION_SECONDS, 2 * ADAPTATION_SECONDS))


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
        truth: Every label of every image, as of effort_measurement.measure_effort; None: the sample data's.
        policies: Names in POLICIES; (): COMPARED_POLICIES. Autopilot is always among them.
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
        "ratio"}, the lowest and the highest mean over all sets that reach it; "handed_out": as of `count_handed_out`;
        "searched": as of comparison.choose_settings, with the set.

    Raises:
        AnnotatorError: Images and truth do not fit together, or a policy does not exist.
    """
    names = list(dict.fromkeys([*(check_policies(policies) or COMPARED_POLICIES), OUR_POLICY]))
    images_folder, truth = resolve_images_and_truth(images_folder, truth)
    with scratch_folder() as folder:
        template = folder / "project" if work is None else work
        shown = make_project(template, images_folder, truth, backbone)
        limit = most * (shown.sum() + len(shown))
        plays = [
            _make_play(setting, seed + number, times)
            for number in range(seeds)
            for times in sets
            for name in names
            for setting in POLICIES[name].settings or (name,)
        ]
        played = play_all(template, folder, shown, list(dict.fromkeys(plays)), limit, jobs)
        used = configuration.get_backbone(Database(template))
    result: dict = {"costs": [], "handed_out": [], "searched": [], "lead": []}
    for times in sets:
        own, searched = _select_curves(played, names, range(seed, seed + seeds), times)
        result["costs"] += _cost_rows(own, times.name)
        result["handed_out"] += [{"set": times.name, **row} for row in count_handed_out(own)]
        result["searched"] += [{"set": times.name, **row} for row in searched]
        result["lead"] += [
            {"set": times.name, **row} for row in compare_policies(own)["lead"] if row["cost"] == "seconds"
        ]
    figures = {"images": len(shown), "classes": shown.shape[1], "labels_per_image": round(shown.sum() / len(shown), 3)}
    return {
        "bench": "effort",
        "figures": figures | _make_figures(result),
        "ratios": _make_ratios(result),
        "sets": [times.as_json() for times in sets],
        **result,
        "range": _range_rows(result["costs"]),
        "policies": {name: POLICIES[name].about for name in names},
        "backbone": used,
        "seeds": list(range(seed, seed + seeds)),
    }


def count_handed_out(played: Curves) -> list[dict]:
    """Return what Autopilot asked for in the first ten minutes of work, and in the ten after.

    Args:
        played: Plays with one set of times; seconds are those of the set.

    Returns:
        {"policy", "window", "grids", "images", "clicks", "whole"} for OUR_POLICY and KNOWN_TIMES_POLICY: `window` in
        seconds, the numbers
        of answers, and `whole`, the share of the pairs of an image and a class that were answered as a whole image and
        not in a grid. Means over the seeds; None where no work was left.
    """
    rows = []
    for policy in (name for name in list_policies(played, PERFECT_PERSON) if name in (OUR_POLICY, KNOWN_TIMES_POLICY)):
        of_policy = [curve for play, curve in played.items() if play.policy == policy]
        for start, end in TIME_WINDOWS:
            asked = [_count_answers(curve, start, end) for curve in of_policy if curve[-1]["seconds"] > start]
            means = {
                name: compute_full_mean([one[name] for one in asked if one[name] is not None], 3)
                for name in ("grids", "images", "clicks", "whole")
            }
            rows.append({"policy": policy, "window": [start, end], **means})
    return rows


def _count_answers(curve: Sequence[dict], start: float, end: float) -> dict[str, float | None]:
    before, after = curves.interpolate_parts(curve, start), curves.interpolate_parts(curve, end)
    parts = {part: after[part] - before[part] for part in after}
    pairs = parts["tile"] + parts["check"]
    whole = parts["check"] / pairs if pairs else None
    return {"grids": parts["begin"], "images": parts["look"], "clicks": parts["click"], "whole": whole}


def _make_play(name: str, seed: int, times: TimeSet) -> Play:
    timed = (POLICIES | SETTING_POLICIES)[name].depends_on_times
    return Play(name, PERFECT_PERSON, seed, times.times, varies=True) if timed else Play(name, PERFECT_PERSON, seed)


def _select_curves(
    played: Curves, names: Sequence[str], seeds: Sequence[int], times: TimeSet
) -> tuple[Curves, list[dict]]:
    """Return the curves in the seconds of one set, by plays that do not name the set, and the searched settings."""
    own: Curves = {}
    for name in names:
        for setting in POLICIES[name].settings or (name,):
            for seed in seeds:
                own[Play(setting, PERFECT_PERSON, seed)] = curves.replace_seconds(
                    played[_make_play(setting, seed, times)], times.times
                )
    searched: list[dict] = []
    for name in names:
        if POLICIES[name].settings:
            own, rows = choose_settings(own, name, POLICIES[name].settings)
            searched += rows
    return own, searched


def _cost_rows(own: Curves, name: str) -> list[dict]:
    def list_seconds(policy: str, goal: float) -> list[float | None]:
        return list_costs(own, policy, PERFECT_PERSON, goal, lambda point: point["seconds"])

    rows = []
    for row in compare_policies(own)["goals"]:
        ratios = ratios_by_seed(list_seconds(row["policy"], row["goal"]), list_seconds(OUR_POLICY, row["goal"]))
        kept = ("policy", "goal", "actions", "seconds", "reached", "seeds")
        ratio = compute_spread(ratios, 3) if None not in ratios else None
        rows.append({"set": name, **{column: row[column] for column in kept}, "ratio": ratio})
    return rows


def _range_rows(costs: Sequence[dict]) -> list[dict]:
    rows = []
    for policy in dict.fromkeys(row["policy"] for row in costs):
        for goal in RECALL_GOALS:
            of_goal = [row for row in costs if (row["policy"], row["goal"]) == (policy, goal)]
            seconds = [row["seconds"]["mean"] for row in of_goal if row["reached"] == row["seeds"]]
            ratios = [row["ratio"]["mean"] for row in of_goal if row["ratio"]]
            rows.append({"policy": policy, "goal": goal, "seconds": _find_ends(seconds), "ratio": _find_ends(ratios)})
    return rows


def _find_ends(values: Sequence[float]) -> dict[str, float | int] | None:
    return {"low": min(values), "high": max(values), "sets": len(values)} if values else None


def _make_figures(result: dict) -> dict[str, float | None]:
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


def _make_ratios(result: dict) -> dict[str, float]:
    return {
        f"{row['set']}: {row['policy']} over autopilot, seconds to recall {row['goal']:.2f}": row["ratio"]["mean"]
        for row in result["costs"]
        if row["ratio"] and row["policy"] != OUR_POLICY
    }
