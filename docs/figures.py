"""Measures the figures of README.md in one go, of one commit, and writes them there.

    python docs/figures.py             # runs the commands (some minutes on two cores), then writes
    python docs/figures.py --write     # writes README.md anew from docs/figures.json

Each row is one command, which runs what it is compared with in the same run. docs/figures.json keeps the rows with the
commit, the day and the machine; README.md has them between two comments. A test holds that both say the same.
"""

import datetime
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from annotator.errors import AnnotatorError

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
KEPT = ROOT / "docs" / "figures.json"
GOAL = 0.95  # of all positive labels, the recall that effort is measured to


@dataclass(frozen=True)
class Row:
    """One row of the table: the command, and the words made of its JSON: what, ours, what it is compared with."""

    command: str
    words: Callable[[dict], tuple[str, str, str]]


def effort(result: dict) -> tuple[str, str, str]:
    """Return what a complete set of the sample images costs: actions and minutes to GOAL."""
    at = {row["policy"]: row for row in result["goals"] if row["goal"] == GOAL and row["person"] == "perfect"}
    cost = {
        name: f"{row['actions']['mean']:,.0f} ({row['seconds']['mean'] / 60:.1f})" if row["reached"] else "never"
        for name, row in at.items()
    }
    figures = result["figures"]
    what = (
        f"{figures['images']} drawn scenes, {figures['classes']} classes: actions (minutes) until 95 % of all "
        f"labels are there at 99 % precision, mean of {len(result['seeds'])} seeds"
    )
    return what, cost["autopilot"], f"a form for every image {cost['form']}; grids of one class {cost['grid-only']}"


def effort_by_times(result: dict) -> tuple[str, str, str]:
    """Return the minutes to GOAL under every set of times: the lowest and the highest."""
    minutes = {}
    for row in result["range"]:
        if row["goal"] == GOAL:
            ends = row["seconds"] and [f"{row['seconds'][end] / 60:.1f}" for end in ("low", "high")]
            minutes[row["policy"]] = " to ".join(ends) if ends else "never"
    what = f"the same minutes with {len(result['sets']) - 1} published sets of times and ours"
    return what, minutes["autopilot"], f"a form {minutes['form']}; grids {minutes['grid-only']}"


def interface(result: dict) -> tuple[str, str, str]:
    """Return how long a key takes until the next image is painted."""
    figures = result["figures"]
    ours, floor = (
        " / ".join(f"{figures[f'{page}_key_{name}_ms']:.1f}" for name in ("p50", "p95"))
        for page in ("annotate", "floor")
    )
    return "key pressed -> next image painted, p50 / p95", f"{ours} ms", f"a bare page {floor} ms"


def methods(result: dict) -> tuple[str, str, str]:
    """Return how well the labels that nobody gave are found."""
    rows = {row["method"]: row["hidden_ap"] for row in result["rows"]}
    published = {name: score for name, score in rows.items() if name not in ("auto", "oracle")}
    best = max(published, key=lambda name: published[name])
    chance = next(iter(result["setting"]["chance"].values()))
    seeds = result["setting"]["seeds"]
    return (
        f"average precision of the labels that nobody gave, one label an image, mean of {seeds} seeds",
        f"`auto` {rows['auto']:.2f}",
        f"best of {len(published)} others (`{best}`) {published[best]:.2f}; chance {chance:.2f}",
    )


ROWS = (
    Row("annotator bench effort --policies form,grid-only,autopilot --no-noisy --seeds 3", effort),
    Row("annotator bench effort --times published --policies form,grid-only,autopilot --seeds 3", effort_by_times),
    Row('make bench NAME=interface ARGS="--rows key"', interface),
    Row("annotator bench methods", methods),
)


def main() -> None:
    """Measure unless only writing is asked for, then write."""
    if "--write" not in sys.argv[1:]:
        KEPT.write_text(json.dumps(measured(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    README.write_text(written(README.read_text(encoding="utf-8"), kept()), encoding="utf-8")


def measured() -> dict:
    """Run all commands on the tree as it is committed.

    Returns:
        The commit, the day, the cores, and of each row its words and its command.

    Raises:
        AnnotatorError: The tree differs from the commit, or a command failed.
    """
    changed = _output(["git", "status", "--short", "--", "annotator", "models", "sample_data"])
    if changed:
        raise AnnotatorError(f"A figure names its commit, and this tree differs from it. Commit first:\n{changed}")
    rows = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "models", ROOT / "tests")))}
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS:
            print(row.command, flush=True)
            words = [sys.executable, "-P", "-m", *list_words(row.command)]
            done = subprocess.run(words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                raise AnnotatorError(f"{row.command} ended with status {done.returncode}; nothing was written.")
            what, ours, other = row.words(json.loads(done.stdout))
            rows.append({"what": what, "this": ours, "other": other, "command": row.command})
    return {
        "commit": _output(["git", "rev-parse", "--short", "HEAD"]),
        "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "rows": rows,
    }


def list_words(command: str) -> list[str]:
    """Return the words after `python -m` of a command of the table, with the option that prints JSON."""
    words = shlex.split(command)
    if words[0] == "make":
        given = dict(word.split("=", 1) for word in words[2:])
        words = ["benchmarks", given["NAME"], *shlex.split(given.get("ARGS", ""))]
    return [*words, "--json"]


def kept() -> dict:
    """Return the figures that were measured last."""
    return json.loads(KEPT.read_text(encoding="utf-8"))


def written(readme: str, figures: dict) -> str:
    """Return the README with the figures put between their comments."""
    lines = [
        f"Measured on {figures['day']} at {figures['commit']} by `make figures` on {figures['cores']} CPU cores.",
        "",
        "| what | this | the rival or the floor | measured by |",
        "|---|---|---|---|",
        *(f"| {row['what']} | {row['this']} | {row['other']} | `{row['command']}` |" for row in figures["rows"]),
    ]
    block = "\n".join(["<!-- figures -->", "", *lines, "", "<!-- end of figures -->"])
    return re.sub(r"<!-- figures -->.*<!-- end of figures -->", lambda _: block, readme, flags=re.DOTALL)


def _output(words: list[str]) -> str:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    try:
        main()
    except AnnotatorError as error:
        sys.exit(str(error))
