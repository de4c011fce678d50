"""The result of by_times.py in words: tables for a terminal, the same in Markdown."""

from annotator.benchmark.effort.comparison import GOALS, OURS
from annotator.benchmark.effort.report import Tables, spread_text
from annotator.snapshot.time_model import PARTS

NOTE = (
    "A perfect person; recall at precision 0.99. In brackets: the seconds over Autopilot's (above 1: Autopilot is "
    "first), and with several seeds the smallest and the largest. Where a source gives one part, the others are ours."
)
HANDED_OUT = (
    "What Autopilot asks for: share of the answered pairs of an image and a class that were whole images (the others "
    "were tiles), by minutes of work"
)


def tables(result: dict) -> Tables:
    """Return title, headings and rows: the sets, the costs, their range over the sets, and what was asked for."""
    return [
        ("Seconds of the sets", ["set", "people", *PARTS], [_set_row(row) for row in result["sets"]]),
        (
            "Minutes to recall (times Autopilot's)",
            ["set", "policy", *(f"{goal:.2f}" for goal in GOALS)],
            [
                [name, policy, *(_cost_cell(_found(result["costs"], name, policy, goal)) for goal in GOALS)]
                for name in _names(result, "set")
                for policy in _names(result, "policy")
            ],
        ),
        (
            "Minutes to recall, the lowest and the highest of all sets (times Autopilot's)",
            ["policy", *(f"{goal:.2f}" for goal in GOALS)],
            [
                [policy, *(_range_cell(row) for row in result["range"] if row["policy"] == policy)]
                for policy in _names(result, "policy")
            ],
        ),
        (HANDED_OUT, *_handed_out(result)),
    ]


def foot(result: dict) -> list[str]:
    """Return the paragraphs beside the tables: how to read them, and the source of every set."""
    sources = (f"* {row['name']}: {row['source'] or 'no source is named.'}" for row in result["sets"])
    return [NOTE, "\n".join(sources)]


def _names(result: dict, column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in result["costs"]))


def _found(costs: list[dict], name: str, policy: str, goal: float) -> dict:
    return next(row for row in costs if (row["set"], row["policy"], row["goal"]) == (name, policy, goal))


def _set_row(row: dict) -> list[str]:
    return [row["name"], "" if row["people"] is None else f"{row['people']:,}", *(f"{row[part]:g}" for part in PARTS)]


def _cost_cell(row: dict) -> str:
    if not row["reached"]:
        return "not reached"
    text = spread_text(row["seconds"], 60, 1)
    if row["reached"] < row["seeds"]:
        return f"{text}, with {row['reached']} of {row['seeds']} seeds"
    return text if row["policy"] == OURS or not row["ratio"] else f"{text} ({spread_text(row['ratio'], 1, 2)})"


def _range_cell(row: dict) -> str:
    if not row["seconds"]:
        return "not reached"
    text = _ends(row["seconds"], 60, 1)
    return text if row["policy"] == OURS or not row["ratio"] else f"{text} ({_ends(row['ratio'], 1, 2)})"


def _ends(ends: dict, unit: float, digits: int) -> str:
    low, high = (f"{ends[name] / unit:,.{digits}f}" for name in ("low", "high"))
    return low if low == high else f"{low} to {high}"


def _handed_out(result: dict) -> tuple[list[str], list[list[str]]]:
    rows = result["handed_out"]
    columns = list(dict.fromkeys((row["policy"], *row["window"]) for row in rows))
    headings = [f"{policy}, {start / 60:.0f} to {end / 60:.0f} min" for policy, start, end in columns]
    by_set = {
        name: {(row["policy"], *row["window"]): row["whole"] for row in rows if row["set"] == name}
        for name in _names(result, "set")
    }
    lines = [[name, *(_share(shares.get(column)) for column in columns)] for name, shares in by_set.items()]
    return ["set", *headings], lines


def _share(share: float | None) -> str:
    return "no work left" if share is None else f"{100 * share:.0f} %"
