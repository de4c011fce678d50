"""The string literals of a source file, which are what people may read of it: no comments, no names, no docstrings."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

# In this order, at each place: what a quote begins in a comment, or "//" in a string, is no quote and no comment.
_JS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<regex>(?<=[(,=:\[!&|?;])\s*/(?![*/])(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n\[])+/)
    |(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|\$\{(?:[^{}`]|\{[^{}]*\}|`[^`]*`)*\}|[^`\\])*`)""",
    re.DOTALL | re.VERBOSE,
)


def of_file(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines and texts of the literals of a Python or JavaScript file."""
    text = path.read_text(encoding="utf-8")
    return of_script(text) if path.suffix == ".js" else of_module(text)


def of_script(text: str) -> Iterator[tuple[int, str]]:
    for match in _JS.finditer(text):
        if match.lastgroup == "string":
            yield text.count("\n", 0, match.start()) + 1, match.group()[1:-1]


def of_module(text: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value
