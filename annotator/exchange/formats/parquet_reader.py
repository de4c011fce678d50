"""Labels from Parquet (https://parquet.apache.org), read in batches.

    own exports            the schema names the columns, and a row without null is exhaustive
    image, class, state    one row per answer

Other tables are interpreted by content.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.files.arrow_tables import read_parquet_batches, read_parquet_schema
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item, Remark
from annotator.exchange.formats.shared.class_list import find_class_names
from annotator.exchange.formats.shared.label_table import CLASS_COLUMNS, IMAGE_COLUMNS, STATE_COLUMNS
from annotator.exchange.formats.shared.sidecars import ORIGIN_COLUMNS
from annotator.exchange.formats.shared.table_items import RawTable, interpret_table
from annotator.exchange.reading.cell_words import Cell, normalize_word, to_cell
from annotator.exchange.reading.column_names import IMAGE_COLUMN_NAMES
from annotator.exchange.reading.known_tables import find_table_profile
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.humanize import format_count
from annotator.records import ABSENT, PRESENT, STATES
from annotator.store.disk.open_files import open_file

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_BATCH = 1000  # rows
SCHEMA_KEY = b"multilabel-annotator"
"""Of the schema: JSON with the names of the columns, as `columns_of` gives them."""
OWN_COLUMNS = ("image", "sha256", "split", "provenance", "attributes", "notes")
_STATE_BY_WORD: dict[Any, int] = {
    **STATES,
    "1": PRESENT,
    "0": ABSENT,
    1: PRESENT,
    0: ABSENT,
    "true": PRESENT,
    "false": ABSENT,
}
_INVALID_VALUE = -2  # stands for a value that is none of 1, 0, -1


@dataclass(frozen=True)
class ParquetColumns:
    """The column names of a table by meaning, "" if missing.

    Attributes:
        classes: One column per class, empty for a table with one row per answer.
        class_, state: Columns of the latter.
    """

    image: str
    classes: Sequence[str] = ()
    sha256: str = ""
    split: str = ""
    provenance: str = ""
    attributes: str = ""
    notes: str = ""
    class_: str = ""
    state: str = ""

    def list_needed(self, names: Sequence[str]) -> list[str]:
        """Return those of a table's column names that must be read, in table order."""
        single = (self.image, self.sha256, self.split, self.provenance, self.attributes, self.notes)
        who = PROVENANCE_COLUMNS if self.class_ else ()
        wanted = {*single, *self.classes, self.class_, self.state, *who}
        return [name for name in names if name in wanted]


PROVENANCE_COLUMNS = ("source", "annotator", "decided_at", *ORIGIN_COLUMNS)


def recognize(path: Path) -> str | None:
    if not path.is_file() or not _is_parquet(path):
        return None
    try:
        schema = _read_schema(path)
    except AnnotatorError:
        return None
    if b"huggingface" in (schema.metadata or {}):
        return None
    columns = _find_columns(schema)
    if columns is None:
        words = {normalize_word(name) for name in schema.names}
        pictures = _find_picture_columns(schema)
        if words.isdisjoint(IMAGE_COLUMN_NAMES) and not pictures and not find_table_profile(schema.names):
            return None
        return f"a Parquet table with the columns {', '.join(schema.names[:4])}" + (", ..." * (len(schema.names) > 4))
    if columns.class_:
        return f"Parquet with one row an answer: {columns.image}, {columns.class_}"
    return f"Parquet with one row an image, and {format_count(len(columns.classes), 'column')} of classes"


def _is_parquet(path: Path) -> bool:
    try:
        with open_file(path) as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return a table's labels, or raise AnnotatorError."""
    schema = _read_schema(path)
    is_told = options.label_columns is not None or options.class_columns is not None
    columns = None if is_told else _find_columns(schema)
    if columns is None:
        return interpret_table(_make_table(path, schema), problems, options)
    if columns.class_:
        return Contents([], _read_answer_rows(path, columns, problems), place="row")
    said = ["1 is present, 0 is absent; null and -1 are unknown"]
    classes = [(name, "") for name in columns.classes]
    return Contents(classes, _read_image_rows(path, columns, problems), place="row", sentences=said)


