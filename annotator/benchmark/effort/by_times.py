"""Cost of Autopilot and other policies of labeling, under several sets of answer times.

Only policies whose questions depend on answer times are played again per set. `autopilot-known` has learned the times
from a long speed test.
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
    format_spread,
    list_costs,
    list_policies,
    ratios_by_seed,
)
from annotator.benchmark.effort.effort_measurement import (
    EffortOptions,
    check_policies,
    describe_effort,
    make_project,
    resolve_images_and_truth,
)
from annotator.benchmark.effort.play import PERFECT_PERSON, Play, play_all
from annotator.benchmark.effort.policies import POLICIES, SETTING_POLICIES
from annotator.benchmark.effort.time_sets import TimeSet
from annotator.benchmark.reports import Report, ReportTable
from annotator.benchmark.scratch import scratch_folder
from annotator.snapshot.time_model import TIME_PARTS
from annotator.store.database.database import Database
from annotator.store.networks import configuration

KNOWN_TIMES_POLICY = "autopilot-known"
COMPARED_POLICIES = ("form", "grid-only", "best-mixture", OUR_POLICY, KNOWN_TIMES_POLICY)
ADAPTATION_SECONDS = 600.0  # seconds of work after which Autopilot should ask for what suits the person
TIME_WINDOWS = ((0.0, ADAPTATION_SECONDS), (ADAPTATION_SECONDS, 2 * ADAPTATION_SECONDS))
TIME_SETS_NOTE = (
    "A perfect person; recall at precision 0.99. In brackets: the seconds over Autopilot's (above 1: Autopilot is "
    "first), and with several seeds the smallest and the largest. Where a source gives one part, the others are ours."
)
HANDED_OUT_TITLE = (
    "What Autopilot asks for: share of the answered pairs of an image and a class that were whole images (the others "
    "were tiles), by minutes of work"
)


def measure_by_times(
    sets: Sequence[TimeSet],
    images_folder: Path | None = None,
    truth: Path | None = None,
    options: EffortOptions = EffortOptions(),
) -> dict:
    """Simulate a perfect annotator per set of answer times, and return each policy's cost.

    Args:
        images_folder, truth: None selects the sample data.
        options: No policies selects COMPARED_POLICIES. Autopilot is always included.

    Returns:
        {"bench", "figures", "ratios", "sets", "policies", "backbone", "seeds"}. "costs" has mean, minimum and
        maximum per set, policy and goal, with the ratio of seconds to Autopilot. "range" has the lowest and
        highest mean over sets.

    Raises:
        AnnotatorError: If images and truth do not match, or for an unknown policy.
    """
    names = list(dict.fromkeys([*(check_policies(options.policies) or COMPARED_POLICIES), OUR_POLICY]))
    images_folder, truth = resolve_images_and_truth(images_folder, truth)
    with scratch_folder() as folder:
        template = folder / "project" if options.work is None else options.work
        shown = make_project(template, images_folder, truth, options.backbone)
        limit = options.most * (shown.sum() + len(shown))
        plays = [
            _make_play(setting, seed, times)
            for seed in options.list_seeds()
            for times in sets
            for name in names
            for setting in POLICIES[name].settings or (name,)
        ]
        played = play_all(template, folder, shown, list(dict.fromkeys(plays)), limit, options.jobs)
        used = configuration.get_backbone(Database(template))
    result: dict = {"costs": [], "handed_out": [], "searched": [], "lead": []}
    for times in sets:
        own, searched = _select_curves(played, names, options.list_seeds(), times)
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
        "seeds": options.list_seeds(),
    }


def count_handed_out(played: Curves) -> list[dict]:
    """Return how many grids, whole images and clicks (means over seeds) Autopilot asked in each of TIME_WINDOWS.

    `whole` is the share of cells answered as whole images.
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


def build_times_report(result: dict, command: str) -> Report:
    """Return the report: the sets of times, the costs, their range over the sets, and what was asked."""
    goals = [f"{goal:.2f}" for goal in RECALL_GOALS]
    tables = [
        ReportTable(["set", "people", *TIME_PARTS], list(map(_format_set, result["sets"])), "Seconds of the sets"),
        ReportTable(["set", "policy", *goals], _format_costs(result), "Minutes to recall (times Autopilot's)"),
        ReportTable(
            ["policy", *goals],
            _format_ranges(result),
            "Minutes to recall, the lowest and the highest of all sets (times Autopilot's)",
        ),
        _build_handed_out_table(result),
    ]
    sources = [f"* {row['name']}: {row['source'] or 'no source is named.'}" for row in result["sets"]]
    return Report([describe_effort(result)], tables, [TIME_SETS_NOTE, "\n".join(sources)], command=command)


def _list_names(result: dict, column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in result["costs"]))


def _find_row(costs: list[dict], name: str, policy: str, goal: float) -> dict:
    return next(row for row in costs if (row["set"], row["policy"], row["goal"]) == (name, policy, goal))


def _format_costs(result: dict) -> list[list[str]]:
    return [
        [name, policy, *(_format_cost(_find_row(result["costs"], name, policy, goal)) for goal in RECALL_GOALS)]
        for name in _list_names(result, "set")
        for policy in _list_names(result, "policy")
    ]


def _format_ranges(result: dict) -> list[list[str]]:
    return [
        [policy, *(_format_range(row) for row in result["range"] if row["policy"] == policy)]
        for policy in _list_names(result, "policy")
    ]


def _format_set(row: dict) -> list[str]:
    return [
        row["name"],
        "" if row["people"] is None else f"{row['people']:,}",
        *(f"{row[part]:g}" for part in TIME_PARTS),
    ]


def _format_cost(row: dict) -> str:
    if not row["reached"]:
        return "not reached"
    text = format_spread(row["seconds"], 60, 1)
    if row["reached"] < row["seeds"]:
        return f"{text}, with {row['reached']} of {row['seeds']} seeds"
    return text if row["policy"] == OUR_POLICY or not row["ratio"] else f"{text} ({format_spread(row['ratio'], 1, 2)})"


def _format_range(row: dict) -> str:
    if not row["seconds"]:
        return "not reached"
    text = _format_ends(row["seconds"], 60, 1)
    return text if row["policy"] == OUR_POLICY or not row["ratio"] else f"{text} ({_format_ends(row['ratio'], 1, 2)})"


def _format_ends(ends: dict, unit: float, digits: int) -> str:
    low, high = (f"{ends[name] / unit:,.{digits}f}" for name in ("low", "high"))
    return low if low == high else f"{low} to {high}"


def _build_handed_out_table(result: dict) -> ReportTable:
    rows = result["handed_out"]
    columns = list(dict.fromkeys((row["policy"], *row["window"]) for row in rows))
    headings = [f"{policy}, {start / 60:.0f} to {end / 60:.0f} min" for policy, start, end in columns]
    by_set = {
        name: {(row["policy"], *row["window"]): row["whole"] for row in rows if row["set"] == name}
        for name in _list_names(result, "set")
    }
    lines = [[name, *(_format_share(shares.get(column)) for column in columns)] for name, shares in by_set.items()]
    return ReportTable(["set", *headings], lines, HANDED_OUT_TITLE)


def _format_share(share: float | None) -> str:
    return "no work left" if share is None else f"{100 * share:.0f} %"
