"""Output of results to a terminal or a pipe.

rich draws tables and progress bars, from plain text and never markup. A pipe gets no colors, progress bars or wrapped
lines. Functions import rich and the store on use, because every command imports this file at start.
"""

import json
import re
import shutil
import sys
import textwrap
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO

from annotator.humanize import format_count, format_local_minute, format_percent
from annotator.progress_callbacks import StepCallback
from annotator.records import SOURCES, STATE_NAMES, BadFile
from spmll.notice import Notice

if TYPE_CHECKING:
    from annotator.store.gallery.image_history import DecisionRecord

LINE_CHARACTERS = 110  # characters a line, where the terminal has as many
PIPE_LINE_CHARACTERS = 1_000_000  # characters a line through a pipe
MAX_REASONS, MAX_EXAMPLES = 20, 5  # groups of kept-out files that are printed, and files named in each


def escape_unprintable(text: str, keep: str = "") -> str:
    r"""Escape characters that could control a terminal or are unprintable, such as \x1b, \u202e and \udce9.

    Those in `keep` stay, such as line ends.
    """
    return _NOT_PLAIN_PATTERN.sub(lambda match: _escape_letter(match[0]) if match[0] not in keep else match[0], text)


_NOT_PLAIN_PATTERN = re.compile(r"[^\x20-\x7e]")


def _escape_letter(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


class EscapingStream:
    """A text stream that applies `escape_unprintable` to what is written to it. Only rich writes to `stream` itself."""

    def __init__(self, stream: TextIO, keep: str):
        self.stream, self._keep = stream, keep

    def write(self, text: str) -> int:
        """Write the escaped text, and return the number of characters in `text`."""
        self.stream.write(self.escape(text))
        return len(text)

    def escape(self, text: str) -> str:
        """Return the escaped text, with backslash escapes for characters that the stream's encoding lacks."""
        encoding = self.stream.encoding or "utf-8"
        return escape_unprintable(text, self._keep).encode(encoding, "backslashreplace").decode(encoding)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def guard_terminal() -> None:
    """Escape everything printed from now on, so that untrusted names cannot send control sequences."""
    sys.stdout = EscapingStream(sys.stdout, "\n\t")
    sys.stderr = EscapingStream(sys.stderr, "\n\t\r")


def install_notice_printer() -> None:
    """Print each Notice as one warning line, without the code location that other warnings have."""
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, Notice):
            sys.stderr.write(f"Warning: {message}\n")
        else:
            before(message, category, *place, **more)

    warnings.showwarning = show


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> None:
    """Print rows of cells in columns, the first `left` aligned left and the others right.

    Cells are wrapped on a narrow terminal. Empty titles are not printed.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    escaped = sys.stdout.escape if isinstance(sys.stdout, EscapingStream) else escape_unprintable
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=any(titles), header_style="bold")
    for number, title in enumerate(titles):
        table.add_column(Text(title), justify="right" if number >= left else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(escaped(cell)) for cell in row))
    if sys.stdout.isatty():
        Console(file=_unwrap_stream(sys.stdout)).print(table)
        return
    text = StringIO()
    Console(file=text, width=PIPE_LINE_CHARACTERS, color_system=None).print(table)
    print("\n".join(line.rstrip() for line in text.getvalue().splitlines()))


def _unwrap_stream(stream: TextIO | EscapingStream) -> TextIO:
    return stream.stream if isinstance(stream, EscapingStream) else stream


def print_by_reason(bad: Iterable[BadFile], description: str) -> None:
    """Print the number of bad files per reason, with a few names. `description` is a word such as "skipped"."""
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    for file in bad:
        kind = file.reason.partition(": ")[0]
        counts[kind] += 1
        if counts[kind] <= MAX_EXAMPLES:
            examples.setdefault(kind, []).append(escape_unprintable(file.path))
    groups = counts.most_common()
    for reason, count in groups[:MAX_REASONS]:
        rest = f" and {count - MAX_EXAMPLES:,} more" if count > MAX_EXAMPLES else ""
        print(f"  {count:,} {description}: {escape_unprintable(reason)}\n      {', '.join(examples[reason])}{rest}")
    if len(groups) > MAX_REASONS:
        print(f"  and {len(groups) - MAX_REASONS:,} more reasons: annotator status PROJECT --json has them all")


@contextmanager
def show_progress(title: str) -> Iterator[Callable[..., None]]:
    """Show a progress bar with the remaining time during the `with` block, on a terminal only.

    Yields its update function (done, of, title). `of` is 0 if unknown, `title` optional.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns,
        console=Console(file=_unwrap_stream(sys.stderr)),
        disable=not sys.stderr.isatty(),
        redirect_stdout=False,  # what is printed meanwhile goes through the guarded streams
        redirect_stderr=False,
    ) as bar:
        task = bar.add_task(title, visible=False, count="")

        def show(done: int, of: int, what: str = title) -> None:
            count = f"{done:,} of {of:,}" if of else f"{done:,}" if done else ""
            bar.update(task, completed=done, total=of or None, description=what, visible=True, count=count)

        yield show