def _make_table(path: Path, schema: "pa.Schema") -> RawTable:
    """Return a table of another tool, without columns of image content. Rows get the keys of image_tables.py."""
    pictures = _find_picture_columns(schema)
    names = [name for name in schema.names if name not in pictures]
    image = None
    if pictures and all(normalize_word(name) not in IMAGE_COLUMN_NAMES for name in names):
        names, image = [pictures[0], *names], 0

    def rows() -> Iterator[tuple[int | str, Sequence[Cell]]]:
        number = 0
        for _, batch in _read_batches(path, [name for name in names if name not in pictures] or pictures[:1]):
            values = [
                [""] * batch.num_rows if name in pictures else list(map(to_cell, batch.column(name).to_pylist()))
                for name in names
            ]
            for row in zip(*values, strict=True):
                number += 1
                if pictures:
                    place = f"{path.name}, row {number}"
                    yield place, [place if column == image else cell for column, cell in enumerate(row)]
                else:
                    yield number, row

    return RawTable(path, names, rows(), image, find_class_names(path), place="row")


def _find_picture_columns(schema: "pa.Schema") -> list[str]:
    import pyarrow as pa

    def is_bytes(kind: Any) -> bool:
        return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)

    return [
        field.name
        for field in schema
        if is_bytes(field.type)
        or (pa.types.is_struct(field.type) and any(is_bytes(inner.type) for inner in field.type))
    ]


def _read_schema(path: Path) -> "pa.Schema":
    import pyarrow as pa

    try:
        return read_parquet_schema(path)
    except (OSError, pa.ArrowException, UnicodeError) as error:
        raise AnnotatorError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error


def _find_columns(schema: "pa.Schema") -> ParquetColumns | None:
    from pyarrow import types

    kinds = {field.name: field.type for field in schema}
    ours = _parse_own_columns((schema.metadata or {}).get(SCHEMA_KEY), kinds)
    if ours:
        return ours
    texts = [name for name, kind in kinds.items() if types.is_string(kind) or types.is_large_string(kind)]
    texts += [name for name, kind in kinds.items() if types.is_dictionary(kind)]  # categories of pandas
    lower = {name.lower(): name for name in reversed(texts)}
    any_case = {name.lower(): name for name in kinds}
    image, class_ = (
        next((lower[name] for name in names if name in lower), "") for names in (IMAGE_COLUMNS, CLASS_COLUMNS)
    )
    state = next((any_case[name] for name in STATE_COLUMNS if name in any_case), "")
    if not (image and class_ and state):
        return None
    return ParquetColumns(
        image, class_=class_, state=state, sha256=lower.get("sha256", ""), split=lower.get("split", "")
    )


def _parse_own_columns(text: bytes | None, kinds: dict[str, Any]) -> ParquetColumns | None:
    try:
        named = json.loads(text or b"null")
        columns = ParquetColumns(classes=tuple(named["classes"]), **{name: named.get(name, "") for name in OWN_COLUMNS})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    used = [
        columns.image,
        *columns.classes,
        *(name for name in (getattr(columns, one) for one in OWN_COLUMNS[1:]) if name),
    ]
    return columns if columns.image and all(name in kinds for name in used) else None


def _read_batches(path: Path, wanted: Sequence[str]) -> Iterator[tuple[int, "pa.RecordBatch"]]:
    import pyarrow as pa

    row = 0
    try:
        for batch in read_parquet_batches(path, wanted, ROWS_PER_BATCH):
            yield row, batch
            row += batch.num_rows
    except (OSError, pa.ArrowException, ValueError) as error:
        raise AnnotatorError(f"{path} cannot be read beyond row {row}: {str(error).splitlines()[0]}") from error


def _list_values(batch: "pa.RecordBatch", name: str) -> list[Any]:
    return batch.column(name).to_pylist() if name else [None] * batch.num_rows


