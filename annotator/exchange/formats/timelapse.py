"""Timelapse databases (TimelapseData.ddb) with labels of camera trap images.

Format: SQLite, https://timelapse.ucalgary.ca. Values of choices name classes. Counters above 0 and set flags make the
class of their column present. Default values mean nothing: Timelapse writes them into new rows. Untrusted files are
opened read-only.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.reading.reading_options import NONE_VALUE, Interpretation, ReadingOptions
from annotator.humanize import format_count
from annotator.records import ABSENT, PRESENT
from annotator.store.disk.other_databases import Connection, list_tables, open_read_only
from annotator.store.pictures.files import looks_like_image

FILE_SUFFIX = ".ddb"
DATABASE_DESCRIPTION = "a database of Timelapse"
DATA_TABLE, TEMPLATE_TABLE = "DataTable", "TemplateTable"
CHOICE_KINDS = ("FixedChoice", "MultiChoice")
COUNTER_KINDS = ("Counter", "IntegerPositive")
FLAG_KIND = "Flag"
FILE_COLUMNS = ("File", "RelativePath", "Folder", "RootFolder", "Id")
EMPTY_CHOICES = ("empty", "blank", "none", "nothing", "no animal")
"""Choices that say that nothing is there, in small letters."""
TRUE_WORDS, FALSE_WORDS = ("true", "1", "yes"), ("false", "0", "no")
MAX_COLUMNS = 2000
MAX_FACT_CHARS = 200, 2000  # letters of its name, of its value
_SPECIES_PATTERN = re.compile(r"species|taxon|animal|class|label|wildlife", re.IGNORECASE)
_COUNT_PATTERN = re.compile(r"count|number|quantity|total|how ?many|^n$|^num", re.IGNORECASE)


@dataclass(frozen=True)
class Column:
    """A column of the database's template.

    Attributes:
        kind: FixedChoice, Counter, Flag, Note, ...
        default: Value in new rows.
    """

    name: str
    label: str
    kind: str
    default: str


def recognize(path: Path) -> str | None:
    return f"{DATABASE_DESCRIPTION} (.ddb)" if path.suffix.lower() == FILE_SUFFIX and path.is_file() else None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the labels of a database. Raises AnnotatorError for other files."""
    with open_read_only(path, DATABASE_DESCRIPTION) as sql:
        columns = _read_columns(path, sql)
        rows = sql.execute(f"SELECT count(*) FROM {DATA_TABLE}").fetchone()[0]
        has_images = any((path.parent / name).is_file() for name in _iter_file_names(sql))
    kinds = {column.name: column for column in columns}
    choices = [column.name for column in columns if column.kind in CHOICE_KINDS]
    flags = [column.name for column in columns if column.kind == FLAG_KIND and column.name != "DeleteFlag"]
    counters = [column.name for column in columns if column.kind in COUNTER_KINDS]
    decided: list[Interpretation] = []
    labels = _choose_label_columns(path, choices, [*kinds], options, decided)
    if options.class_columns is not None:
        classes = [name for name in options.class_columns if name != NONE_VALUE]
        _check_columns_exist(path, classes, [*kinds])
    else:
        named = [] if labels else [name for name in counters if not _COUNT_PATTERN.search(name)]
        classes = [*flags, *named]
        why = f"classes with a column of their own: {', '.join(classes) or 'none'} (flags, and counters of things)"
        decided.append(Interpretation("class_columns", ",".join(classes) or NONE_VALUE, why, True, tuple(counters)))
    is_absent = {word.casefold() for word in options.absent or () if word != NONE_VALUE}
    empty = {word.casefold() for word in (EMPTY_CHOICES if options.empty_label is None else options.empty_label)}
    said = [
        f"{format_count(rows, 'row')}. A value that is still the default of the template says nothing; false and 0 are "
        "unknown, unless you say that they are absent (--absent false).",
    ]
    plan = _ColumnMeanings(kinds, labels, classes, is_absent, empty)
    listed = [(name if name == kinds[name].label else kinds[name].label, "") for name in classes]
    items = _read_items(path, plan, problems, said)
    return Contents(listed, items, path.parent if has_images else None, "row", said, decided)


@dataclass(frozen=True)
class _ColumnMeanings:
    """The columns that contain class names, those that are classes, and the words for absent and "no class"."""

    columns: dict[str, Column]
    labels: Sequence[str]
    classes: Sequence[str]
    absent: set[str]
    empty: set[str]


def _choose_label_columns(
    path: Path, choices: Sequence[str], known: Sequence[str], options: ReadingOptions, decided: list[Interpretation]
) -> list[str]:
    if options.label_columns is not None:
        wanted = [name for name in options.label_columns if name != NONE_VALUE]
        _check_columns_exist(path, wanted, known)
        return wanted
    named = [name for name in choices if _SPECIES_PATTERN.search(name)]
    found = named or (list(choices) if len(choices) == 1 else [])
    if found:
        why = f"{' and '.join(found)} names what is on the image: a choice of the template"
        # Two columns such as Species and Species2 may also be a species and its class.
        decided.append(Interpretation("label_columns", ",".join(found), why, len(found) == 1 or bool(named), choices))
    elif choices:
        why = f"none of the choices {', '.join(choices)} is called species or alike, so which names the class?"
        decided.append(Interpretation("label_columns", NONE_VALUE, why, False, choices))
    return found


def _check_columns_exist(path: Path, wanted: Sequence[str], known: Sequence[str]) -> None:
    if missing := [name for name in wanted if name not in known]:
        raise AnnotatorError(f"{path} has no column {', '.join(map(repr, missing))}. There is: {', '.join(known)}.")


