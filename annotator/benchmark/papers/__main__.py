"""`python -m annotator.benchmark.papers docs/papers.md`: update the commands on that page."""

import sys
from pathlib import Path

from annotator.benchmark.papers.tables import format_commands

COMMANDS_BEGIN, COMMANDS_END = "<!-- commands: begin -->\n", "<!-- commands: end -->\n"


def replace_commands(page: str) -> str:
    """Return the page with the commands between its two markers regenerated."""
    head, _, rest = page.partition(COMMANDS_BEGIN)
    _, _, foot = rest.partition(COMMANDS_END)
    return f"{head}{COMMANDS_BEGIN}\n{format_commands()}\n{COMMANDS_END}{foot}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(replace_commands(path.read_text(encoding="utf-8")), encoding="utf-8")
