"""Measurement of every tool with every simulated person on every test set."""

import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from annotator.benchmark.finish import sets
from annotator.benchmark.finish.adapters import ProcessTool, find_installed_tools, make_class_command
from annotator.benchmark.finish.clock import Clock
from annotator.benchmark.finish.drawing import SET_RECIPES
from annotator.benchmark.finish.measured_times import read_times
from annotator.benchmark.finish.protocol import (
    GOAL_CONFIDENCE,
    GOAL_PRECISION,
    GOAL_RECALL,
    MAX_COMPUTING_SECONDS,
    PATIENCE_FACTOR,
    PROTOCOL_VERSION,
    Task,
    Tool,
)
from annotator.benchmark.finish.run import RUN_CERTIFIED, RUN_FAILED, play_tool
from annotator.benchmark.finish.sets import IMAGES_PER_MADE_UP_SET, TestSet
from annotator.benchmark.finish.tools import RIVAL_TOOL, TOOLS
from annotator.benchmark.reports import Report, ReportTable
from annotator.benchmark.scratch import print_progress, scratch_folder
from annotator.benchmark.simulated_people import ERROR_SHARE, MISSED_SHARE, SALIENCE_SPREAD, SMALL_SHARE, Person
from annotator.errors import AnnotatorError, did_you_mean
from annotator.humanize import format_count, format_percent

PERSON_KINDS = ("perfect", "noisy")
NO_TOOLS = "none"  # in the place of tools: only those of others
RUN_HEADINGS = ("tool", "ended", "minutes", "presses", "true goal at", "recall", "precision", "computing, s")
FINISH_NOTE = (
    "minutes, presses: of the person, until the tool said rightly that it was done. true goal at: minutes until its "
    "labels had the recall and precision that are wanted, whether it knew or not. recall, precision: when it said that "
    "it was done, or at the end. computing: seconds of the tool itself, apart from the person's."
)
TOTALS_HEADINGS = ("tool", "finished", "said done too early", "failed", "minutes, of the form's")


@dataclass(frozen=True)
class Options:
    """The sets, tools and simulated persons to measure, with settings."""

    # sets, tools, persons: names, empty selects all
    sets: Sequence[str] = ()
    tools: Sequence[str] = ()
    persons: Sequence[str] = ()
    images: Path | None = None
    truth: Path | None = None
    # classes, commands: external tools as FILE.py:CLASS, MODULE:CLASS or command lines
    classes: Sequence[str] = ()
    commands: Sequence[str] = ()
    seeds: int = 1
    # images per generated set
    count: int = IMAGES_PER_MADE_UP_SET
    times: Path | None = None
    recall: float = GOAL_RECALL
    precision: float = GOAL_PRECISION
    timeout_seconds: float = MAX_COMPUTING_SECONDS
    # folder that keeps sets and derived data
    work: Path | None = None


def measure_tools(options: Options, command: str = "") -> dict[str, Any]:
    """Measure every labeling tool with every simulated person on every test set.

    Returns:
        {"bench", "protocol", "goal", "clock", "person", "sets", "rows", "figures", "ratios", "command", "date"}.

    Raises:
        AnnotatorError: For invalid options, before any measurement.
    """
    names, persons, tools = _check_options(options)
    clock = read_times(options.times) if options.times else Clock()
    described: list[dict] = []
    rows: list[dict] = []
    with nullcontext(options.work) if options.work else scratch_folder() as work:
        for seed in range(options.seeds):
            for set_ in _iterate_sets(options, names, work, seed):
                form = clock.compute_form_seconds(len(set_.images), len(set_.classes), int(set_.truth.sum()))
                described.append({**set_.as_json(), "seed": seed, "form_seconds": round(form, 1)})
                for person in persons:
                    rows += [
                        _measure_row(set_, person, seed, name, make, options, clock) for name, make in tools.items()
                    ]
    return {
        "bench": "finish",
        "protocol": PROTOCOL_VERSION,
        "goal": {
            "recall": options.recall,
            "precision": options.precision,
            "confidence": GOAL_CONFIDENCE,
            "patience": PATIENCE_FACTOR,
            "is_of_the_protocol": (options.recall, options.precision) == (GOAL_RECALL, GOAL_PRECISION),
        },
        "clock": clock.as_json(),
        "noisy_person": {
            "small": SMALL_SHARE,
            "missed_of_small": MISSED_SHARE,
            "errs": ERROR_SHARE,
            "salience": SALIENCE_SPREAD,
        },
        "sets": described,
        "rows": rows,
        **_summarize_rows(rows),
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
    }


def _check_options(options: Options) -> tuple[list[str], list[str], Mapping[str, Callable[[], Tool]]]:
    if (options.images is None) != (options.truth is None):
        raise AnnotatorError("Images and their truth belong together: give both --images and --truth, or neither.")
    if options.images and options.sets:
        raise AnnotatorError("Give either --sets or --images with --truth: one kind at a time.")
    if not (0 < options.recall <= 1 and 0 < options.precision <= 1):
        raise AnnotatorError(
            f"Recall {options.recall:g} and precision {options.precision:g} must lie above 0 and up to 1."
        )
    if wrong := [person for person in options.persons if person not in PERSON_KINDS]:
        raise AnnotatorError(f"There is no person {wrong[0]!r}. {did_you_mean(wrong[0], PERSON_KINDS)}")
    names = [] if options.images else sets.check_names(options.sets)
    return names, list(dict.fromkeys(options.persons)) or list(PERSON_KINDS), _make_tools(options)


