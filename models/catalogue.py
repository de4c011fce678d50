"""What the methods say of themselves, read from their sources: for those who may not load torch to ask them.

A page lists the methods and the command line checks a name, and neither should wait for torch. A second list, kept by
hand, would be one more thing to forget when a method is added; so this reads the class attributes and the arguments of
`__init__` out of the files of models/methods without running them. They must be plain values, or names of plain values
in the same file (tests/test_catalogue.py holds what is read here against the classes themselves).
"""

import ast
import operator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

METHODS = Path(__file__).resolve().parent / "methods"


@dataclass(frozen=True)
class Parameter:
    """One constant of a method.

    default     what it is when nobody says otherwise
    kinds       what it may be, as its annotation says: of "float", "int", "bool", "str", "None"
    """

    name: str
    default: Any
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """One method, as models/methods/base.py describes it."""

    name: str
    title: str
    paper: str
    year: int
    url: str
    assumes: str
    full_labels: bool
    parameters: tuple[Parameter, ...]

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters and their defaults, in their order."""
        return {one.name: one.default for one in self.parameters}


@cache
def methods() -> dict[str, Entry]:
    """All methods by name, in the order of models.methods.METHODS.

    Raises ValueError naming the file and the line where something is not a plain value.
    """
    table = _Source.read(METHODS / "__init__.py")
    [value] = [statement.value for statement in table.tree.body if _assigned(statement) == "METHODS"]
    listed = [node.id for node in ast.walk(value) if isinstance(node, ast.Name) and node.id in table.imports]
    entries = [_entry(*table.find(name)) for name in listed if table.imports[name][0] != "models.methods.base"]
    return {entry.name: entry for entry in entries}


def default_method() -> str:
    """The name of the method a new project gets."""
    return _Source.read(METHODS / "__init__.py").constant("DEFAULT_METHOD")


@dataclass(frozen=True)
class _Source:
    """One file: its syntax tree, and what it imports: name -> (module, name there)."""

    path: Path
    tree: ast.Module
    imports: dict[str, tuple[str, str]]

    @classmethod
    def read(cls, path: Path) -> "_Source":
        tree = ast.parse(path.read_text(encoding="utf-8"), path)
        froms = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
        return cls(
            path, tree, {(one.asname or one.name): (node.module, one.name) for node in froms for one in node.names}
        )

    def find(self, name: str) -> tuple["_Source", ast.ClassDef]:
        """The class of that name, here or in the file it comes from."""
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return self, node
        if name not in self.imports or not self.imports[name][0].startswith("models."):
            raise ValueError(f"{self.path} has no class {name}, and imports none from models.")
        module, name = self.imports[name]
        return _Source.read(METHODS.parent.joinpath(*module.split(".")[1:]).with_suffix(".py")).find(name)

    def constant(self, name: str) -> Any:
        """The value of a plain name of this file."""
        for node in self.tree.body:
            if _assigned(node) == name:
                return self.value(node.value)
        raise ValueError(f"{self.path} gives no plain value to {name}.")

    def value(self, node: ast.expr) -> Any:
        """What an expression is, without running it: plain values, names of such, and fractions like 25 / 35."""
        if isinstance(node, ast.Name):
            return self.constant(node.id)
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            return ARITHMETIC[type(node.op)](self.value(node.left), self.value(node.right))
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise ValueError(
                f"{self.path}, line {node.lineno}: {ast.unparse(node)} is not a plain value. Pages read this file "
                "without running it; write the value itself, or name a constant of the same file."
            ) from None


ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
WANTED = ("name", "title", "paper", "year", "url", "assumes", "full_labels")


def _entry(source: _Source, node: ast.ClassDef) -> Entry:
    """What the class says, or else the first of the classes it is made from."""
    found: dict[str, Any] = {}
    arguments: tuple[Parameter, ...] | None = None
    waiting = [(source, node)]
    while waiting:
        place, one = waiting.pop(0)
        for statement in one.body:
            key = _assigned(statement)
            if key in WANTED and key not in found:
                found[key] = place.value(statement.value)
            if arguments is None and isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                arguments = _parameters(place, statement)
        own = [base.id for base in one.bases if isinstance(base, ast.Name) and base.id not in ("ABC", "Protocol")]
        waiting += [place.find(base) for base in own]
    missing = [key for key in WANTED if key not in found]
    if missing:
        raise ValueError(f"{source.path}: class {node.name} does not say its {', '.join(missing)}.")
    return Entry(**found, parameters=arguments or ())


def _parameters(source: _Source, function: ast.FunctionDef) -> tuple[Parameter, ...]:
    every = function.args.posonlyargs + function.args.args[1:] + function.args.kwonlyargs
    defaults = function.args.defaults + [one for one in function.args.kw_defaults if one is not None]
    if len(every) != len(defaults):
        raise ValueError(f"{source.path}, line {function.lineno}: every argument of __init__ must have a default.")
    return tuple(
        Parameter(argument.arg, value := source.value(default), _kinds(argument.annotation, value))
        for argument, default in zip(every, defaults, strict=True)
    )


def _kinds(annotation: ast.expr | None, default: Any) -> tuple[str, ...]:
    """The plain types of an annotation such as `float | None`; without one, the type of the default."""
    said = ast.unparse(annotation).replace(" ", "").split("|") if annotation else [type(default).__name__]
    return tuple("None" if one == "NoneType" else one for one in said)


def _assigned(statement: ast.stmt) -> str | None:
    """The name that a statement gives a value to, if it does that and nothing else."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        target = statement.target
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None
