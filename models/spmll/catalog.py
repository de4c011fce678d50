"""Descriptions of training methods, without importing torch.

`python -m spmll.methods` writes them from the classes to spmll/methods/table.json.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TABLE_PATH = Path(__file__).resolve().parent / "methods" / "table.json"

METHOD_NEEDS = {
    "text": "scores of the names of classes by a text-image network",
    "prototypes": "a frozen network, in whose features it compares images",
    "maps": "feature maps, for which the files of labeled images are read again",
    "all labels": "all labels of all images: an upper bound, for comparisons only",
}
"""What a method may need beside images and labels of some of them, in words."""

REPRODUCTION_VERDICTS = ("no", "in part", "yes", "none are published")
"""What `Entry.reproduced` begins with."""


@dataclass(frozen=True)
class MethodParameter:
    """A parameter of a method (`type_names`: allowed types, such as "float" or "None")."""

    name: str
    default: Any
    type_names: tuple[str, ...]


@dataclass(frozen=True)
class MethodEntry:
    """A training method's description."""

    name: str
    title: str
    paper: str
    year: int
    url: str
    assumes: str
    reads: str
    full_labels: bool
    yardstick: bool
    needs: tuple[str, ...]
    reproduced: str
    open_points: tuple[str, ...]
    parameters: tuple[MethodParameter, ...]

    @property
    def defaults(self) -> dict[str, Any]:
        return {parameter.name: parameter.default for parameter in self.parameters}

    @property
    def is_for_projects(self) -> bool:
        """Return whether projects may choose this method. Methods for comparison only are excluded."""
        return not (self.full_labels or self.yardstick)

    @property
    def all_needs(self) -> tuple[str, ...]:
        """Return the METHOD_NEEDS of the method, its input and its labels."""
        of_input = ("maps",) if self.reads == "maps" else ()
        return (*self.needs, *of_input, *(("all labels",) if self.full_labels else ()))

    @property
    def needs_description(self) -> str:
        """Describe special needs, mostly ""."""
        return "; ".join(METHOD_NEEDS[need] for need in self.all_needs)

    @property
    def verdict(self) -> str:
        """Return whether the paper's result was reproduced, without the reason."""
        return self.reproduced.partition(": ")[0]


@cache
def load_methods() -> dict[str, MethodEntry]:
    return {entry["name"]: _build_entry(entry) for entry in _load_table()["methods"]}


def get_default_method_name() -> str:
    return _load_table()["default"]


@cache
def _load_table() -> dict[str, Any]:
    return json.loads(TABLE_PATH.read_text(encoding="utf-8"))


def _build_entry(entry: dict[str, Any]) -> MethodEntry:
    parameters = [MethodParameter(row["name"], row["default"], tuple(row["kinds"])) for row in entry["parameters"]]
    lists = {key: tuple(entry[key]) for key in ("needs", "open_points")}
    fields: dict[str, Any] = {**entry, **lists, "parameters": tuple(parameters)}
    return MethodEntry(**fields)
