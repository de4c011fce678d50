"""The result of by_times.py in words: tables for a terminal, the same in Markdown."""

from annotator.benchmark.effort.comparison import OUR_POLICY, RECALL_GOALS
from annotator.benchmark.effort.effort_report import Tables, format_spread
from annotator.snapshot.time_model import TIME_PARTS

TIME_SETS_NOTE = (
    "A perfect person; recall at precision 0.99. In brackets: the seconds over Autopilot's (above 1: Autopilot is "
    "first), and with several seeds the smallest and the largest. Where a source gives one part, the others are ours."
)
HANDED_OUT_TITLE = (
    "What Autopilot asks for: share of the answered pairs of an image and a class that were whole images (the others "
    "were tiles), by minutes of work"
)


def make_tables(result: dict) -> Tables:
    """Return title, headings and rows: the sets, the costs, their range over the sets, and what was asked for."""
    return [
        ("Seconds of the sets", ["set", "people", *TIME_PARTS], [_format_set(row) for row in result["sets"]]),
        (
            "Minutes to recall (times Autopilot's)",
            ["set", "policy", *(f"{goal:.2f}" for goal in RECALL_GOALS)],
            [
                [name, policy, *(_format_cost(_find_row(result["costs"], name, policy, goal)) for goal in RECALL_GOALS)]
                for name in _list_names(result, "set")
                for policy in _list_names(result, "policy")
            ],
        ),
        (
            "Minutes to recall, the lowest and the highest of all sets (times Autopilot's)",
            ["policy", *(f"{goal:.2f}" for goal in RECALL_GOALS)],
            [
                [policy, *(_format_range(row) for row in result["range"] if row["policy"] == policy)]
                for policy in _list_names(result, "policy")
            ],
        ),
        (HANDED_OUT_TITLE, *_make_handed_out_table(result)),
    ]


def make_footnotes(result: dict) -> list[str]:
    """Return the paragraphs beside the tables: how to read them, and the source of every set."""
    sources = (f"* {row['name']}: {row['source'] or 'no source is named.'}" for row in result["sets"])
    return [TIME_SETS_NOTE, "\n".join(sources)]


def _list_names(result: dict, column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in result["costs"]))


def _find_row(costs: list[dict], name: str, policy: str, goal: float) -> dict:
    return next(row for row in costs if (row["set"], row["policy"], row["goal"]) == (name, policy, goal))


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


def _make_handed_out_table(result: dict) -> tuple[list[str], list[list[str]]]:
    rows = result["handed_out"]
    columns = list(dict.fromkeys((row["policy"], *row["window"]) for row in rows))
    headings = [f"{policy}, {start / 60:.0f} to {end / 60:.0f} min" for policy, start, end in columns]
    by_set = {
        name: {(row["policy"], *row["window"]): row["whole"] for row in rows if row["set"] == name}
        for name in _list_names(result, "set")
    }
    lines = [[name, *(_format_share(shares.get(column)) for column in columns)] for name, shares in by_set.items()]
    return ["set", *headings], lines


def _format_share(share: float | None) -> str:
    return "no work left" if share is None else f"{100 * share:.0f} %"