def make_step_callback(show: Callable[..., None]) -> StepCallback:
    """Return a callback (step, done, of) that shows all steps of a job on one bar, by calling `show`."""
    return lambda what, done, of: show(done, of, what)


def print_result(value: object, as_json: bool, text: Callable[[], None]) -> None:
    """Print a command's result: one line of JSON if `as_json`, else by calling `text`."""
    # Escaped beyond ASCII: what the guard of the terminal would escape, in its own way, would be no JSON any more.
    if as_json:
        print(json.dumps(value))
    else:
        text()


def print_json(value: dict, **lists: Iterable[object]) -> None:
    """Print a JSON object on one line: `value`, then `lists`, whose items are generated one by one."""
    sys.stdout.write(json.dumps(value)[:-1])
    for name, items in lists.items():
        sys.stdout.write(f", {json.dumps(name)}: [")
        for number, item in enumerate(items):
            sys.stdout.write(f"{', ' if number else ''}{json.dumps(item)}")
        sys.stdout.write("]")
    sys.stdout.write("}\n")


def print_status(status: dict, kept_out: Iterable[BadFile], missing: Iterable[BadFile]) -> None:
    """Print a project's state (from snapshot/project_status.py), its rejected files and missing images."""
    from annotator.store.database.heartbeat import WorkerCondition

    def format_counts(counts: dict) -> str:
        return ", ".join(f"{name} {number:,}" for name, number in counts.items()) or "none yet"

    worker, run = status["worker"], status["run"]
    print(f"{status['project']}")
    print(f"  progress   {status['progress']['sentence']}")
    print(f"  images     {status['images']:,} ({status['images_without_decision']:,} without a decision)")
    print(f"  classes    {status['classes']:,}")
    print(f"  decisions  {format_counts(status['decisions'])}")
    print(f"  answers    {format_counts(status['labels'])}")
    if any(status["accepted"].values()):
        print(f"  accepted   {format_counts(status['accepted'])} (by the model; see annotator accept)")
    if status["ruled_out"]:
        print(f"  ruled out  {status['ruled_out']:,} absent (after a random sample; see annotator accept --list)")
    print(f"  method     {status['method']}{format_parameters(status['parameters'])}")
    print(f"  features   {status['features']:,} of {status['images']:,} ({status['backbone']})")
    beat = f", heartbeat {max(0.0, time.time() - worker['heartbeat_at']):.0f} s ago" if worker["heartbeat_at"] else ""
    doing = {
        WorkerCondition.GONE.value: f"not running (last state: {worker['state']})",
        WorkerCondition.NOT_INSTALLED.value: "training is not installed",
    }.get(worker["condition"], worker["state"])
    steps = f" {worker['done']:,} of {worker['of']:,}" if worker["alive"] and worker["of"] else ""
    delay = worker["delay"] and f" ({worker['delay']})"
    print(f"  worker     {doing}{steps}{delay}{beat}")
    if status["embedding"]:
        from annotator.snapshot.project_status import describe_embedding

        print(f"  embedding  {describe_embedding(status['embedding'])}")
    if status["adapting_again"]:
        print(f"  network    {status['adapting_again']['sentence']} annotator adapt PROJECT")
    if run:
        print(
            f"  run        {run['id']}: {run['method']}, {format_count(run['epochs'], 'epoch')} in "
            f"{run['seconds']:.2f} s, {format_count(run['newer_decisions'], 'decision')} "
            f"since{', ' if run['guessed'] else ''}{run['guessed']}"
        )
    else:
        print("  run        none yet")
    if status["files_kept_out_in_all"]:
        print(f"  skipped    {format_count(status['files_kept_out_in_all'], 'file')}")
        print_by_reason(kept_out, "skipped")
    if status["images_missing_in_all"]:
        print(
            f"  missing    {format_count(status['images_missing_in_all'], 'image')} cannot be shown; their answers are "
            "kept"
        )
        print_by_reason(missing, "missing")
    if status["left_out"]:
        print("  left out of the last training")
        for line in status["left_out"]:
            print(f"    {line}")
    if status["last_error"]:
        is_installed = worker["condition"] != WorkerCondition.NOT_INSTALLED.value
        print("  last error" if is_installed else "  training")
        for line in status["last_error"].splitlines():
            print(f"    {line}")


def print_history(events: "Sequence[DecisionRecord]") -> None:
    """Print the decisions about one image, one per line."""
    for event in events:
        when = format_local_minute(event.at)
        undone = f" (undone by {event.undone_by})" if event.undone_by is not None else ""
        print(escape_unprintable(f"{when}  {event.annotator}: {_describe_event(event)}{undone}"))
    if not events:
        print("Nothing was decided about this image yet.")


def _describe_source(source: str) -> str:
    return SOURCES[source].about if source in SOURCES else source


