"""Tables from the curves of all plays: the cost of every goal, and Autopilot against the best other policy.

A figure is the mean over seeds, with the smallest and the largest.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from annotator.benchmark.effort import curves
from annotator.benchmark.effort.curves import COSTS
from annotator.benchmark.effort.play import NOISY, PERFECT, Play

RIVAL, OURS = "form", "autopilot"
GOALS = (0.80, 0.90, 0.95, 0.99)
MARGIN = 0.01  # of precision below what a noisy person's form ends with

Curves = dict[Play, list[dict]]


def compare(played: Curves) -> dict[str, list[dict]]:
    """Return the tables of a result.

    Returns:
        "goals": {"policy", "person", "goal", "recall", "precision", "actions", "seconds", "reached", "seeds"}: the
        costs are spreads {"mean", "low", "high"} over the seeds that reach the goal, None if none does. "lead":
        {"person", "goal", "cost", "best", "ratio"}: Autopilot's cost over that of the best other policy, which is the
        one with the lowest mean of those that reach the goal with every seed; None if none does. "behind": {"policy",
        "person", "cost", "share", "at"}: a spread of the shortfalls of `curves.largest_shortfall`, and the place of the
        largest one; None if Autopilot is never behind.
    """
    people = [by for by in (PERFECT, NOISY) if any(play.person == by for play in played)]
    goals = [row for by in people for goal in GOALS for row in _goal_rows(played, by, goal)]
    lead = [_lead(played, by, goal, cost) for by in people for goal in GOALS for cost in COSTS] if _ours(played) else []
    return {"goals": goals, "lead": lead, "behind": [row for by in people for row in _behind_rows(played, by)]}


def level(played: Curves, play: Play, goal: float) -> tuple[float, float]:
    """Return the recall and the precision that a goal means in this play.

    For a perfect person: the goal itself, at precision 0.99. A noisy person may never reach them; the goal is then a
    share of the recall with which the form of the same person ends, at MARGIN below its last precision, the same for
    all policies. Where no form was played, the policy with the lowest last recall takes its place.
    """
    if play.person == PERFECT:
        return goal, curves.PRECISION
    form = played.get(Play(RIVAL, play.person, play.seed))
    same = (curve for other, curve in played.items() if (other.person, other.seed) == (play.person, play.seed))
    last = (form or min(same, key=lambda curve: curve[-1]["decided"]["recall"]))[-1]["decided"]
    return round(goal * last["recall"], 4), round(last["precision"] - MARGIN, 4)


def choose_settings(played: Curves, policy: str, settings: Collection[str]) -> tuple[Curves, list[dict]]:
    """Replace the settings of a searched policy by the best of them, for each person.

    The best setting takes the fewest mean seconds to recall 0.95 over all seeds; if none reaches it, it is the one with
    the most labels at the end.

    Returns:
        The curves, and "searched": {"policy", "person", "setting", "actions", "seconds", "chosen"}, means over seeds.
    """
    kept = {play: curve for play, curve in played.items() if play.policy not in settings}
    searched: list[dict] = []
    for by in (PERFECT, NOISY):
        rows = []
        for setting in (name for name in policies_of(played, by) if name in settings):
            costs = {
                cost: mean_of_all(cost_of(played, setting, by, curves.RECALL, lambda point, cost=cost: point[cost]), 1)
                for cost in COSTS
            }
            ends = [curve[-1] for play, curve in played.items() if (play.policy, play.person) == (setting, by)]
            found = sum(end["decided"]["recall"] for end in ends)
            order = (costs["seconds"] is None, costs["seconds"] or -found)
            rows.append((order, {"policy": policy, "person": by, "setting": setting, **costs}))
        best = min(rows, key=lambda row: row[0])[1]["setting"] if rows else None
        searched += [row | {"chosen": row["setting"] == best} for _, row in rows]
        kept |= {
            Play(policy, by, play.seed): curve
            for play, curve in played.items()
            if (play.policy, play.person) == (best, by)
        }
    return kept, searched


def cost_of(played: Curves, policy: str, by: str, goal: float, cost: Callable[[dict], float]) -> list[float | None]:
    """Return the cost of reaching a goal with each seed; None where the goal is not reached."""
    plays = [play for play in played if (play.policy, play.person) == (policy, by)]
    reached = [curves.reached(played[play], *level(played, play, goal)) for play in plays]
    return [None if point is None else cost(point) for point in reached]


def spread(values: Iterable[float | None], digits: int = 4) -> dict[str, float] | None:
    """Return the mean, the smallest and the largest of the values that are not None; None if all are."""
    there = [value for value in values if value is not None]
    if not there:
        return None
    mean = sum(there) / len(there)
    return {"mean": round(mean, digits), "low": round(min(there), digits), "high": round(max(there), digits)}


def mean_of_all(values: Sequence[float | None], digits: int = 4) -> float | None:
    """Return the mean; None unless every seed has a value."""
    there = [value for value in values if value is not None]
    return round(sum(there) / len(there), digits) if there and len(there) == len(values) else None


def ratios_by_seed(theirs: Sequence[float | None], ours: Sequence[float | None]) -> list[float | None]:
    """Return the ratios seed by seed, None where either side did not reach the goal."""
    return [a / b if a is not None and b else None for a, b in zip(theirs, ours, strict=True)]


def policies_of(played: Curves, by: str) -> list[str]:
    """Return the policies that this person played."""
    return list(dict.fromkeys(play.policy for play in played if play.person == by))


def _goal_rows(played: Curves, by: str, goal: float) -> list[dict]:
    rows = []
    for policy in policies_of(played, by):
        costs = {cost: cost_of(played, policy, by, goal, lambda point, cost=cost: point[cost]) for cost in COSTS}
        levels = [level(played, play, goal) for play in played if (play.policy, play.person) == (policy, by)]
        recall, precision = (mean_of_all(values) for values in zip(*levels, strict=True))
        rows.append(
            {"policy": policy, "person": by, "goal": goal, "recall": recall, "precision": precision}
            | {cost: spread(values, 1) for cost, values in costs.items()}
            | {"reached": sum(value is not None for value in costs["actions"]), "seeds": len(levels)}
        )
    return rows


def _ours(played: Curves) -> bool:
    return any(play.policy == OURS for play in played) and any(play.policy != OURS for play in played)


def _lead(played: Curves, by: str, goal: float, cost: str) -> dict:
    costs = {policy: cost_of(played, policy, by, goal, lambda point: point[cost]) for policy in policies_of(played, by)}
    means = {policy: mean_of_all(values) for policy, values in costs.items() if policy != OURS}
    reached = {policy: mean for policy, mean in means.items() if mean is not None}
    best = min(reached, key=lambda policy: reached[policy]) if reached else None
    ours = costs.get(OURS, [])
    ratio = spread(ratios_by_seed(ours, costs[best]), 3) if best and mean_of_all(ours) is not None else None
    return {"person": by, "goal": goal, "cost": cost, "best": best, "ratio": ratio}


def _behind_rows(played: Curves, by: str) -> list[dict]:
    rows = []
    for policy in policies_of(played, by):
        pairs = [
            (played[mine], curve)
            for play, curve in played.items()
            if (play.policy, play.person) == (policy, by) and (mine := Play(OURS, by, play.seed)) in played
        ]
        for cost in COSTS if policy != OURS and pairs else ():
            found = [curves.largest_shortfall(ours, theirs, cost) for ours, theirs in pairs]
            share, at = max(found, key=lambda pair: pair[0])
            shares = spread(share for share, _ in found)
            rows.append({"policy": policy, "person": by, "cost": cost, "share": shares, "at": at if share else None})
    return rows
