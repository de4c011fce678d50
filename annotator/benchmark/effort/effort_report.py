"""The result of `bench effort` in words: tables for a terminal, the same in Markdown."""

from collections.abc import Sequence

from annotator.benchmark.effort.comparison import RECALL_GOALS
from annotator.benchmark.effort.curves import COST_KINDS, SHORTFALL_STARTS
from annotator.benchmark.effort.play import NOISY_PERSON, PERFECT_PERSON

Tables = list[tuple[str, list[str], list[list[str]]]]

EFFORT_NOTE = (
    "Perfect person: recall as the heading says, at precision 0.99. Noisy person: this share of the recall that their "
    "form ends with, one point below its last precision. With several seeds: the mean, and the smallest and largest in "
    "brackets."
)


def make_tables(result: dict) -> Tables:
    """Return title, headings and rows of each table.

    The tables are the costs of the goals, Autopilot over the best other policy, how far Autopilot is behind, and the
    search.
    """
    found: Tables = []
    for by in (PERFECT_PERSON, NOISY_PERSON):
        for cost in COST_KINDS:
            rows = [_format_cost_row(result, policy, by, cost) for policy in _list_policies(result, by)]
            if rows:
                unit = "Actions" if cost == "actions" else "Minutes"
                headings = ["policy", *(f"{goal:.2f}" for goal in RECALL_GOALS)]
                found.append((f"{unit} to recall, {by} person", headings, rows))
    lead = [
        [f"{by} person, {cost}", *(_format_lead(row) for row in rows)]
        for by in (PERFECT_PERSON, NOISY_PERSON)
        for cost in COST_KINDS
        if (rows := [row for row in result["lead"] if (row["person"], row["cost"]) == (by, cost)])
    ]
    if lead:
        title = "Autopilot over the best other policy (below 1: Autopilot is first)"
        found.append((title, ["", *(f"{goal:.2f}" for goal in RECALL_GOALS)], lead))
    behind = [
        [policy + ("" if by == PERFECT_PERSON else ", noisy"), *(_format_behind(row) for row in rows)]
        for by in (PERFECT_PERSON, NOISY_PERSON)
        for policy in _list_policies(result, by)
        if (rows := [row for row in result["behind"] if (row["policy"], row["person"]) == (policy, by)])
    ]
    if behind:
        after = (
            f"after the first {SHORTFALL_STARTS['actions']:.0f} actions or {SHORTFALL_STARTS['seconds'] / 60:.0f} "
            "minutes"
        )
        title = f"Autopilot's largest shortfall in micro F1 (with the model's labels) {after}"
        found.append((title, ["behind", "at the same actions", "at the same time"], behind))
    searched = [
        [
            *(row["setting"], row["person"], _format_mean(row["actions"], 1, 0), _format_mean(row["seconds"], 60, 1)),
            "chosen" if row["chosen"] else "",
        ]
        for row in result["searched"]
    ]
    if searched:
        title = "The settings that were searched: the fewest seconds to recall 0.95 are chosen"
        found.append((title, ["setting", "person", "actions", "minutes", ""], searched))
    return found


def describe_effort(result: dict) -> str:
    """Return a sentence on the measured images, the network and the seeds."""
    figures, seeds = result["figures"], result["seeds"]
    return (
        f"{figures['images']:,} images, {figures['classes']} classes, {figures['labels_per_image']:g} labels an image; "
        f"network {result['backbone']}; seeds {', '.join(map(str, seeds))}"
    )


def format_markdown(command: str, paragraphs: Sequence[str], tables: Tables) -> str:
    """Return the exact command, the paragraphs and the tables in Markdown."""
    lines = [f"`{command}`", "", *(line for paragraph in paragraphs for line in (paragraph, ""))]
    for title, headings, rows in tables:
        lines += [f"**{title}**", "", _format_line(headings), "|" + "---|" * len(headings)]
        lines += [*(_format_line(row) for row in rows), ""]
    return "\n".join(lines)


def _format_line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list_policies(result: dict, person: str) -> list[str]:
    return list(dict.fromkeys(row["policy"] for row in result["goals"] if row["person"] == person))


def _format_cost_row(result: dict, policy: str, person: str, cost: str) -> list[str]:
    rows = [row for row in result["goals"] if (row["policy"], row["person"]) == (policy, person)]
    return [policy, *(_format_cost(row, cost) for row in rows)]


def _format_cost(row: dict, cost: str) -> str:
    if not row["reached"]:
        return "not reached"
    text = format_spread(row[cost], 1 if cost == "actions" else 60, 0 if cost == "actions" else 1)
    return text if row["reached"] == row["seeds"] else f"{text}, with {row['reached']} of {row['seeds']} seeds"


def _format_lead(row: dict) -> str:
    if row["best"] is None:
        return "no other reaches it"
    return f"{format_spread(row['ratio'], 1, 2) if row['ratio'] else 'not reached'} ({row['best']})"


def _format_behind(row: dict) -> str:
    if row["at"] is None:
        return "never"
    where = f"{row['at']:,.0f} actions" if row["cost"] == "actions" else f"{row['at'] / 60:.1f} min"
    return f"{format_spread(row['share'], 0.01, 1)} %, at {where}"


def _format_mean(mean: float | None, unit: float, digits: int) -> str:
    return "not reached" if mean is None else f"{mean / unit:,.{digits}f}"


def format_spread(spread: dict, unit: float, digits: int) -> str:
    """Return the mean of a spread in a unit, with the smallest and the largest in brackets if they differ."""
    mean, low, high = (f"{spread[name] / unit:,.{digits}f}" for name in ("mean", "low", "high"))
    return mean if low == high else f"{mean} [{low} to {high}]"