def _make_tools(options: Options) -> dict[str, Callable[[], Tool]]:
    others = find_installed_tools(tuple(TOOLS))
    known = TOOLS | {name: _make_process_tool(command, options.timeout_seconds) for name, command in others.items()}
    none = tuple(options.tools) == (NO_TOOLS,)
    if unknown := [name for name in options.tools if name not in known and not none]:
        raise AnnotatorError(f"There is no tool {unknown[0]!r}. {did_you_mean(unknown[0], known)}")
    chosen = [] if none else list(dict.fromkeys(options.tools)) or list(known)
    tools = {name: known[name] for name in chosen}
    tools |= {spec: _make_process_tool(make_class_command(spec), options.timeout_seconds) for spec in options.classes}
    for line in options.commands:
        if not (words := shlex.split(line)):
            raise AnnotatorError("--tool-command needs a command, such as 'node tool.js'.")
        tools[line] = _make_process_tool(words, options.timeout_seconds)
    if not tools:
        raise AnnotatorError(f"--tools {NO_TOOLS} leaves no tool: name one of your own with --tool or --tool-command.")
    return tools


def _make_process_tool(command: Sequence[str], timeout_seconds: float) -> Callable[[], Tool]:
    return lambda: ProcessTool(command, timeout_seconds)


def _iterate_sets(options: Options, names: Sequence[str], work: Path, seed: int) -> Iterator[TestSet]:
    if options.images and options.truth:
        yield sets.read_folder(
            sets.OWN_SET_NAME,
            str(options.images),
            options.images,
            options.truth,
            work / _make_folder_name("own", options.images, options.truth),
        )
    for name in names:
        yield sets.load_set(name, work, seed=seed, count=options.count)


def _measure_row(
    set_: TestSet, person_kind: str, seed: int, name: str, make_tool: Callable[[], Tool], options: Options, clock: Clock
) -> dict:
    work = set_.work / "tools" / ("program" if name in TOOLS else _make_folder_name("other", name))
    work.mkdir(parents=True, exist_ok=True)
    task = Task(
        set_.name, set_.images, set_.classes, options.recall, options.precision, GOAL_CONFIDENCE, seed, work.resolve()
    )
    person = Person.build(set_.truth, noisy=person_kind == "noisy", seed=seed)
    played = play_tool(make_tool(), task, set_.truth, person, clock)
    row = {"set": set_.name, "person": person_kind, "seed": seed, "tool": name, **played}
    when = f" after {row['seconds'] / 60:.1f} minutes" if row["ended"] == RUN_CERTIFIED else ""
    print_progress(
        f"{set_.name}, {person_kind} person, {name}: {row['ended']}{when}" + (f": {row['why']}" if row["why"] else "")
    )
    return row


def _make_folder_name(kind: str, *names: object) -> str:
    return f"{kind}-{hashlib.sha256(repr(names).encode()).hexdigest()[:12]}"


def _summarize_rows(rows: Sequence[dict]) -> dict[str, dict[str, float | None]]:
    figures: dict[str, float | None] = {}
    ratios: dict[str, float | None] = {}
    form = {_make_row_key(row): row["seconds"] for row in rows if row["tool"] == RIVAL_TOOL}
    for name in dict.fromkeys(row["tool"] for row in rows):
        own = [row for row in rows if row["tool"] == name]
        figures[f"{name}_finished"] = sum(row["ended"] == RUN_CERTIFIED for row in own)
        figures[f"{name}_failed"] = sum(row["ended"] == RUN_FAILED for row in own)
        figures[f"{name}_said_done_too_early"] = sum(
            row["ended"] != RUN_CERTIFIED and bool(row["claim"]) for row in own
        )
        both = [
            row["seconds"] / form[_make_row_key(row)] for row in own if row["seconds"] and form.get(_make_row_key(row))
        ]
        product = 1.0
        for share in both:
            product *= share
        ratios[f"{name}_over_form_seconds"] = round(product ** (1 / len(both)), 3) if both else None
    return {"figures": figures, "ratios": {key: value for key, value in ratios.items() if value is not None}}


def _make_row_key(row: dict) -> tuple[str, str, int]:
    return row["set"], row["person"], row["seed"]


def build_finish_report(result: dict) -> Report:
    """Return the report: one table per set and person, and the totals of each tool."""
    return Report(
        describe_protocol(result),
        list(iterate_tables(result)),
        [FINISH_NOTE],
        list_sentences(result),
        summary=ReportTable(TOTALS_HEADINGS, format_totals(result)),
        command=result["command"],
    )


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


def iterate_tables(result: dict) -> Iterator[ReportTable]:
    """Yield one table per set and simulated person, with a row per tool."""
    for set_ in result["sets"]:
        rows = [row for row in result["rows"] if (row["set"], row["seed"]) == (set_["set"], set_["seed"])]
        size = f"{format_count(set_['images'], 'image')}, {format_count(set_['classes'], 'class', 'classes')}"
        form = f"a form for every image: {set_['form_seconds'] / 60:.1f} minutes"
        for person in dict.fromkeys(row["person"] for row in rows):
            title = f"{set_['set']} ({set_['about']}; {size}; {form}), {person} person, seed {set_['seed']}"
            yield ReportTable(RUN_HEADINGS, [_format_row(row) for row in rows if row["person"] == person], title)


def format_totals(result: dict) -> list[list[str]]:
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
    """Return sentences on each tool's stopping rule, and on why runs failed."""
    ways = {row["tool"]: row["certifies_by"] for row in result["rows"] if row["certifies_by"]}
    lines = [f"{name} is done when: {way}." for name, way in ways.items()]
    return lines + [f"FAILED {format_row_title(row)}: {row['why']}" for row in result["rows"] if row["why"]]


def format_row_title(row: dict) -> str:
    """Describe the set, person, seed and tool of a row."""
    return f"{row['tool']} on {row['set']}, {row['person']} person, seed {row['seed']}"


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