def _read_image_rows(path: Path, columns: ParquetColumns, problems: Problems) -> Iterator[Item]:
    for first, batch in _read_batches(path, columns.list_needed(read_parquet_schema(path).names)):
        values = _read_values(batch, columns.classes)
        for row, column in np.argwhere(values == _INVALID_VALUE).tolist():
            name = columns.classes[column]
            shown = batch.column(name)[row].as_py()
            problems.add(f"row {first + row}: {name!r} is {shown!r}; it must be 1, 0, -1 or null")
        given, states = _read_provenance(batch, columns, first, problems)
        _check_consistency(values, states, columns, first, problems)
        plain = _build_plain_labels(values, states, columns.classes)
        whole: list[bool] = np.all(values >= 0, axis=1).tolist()
        names, contents, splits = (_list_values(batch, name) for name in (columns.image, columns.sha256, columns.split))
        attributes, notes = _list_values(batch, columns.attributes), _list_values(batch, columns.notes)
        for row, name in enumerate(names):
            if not name:
                problems.add(f"row {first + row}: the image has no name")
                continue
            stated = dict(attributes[row] or ())
            if splits[row]:
                stated["split"] = splits[row]
            labels = [*given[row], *plain[row]]
            # An exhaustive item needs only its present classes: all others are absent.
            exhaustive = bool(columns.classes) and whole[row] and not given[row]
            if exhaustive:
                labels = [one for one in labels if one.state == PRESENT]
            yield Item(
                name,
                first + row,
                labels,
                exhaustive=exhaustive,
                sha256=contents[row] or "",
                attributes=stated,
                remarks=[_parse_remark(note) for note in notes[row] or ()],
            )


def _read_values(batch: "pa.RecordBatch", names: Sequence[str]) -> np.ndarray:
    """Return the class columns of a batch, (n, C) int8: 1, 0, -1 for null, or _INVALID_VALUE."""
    values = np.full((batch.num_rows, len(names)), -1, np.int8)
    for column, name in enumerate(names):
        numbers = batch.column(name).cast("double").to_numpy(zero_copy_only=False)
        known = ~np.isnan(numbers)
        values[known, column] = np.where(np.isin(numbers[known], (1, 0, -1)), numbers[known], _INVALID_VALUE)
    return values


def _build_plain_labels(values: np.ndarray, states: np.ndarray, names: Sequence[str]) -> list[list[ImportedLabel]]:
    plain: list[list[ImportedLabel]] = [[] for _ in values]
    present, absent = ([ImportedLabel(name, state) for name in names] for state in (PRESENT, ABSENT))
    rows, columns = np.nonzero((values >= 0) & (states == 0))
    for row, column, value in zip(rows.tolist(), columns.tolist(), values[rows, columns].tolist(), strict=True):
        plain[row].append((present if value else absent)[column])
    return plain


def _read_provenance(
    batch: "pa.RecordBatch", columns: ParquetColumns, first: int, problems: Problems
) -> tuple[list[list[ImportedLabel]], np.ndarray]:
    """Return the answers of each row with provenance, and (n, C) int8 with their state plus 2, 0 for none."""
    given: list[list[ImportedLabel]] = [[] for _ in range(batch.num_rows)]
    states = np.zeros((batch.num_rows, len(columns.classes)), np.int8)
    if not columns.provenance:
        return given, states
    column_of = {name: column for column, name in enumerate(columns.classes)}
    lists = batch.column(columns.provenance)
    flat = lists.flatten()
    fields = {field.name: flat.field(field.name) for field in flat.type}
    if not {"class", "state"} <= fields.keys():
        raise AnnotatorError(f"The column {columns.provenance} has no fields class and state.")
    rows = np.repeat(np.arange(batch.num_rows), lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False))
    for row, answer in zip(rows.tolist(), _parse_labels(fields, len(flat), first, rows, problems), strict=True):
        if answer is None:
            continue
        given[row].append(answer)
        if (column := column_of.get(answer.class_name)) is not None:
            states[row, column] = answer.state + 2
    return given, states


