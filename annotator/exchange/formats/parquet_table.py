"""Reading labels from Parquet (https://parquet.apache.org), batch by batch: our own exports, and tables of others.

    our own exports            one column a class, `provenance`, `attributes` and `notes`: the schema says which columns
                               these are. A row without a null is exhaustive
    image, class, state        one row an answer, with source, annotator and decided_at where there are such columns

All other tables, also those with the bytes of pictures, are read as reading/deciding.py decides. A table whose schema
names features of Hugging Face is read by huggingface.py.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.tables import parquet_batches, parquet_schema
from annotator.exchange.formats.contents import Contents, Given, Item, Remark
from annotator.exchange.formats.shared.class_list import names_beside
from annotator.exchange.formats.shared.label_table import CLASS, IMAGE, STATE
from annotator.exchange.formats.shared.provenance import ORIGIN
from annotator.exchange.formats.shared.table_items import Table, contents
from annotator.exchange.reading.columns import IMAGE as IMAGE_WORDS
from annotator.exchange.reading.reading import Reading
from annotator.exchange.reading.words import Cell, as_cell, plain
from annotator.records import ABSENT, PRESENT, STATES
from annotator.shares import counted
from annotator.store.disk.open_files import open_file

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 1000  # rows
KEY = b"multilabel-annotator"
"""Of the schema: JSON with the names of the columns, as `columns_of` gives them."""
OURS = ("image", "sha256", "split", "provenance", "attributes", "notes")
_WORDS: dict[Any, int] = {**STATES, "1": PRESENT, "0": ABSENT, 1: PRESENT, 0: ABSENT, "true": PRESENT, "false": ABSENT}
_NOTHING = -2  # stands for a value that is none of 1, 0, -1


@dataclass(frozen=True)
class Columns:
    """The names of the columns of a table by their meaning; "" for a missing column.

    Attributes:
        classes: Columns with the values of one class each; [] for a table with one row an answer.
        class_, state: Columns of a table with one row an answer.
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

    def read(self, names: Sequence[str]) -> list[str]:
        """Return the names in `names` that have to be read, in their order."""
        single = (self.image, self.sha256, self.split, self.provenance, self.attributes, self.notes)
        who = WHO if self.class_ else ()
        wanted = {*single, *self.classes, self.class_, self.state, *who}
        return [name for name in names if name in wanted]


WHO = ("source", "annotator", "decided_at", *ORIGIN)


def recognise(path: Path) -> str | None:
    """Return why a file is such a table, or None."""
    if not path.is_file() or not _is_parquet(path):
        return None
    try:
        schema = _schema(path)
    except AnnotatorError:
        return None
    if b"huggingface" in (schema.metadata or {}):
        return None
    columns = _columns(schema)
    if columns is None:
        words = {plain(name) for name in schema.names}
        pictures = _pictures(schema)
        if words.isdisjoint(IMAGE_WORDS) and not pictures:
            return None
        return f"a Parquet table with the columns {', '.join(schema.names[:4])}" + (", ..." * (len(schema.names) > 4))
    if columns.class_:
        return f"Parquet with one row an answer: {columns.image}, {columns.class_}"
    return f"Parquet with one row an image, and {counted(len(columns.classes), 'column')} of classes"


def _is_parquet(path: Path) -> bool:
    try:
        with open_file(path) as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def read(path: Path, problems: Problems) -> Contents:
    """Return the labels of a table, as `read_as` with the reader's own decisions."""
    return read_as(path, problems, Reading())


def read_as(path: Path, problems: Problems, reading: Reading) -> Contents:
    """Return the labels of a table. Raises AnnotatorError for a table without labels, and for a damaged file."""
    schema = _schema(path)
    is_told = reading.label_columns is not None or reading.class_columns is not None
    columns = None if is_told else _columns(schema)
    if columns is None:
        return contents(_table(path, schema), problems, reading)
    if columns.class_:
        return Contents([], _answers(path, columns, problems), place="row")
    said = ["1 is present, 0 is absent; null and -1 are unknown"]
    classes = [(name, "") for name in columns.classes]
    return Contents(classes, _images(path, columns, problems), place="row", said=said)


