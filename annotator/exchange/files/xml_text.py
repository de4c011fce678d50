"""Text for XML 1.0. Characters that XML cannot hold are errors, because replacing them would change names."""

import re
from collections.abc import Iterable

from annotator.errors import combine_problems

_INVALID_XML_CHARS = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def check_xml_text(kind: str, names: Iterable[str]) -> None:
    """Raise AnnotatorError that lists the names that XML cannot hold. `kind` is a word for such names."""
    problems = [ascii(name) for name in names if _INVALID_XML_CHARS.search(name)]
    if problems:
        raise combine_problems(
            f"XML cannot hold a letter of these {kind}; rename them, or choose another format:", problems
        )
