"""Image, label and score columns of a Hugging Face data set, by features or first rows.

ClassLabels, texts in columns such as label or tags, and 1 in 0/1 class columns are present. Columns `absent`
and `unsure` give these states. Other columns are reported.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from annotator.errors import AnnotatorError
from annotator.exchange.files.contained_paths import find_file_inside
from annotator.exchange.formats.contents import ImportedLabel, Item
from annotator.exchange.formats.huggingface_tables import DatasetTable
from annotator.records import ABSENT, PRESENT, UNSURE

STATE_COLUMNS: tuple[str, ...] = ("present", "absent", "unsure")
SAMPLE_ROWS = 1000  # rows
MAX_ATTRIBUTE_CHARS = 2000  # letters of an attribute
_STATE_BY_COLUMN: dict[str, int] = dict(zip(STATE_COLUMNS, (PRESENT, ABSENT, UNSURE), strict=True))
_LABEL_COLUMN_NAMES = {
    *STATE_COLUMNS,
    "label",
    "labels",
    "class",
    "classes",
    "category",
    "categories",
    "tag",
    "tags",
    "objects",
}
_IMAGE_COLUMN_NAMES = ("image_name", "file_name", "image", "filename", "file", "path", "image_path", "image_file_path")
_NON_CLASS_COLUMNS = {"id", "image_id", "width", "height", "index", "__index_level_0__"}


class Leaf(NamedTuple):
    """A value that names classes, in a column and possibly nested in objects.

    Attributes:
        keys: Object keys from the outside in.
        names: Class names by number, empty if the values are texts.
    """

    column: str
    keys: tuple[str, ...]
    names: tuple[str, ...]
    state: int


@dataclass
class FeatureColumns:
    """The columns of one data set by their meaning ("" if missing), with a reader of rows.

    Attributes:
        flags: Class column -> value -> state, such as {1: PRESENT, 0: ABSENT}.
        scores: Column of probabilities in `classes` order.
        facts: Text columns that become fields.
    """

    root: Path
    image: str
    file: str
    leaves: list[Leaf]
    flags: dict[str, dict[Any, int]]
    scores: str
    facts: list[str]
    sha256: str = ""
    sentences: list[str] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        """Return the class names declared in features, then the columns that are classes."""
        return list(dict.fromkeys([*(name for leaf in self.leaves for name in leaf.names), *self.flags]))

    @property
    def column_names_to_read(self) -> list[str]:
        columns = [self.image, self.file, self.scores, self.sha256, *self.facts, *self.flags]
        return [column for column in dict.fromkeys([*columns, *(leaf.column for leaf in self.leaves)]) if column]

    @classmethod
    def from_tables(cls, path: Path, tables: list[DatasetTable]) -> "FeatureColumns":
        """Return a data set's columns. Raises AnnotatorError if no column has images or classes."""
        first = list(islice(tables[0].rows(None), SAMPLE_ROWS)) if not tables[0].features else []
        features = tables[0].features or _derive_features(first)
        image = next((name for name in _IMAGE_COLUMN_NAMES if name in features), "")
        image = image or next((name for name, feature in features.items() if _get_feature_type(feature) == "Image"), "")
        leaves = [leaf for name, feature in features.items() for leaf in _find_leaves(name, feature)]
        taken = {image, "file_name", "sha256", *(leaf.column for leaf in leaves)}
        flags, unclear = _find_flag_columns(
            tables[0], first, {name: f for name, f in features.items() if name not in taken}
        )
        names = ", ".join(map(repr, features)) or "none"
        if not image:
            raise AnnotatorError(f"{path}: no column names an image; there is: {names}.")
        if not leaves and not flags:
            raise AnnotatorError(f"{path}: no column holds classes that are understood; there is: {names}.")
        facts = [name for name, feature in features.items() if _is_text(feature) and name not in taken]
        scores = (
            "probabilities" if any(leaf.column == "present" for leaf in leaves) and "probabilities" in features else ""
        )
        columns = cls(
            path if path.is_dir() else path.parent,
            image,
            "file_name" if "file_name" in features else "",
            leaves,
            flags,
            scores,
            facts,
            "sha256" if _is_text(features.get("sha256", {})) else "",
        )
        columns.sentences = columns._describe_columns(unclear)
        return columns

    def _describe_columns(self, unclear: list[str]) -> list[str]:
        listed = ", ".join(dict.fromkeys(repr(leaf.column) for leaf in self.leaves))
        said = [f"Images are named by the column {self.image!r}."]
        if listed:
            said.append(f"The classes in {listed} are present, those in 'absent' and 'unsure' absent and unsure.")
        if self.flags:
            said.append(
                f"{len(self.flags):,} columns are read as classes: {', '.join(map(repr, list(self.flags)[:5]))}."
            )
        if unclear:
            said.append(f"Columns of numbers that are not understood are left out: {', '.join(unclear[:10])}.")
        return said

    def build_item(self, row: dict[str, Any], place: str, table: DatasetTable) -> Item:
        """Return a row as an item. Raises ValueError for invalid values."""
        named = row.get(self.image)
        image = named.get("path") if isinstance(named, dict) else named
        if not image and isinstance(named, dict) and named.get("bytes"):
            image = place
        if not isinstance(image, str) or not image:
            raise ValueError(f"the column {self.image!r} names no image")
        labels: dict[tuple[str, int], ImportedLabel] = {}
        for leaf in self.leaves:
            for value in _iter_values(row.get(leaf.column), leaf.keys):
                if (name := _find_class_name(value, leaf)) is not None:
                    labels[name, leaf.state] = ImportedLabel(name, leaf.state)
        for column, meaning in self.flags.items():
            value = row.get(column)
            if value is None:
                continue
            if isinstance(value, float) or value not in meaning:
                raise ValueError(f"the column {column!r} has {value!r}, which is none of {list(meaning)}")
            labels[column, meaning[value]] = ImportedLabel(column, meaning[value])
        numbers = row.get(self.scores) if self.scores else None
        file = row.get(self.file) if self.file else None
        facts = {
            name: str(row[name]) for name in self.facts if row.get(name) and len(str(row[name])) <= MAX_ATTRIBUTE_CHARS
        }
        return Item(
            image,
            place,
            list(labels.values()),
            scores={
                name: round(number, 4) for name, number in zip(self.classes, numbers, strict=True) if number is not None
            }
            if numbers
            else {},
            file=find_file_inside(self.root, table.folder + file) if isinstance(file, str) else "",
            sha256=str(row.get(self.sha256) or "") if self.sha256 else "",
            attributes=facts | ({"split": table.split} if table.split else {}),
            answered=bool(labels) or not self.scores,
        )