def _table(path: Path, schema: "pa.Schema") -> Table:
    """Return a table of others, without its pictures; their rows are named as sources/tables.py names the files."""
    pictures = _pictures(schema)
    names = [name for name in schema.names if name not in pictures]
    image = None
    if pictures and all(plain(name) not in IMAGE_WORDS for name in names):
        names, image = [pictures[0], *names], 0

    def rows() -> Iterator[tuple[int | str, Sequence[Cell]]]:
        number = 0
        for _, batch in _batches(path, [name for name in names if name not in pictures] or pictures[:1]):
            values = [
                [""] * batch.num_rows if name in pictures else list(map(as_cell, batch.column(name).to_pylist()))
                for name in names
            ]
            for row in zip(*values, strict=True):
                number += 1
                if pictures:
                    place = f"{path.name}, row {number}"
                    yield place, [place if column == image else cell for column, cell in enumerate(row)]
                else:
                    yield number, row

    return Table(path, names, rows(), image, names_beside(path), place="row")


def _pictures(schema: "pa.Schema") -> list[str]:
    """Return the columns with the bytes of pictures."""
    import pyarrow as pa

    def is_bytes(kind: Any) -> bool:
        return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)

    return [
        field.name
        for field in schema
        if is_bytes(field.type)
        or (pa.types.is_struct(field.type) and any(is_bytes(inner.type) for inner in field.type))
    ]


def _schema(path: Path) -> "pa.Schema":
    import pyarrow as pa

    try:
        return parquet_schema(path)
    except (OSError, pa.ArrowException, UnicodeError) as error:
        raise AnnotatorError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error


def _columns(schema: "pa.Schema") -> Columns | None:
    """Return the columns of an own export, or of a table with one row an answer; None for other tables."""
    import pyarrow.types as types

    kinds = {field.name: field.type for field in schema}
    ours = _ours((schema.metadata or {}).get(KEY), kinds)
    if ours:
        return ours
    texts = [name for name, kind in kinds.items() if types.is_string(kind) or types.is_large_string(kind)]
    texts += [name for name, kind in kinds.items() if types.is_dictionary(kind)]  # categories of pandas
    lower = {name.lower(): name for name in reversed(texts)}
    any_case = {name.lower(): name for name in kinds}
    image, class_ = (next((lower[name] for name in names if name in lower), "") for names in (IMAGE, CLASS))
    state = next((any_case[name] for name in STATE if name in any_case), "")
    if not (image and class_ and state):
        return None
    return Columns(image, class_=class_, state=state, sha256=lower.get("sha256", ""), split=lower.get("split", ""))


def _ours(text: bytes | None, kinds: dict[str, Any]) -> Columns | None:
    """Return the columns as an export recorded them; None without a record, or if a recorded column is missing."""
    try:
        named = json.loads(text or b"null")
        columns = Columns(classes=tuple(named["classes"]), **{name: named.get(name, "") for name in OURS})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    used = [columns.image, *columns.classes, *(name for name in (getattr(columns, one) for one in OURS[1:]) if name)]
    return columns if columns.image and all(name in kinds for name in used) else None


def _batches(path: Path, wanted: Sequence[str]) -> Iterator[tuple[int, "pa.RecordBatch"]]:
    """Yield (row, batch), with the row that begins the batch. Raises AnnotatorError at the row where reading fails."""
    import pyarrow as pa

    row = 0
    try:
        for batch in parquet_batches(path, wanted, AT_ONCE):
            yield row, batch
            row += batch.num_rows
    except (OSError, pa.ArrowException, ValueError) as error:
        raise AnnotatorError(f"{path} cannot be read beyond row {row}: {str(error).splitlines()[0]}") from error


def _list(batch: "pa.RecordBatch", name: str) -> list[Any]:
    return batch.column(name).to_pylist() if name else [None] * batch.num_rows


def _images(path: Path, columns: Columns, problems: Problems) -> Iterator[Item]:
    """Yield one item for each row of a table with one column a class."""
    for first, batch in _batches(path, columns.read(parquet_schema(path).names)):
        values = _values(batch, columns.classes)
        for row, column in np.argwhere(values == _NOTHING).tolist():
            name = columns.classes[column]
            shown = batch.column(name)[row].as_py()
            problems.add(f"row {first + row}: {name!r} is {shown!r}; it must be 1, 0, -1 or null")
        given, states = _provenance(batch, columns, first, problems)
        _compare(values, states, columns, first, problems)
        plain = _plain(values, states, columns.classes)
        whole: list[bool] = np.all(values >= 0, axis=1).tolist()
        names, contents, splits = (_list(batch, name) for name in (columns.image, columns.sha256, columns.split))
        attributes, notes = _list(batch, columns.attributes), _list(batch, columns.notes)
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
                remarks=[_remark(note) for note in notes[row] or ()],
            )


