"""Labels, images and suggestions as pandas tables. docs/python.md describes the columns.

Texts are `string`, for equal tables under pandas 2 and 3.
"""

from typing import TYPE_CHECKING

import numpy as np

from annotator.exchange.exports.choices import Choices
from annotator.exchange.exports.data_set import open_data_set
from annotator.exchange.formats.export_view import STATE_UNANSWERED, STATE_WORDS, UNKNOWN_VALUE, Block, View
from annotator.snapshot.suggestions import find_missing_positives
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import export_reads
from annotator.store.pictures.files import unescape_path

if TYPE_CHECKING:
    import pandas as pd

SPLIT_ATTRIBUTE = "split"
IMAGES_PER_BATCH = 10_000  # images


def load_labels(db: Database, choices: Choices | None = None, *, unknown: bool = False) -> "pd.DataFrame":
    """Return a table of labels, one row per image and class, in this order. `unknown` includes unanswered ones."""
    import pandas as pd

    with open_data_set(db, choices) as data:
        view = data.view
        parts = [_block_columns(block, view, unknown) for block in view.blocks()]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else _empty_columns()
    known = ~np.isnan(joined["decided_at"])
    at = np.full(len(known), np.datetime64("NaT"), "datetime64[us]")
    at[known] = np.round(joined["decided_at"][known] * 1e6).astype(np.int64).astype("datetime64[us]")
    return pd.DataFrame(
        {
            "image": pd.array(joined["image"], dtype="string"),
            "class": pd.Categorical.from_codes(joined["class"], [class_.name for class_ in view.classes]),
            "state": pd.Categorical.from_codes(joined["state"] - 1, STATE_WORDS[1:]),
            "source": pd.Categorical.from_codes(joined["source"].astype(int) - 1, view.sources[1:]),
            "annotator": pd.Categorical.from_codes(joined["annotator"].astype(int) - 1, view.annotators[1:]),
            "decided_at": pd.Series(at).dt.tz_localize("UTC"),
            "probability": joined["probability"],
            "split": pd.Categorical.from_codes(joined["split"], view.splits),
            "image_id": joined["image_id"],
            "origin_source": pd.array(joined["origin_source"], dtype="string"),
            "origin_annotator": pd.array(joined["origin_annotator"], dtype="string"),
        }
    )


def load_wide_labels(db: Database, choices: Choices | None = None) -> "pd.DataFrame":
    """Return a table of labels with one row per image name and one Int8 column per class.

    1 is present, 0 absent, <NA> unanswered or unsure.
    """
    import pandas as pd

    with open_data_set(db, choices) as data:
        view = data.view
        values, names = [np.zeros((0, len(view.classes)), np.int8)], []
        for block in view.blocks():
            values.append(block.values)
            names += [image.name for image in block.images]
    every = np.concatenate(values)
    columns = {
        class_.name: pd.arrays.IntegerArray(np.ascontiguousarray(column), column == UNKNOWN_VALUE)
        for class_, column in zip(view.classes, every.T, strict=True)
    }
    return pd.DataFrame(columns, index=pd.Index(names, dtype="string", name="image"))


def load_images(db: Database) -> "pd.DataFrame":
    """Return a table of all images, one row per image.

    `complete` means every class is answered. `problem` is "" for readable files.
    """
    import pandas as pd

    with db.reading():
        ids = export_reads.load_image_ids(db)
        rows: list[tuple[int, str, str, int, int, str]] = []
        paths: dict[int, str] = {}
        facts: dict[str, dict[int, str]] = {SPLIT_ATTRIBUTE: {}} | {
            name: {} for name in export_reads.load_attribute_names(db)
        }
        for start in range(0, len(ids), IMAGES_PER_BATCH):
            some = ids[start : start + IMAGES_PER_BATCH]
            rows += export_reads.load_image_rows(db, some)
            paths |= {
                row[0]: f"{unescape_path(row[1])}/{unescape_path(row[2])}"
                for row in export_reads.load_image_files(db, some)
            }
            for image_id, name, value in export_reads.load_attributes(db, some):
                facts[name][image_id] = value
        complete = np.isin(ids, export_reads.load_complete_image_ids(db))
    order = [row[0] for row in rows]
    columns = {
        "id": np.array(order, np.int64),
        "name": _to_string_array(row[1] for row in rows),
        "path": _to_string_array(_to_valid_text(paths.get(image_id)) for image_id in order),
        "sha256": _to_string_array(row[2] for row in rows),
        "width": np.array([row[3] for row in rows], np.int64),
        "height": np.array([row[4] for row in rows], np.int64),
        "complete": complete,
        "problem": _to_string_array(row[5] for row in rows),
    }
    for name, values in facts.items():
        columns[name if name == SPLIT_ATTRIBUTE else f"attribute.{name}"] = _to_string_array(map(values.get, order))
    return pd.DataFrame(columns)


def load_suggestions(db: Database, class_: str | None = None, n: int = 100) -> "pd.DataFrame":
    """Return the `n` unanswered labels most likely to be present, most probable first, of one class or (None) all.

    The table is empty before the first training.
    """
    import pandas as pd

    with db.reading():
        class_id = None if class_ is None else classes.find_class(db, class_).id
        likely = find_missing_positives(db, class_id, n)
        class_names = {known.id: known.name for known in classes.load_active_classes(db)}
        shown = images.load_images(db, {suggestion.image_id for suggestion in likely})
    return pd.DataFrame(
        {
            "image": _to_string_array(shown[suggestion.image_id].name for suggestion in likely),
            "class": _to_string_array(class_names[suggestion.class_id] for suggestion in likely),
            "probability": np.array([suggestion.probability for suggestion in likely], np.float64),
            "run": np.array([suggestion.run_id for suggestion in likely], np.int64),
            "image_id": np.array([suggestion.image_id for suggestion in likely], np.int64),
        }
    )


def _block_columns(block: Block, view: View, unknown: bool) -> dict[str, np.ndarray]:
    rows, columns = np.nonzero(np.full_like(block.states, 1) if unknown else block.states != STATE_UNANSWERED)
    place = rows, columns
    split_of = {name: number for number, name in enumerate(view.splits)}
    origins = np.full((2, *block.states.shape), None, object)
    for cell, origin in block.origins.items():
        origins[0][cell], origins[1][cell] = origin.source or None, origin.annotator or None
    return {
        "image": np.array([image.name for image in block.images], object)[rows],
        "class": columns,
        "state": block.states[place],
        "source": block.sources[place],
        "annotator": block.annotators[place],
        "decided_at": block.decided_at[place],
        "probability": block.probabilities[place],
        "split": np.array([split_of.get(split, -1) for split in block.splits], np.int64)[rows],
        "image_id": np.array([image.id for image in block.images], np.int64)[rows],
        "origin_source": origins[0][place],
        "origin_annotator": origins[1][place],
    }


def _empty_columns() -> dict[str, np.ndarray]:
    texts, floats = ("image", "origin_source", "origin_annotator"), ("decided_at", "probability")
    numbers = ("class", "state", "source", "annotator", "split", "image_id")
    kinds = dict.fromkeys(texts, object) | dict.fromkeys(floats, np.float64) | dict.fromkeys(numbers, np.int64)
    return {name: np.zeros(0, kind) for name, kind in kinds.items()}


def _to_string_array(values) -> "pd.api.extensions.ExtensionArray":
    import pandas as pd

    return pd.array(list(values), dtype="string")


def _to_valid_text(path: str | None) -> str | None:
    """Return the path as valid text, with backslash escapes for bytes that are not UTF-8."""
    return None if path is None else path.encode("utf-8", "backslashreplace").decode()
