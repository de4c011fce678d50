"""Every tool with every person on every set: `measure`."""

import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from annotator.benchmark.effort.people import ERRS, MISSED, SALIENCE, SMALL, Person
from annotator.benchmark.finish import sets
from annotator.benchmark.finish.adapters import ProcessTool, class_command, installed
from annotator.benchmark.finish.clock import Clock
from annotator.benchmark.finish.protocol import COMPUTING, CONFIDENCE, PATIENCE, PRECISION, RECALL, VERSION, Task, Tool
from annotator.benchmark.finish.run import CERTIFIED, FAILED, play
from annotator.benchmark.finish.sets import IMAGES, TestSet
from annotator.benchmark.finish.times import read_times
from annotator.benchmark.finish.tools import RIVAL, TOOLS
from annotator.benchmark.harness.processes import say
from annotator.benchmark.harness.scratch import scratch_folder
from annotator.errors import AnnotatorError, did_you_mean

PERSONS = ("perfect", "noisy")
NONE = "none"  # in the place of tools: only those of others


@dataclass(frozen=True)
class Options:
    """The sets, tools and persons to measure, and how.

    Attributes:
        sets, tools, persons: Names; (): all. tools may be (NONE,).
        images, truth: A folder and its CSV, measured instead of `sets`; None: none.
        classes, commands: Tools of others: FILE.py:CLASS or MODULE:CLASS; command lines that speak JSON lines.
        seeds: The number of seeds, from 0 on; each draws its own made-up sets, persons, and random choices of tools.
        count: The number of images of a made-up set.
        times: A CSV of measured times; None: assumed times.
        within: Seconds in which a tool of others must answer.
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
    count: int = IMAGES
    times: Path | None = None
    recall: float = RECALL
    precision: float = PRECISION
    within: float = COMPUTING
    work: Path | None = None


def measure(options: Options, command: str = "") -> dict[str, Any]:
    """Let every tool work with every person on every set.

    Returns:
        {"bench", "protocol", "goal", "clock", "person", "sets", "rows", "figures", "ratios", "command", "date"}; one
        row for each set, person, seed and tool. A tool that breaks the protocol ends its own row only.

    Raises:
        AnnotatorError: Options do not exist or do not go together; nothing has been measured then.
    """
    names, persons, tools = _checked(options)
    clock = read_times(options.times) if options.times else Clock()
    described: list[dict] = []
    rows: list[dict] = []
    with nullcontext(options.work) if options.work else scratch_folder() as work:
        for seed in range(options.seeds):
            for set_ in _sets(options, names, work, seed):
                form = clock.form(len(set_.images), len(set_.classes), int(set_.truth.sum()))
                described.append({**set_.as_json(), "seed": seed, "form_seconds": round(form, 1)})
                for person in persons:
                    rows += [_row(set_, person, seed, name, make, options, clock) for name, make in tools.items()]
    return {
        "bench": "finish",
        "protocol": VERSION,
        "goal": {
            "recall": options.recall,
            "precision": options.precision,
            "confidence": CONFIDENCE,
            "patience": PATIENCE,
            "is_of_the_protocol": (options.recall, options.precision) == (RECALL, PRECISION),
        },
        "clock": clock.as_json(),
        "noisy_person": {"small": SMALL, "missed_of_small": MISSED, "errs": ERRS, "salience": SALIENCE},
        "sets": described,
        "rows": rows,
        **_summary(rows),
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
    }


def _checked(options: Options) -> tuple[list[str], list[str], Mapping[str, Callable[[], Tool]]]:
    if (options.images is None) != (options.truth is None):
        raise AnnotatorError("Images and their truth belong together: give both --images and --truth, or neither.")
    if options.images and options.sets:
        raise AnnotatorError("Give either --sets or --images with --truth: one kind at a time.")
    if not (0 < options.recall <= 1 and 0 < options.precision <= 1):
        raise AnnotatorError(
            f"Recall {options.recall:g} and precision {options.precision:g} must lie above 0 and up to 1."
        )
    if wrong := [person for person in options.persons if person not in PERSONS]:
        raise AnnotatorError(f"There is no person {wrong[0]!r}. {did_you_mean(wrong[0], PERSONS)}")
    names = [] if options.images else sets.check_names(options.sets)
    return names, list(dict.fromkeys(options.persons)) or list(PERSONS), _tools(options)


def _tools(options: Options) -> dict[str, Callable[[], Tool]]:
    others = installed(tuple(TOOLS))
    known = TOOLS | {name: _process(command, options.within) for name, command in others.items()}
    none = tuple(options.tools) == (NONE,)
    if unknown := [name for name in options.tools if name not in known and not none]:
        raise AnnotatorError(f"There is no tool {unknown[0]!r}. {did_you_mean(unknown[0], known)}")
    chosen = [] if none else list(dict.fromkeys(options.tools)) or list(known)
    tools = {name: known[name] for name in chosen}
    tools |= {spec: _process(class_command(spec), options.within) for spec in options.classes}
    for line in options.commands:
        if not (words := shlex.split(line)):
            raise AnnotatorError("--tool-command needs a command, such as 'node tool.js'.")
        tools[line] = _process(words, options.within)
    if not tools:
        raise AnnotatorError(f"--tools {NONE} leaves no tool: name one of your own with --tool or --tool-command.")
    return tools


def _process(command: Sequence[str], within: float) -> Callable[[], Tool]:
    return lambda: ProcessTool(command, within)


def _sets(options: Options, names: Sequence[str], work: Path, seed: int) -> Iterator[TestSet]:
    if options.images and options.truth:
        yield sets.read_folder(
            sets.OWN,
            str(options.images),
            options.images,
            options.truth,
            work / _folder_name("own", options.images, options.truth),
        )
    for name in names:
        yield sets.load(name, work, seed=seed, count=options.count)


def _row(
    set_: TestSet, by: str, seed: int, name: str, make: Callable[[], Tool], options: Options, clock: Clock
) -> dict:
    work = set_.work / "tools" / ("program" if name in TOOLS else _folder_name("other", name))
    work.mkdir(parents=True, exist_ok=True)
    task = Task(
        set_.name, set_.images, set_.classes, options.recall, options.precision, CONFIDENCE, seed, work.resolve()
    )
    person = Person.build(set_.truth, noisy=by == "noisy", seed=seed)
    played = play(make(), task, set_.truth, person, clock)
    row = {"set": set_.name, "person": by, "seed": seed, "tool": name, **played}
    when = f" after {row['seconds'] / 60:.1f} minutes" if row["ended"] == CERTIFIED else ""
    say(f"{set_.name}, {by} person, {name}: {row['ended']}{when}" + (f": {row['why']}" if row["why"] else ""))
    return row


def _folder_name(kind: str, *names: object) -> str:
    return f"{kind}-{hashlib.sha256(repr(names).encode()).hexdigest()[:12]}"


def _summary(rows: Sequence[dict]) -> dict[str, dict[str, float | None]]:
    """Return for each tool how often it finished, failed or stopped too early, and its seconds over those of the form.

    The ratio is the geometric mean over the runs in which both finished; it is left out if there are none.
    """
    figures: dict[str, float | None] = {}
    ratios: dict[str, float | None] = {}
    form = {_place(row): row["seconds"] for row in rows if row["tool"] == RIVAL}
    for name in dict.fromkeys(row["tool"] for row in rows):
        own = [row for row in rows if row["tool"] == name]
        figures[f"{name}_finished"] = sum(row["ended"] == CERTIFIED for row in own)
        figures[f"{name}_failed"] = sum(row["ended"] == FAILED for row in own)
        figures[f"{name}_said_done_too_early"] = sum(row["ended"] != CERTIFIED and bool(row["claim"]) for row in own)
        both = [row["seconds"] / form[_place(row)] for row in own if row["seconds"] and form.get(_place(row))]
        product = 1.0
        for share in both:
            product *= share
        ratios[f"{name}_over_form_seconds"] = round(product ** (1 / len(both)), 3) if both else None
    return {"figures": figures, "ratios": {key: value for key, value in ratios.items() if value is not None}}


def _place(row: dict) -> tuple[str, str, int]:
    return row["set"], row["person"], row["seed"]