def _check_consistency(
    values: np.ndarray, states: np.ndarray, columns: ParquetColumns, first: int, problems: Problems
) -> None:
    """Report class values that contradict the provenance column, because another tool changed one."""
    expected = np.array([-1, 0, -1, 1], np.int8)[states]  # nothing, absent, unsure, present
    for row, column in np.argwhere((states != 0) & (values != expected) & (values != _INVALID_VALUE)).tolist():
        said = {1: "absent", 2: "unsure", 3: "present"}[int(states[row, column])]
        value = None if values[row, column] < 0 else int(values[row, column])
        problems.add(
            f"row {first + row}: {columns.classes[column]!r} is {value!r}, but {columns.provenance} says {said!r}"
        )


def _parse_labels(
    fields: "dict[str, pa.Array]", count: int, first: int, rows: np.ndarray, problems: Problems
) -> Iterator[ImportedLabel | None]:
    nothing = [None] * count
    words, names = (fields[name].to_pylist() for name in ("state", "class"))
    facts_of = {
        name: _list_provenance_values(name, fields[name]) if name in fields else nothing for name in PROVENANCE_COLUMNS
    }
    who = [[facts_of[name] for name in PROVENANCE_COLUMNS[part : part + 3]] for part in (3, 0)]  # ORIGIN_COLUMNS first
    for place, (name, word) in enumerate(zip(names, words, strict=True)):
        state = _STATE_BY_WORD.get(word.lower() if isinstance(word, str) else word)
        if state is None or not name:
            what = "the class has no name" if not name else f"state {word!r}; it must be present, absent or unsure"
            problems.add(f"row {first + int(rows[place])}: {what}")
            yield None
            continue
        source = annotator = at = None
        for of_who in who:
            source, annotator, at = (values[place] for values in of_who)
            if source or annotator or at is not None:
                break
        yield ImportedLabel(name, state, annotator or "", at, source or "")


def _list_provenance_values(name: str, values: "pa.Array") -> list[Any]:
    return _to_seconds(values) if name.endswith("decided_at") else values.to_pylist()


def _to_seconds(moments: "pa.Array") -> list[float | None]:
    import pyarrow as pa
    from pyarrow import types

    if types.is_floating(moments.type) or types.is_integer(moments.type):
        return moments.to_pylist()
    try:
        micros = moments.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    except (pa.ArrowException, UnicodeError) as error:
        raise AnnotatorError(f"A column of times cannot be read: {error}.") from error
    return [None if one is None else one / 1e6 for one in micros]


def _parse_remark(note: dict[str, Any]) -> Remark:
    at = note.get("written_at")
    return Remark(note.get("kind") or "", note.get("text") or "", note.get("annotator") or "", at and at.timestamp())


def _read_answer_rows(path: Path, columns: ParquetColumns, problems: Problems) -> Iterator[Item]:
    import pyarrow as pa

    for first, batch in _read_batches(path, columns.list_needed(read_parquet_schema(path).names)):
        fields = {name: batch.column(name) for name in batch.schema.names if name in PROVENANCE_COLUMNS}
        fields["class"] = batch.column(columns.class_)
        fields["state"] = batch.column(columns.state) if columns.state else pa.array(["present"] * batch.num_rows)
        names, contents, splits = (_list_values(batch, name) for name in (columns.image, columns.sha256, columns.split))
        answers = _parse_labels(fields, batch.num_rows, first, np.arange(batch.num_rows), problems)
        item, labels, seen = None, [], set()
        for row, answer in enumerate(answers):
            if not names[row]:
                problems.add(f"row {first + row}: the image has no name")
                continue
            if item is None or item.image != names[row] or (answer and answer.class_name in seen):
                if item is not None:
                    yield item
                facts = {"split": splits[row]} if splits[row] else {}
                labels, seen = [], set()
                item = Item(names[row], first + row, labels, sha256=contents[row] or "", attributes=facts)
            if answer:
                labels.append(answer)
                seen.add(answer.class_name)
        if item is not None:
            yield item