def _get_feature_type(feature: Any) -> str:
    return feature.get("_type", "") if isinstance(feature, dict) and isinstance(feature.get("_type"), str) else ""


def _is_text(feature: Any) -> bool:
    return _get_feature_type(feature) == "Value" and feature.get("dtype") in ("string", "large_string")


def _find_leaves(column: str, feature: Any, keys: tuple[str, ...] = (), depth: int = 0) -> Iterator[Leaf]:
    state = _STATE_BY_COLUMN.get(column, PRESENT)
    if isinstance(feature, list):  # the notation of lists in old versions of `datasets`
        feature = {"feature": feature[0] if feature else None, "_type": "List"}
    if not isinstance(feature, dict) or depth > 8:
        return
    if _get_feature_type(feature) == "ClassLabel":
        names = feature.get("names")
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            yield Leaf(column, keys, tuple(names), state)
    elif _get_feature_type(feature) in ("List", "Sequence", "LargeList"):
        yield from _find_leaves(column, feature.get("feature"), keys, depth + 1)
    elif _is_text(feature) and (keys[-1] if keys else column).lower() in _LABEL_COLUMN_NAMES:
        yield Leaf(column, keys, (), state)
    elif not _get_feature_type(feature):
        for key, inner in feature.items():
            yield from _find_leaves(column, inner, (*keys, key), depth + 1)


def _iter_values(value: Any, keys: tuple[str, ...]) -> Iterator[Any]:
    if isinstance(value, list):
        for inner in value:
            yield from _iter_values(inner, keys)
    elif keys and isinstance(value, dict):
        yield from _iter_values(value.get(keys[0]), keys[1:])
    elif value is not None:
        yield value


def _find_class_name(value: Any, leaf: Leaf) -> str | None:
    """Return the class that a value names, None for -1 ("no label"). Raises ValueError for other values."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool) and -1 <= value < len(leaf.names):
        return leaf.names[value] if value >= 0 else None
    raise ValueError(
        f"the column {leaf.column!r} has {value!r}, which is no class of the {len(leaf.names)} that it names"
    )


def _find_flag_columns(
    table: DatasetTable, first: list[dict[str, Any]], features: dict[str, Any]
) -> tuple[dict[str, dict[Any, int]], list[str]]:
    """Return columns of 0/1 (or -1/1) as classes, and the names of other integer columns."""
    numbers = [
        name
        for name, feature in features.items()
        if _get_feature_type(feature) == "Value" and str(feature.get("dtype")).startswith(("int", "uint", "bool"))
    ]
    numbers = [name for name in numbers if name.lower() not in _NON_CLASS_COLUMNS]
    if not numbers:
        return {}, []
    first = first or list(islice(table.rows(numbers), SAMPLE_ROWS))
    flags: dict[str, dict[Any, int]] = {}
    unclear: list[str] = []
    for name in numbers:
        values = {value for row in first if (value := row.get(name)) is not None}
        if not values and not str(features[name].get("dtype")).startswith("bool"):
            unclear.append(repr(name))  # it may hold any numbers in later rows
        elif values <= {0, 1}:
            flags[name] = {1: PRESENT, 0: ABSENT}
        elif values <= {-1, 1}:
            flags[name] = {1: PRESENT, -1: ABSENT}
        else:
            unclear.append(repr(name))
    return flags, unclear


def _derive_features(rows: list[dict[str, Any]]) -> dict[str, Any]:
    features: dict[str, Any] = {}
    for row in rows:
        for name, value in row.items():
            if (feature := _derive_feature(value)) is not None:
                features.setdefault(name, feature)
    return features


def _derive_feature(value: Any) -> Any:
    if isinstance(value, list):
        inner = next((found for entry in value if (found := _derive_feature(entry)) is not None), None)
        return None if inner is None else {"feature": inner, "_type": "List"}
    if isinstance(value, dict):
        return {key: found for key, inner in value.items() if (found := _derive_feature(inner)) is not None} or None
    kinds = ((bool, "bool"), (int, "int64"), (float, "float64"), (str, "string"))
    return next(({"dtype": name, "_type": "Value"} for kind, name in kinds if isinstance(value, kind)), None)
