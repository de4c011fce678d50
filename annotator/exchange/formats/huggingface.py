"""Folders for Hugging Face `datasets` (https://huggingface.co/docs/datasets/image_load).

A split is a folder with images and metadata.parquet, or <split>.parquet. Answers are ClassLabel lists
`present`, `absent` and `unsure`. Not JSON lines, because `datasets` guesses their types and fails on splits
without unsure images.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import huggingface_plain, huggingface_tables
from annotator.exchange.formats.contents import Contents, Item
from annotator.exchange.formats.export_view import Block, Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.huggingface_columns import STATE_COLUMNS, FeatureColumns
from annotator.exchange.formats.shared.embedded_extras import EXTRAS_KEY
from annotator.exchange.formats.shared.split_names import make_split_names
from annotator.exchange.reading.reading_options import ReadingOptions

if TYPE_CHECKING:
    import pyarrow as pa

LICENSES = frozenset(
    (
        "mit",
        "apache-2.0",
        "bsd-3-clause",
        "gpl-3.0",
        "odbl",
        "odc-by",
        "pddl",
        "cc0-1.0",
        "cc-by-3.0",
        "cc-by-4.0",
        "cc-by-sa-3.0",
        "cc-by-sa-4.0",
        "cc-by-nc-4.0",
        "cc-by-nd-4.0",
        "cc-by-nc-sa-4.0",
        "cc-by-nc-nd-4.0",
        "unlicense",
        "unknown",
    )
)
"""Those that the hub knows by name; any other is "other" there, with its name beside."""
SINGLE_SPLIT, UNASSIGNED_SPLIT = "train", "unsplit"  # the split of a set without splits, and of images that are in none
OWN_COLUMNS = ("file_name", "image", "image_name", "sha256", "width", "height", *STATE_COLUMNS, "probabilities")
SIZE_CATEGORIES = ((1000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
"""The hub's words for how large a set is."""