def _describe_origin(event: "DecisionRecord") -> str:
    """Describe who gave an imported answer before the import, or return "" for other answers."""
    if event.origin is None:
        return ""
    who, how, at = event.origin
    parts = [
        f"by {who}" if who else "",
        f"({_describe_source(how)})" if how else "",
        format_local_minute(at),
    ]
    return " ".join(["originally", *filter(None, parts)])


def _describe_event(event: "DecisionRecord") -> str:
    if event.action == "done":
        return f"nothing else here: {', '.join(event.covered) or 'no class'} absent"
    if event.action in ("flag", "comment"):
        original = f" ({_describe_origin(event)})" if event.origin else ""
        return f"{event.action}: {event.note}{original}" if event.note else "flag removed"
    if event.action == "skip":
        return "skipped"
    answer = "no answer any more" if event.state is None else STATE_NAMES.get(event.state, str(event.state))
    details = [
        _describe_source(event.source),
        _describe_origin(event),
        f"the model said {format_percent(event.score)}" if event.score is not None else "",
    ]
    details += [f"{escape_unprintable(name)} said {score:.2f}" for name, score in event.models]
    details.append(f"counts for {event.merged_into}" if event.merged_into else "")
    return f"{event.class_name}: {answer} ({', '.join(filter(None, details))})"


def format_parameters(parameters: dict) -> str:
    """Return a method's parameters that differ from its defaults, in brackets to print after its name, or ""."""
    from annotator.store.networks.configuration import format_value

    return f" ({', '.join(f'{key}={format_value(value)}' for key, value in parameters.items())})" if parameters else ""


def print_methods(methods: list[dict], default: str) -> None:
    """Print all methods: their assumption about unanswered labels, their parameters and their source."""
    from annotator.store.networks.configuration import describe_method_source, format_value

    width = max(len(method["name"]) for method in methods)
    indent = " " * (width + 2)
    page = min(LINE_CHARACTERS, max(shutil.get_terminal_size((LINE_CHARACTERS, 24)).columns - 1, width + 42))
    for method in methods:
        mark = ", the default" if method["name"] == default else ""
        print(f"{method['name']:<{width}}  {method['title']} ({method['year']}{mark})")
        pairs = " ".join(f"{key}={format_value(value)}" for key, value in method["parameters"].items())
        needs = f"needs {method['needs_in_words'] or 'labels only'}"
        evidence = f"figures of the paper reproduced: {method['reproduced'].partition(': ')[0]}"
        origin = (describe_method_source(method["name"]), method["url"])
        for line in (method["assumes"], pairs or "no parameters", f"{needs}; {evidence}", *origin):
            print(textwrap.fill(line, page, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False))
        print()
    print("Details: annotator methods NAME. Use one: annotator train PROJECT --method NAME --set key=value")


def print_method(method: dict) -> None:
    """Print one method in full, from the result of `show.build_method_details`."""
    from annotator.store.networks.configuration import describe_method_source, format_value

    print(f"{method['name']}: {method['title']}")
    print(f"  {describe_method_source(method['name'])}\n  {method['url']}")
    print(f"  assumes     {method['assumes']}")
    views = f", {method['views']} views of each image" if method["views"] > 1 else ""
    print(f"  input       {method['reads']}{views}")
    print(f"  trained     {method['epochs']} epochs at learning rate {format_value(method['lr'])}, on a frozen network")
    print(f"  suggests    labels with a probability above {format_value(method['threshold'])}")
    for label, text in (("needs", method["needs_in_words"] or "labels only"), ("reproduced", method["reproduced"])):
        print(textwrap.fill(text, LINE_CHARACTERS, initial_indent=f"  {label:<12}", subsequent_indent=" " * 14))
    if method["open_points"]:
        print("\n  what the paper leaves open, and what is done here")
    for text in method["open_points"]:
        print(
            textwrap.fill(
                text, LINE_CHARACTERS, initial_indent="  * ", subsequent_indent="    ", break_on_hyphens=False
            )
        )
    for text in filter(None, (method["about"], method["about_parameters"])):
        print("\n" + textwrap.indent(text, "  "))
    print("\n  parameters and defaults")
    for key, value in method["parameters"].items():
        tried = method["tunable"].get(key)
        print(
            f"    {key:<18} {format_value(value)}"
            + (f"  (tuned among {', '.join(map(format_value, tried))})" if tried else "")
        )
    if method["published"]:
        print("\n  the whole network, as published")
    for data, published in method["published"].items():
        plain = published | {"momentum": published["momentum"] if published["optimiser"] == "sgd" else None}
        rest = [
            f"{key} {format_value(value)}" for key, value in plain.items() if value is not None and key != "parameters"
        ]
        print(f"    {data:<6} {', '.join(rest)}{format_parameters(published['parameters'])}")


def print_bench(result: dict, as_json: bool) -> None:

    def text() -> None:
        print(f"bench {result['bench']}")
        for kind in ("figures", "ratios"):
            print(f"  {kind}")
            figures = result[kind].items()
            print_table(
                ("", ""),
                [(f"    {name}", "not reached" if value is None else f"{value:,.3f}") for name, value in figures],
            )

    print_result(result, as_json, text)
