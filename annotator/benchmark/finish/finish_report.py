"""The result in words: lines and tables for a terminal, the same in Markdown."""

from collections.abc import Iterator

from annotator.benchmark.finish.drawing import SET_RECIPES
from annotator.benchmark.finish.run import RUN_CERTIFIED
from annotator.benchmark.finish.sets import IMAGES_PER_MADE_UP_SET
from annotator.humanize import format_count, format_percent

RUN_HEADINGS = ("tool", "ended", "minutes", "presses", "true goal at", "recall", "precision", "computing, s")
FINISH_NOTE = (
    "minutes, presses: of the person, until the tool said rightly that it was done. true goal at: minutes until its "
    "labels had the recall and precision that are wanted, whether it knew or not. recall, precision: when it said that "
    "it was done, or at the end. computing: seconds of the tool itself, apart from the person's."
)
TOTALS_HEADINGS = ("tool", "finished", "said done too early", "failed", "minutes, of the form's")


def describe_protocol(result: dict) -> list[str]:
    """Return lines on the protocol, the goal and the sources of times."""
    goal, sources = result["goal"], result["clock"]["sources"]
    own = "" if goal["is_of_the_protocol"] else " (a goal of your own, not that of the protocol)"
    lines = [
        f"Protocol {result['protocol']}, {result['date']}. Finished: recall {goal['recall']:g} at precision "
        f"{goal['precision']:g}, certified by the tool itself{own}.",
    ]
    if other := [
        set_ for set_ in result["sets"] if set_["set"] in SET_RECIPES and set_["images"] != IMAGES_PER_MADE_UP_SET
    ]:
        lines.append(f"Made-up sets of {other[0]['images']:,} images, where the protocol has {IMAGES_PER_MADE_UP_SET}.")
    for source in dict.fromkeys(sources.values()):
        kinds = ", ".join(kind for kind, given in sources.items() if given == source)
        lines.append(f"Times of {kinds}: {source}.")
    return lines


def iterate_tables(result: dict) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield a title and rows under RUN_HEADINGS, for each set and person."""
    for set_ in result["sets"]:
        rows = [row for row in result["rows"] if (row["set"], row["seed"]) == (set_["set"], set_["seed"])]
        size = f"{format_count(set_['images'], 'image')}, {format_count(set_['classes'], 'class', 'classes')}"
        form = f"a form for every image: {set_['form_seconds'] / 60:.1f} minutes"
        for person in dict.fromkeys(row["person"] for row in rows):
            title = f"{set_['set']} ({set_['about']}; {size}; {form}), {person} person, seed {set_['seed']}"
            yield title, [_format_row(row) for row in rows if row["person"] == person]


def format_totals(result: dict) -> list[list[str]]:
    """Return rows under TOTALS_HEADINGS, one for each tool."""
    rows = []
    for name in dict.fromkeys(row["tool"] for row in result["rows"]):
        figures, runs = result["figures"], sum(row["tool"] == name for row in result["rows"])
        ratio = result["ratios"].get(f"{name}_over_form_seconds")
        rows.append(
            [
                name,
                f"{figures[f'{name}_finished']} of {runs}",
                str(figures[f"{name}_said_done_too_early"]),
                str(figures[f"{name}_failed"]),
                "-" if ratio is None else f"{ratio:.2f}",
            ]
        )
    return rows


def list_sentences(result: dict) -> list[str]:
    """Return one line for each tool on how it certifies, and one for each failed run with the reason."""
    ways = {row["tool"]: row["certifies_by"] for row in result["rows"] if row["certifies_by"]}
    lines = [f"{name} is done when: {way}." for name, way in ways.items()]
    return lines + [f"FAILED {format_row_title(row)}: {row['why']}" for row in result["rows"] if row["why"]]


def format_row_title(row: dict) -> str:
    """Return the set, person, seed and tool of a row in words."""
    return f"{row['tool']} on {row['set']}, {row['person']} person, seed {row['seed']}"


def format_markdown(result: dict) -> str:
    """Return everything in Markdown, with the exact command."""
    lines = [f"`{result['command']}`", "", *describe_protocol(result), "", FINISH_NOTE, ""]
    lines += _format_table(TOTALS_HEADINGS, format_totals(result))
    for title, rows in iterate_tables(result):
        lines += [f"**{title}**", "", *_format_table(RUN_HEADINGS, rows)]
    return "\n".join([*lines, *list_sentences(result), ""])


def _format_table(headings: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return [*lines, *("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows), ""]


def _format_row(row: dict) -> list[str]:
    scores = (row["claim"] or {}).get("decided") or row["final"]
    return [
        row["tool"],
        row["ended"] if row["ended"] == RUN_CERTIFIED or not row["claim"] else "said done too early",
        "-" if row["seconds"] is None else f"{row['seconds'] / 60:.1f}",
        "-" if row["actions"] is None else f"{row['actions']:,}",
        "not reached" if row["true"] is None else f"{row['true']['seconds'] / 60:.1f}",
        *("-" if scores is None else format_percent(scores[name], digits=1) for name in ("recall", "precision")),
        f"{row['computing_seconds']:,.0f}",
    ]
