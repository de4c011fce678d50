"""Measure the names, the prose and the size of the code base. `python tests/code_measures.py` prints the table.

Each measure has a bound, which may only be lowered (tests/repository/test_code_measures.py), and a goal. Scope: the
packages that are installed, annotator and spmll, and for aliases tests and docs too.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM_FOLDER = "annotator/"  # all of its wheel but sample_data; spmll has a wheel of its own
PACKAGES = ("annotator", "models/spmll")
OTHER_FOLDERS = ("tests", "docs")  # of which only aliases are measured
IRREGULAR_PARTICIPLES = frozenset(
    """
    beaten begun bound bought broken brought built caught chosen dealt done drawn driven dug eaten fallen fed fled
    forgotten frozen given gone grown held hidden kept known laid led left lent lit lost made meant met paid risen said
    seen sent shown shut sold spent split spoken stolen stood struck stuck sung sunk swept taken taught thought thrown
    told torn understood woken won worn wound written
    """.split()
)
VERBS_IN_ED = frozenset(("embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"))
# A participle in the name is the program's own here: a typer command, a property that reads as an adjective.
ALLOWED_PARTICIPLES = frozenset(
    (
        "annotator/cli/adapt.py: adapted",
        "annotator/cli/assign.py: known",
        "annotator/cli/classes.py: split",
        "annotator/store/imports/staging.py: IncomingItem.answered",
        "annotator/store/imports/staging.py: IncomingItem.written",
        "annotator/ui/shared/guard.py: guard_program_route.answered",
    )
)
MAX_PARAMETERS = 10
COMMAND_DECORATOR = "commands.command("  # typer makes an option of each parameter: there is no record to pass
CONSTANT_PATTERN = re.compile(r"_?[A-Z][A-Z0-9_]*")

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Measure:
    """One row of the table.

    Attributes:
        name: What is measured, with its unit.
        value: The present value.
        bound: The value that no change may exceed.
        goal: The value at which the work on it is done.
    """

    name: str
    value: float
    bound: float
    goal: float


class CodeBase:
    """The parsed modules of the packages, by their path from the root of the checkout."""

    def __init__(self, root: Path = ROOT, folders: tuple[str, ...] = PACKAGES):
        self.root = root
        self.paths = [path for folder in folders for path in sorted((root / folder).rglob("*.py"))]
        self.texts = {self._format_path(path): path.read_text(encoding="utf-8") for path in self.paths}
        self.trees = {path: ast.parse(text) for path, text in self.texts.items()}

    def _format_path(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def iterate_functions(self) -> Iterator[tuple[str, str]]:
        """Yield (path, dotted name) of every function and method, except double-underscore methods."""
        for path, tree in self.trees.items():
            for name, node in _iterate_definitions(tree):
                if not isinstance(node, ast.ClassDef) and not node.name.startswith("__"):
                    yield path, name

    def iterate_constants(self) -> Iterator[tuple[str, str]]:
        """Yield (path, name) of every constant that a module assigns."""
        for path, tree in self.trees.items():
            for node in tree.body:
                targets = node.targets if isinstance(node, ast.Assign) else ()
                if isinstance(node, ast.AnnAssign):
                    targets = (node.target,)
                for name in (part for target in targets for part in ast.walk(target)):
                    if isinstance(name, ast.Name) and CONSTANT_PATTERN.fullmatch(name.id):
                        yield path, name.id

    def iterate_docstrings(self) -> Iterator[str]:
        """Yield the docstrings of modules, classes and functions."""
        for tree in self.trees.values():
            for node in ast.walk(tree):
                if isinstance(node, ast.Module | Definition) and (text := ast.get_docstring(node)):
                    yield text

    def list_participles(self) -> list[str]:
        """Return the functions that are named by a past participle alone, as "path: name"."""
        named = (f"{path}: {name}" for path, name in self.iterate_functions() if _is_participle(name))
        return [one for one in named if one not in ALLOWED_PARTICIPLES]

    def list_long_signatures(self) -> list[str]:
        """Return the functions with more than MAX_PARAMETERS parameters, as "path: name (count)", commands left out."""
        return [
            f"{path}: {name} ({count})"
            for path, tree in self.trees.items()
            for name, node in _iterate_definitions(tree)
            if not isinstance(node, ast.ClassDef) and not _is_command(node)
            if (count := _count_parameters(node)) > MAX_PARAMETERS
        ]

    @property
    def modules(self) -> set[str]:
        """The dotted names of all modules and packages."""
        return {
            path.removeprefix("models/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            for path in self.trees
        }

    def list_aliases(self, modules: set[str]) -> list[str]:
        """Return the imports of these modules under another name, as "path:line: statement"."""
        return [
            f"{path}:{node.lineno}: {ast.unparse(node)}"
            for path, tree in self.trees.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
            if alias.asname and alias.asname != alias.name and _get_full_name(node, alias) in modules
        ]

    def list_repeated_file_names(self) -> list[str]:
        """Return the file names that more than one module has; packages and programs share theirs by definition."""
        counts = Counter(Path(path).name for path in self.trees)
        return sorted(name for name, count in counts.items() if count > 1 and not name.startswith("__"))


def measure_code(code: CodeBase, others: CodeBase) -> list[Measure]:
    """Return the rows of the table. code: the packages; others: tests and docs."""
    modules = code.modules
    functions = [name.rpartition(".")[2] for _, name in code.iterate_functions()]
    constants = [name for _, name in code.iterate_constants()]
    words = sum(len(text.split()) for text in code.iterate_docstrings())
    semicolons = sum(text.count(";") for text in code.iterate_docstrings())
    lines = sum(text.count("\n") for path, text in code.texts.items() if path.startswith(PROGRAM_FOLDER))
    return [
        Measure("functions with one-word names, %", _percent_of_one_word(functions), 17.5, 40),
        Measure("functions named by a past participle", len(code.list_participles()), 0, 20),
        Measure("functions with more than 10 parameters", len(code.list_long_signatures()), 0, 0),
        Measure("functions named *_of", sum(name.endswith("_of") for name in functions), 8, 10),
        Measure("module constants of one word, %", _percent_of_one_word(constants), 9, 15),
        Measure(
            "own modules imported under another name",
            len([*code.list_aliases(modules), *others.list_aliases(modules)]),
            0,
            0,
        ),
        Measure("file names used more than once", len(code.list_repeated_file_names()), 14, 30),
        Measure("words in docstrings, thousands", words / 1000, 110, 110),
        Measure("semicolons per 1,000 words of docstrings", 1000 * semicolons / words, 1, 3),
        Measure("lines of Python in the program's wheel, thousands", lines / 1000, 108.5, 95),
    ]


def _iterate_definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    for node in ast.iter_child_nodes(tree):
        name = prefix
        if isinstance(node, Definition):
            name = f"{prefix}{node.name}."
            yield f"{prefix}{node.name}", node
        yield from _iterate_definitions(node, name)


def _is_participle(dotted: str) -> bool:
    word = dotted.rpartition(".")[2].strip("_")
    return word in IRREGULAR_PARTICIPLES or (word.endswith("ed") and "_" not in word and word not in VERBS_IN_ED)


def _is_command(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator).startswith(COMMAND_DECORATOR) for decorator in node.decorator_list)


def _count_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the parameters that a caller passes: neither self nor cls."""
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _get_full_name(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    return f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name


def _percent_of_one_word(names: list[str]) -> float:
    return 100 * sum("_" not in name.strip("_") for name in names) / len(names)


def main() -> None:
    """Print the table."""
    print(f"{'':50}{'now':>9}{'bound':>9}{'goal':>9}")
    for row in measure_code(CodeBase(), CodeBase(folders=OTHER_FOLDERS)):
        print(f"{row.name:50}{row.value:9.1f}{row.bound:9g}{row.goal:9g}")


if __name__ == "__main__":
    sys.exit(main())