def _read_columns(path: Path, sql: Connection) -> list[Column]:
    found_tables = list_tables(sql)
    if missing := [name for name in (DATA_TABLE, TEMPLATE_TABLE) if name not in found_tables]:
        raise AnnotatorError(f"{path} is no database of Timelapse: it has no table {' and no '.join(missing)}.")
    names = [entry[0] for entry in sql.execute(f"SELECT * FROM {DATA_TABLE} LIMIT 0").description]
    of_template = [entry[0] for entry in sql.execute(f"SELECT * FROM {TEMPLATE_TABLE} LIMIT 0").description]
    problems = [f"{DATA_TABLE} has no column File"] if "File" not in names else []
    problems += [f"{TEMPLATE_TABLE} has no column {name}" for name in ("DataLabel", "Type") if name not in of_template]
    if len(names) > MAX_COLUMNS:
        problems.append(f"{DATA_TABLE} has {len(names):,} columns")
    if problems:
        raise AnnotatorError(f"{path} is no database of Timelapse: {'; '.join(problems)}.")
    wanted = ["DataLabel", "Type", *(name for name in ("Label", "DefaultValue") if name in of_template)]
    found: list[Column] = []
    for row in sql.execute(f"SELECT {', '.join(wanted)} FROM {TEMPLATE_TABLE} LIMIT {MAX_COLUMNS}"):
        facts = {name: _to_text(value) for name, value in zip(wanted, row, strict=True)}
        name = facts["DataLabel"]
        if name in names and name not in FILE_COLUMNS:
            label = facts.get("Label") or name
            found.append(Column(name, label, facts["Type"], facts.get("DefaultValue", "")))
    return found


def _iter_file_names(sql: Connection) -> Iterator[str]:
    for row in _read_rows(sql, ()):
        if _is_inside(row["name"]):
            yield row["name"]


def _is_inside(name: str) -> bool:
    pure = PurePosixPath(name)
    return bool(name) and not pure.is_absolute() and ".." not in pure.parts and ":" not in name and "\0" not in name


def _read_rows(sql: Connection, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    names = [entry[0] for entry in sql.execute(f"SELECT * FROM {DATA_TABLE} LIMIT 0").description]
    wanted = [name for name in ("File", "RelativePath", *columns) if name in names]
    listed = ", ".join('"' + name.replace('"', '""') + '"' for name in wanted)
    for number, values in enumerate(sql.execute(f"SELECT {listed} FROM {DATA_TABLE}"), start=1):
        row: dict[str, Any] = {name: _to_text(value) for name, value in zip(wanted, values, strict=True)}
        folder = row.get("RelativePath", "").replace("\\", "/").strip("/")
        yield {**row, "number": number, "name": f"{folder}/{row['File']}" if folder else row["File"]}


def _read_items(path: Path, plan: _ColumnMeanings, problems: Problems, said: list[str]) -> Iterator[Item]:
    others = others_count = 0
    extra = [name for name in ("DateTime", "Date", "Time") if name not in plan.columns]
    with open_read_only(path, DATABASE_DESCRIPTION) as sql:
        for row in _read_rows(sql, [*plan.columns, *extra]):
            if not row["File"]:
                problems.add(f"row {row['number']} of {DATA_TABLE} names no File")
            elif not looks_like_image(row["File"]):
                others += 1
            else:
                item = _build_item(path, plan, row)
                others_count += bool(item.labels) and item.exhaustive
                if item.labels:
                    item.exhaustive = False
                yield item
    if others:
        said.append(f"{format_count(others, 'row')} left out: their files are no images (videos are not read).")
    if others_count:
        said.append(
            f"{format_count(others_count, 'image')} empty by one column and not by another: not taken as complete."
        )


def _build_item(path: Path, plan: _ColumnMeanings, row: dict[str, Any]) -> Item:
    labels: list[ImportedLabel] = []
    facts: dict[str, str] = {}
    is_empty = False
    for name, column in plan.columns.items():
        value = row.get(name, "").strip()
        is_default = value == column.default.strip()
        if not value:
            continue
        if name in plan.labels:
            if value.casefold() in plan.empty:
                is_empty = is_empty or not is_default
            elif not is_default:
                parts = value.split(",") if column.kind == "MultiChoice" else [value]
                labels += [ImportedLabel(part.strip(), PRESENT) for part in parts if part.strip()]
        elif name in plan.classes:
            if (state := _parse_state(value, plan.absent)) is not None:
                labels.append(ImportedLabel(column.label, state))
        elif not is_default or column.kind in ("DateTime", "DateTime_", "Date_", "Time_"):
            facts[name] = value
    for name in ("DateTime", "Date", "Time"):
        if row.get(name):
            facts.setdefault(name, row[name].strip())
    if facts.get("DeleteFlag", "").casefold() in FALSE_WORDS:
        del facts["DeleteFlag"]
    attributes = {name[: MAX_FACT_CHARS[0]]: text[: MAX_FACT_CHARS[1]] for name, text in facts.items()}
    name = row["name"]
    file = name if _is_inside(name) and (path.parent / name).is_file() else ""
    answered = bool(labels) or is_empty
    return Item(name, row["number"], labels, is_empty, file=file, attributes=attributes, answered=answered)


def _parse_state(value: str, absent: set[str]) -> int | None:
    word = value.casefold()
    if word in absent:
        return ABSENT
    if word in FALSE_WORDS:
        return None
    if word in TRUE_WORDS or (word.isascii() and word.isdigit() and int(word[:9]) > 0):
        return PRESENT
    return None


def _to_text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


TIMELAPSE = Format(
    name="timelapse",
    about="The database of Timelapse (TimelapseData.ddb): choices, flags and counters of its template",
    ending=FILE_SUFFIX,
    recognize=recognize,
    read=read,
)
