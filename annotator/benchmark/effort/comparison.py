"""Tables of each policy's effort per recall goal, and of Autopilot against the best other policy."""

from collections.abc import Callable, Collection, Iterable, Sequence

from annotator.benchmark.effort import curves
from annotator.benchmark.effort.curves import COST_KINDS
from annotator.benchmark.effort.play import NOISY_PERSON, PERFECT_PERSON, Play

RIVAL_POLICY, OUR_POLICY = "form", "autopilot"
RECALL_GOALS = (0.80, 0.90, 0.95, 0.99)
PRECISION_MARGIN = 0.01  # of precision below what a noisy person's form ends with

Curves = dict[Play, list[dict]]


def compare_policies(played: Curves) -> dict[str, list[dict]]:
    """Return the tables "goals", "lead" and "behind" from the curves of all plays.

    Returns:
        "goals" has mean, minimum and maximum cost over the seeds that reach a goal. "lead" has Autopilot's cost
        divided by that of the cheapest other policy that reaches it with every seed. "behind" has Autopilot's largest
        shortfalls.
    """
    people = [by for by in (PERFECT_PERSON, NOISY_PERSON) if any(play.person == by for play in played)]
    goals = [row for by in people for goal in RECALL_GOALS for row in _make_goal_rows(played, by, goal)]
    lead = (
        [_make_lead_row(played, by, goal, cost) for by in people for goal in RECALL_GOALS for cost in COST_KINDS]
        if _has_ours_and_others(played)
        else []
    )
    return {"goals": goals, "lead": lead, "behind": [row for by in people for row in _make_behind_rows(played, by)]}


def find_goal_level(played: Curves, play: Play, goal: float) -> tuple[float, float]:
    """Return the recall and precision that a play must reach for a goal.

    Perfect annotators need recall `goal` at precision 0.99. Noisy ones need `goal` times the final recall of the
    form policy, at PRECISION_MARGIN below its final precision. Without it, the policy with the lowest final
    recall counts.
    """
    if play.person == PERFECT_PERSON:
        return goal, curves.GOAL_PRECISION
    form = played.get(Play(RIVAL_POLICY, play.person, play.seed))
    same = (curve for other, curve in played.items() if (other.person, other.seed) == (play.person, play.seed))
    last = (form or min(same, key=lambda curve: curve[-1]["decided"]["recall"]))[-1]["decided"]
    return round(goal * last["recall"], 4), round(last["precision"] - PRECISION_MARGIN, 4)


def choose_settings(played: Curves, policy: str, settings: Collection[str]) -> tuple[Curves, list[dict]]:
    """Return the curves, of `policy` only those of the best setting per annotator, and a list of the settings tried.

    The best has the fewest mean seconds to recall 0.95, or else the most labels.
    """
    kept = {play: curve for play, curve in played.items() if play.policy not in settings}
    searched: list[dict] = []
    for by in (PERFECT_PERSON, NOISY_PERSON):
        rows = []
        for setting in (name for name in list_policies(played, by) if name in settings):
            costs = {
                cost: compute_full_mean(
                    list_costs(played, setting, by, curves.GOAL_RECALL, lambda point, cost=cost: point[cost]), 1
                )
                for cost in COST_KINDS
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


def list_costs(
    played: Curves, policy: str, person: str, goal: float, cost: Callable[[dict], float]
) -> list[float | None]:
    """Return the cost of reaching a recall goal for each seed, None where it was not reached."""
    plays = [play for play in played if (play.policy, play.person) == (policy, person)]
    reached = [curves.find_goal_point(played[play], *find_goal_level(played, play, goal)) for play in plays]
    return [None if point is None else cost(point) for point in reached]


def compute_spread(values: Iterable[float | None], digits: int = 4) -> dict[str, float] | None:
    """Return mean, minimum and maximum of the values, ignoring None."""
    there = [value for value in values if value is not None]
    if not there:
        return None
    mean = sum(there) / len(there)
    return {"mean": round(mean, digits), "low": round(min(there), digits), "high": round(max(there), digits)}


def format_spread(spread: dict, unit: float, digits: int) -> str:
    """Format a mean in a unit, with its range in brackets."""
    mean, low, high = (f"{spread[name] / unit:,.{digits}f}" for name in ("mean", "low", "high"))
    return mean if low == high else f"{mean} [{low} to {high}]"


def compute_full_mean(values: Sequence[float | None], digits: int = 4) -> float | None:
    there = [value for value in values if value is not None]
    return round(sum(there) / len(there), digits) if there and len(there) == len(values) else None


def ratios_by_seed(theirs: Sequence[float | None], ours: Sequence[float | None]) -> list[float | None]:
    """Return theirs / ours for each seed, None if either is missing."""
    return [a / b if a is not None and b else None for a, b in zip(theirs, ours, strict=True)]


def list_policies(played: Curves, person: str) -> list[str]:
    return list(dict.fromkeys(play.policy for play in played if play.person == person))


def _make_goal_rows(played: Curves, person: str, goal: float) -> list[dict]:
    rows = []
    for policy in list_policies(played, person):
        costs = {
            cost: list_costs(played, policy, person, goal, lambda point, cost=cost: point[cost]) for cost in COST_KINDS
        }
        levels = [
            find_goal_level(played, play, goal) for play in played if (play.policy, play.person) == (policy, person)
        ]
        recall, precision = (compute_full_mean(values) for values in zip(*levels, strict=True))
        rows.append(
            {"policy": policy, "person": person, "goal": goal, "recall": recall, "precision": precision}
            | {cost: compute_spread(values, 1) for cost, values in costs.items()}
            | {"reached": sum(value is not None for value in costs["actions"]), "seeds": len(levels)}
        )
    return rows


def _has_ours_and_others(played: Curves) -> bool:
    return any(play.policy == OUR_POLICY for play in played) and any(play.policy != OUR_POLICY for play in played)


def _make_lead_row(played: Curves, person: str, goal: float, cost: str) -> dict:
    costs = {
        policy: list_costs(played, policy, person, goal, lambda point: point[cost])
        for policy in list_policies(played, person)
    }
    means = {policy: compute_full_mean(values) for policy, values in costs.items() if policy != OUR_POLICY}
    reached = {policy: mean for policy, mean in means.items() if mean is not None}
    best = min(reached, key=lambda policy: reached[policy]) if reached else None
    ours = costs.get(OUR_POLICY, [])
    ratio = (
        compute_spread(ratios_by_seed(ours, costs[best]), 3) if best and compute_full_mean(ours) is not None else None
    )
    return {"person": person, "goal": goal, "cost": cost, "best": best, "ratio": ratio}


def _make_behind_rows(played: Curves, person: str) -> list[dict]:
    rows = []
    for policy in list_policies(played, person):
        pairs = [
            (played[mine], curve)
            for play, curve in played.items()
            if (play.policy, play.person) == (policy, person)
            and (mine := Play(OUR_POLICY, person, play.seed)) in played
        ]
        for cost in COST_KINDS if policy != OUR_POLICY and pairs else ():
            found = [curves.find_largest_shortfall(ours, theirs, cost) for ours, theirs in pairs]
            share, at = max(found, key=lambda pair: pair[0])
            shares = compute_spread(share for share, _ in found)
            rows.append(
                {"policy": policy, "person": person, "cost": cost, "share": shares, "at": at if share else None}
            )
    return rows
