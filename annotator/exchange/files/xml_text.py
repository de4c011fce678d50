"""Text that goes into XML 1.0: what it cannot hold is refused, as a replaced letter would be another name."""

import re
from collections.abc import Iterable

from annotator.errors import several

_IMPOSSIBLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def refuse_impossible(what: str, names: Iterable[str]) -> None:
    """Raises AnnotatorError that lists the names with a letter that XML cannot hold (most control characters)."""
    problems = [ascii(name) for name in names if _IMPOSSIBLE.search(name)]
    if problems:
        raise several(f"XML cannot hold a letter of these {what}; rename them, or choose another format:", problems)
