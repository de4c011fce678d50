"""Every tool with every person on every set: `measure_tools`."""

import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from annotator.benchmark.effort.simulated_people import ERROR_SHARE, MISSED_SHARE, SALIENCE_SPREAD, SMALL_SHARE, Person
from annotator.benchmark.finish import sets
from annotator.benchmark.finish.adapters import ProcessTool, find_installed_tools, make_class_command
from annotator.benchmark.finish.clock import Clock
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
from annotator.benchmark.scratch import print_progress, scratch_folder
from annotator.errors import AnnotatorError, did_you_mean

PERSON_KINDS = ("perfect", "noisy")
NO_TOOLS = "none"  # in the place of tools: only those of others


@dataclass(frozen=True)
class Options:
    """The sets, tools and persons to measure, and how.

    Attributes:
        sets, tools, persons: Names; (): all. tools may be (NO_TOOLS,).
        images, truth: A folder and its CSV, measured instead of `sets`; None: none.
        classes, commands: Tools of others: FILE.py:CLASS or MODULE:CLASS; command lines that speak JSON lines.
        seeds: The number of seeds, from 0 on; each draws its own made-up sets, persons, and random choices of tools.
        count: The number of images of a made-up set.
        times: A CSV of measured times; None: assumed times.
        timeout_seconds: Seconds in which a tool of others must answer.
        work: A folder that keeps sets and what tools derive from them; None: nothing is kept.
    """

    sets: Sequence[str] = ()
    tools: Sequence[str] = ()
    persons: Sequence[str] = ()
    images: Path | None = None
    truth: Path | None = None
    classes: Sequence[str] = ()
    commands: Sequence[str] = ()
    seeds: int = 1
    count: int = IMAGES_PER_MADE_UP_SET
    times: Path | None = None
    recall: float = GOAL_RECALL
    precision: float = GOAL_PRECISION
    timeout_seconds: float = MAX_COMPUTING_SECONDS
    work: Path | None = None


def measure_tools(options: Options, command: str = "") -> dict[str, Any]:
    """Let every tool work with every person on every set.

    Returns:
        {"bench", "protocol", "goal", "clock", "person", "sets", "rows", "figures", "ratios", "command", "date"}; one
        row for each set, person, seed and tool. A tool that breaks the protocol ends its own row only.

    Raises:
        AnnotatorError: Options do not exist or do not go together; nothing has been measured then.
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
    """Return for each tool how often it finished, failed or stopped too early, and its seconds over those of the form.

    The ratio is the geometric mean over the runs in which both finished; it is left out if there are none.
    """
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