def _values(batch: "pa.RecordBatch", names: Sequence[str]) -> np.ndarray:
    """Return the values, (n, C) int8: 1, 0, -1 for null or -1, _NOTHING for any other number."""
    values = np.full((batch.num_rows, len(names)), -1, np.int8)
    for column, name in enumerate(names):
        numbers = batch.column(name).cast("double").to_numpy(zero_copy_only=False)
        known = ~np.isnan(numbers)
        values[known, column] = np.where(np.isin(numbers[known], (1, 0, -1)), numbers[known], _NOTHING)
    return values


def _plain(values: np.ndarray, states: np.ndarray, names: Sequence[str]) -> list[list[Given]]:
    """Return for each row the answers to its values without provenance."""
    plain: list[list[Given]] = [[] for _ in values]
    present, absent = ([Given(name, state) for name in names] for state in (PRESENT, ABSENT))
    rows, columns = np.nonzero((values >= 0) & (states == 0))
    for row, column, value in zip(rows.tolist(), columns.tolist(), values[rows, columns].tolist(), strict=True):
        plain[row].append((present if value else absent)[column])
    return plain


def _provenance(
    batch: "pa.RecordBatch", columns: Columns, first: int, problems: Problems
) -> tuple[list[list[Given]], np.ndarray]:
    """Return for each row its answers with provenance; and (n, C) int8: 0 without an answer, else its state plus 2."""
    given: list[list[Given]] = [[] for _ in range(batch.num_rows)]
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
    for row, answer in zip(rows.tolist(), _given(fields, len(flat), first, rows, problems), strict=True):
        if answer is None:
            continue
        given[row].append(answer)
        if (column := column_of.get(answer.class_name)) is not None:
            states[row, column] = answer.state + 2
    return given, states


def _compare(values: np.ndarray, states: np.ndarray, columns: Columns, first: int, problems: Problems) -> None:
    """Note a problem where a value and its provenance differ: another tool has changed one of them."""
    expected = np.array([-1, 0, -1, 1], np.int8)[states]  # nothing, absent, unsure, present
    for row, column in np.argwhere((states != 0) & (values != expected) & (values != _NOTHING)).tolist():
        said = {1: "absent", 2: "unsure", 3: "present"}[int(states[row, column])]
        value = None if values[row, column] < 0 else int(values[row, column])
        problems.add(
            f"row {first + row}: {columns.classes[column]!r} is {value!r}, but {columns.provenance} says {said!r}"
        )


def _given(
    fields: "dict[str, pa.Array]", count: int, first: int, rows: np.ndarray, problems: Problems
) -> Iterator[Given | None]:
    """Yield the answers in the columns of a table, None for an invalid answer, which is noted as a problem."""
    nothing = [None] * count
    words, names = (fields[name].to_pylist() for name in ("state", "class"))
    facts_of = {name: _facts(name, fields[name]) if name in fields else nothing for name in WHO}
    who = [[facts_of[name] for name in WHO[part : part + 3]] for part in (3, 0)]  # ORIGIN first
    for place, (name, word) in enumerate(zip(names, words, strict=True)):
        state = _WORDS.get(word.lower() if isinstance(word, str) else word)
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
        yield Given(name, state, annotator or "", at, source or "")


def _facts(name: str, values: "pa.Array") -> list[Any]:
    return _seconds(values) if name.endswith("decided_at") else values.to_pylist()


def _seconds(moments: "pa.Array") -> list[float | None]:
    """Return the Unix seconds of a column of times; a column of numbers is in seconds already."""
    import pyarrow as pa
    import pyarrow.types as types

    if types.is_floating(moments.type) or types.is_integer(moments.type):
        return moments.to_pylist()
    try:
        micros = moments.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    except (pa.ArrowException, UnicodeError) as error:
        raise AnnotatorError(f"A column of times cannot be read: {error}.") from error
    return [None if one is None else one / 1e6 for one in micros]


def _remark(note: dict[str, Any]) -> Remark:
    at = note.get("written_at")
    return Remark(note.get("kind") or "", note.get("text") or "", note.get("annotator") or "", at and at.timestamp())


def _answers(path: Path, columns: Columns, problems: Problems) -> Iterator[Item]:
    """Yield the answers of a table with one row an answer; successive rows of one image in a batch are one item."""
    import pyarrow as pa

    for first, batch in _batches(path, columns.read(parquet_schema(path).names)):
        fields = {name: batch.column(name) for name in batch.schema.names if name in WHO}
        fields["class"] = batch.column(columns.class_)
        fields["state"] = batch.column(columns.state) if columns.state else pa.array(["present"] * batch.num_rows)
        names, contents, splits = (_list(batch, name) for name in (columns.image, columns.sha256, columns.split))
        answers = _given(fields, batch.num_rows, first, np.arange(batch.num_rows), problems)
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
