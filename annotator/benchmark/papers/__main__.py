"""`python -m annotator.benchmark.papers docs/papers.md` writes the commands of all tables into the page about them."""

import sys
from pathlib import Path

from annotator.benchmark.papers.report import commands

BEGIN, END = "<!-- commands: begin -->\n", "<!-- commands: end -->\n"


def with_commands(page: str) -> str:
    """Return the page with its list of commands written anew; the marks of its ends must be there."""
    head, _, rest = page.partition(BEGIN)
    _, _, foot = rest.partition(END)
    return f"{head}{BEGIN}\n{commands()}\n{END}{foot}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_commands(path.read_text(encoding="utf-8")), encoding="utf-8")