def recognize(path: Path) -> str | None:
    return huggingface_tables.recognize(path)


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the rows of all splits as items, numbered from 1 per file.

    Unreadable files, or tables without image or class columns, raise AnnotatorError.
    """
    found = huggingface_tables.list_tables(path)
    if path.is_dir() and huggingface_plain.is_plain(found):
        return huggingface_plain.read(path, found, problems, options)
    columns = FeatureColumns.from_tables(path, found)
    return Contents(
        [(name, "") for name in columns.classes],
        _read_items(found, columns, problems),
        folder=path if path.is_dir() else path.parent,
        place="row",
        sentences=columns.sentences,
    )


def _read_items(
    found: list["huggingface_tables.DatasetTable"], columns: FeatureColumns, problems: Problems
) -> Iterator[Item]:
    for table in found:
        for number, row in enumerate(table.rows(columns.column_names_to_read), start=1):
            place = f"{table.name}, row {number}"
            try:
                yield columns.build_item(row, place, table)
            except ValueError as error:
                problems.add(f"{place}: {error}")


def write(view: View, output: Output) -> None:
    import pyarrow.parquet as pq

    splits = make_split_names(view, UNASSIGNED_SPLIT if view.splits else SINGLE_SPLIT)
    schema = _build_schema(view, {name: split for split, name in splits.items()})
    has_images = view.image_mode != "none"
    written: dict[str, tuple[str, pq.ParquetWriter]] = {}
    with ExitStack() as stack:

        def put(split: str, table: "pa.Table") -> None:
            if split not in written:
                name = f"{split}/metadata.parquet" if has_images else f"{split}.parquet"
                opened = stack.enter_context(output.open_binary(name))
                written[split] = (name, stack.enter_context(pq.ParquetWriter(opened, schema)))
            written[split][1].write_table(table)

        for block in view.blocks():
            files = [f"{splits[split]}/{file}" for split, file in zip(block.splits, block.files, strict=True)]
            for image, file in zip(block.images, files, strict=True) if has_images else ():
                output.write_image(image, file)
            folders = np.array([splits[split] for split in block.splits], object)
            table = _build_table(view, block, schema)
            for split in dict.fromkeys(folders.tolist()):
                rows = np.flatnonzero(folders == split)
                put(split, table if len(rows) == len(folders) else table.take(rows))
        if not written:
            put(splits[""], schema.empty_table())
    with output.open_text("README.md") as file:
        file.write(_format_readme(view, schema, {split: name for split, (name, _) in written.items()}))


def _build_features(view: View) -> dict[str, Any]:
    def value(kind: str) -> dict[str, Any]:
        return {"dtype": kind, "_type": "Value"}

    label = {"names": [class_.name for class_ in view.classes], "_type": "ClassLabel"}
    plain = {"file_name": "string", "image_name": "string", "sha256": "string", "width": "int32", "height": "int32"}
    features: dict[str, Any] = {name: value(kind) for name, kind in plain.items()}
    if view.image_mode == "none":
        del features["file_name"]
    features |= {state: {"feature": label, "_type": "List"} for state in STATE_COLUMNS}
    features["probabilities"] = {"feature": value("float32"), "_type": "List"}
    return features | {column: value("string") for column in _name_attribute_columns(view).values()}


def _name_attribute_columns(view: View) -> dict[str, str]:
    return {name: f"attribute_{name}" if name in OWN_COLUMNS else name for name in view.attributes}


def _build_schema(view: View, splits: dict[str, str]) -> "pa.Schema":
    import pyarrow as pa

    kinds = {"string": pa.string(), "int32": pa.int32()}
    lists = {"ClassLabel": pa.int64(), "Value": pa.float32()}
    features = _build_features(view)
    fields = [
        pa.field(
            name, pa.list_(lists[feature["feature"]["_type"]]) if "feature" in feature else kinds[feature["dtype"]]
        )
        for name, feature in features.items()
    ]
    encode = msgspec.json.encode
    return pa.schema(fields, {"huggingface": encode({"info": {"features": features}}), EXTRAS_KEY: encode(splits)})


def _build_table(view: View, block: Block, schema: "pa.Schema") -> "pa.Table":
    import pyarrow as pa

    images = block.images
    columns: dict[str, Any] = {
        "file_name": block.files,
        "image_name": [image.name for image in images],
        "sha256": [image.sha256 for image in images],
        "width": [image.width for image in images],
        "height": [image.height for image in images],
    }
    for number, state in enumerate(STATE_COLUMNS, start=1):
        rows, classes = np.nonzero(block.states == number)
        ends = np.searchsorted(rows, np.arange(len(images) + 1))
        columns[state] = pa.ListArray.from_arrays(ends.astype(np.int32), classes.astype(np.int64))
    numbers = block.probabilities.astype(np.float32)
    known = ~np.isnan(numbers)
    if known.any():
        flat = pa.array(numbers.ravel(), mask=~known.ravel())
        ends = np.arange(len(images) + 1, dtype=np.int32) * len(view.classes)
        columns["probabilities"] = pa.ListArray.from_arrays(ends, flat)
    else:
        columns["probabilities"] = pa.nulls(len(images), pa.list_(pa.float32()))
    for name, column in _name_attribute_columns(view).items():
        columns[column] = [facts.get(name) for facts in block.attributes]
    arrays = [
        pa.array(values, schema.field(name).type) if isinstance(values, list) else values
        for name in schema.names
        for values in (columns[name],)
    ]
    return pa.table(arrays, schema=schema)


def _format_readme(view: View, schema: "pa.Schema", written: dict[str, str]) -> str:
    import yaml

    names = {str(number): class_.name for number, class_ in enumerate(view.classes)}
    features: list[dict[str, Any]] = []
    for name, feature in _build_features(view).items():
        inner = feature.get("feature")
        if name == "file_name":
            features.append({"name": "image", "dtype": "image"})
        elif inner is None:
            features.append({"name": name, "dtype": feature["dtype"]})
        elif inner["_type"] == "ClassLabel":
            features.append({"name": name, "list": {"class_label": {"names": dict(names)}}})
        else:
            features.append({"name": name, "list": inner["dtype"]})
    files = [
        {"split": split, "path": f"{split}/**" if name.endswith("metadata.parquet") else name}
        for split, name in written.items()
    ]
    size = next((words for limit, words in SIZE_CATEGORIES if view.images < limit), "n>1M")
    head = {
        "task_categories": ["image-classification"],
        "task_ids": ["multi-label-image-classification"],
        "size_categories": [size],
        "configs": [{"config_name": "default", "data_files": files}],
        "dataset_info": {"features": features},
    }
    if licence := view.card.get("license"):
        known = str(licence).lower() in LICENSES
        head = (
            {"license": str(licence).lower()} if known else {"license": "other", "license_name": str(licence)}
        ) | head
    head_text = yaml.safe_dump(head, allow_unicode=True, sort_keys=False, width=1000)
    return f"""---
{head_text}---

# Labels of {view.images:,} images, {len(view.classes):,} classes

`present`, `absent` and `unsure` list the classes of an image that somebody answered; a class in none of them is
**unknown**, not absent. Who gave each label is in `provenance.csv`; what there is to know of the whole is in
`data_card.md`.

```python
from datasets import load_dataset

data = load_dataset("path/to/this/folder")
names = data["{next(iter(written))}"].features["present"].feature.names
```
"""


HUGGINGFACE = Format(
    "huggingface",
    "Hugging Face datasets: a folder with images, tables and a card",
    "",
    recognize,
    read,
    write,
    FormatLosses(unsure=False),
    "link",
)
