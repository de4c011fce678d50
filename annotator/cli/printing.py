"""How results look on a terminal."""

import json
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable
from typing import TextIO

from annotator.records import BadFile
from annotator.store.configuration import shown, source
from annotator.store.images import by_reason

PAGE = 110  # characters a line, where the terminal has as many
REASONS, EXAMPLES = 20, 5  # groups of kept-out files that are printed, and files named in each


def printable(text: str, keep: str = "") -> str:
    """A name as a terminal may show it: what would move the cursor, colour the line, hide letters or break the output
    is written as an escape (\\x1b, \\u202e, \\udce9).

    keep    characters that stay as they are, line ends for a whole text
    """
    return _PERHAPS.sub(lambda one: _escape(one[0]) if one[0] not in keep else one[0], text)


_PERHAPS = re.compile(r"[^\x20-\x7e]")


def _escape(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


class Terminal:
    """A text stream that never passes on what `printable` escapes, whoever writes to it."""

    def __init__(self, stream: TextIO, keep: str):
        self._stream, self._keep = stream, keep

    def write(self, text: str) -> int:
        written = printable(text, self._keep)
        encoding = self._stream.encoding or "utf-8"
        self._stream.write(written.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def guard_terminal() -> None:
    """Names of files and classes come from others: none of them reaches the terminal as a control sequence."""
    sys.stdout = Terminal(sys.stdout, "\n\t")
    sys.stderr = Terminal(sys.stderr, "\n\t\r")  # the line that counts goes back to its beginning


def print_by_reason(bad: Iterable[BadFile], what: str) -> None:
    """Files or images with a problem, summed up by reason, with a few of each."""
    groups = by_reason(bad)
    for reason, paths in list(groups.items())[:REASONS]:
        rest = f" and {len(paths) - EXAMPLES:,} more" if len(paths) > EXAMPLES else ""
        names = ", ".join(printable(path) for path in paths[:EXAMPLES])
        print(f"  {len(paths):,} {what}: {printable(reason)}\n      {names}{rest}")
    if len(groups) > REASONS:
        print(f"  and {len(groups) - REASONS:,} more reasons: annotator status PROJECT --json has them all")


class Progress:
    """One line that counts, on a terminal only."""

    def __init__(self, title: str):
        self.title, self.shown_at, self.live = title, 0.0, sys.stderr.isatty()

    def show(self, done: int, of: int) -> None:
        now = time.monotonic()
        if self.live and (now - self.shown_at > 0.1 or done == of):
            self.shown_at = now
            bar = "#" * round(30 * done / max(of, 1))
            sys.stderr.write(f"\r{self.title} [{bar:<30}] {done:,} of {of:,} ")
            sys.stderr.flush()

    def end(self) -> None:
        if self.live and self.shown_at:
            sys.stderr.write("\n")


def print_status(found: dict) -> None:
    def counted(counts: dict) -> str:
        return ", ".join(f"{name} {number:,}" for name, number in counts.items()) or "none yet"

    worker, run = found["worker"], found["run"]
    print(f"{found['project']}")
    print(
        f"  images     {found['images']:,}, of these {found['images_without_decision']:,} without a decision, "
        f"{found['images_complete']:,} complete"
    )
    print(f"  classes    {found['classes']:,}")
    print(f"  decisions  {counted(found['decisions'])}")
    print(f"  labels     {counted(found['labels'])}")
    if any(found["accepted"].values()):
        print(f"  accepted   {counted(found['accepted'])} (the model's, under a guarantee: annotator accept)")
    print(f"  method     {found['method']}{changed(found['parameters'])}")
    print(f"  features   {found['features']:,} of {found['images']:,} ({found['backbone']})")
    beat = f", heartbeat {time.time() - worker['heartbeat_at']:.0f} s ago" if worker["heartbeat_at"] else ""
    doing = (
        worker["state"]
        if worker["alive"] or worker["state"] in ("stopped", "not started")
        else (f"not running (was: {worker['state']})")
    )
    steps = f" {worker['done']:,} of {worker['of']:,}" if worker["alive"] and worker["of"] else ""
    print(f"  worker     {doing}{steps}{beat}")
    if run:
        print(
            f"  run        {run['id']}: {run['method']}, {run['epochs']} epochs in {run['seconds']:.2f} s, "
            f"saw decision {run['last_decision']}, {run['newer_decisions']:,} newer"
        )
    else:
        print("  run        none yet")
    if found["files_kept_out"]:
        print(f"  kept out   {found['files_kept_out_in_all']:,} files")
        print_by_reason((BadFile(one["file"], one["reason"]) for one in found["files_kept_out"]), "kept out")
    if found["images_missing"]:
        print(f"  missing    {found['images_missing_in_all']:,} images cannot be shown any more; their labels are kept")
        print_by_reason((BadFile(one["image"], one["reason"]) for one in found["images_missing"]), "missing")
    if found["left_out"]:
        print("  left out of the last training")
        for line in found["left_out"]:
            print(f"    {line}")
    if found["last_error"]:
        print("  last error")
        for line in found["last_error"].splitlines():
            print(f"    {line}")


def changed(parameters: dict) -> str:
    """The parameters that are not the method's defaults, to be put behind its name."""
    return f" ({', '.join(f'{key}={shown(value)}' for key, value in parameters.items())})" if parameters else ""


def print_methods(methods: list[dict], default: str) -> None:
    """The table of all methods: what each believes of a cell nobody looked at, its parameters, where it is from."""
    width = max(len(one["name"]) for one in methods)
    indent = " " * (width + 2)
    page = min(PAGE, max(shutil.get_terminal_size((PAGE, 24)).columns - 1, width + 42))
    for one in methods:
        mark = ", the default" if one["name"] == default else ""
        print(f"{one['name']:<{width}}  {one['title']} ({one['year']}{mark})")
        pairs = " ".join(f"{key}={shown(value)}" for key, value in one["parameters"].items())
        for line in (one["assumes"], pairs or "no parameters", source(one["name"]), one["url"]):
            print(textwrap.fill(line, page, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False))
        print()
    print("In full: annotator methods NAME. Use one: annotator train PROJECT --method NAME --set key=value")


def print_method(found: dict) -> None:
    """One method with everything there is to say of it."""
    print(f"{found['name']}: {found['title']}")
    print(f"  {source(found['name'])}\n  {found['url']}")
    print(f"  assumes     {found['assumes']}")
    print(f"  looks at    {found['reads']}" + (f", {found['views']} views of each image" if found["views"] > 1 else ""))
    print(f"  trained     {found['epochs']} epochs at learning rate {shown(found['lr'])}, on a frozen network")
    print(f"  suggests    what has a probability above {shown(found['threshold'])}")
    if found["full_labels"]:
        print("  needs       all labels of all images: it is the ceiling of the others, for comparisons only")
    for text in (found["about"], found["about_parameters"]):
        print("\n" + textwrap.indent(text, "  "))
    print("\n  parameters and defaults")
    for key, value in found["parameters"].items():
        tried = found["tunable"].get(key)
        print(f"    {key:<18} {shown(value)}" + (f"  (tuned among {', '.join(map(shown, tried))})" if tried else ""))
    if found["published"]:
        print("\n  the whole network, as published")
    for data, one in found["published"].items():
        plain = one | {"momentum": one["momentum"] if one["optimiser"] == "sgd" else None}
        rest = [f"{key} {shown(value)}" for key, value in plain.items() if value is not None and key != "parameters"]
        print(f"    {data:<6} {', '.join(rest)}{changed(one['parameters'])}")


def print_bench(result: dict, as_json: bool) -> None:
    if as_json:
        print(json.dumps(result))
        return
    print(f"bench {result['bench']}")
    for kind in ("figures", "ratios"):
        print(f"  {kind}")
        for name, value in result[kind].items():
            print(f"    {name:<60} {'not reached' if value is None else f'{value:,.3f}'}")
