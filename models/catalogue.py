"""What the methods say of themselves, for those who may not load torch to ask them.

A page lists the methods and the command line checks a name, and neither should wait for torch. `python -m
models.methods` writes what the classes say into models/methods/table.json; a test compares the two, so an author writes
it once, in the class.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).resolve().parent / "methods" / "table.json"


@dataclass(frozen=True)
class Parameter:
    """One constant of a method.

    default     its value when nobody says otherwise
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
    reads: str
    full_labels: bool
    parameters: tuple[Parameter, ...]

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters and their defaults, in their order."""
        return {parameter.name: parameter.default for parameter in self.parameters}


@cache
def methods() -> dict[str, Entry]:
    """All methods by name, in the order of models.methods.METHODS."""
    return {entry["name"]: _entry(entry) for entry in _table()["methods"]}


def default_method() -> str:
    """The name of the method a new project gets."""
    return _table()["default"]


@cache
def _table() -> dict[str, Any]:
    return json.loads(TABLE.read_text(encoding="utf-8"))


def _entry(entry: dict[str, Any]) -> Entry:
    parameters = [Parameter(row["name"], row["default"], tuple(row["kinds"])) for row in entry["parameters"]]
    fields: dict[str, Any] = {**entry, "parameters": tuple(parameters)}
    return Entry(**fields)
