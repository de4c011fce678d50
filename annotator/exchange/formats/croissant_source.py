"""Croissant descriptions of data sets as sources: those of our exports, and declared fields of others.

Format: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html. Nothing is downloaded. A description by
another program does not say which field is a label, so the user declares two fields of one record set.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from annotator.errors import AnnotatorError
from annotator.exchange.files.contained_paths import find_file_inside
from annotator.exchange.files.json_stream import read_pieces, read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import json_records, parquet_reader
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.croissant_names import (
    CLASS_SET_ID,
    CROISSANT_URL_PREFIX,
    IMAGE_SET_ID,
    RECORDS_KEY,
    STATE_FIELDS,
)
from annotator.exchange.formats.shared.label_table import read_table
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.disk.open_files import open_file
from annotator.store.pictures.files import compute_sha256

MAX_DOCUMENT_BYTES = 64 << 20
MAX_FIELDS_SHOWN = 12  # fields of a record set in a message
MAX_RECORD_SETS_SHOWN = 10
_SHA256_PATTERN = re.compile(r"[0-9a-fA-F]{64}")
_DECLARED_STATES = dict(zip(STATE_FIELDS, (PRESENT, ABSENT, UNSURE), strict=False))

Node = Mapping[str, Any]


@dataclass(frozen=True)
class SourceField:
    """A field of a record set."""

    # such as "images/label"
    id: str
    # such as "label"
    name: str
    record_set: str
    # Id of the file that it is read from, or ""
    file_id: str
    # its column there, or ""
    column: str
    # its path in JSON, or ""
    json_path: str
    # text between several values, or ""
    separator: str
    # name of a transformation that is not supported, or ""
    transform: str


class _ExportedRecord(msgspec.Struct):
    image: str
    present: list[str]
    absent: list[str]
    unsure: list[str]
    unanswered: list[str]
    sha256: str = ""
    split: str | None = None


_RECORD_DECODER = msgspec.json.Decoder(list[_ExportedRecord])


def recognize(path: Path) -> str | None:
    start = read_start(path) if path.is_file() else b""
    if start[:1] != b"{" or b'"@context"' not in start:
        return None
    has_version = re.search(rb'"conformsTo"\s*:\s*\[?\s*"%s' % re.escape(CROISSANT_URL_PREFIX.encode()), start)
    return "a Croissant description of a data set" if has_version and b'"recordSet"' in start else None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the labels of one of our exports, or of the declared fields. Raises AnnotatorError without them."""
    document = _load_document(path)
    fields = list(_list_fields(document))
    if _is_own_description(fields):
        return _read_own_records(path, document, fields, problems)
    return _read_declared_fields(path, document, fields, problems, options)


def _load_document(path: Path) -> Node:
    try:
        with open_file(path) as file:
            text = file.read(MAX_DOCUMENT_BYTES + 1)
        if len(text) > MAX_DOCUMENT_BYTES:
            raise AnnotatorError(
                f"{path} has more than {MAX_DOCUMENT_BYTES >> 20} MB, too much for a description. "
                "Import the label file that it describes."
            )
        document = json.loads(text.decode("utf-8-sig"))
    except OSError as error:
        raise AnnotatorError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise AnnotatorError(f"{path} is not valid JSON: {error}. Is it complete?") from error
    versions = _list_values(document, "conformsTo")
    if not any(isinstance(one, str) and one.startswith(CROISSANT_URL_PREFIX) for one in versions):
        raise AnnotatorError(f"{path} is not a Croissant description: conformsTo is {versions!r:.100}.")
    return document


def _list_values(node: Any, key: str) -> list[Any]:
    """Return a property as a list. JSON-LD writes a list of one entry as this entry."""
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, list) else [] if value is None else [value]


def _list_nodes(node: Any, key: str) -> list[Node]:
    return [one for one in _list_values(node, key) if isinstance(one, dict)]


def _get_node(node: Any, key: str) -> Node:
    found = node.get(key) if isinstance(node, dict) else None
    return found if isinstance(found, dict) else {}


def _get_text(node: Node, key: str) -> str:
    value = node.get(key)
    return value if isinstance(value, str) else ""


def _list_fields(document: Node) -> Iterator[SourceField]:
    for record_set in _list_nodes(document, "recordSet"):
        name = _get_id(record_set)
        for field in _list_nodes(record_set, "field"):
            source = _get_node(field, "source")
            extract = _get_node(source, "extract")
            transforms = _list_nodes(source, "transform")
            separators = [_get_text(one, "separator") for one in transforms if set(one) == {"separator"}]
            unsupported = [key for one in transforms for key in one if key != "separator"]
            yield SourceField(
                _get_text(field, "@id") or f"{name}/{_get_text(field, 'name')}",
                _get_text(field, "name") or _get_text(field, "@id").rpartition("/")[2],
                name,
                _get_text(_get_node(source, "fileObject"), "@id"),
                _get_text(extract, "column"),
                _get_text(extract, "jsonPath"),
                separators[0] if len(separators) == 1 else "",
                ", ".join(unsupported) or ("separator" if len(separators) > 1 else ""),
            )


def _get_id(node: Node) -> str:
    return _get_text(node, "@id") or _get_text(node, "name")


def _is_own_description(fields: Sequence[SourceField]) -> bool:
    """Return whether a record set is that of our exports: its id, its fields and where they are read from."""
    paths = {field.name: field.json_path for field in fields if field.record_set == IMAGE_SET_ID}
    needed = ("image", "sha256", *STATE_FIELDS)
    return set(needed) <= paths.keys() <= {*needed, "split"} and all(
        path == f"$.{RECORDS_KEY}[*].{name}" for name, path in paths.items()
    )


def _find_file(path: Path, document: Node, file_id: str) -> tuple[Path, Node]:
    """Return a described file next to the description. Raises AnnotatorError if it is missing or was changed."""
    files = _list_nodes(document, "distribution")
    found = next((one for one in files if _get_id(one) == file_id and one.get("@type") == "cr:FileObject"), None)
    if found is None:
        raise AnnotatorError(f"{path}: the distribution has no single file {file_id!r:.100}, so it cannot be read.")
    url = _get_text(found, "contentUrl")
    name = PurePosixPath(url.partition("?")[0]).name if "://" in url else url
    if _list_values(found, "containedIn"):
        raise AnnotatorError(
            f"{path}: the file {file_id!r:.100} is in an archive or repository. Unpack it, and import the label file."
        )
    inside = find_file_inside(path.parent, name)
    if not inside:
        raise AnnotatorError(
            f"{path} describes the file {url!r:.300}, which is not in {path.parent}. Nothing is downloaded: "
            f"put the file there as {name!r:.100}."
        )
    file = path.parent / inside
    stated = _get_text(found, "sha256")
    if _SHA256_PATTERN.fullmatch(stated) and compute_sha256(file) != stated.lower():
        raise AnnotatorError(
            f"{file} is not the file that {path.name} describes: its sha256 differs. "
            "Was it changed, or only partly copied? Copy both anew, or import the label file itself."
        )
    return file, found


def _read_own_records(path: Path, document: Node, fields: Sequence[SourceField], problems: Problems) -> Contents:
    file_id = next(field.file_id for field in fields if field.record_set == IMAGE_SET_ID)
    records, _ = _find_file(path, document, file_id)
    sets = [one for one in _list_nodes(document, "recordSet") if _get_id(one) == CLASS_SET_ID]
    rows = [row for one in sets for row in _list_nodes(one, "data")]
    classes = [(_get_text(row, f"{CLASS_SET_ID}/name"), _get_text(row, f"{CLASS_SET_ID}/description")) for row in rows]
    said = [
        f"Labels are read from {records.name}. It does not say who gave them; the label file next to it and its "
        "provenance do."
    ]
    return Contents(classes, _read_items(records, {name for name, _ in classes}, problems), sentences=said)


def _read_items(records: Path, classes: set[str], problems: Problems) -> Iterator[Item]:
    for piece in read_pieces(records, lambda key: key == RECORDS_KEY):
        for index, record in piece.decode(_RECORD_DECODER, problems):
            try:
                yield _build_item(record, piece.place(index), classes)
            except ValueError as error:
                problems.add(f"{piece.place(index)}: {error}")


def _build_item(record: _ExportedRecord, place: str, classes: set[str]) -> Item:
    named = [*record.present, *record.absent, *record.unsure, *record.unanswered]
    if unknown := [name for name in named if name not in classes]:
        raise ValueError(f"the class {unknown[0]!r:.100} is not in the record set {CLASS_SET_ID}")
    if len(set(named)) < len(named):
        raise ValueError("a class is in two of its lists; each may be in one")
    labels = [
        ImportedLabel(name, state) for field, state in _DECLARED_STATES.items() for name in getattr(record, field)
    ]
    attributes = {"split": record.split} if record.split else {}
    return Item(record.image, place, labels, sha256=record.sha256, attributes=attributes)


def _read_declared_fields(
    path: Path, document: Node, fields: Sequence[SourceField], problems: Problems, options: ReadingOptions
) -> Contents:
    listing = _describe_record_sets(fields)
    if options.image_column is None or not options.label_columns:
        raise AnnotatorError(
            f"{path} does not say which field is a label. Declare two fields of a record set: --image-column FIELD "
            f"--label-column FIELD.\n{listing}"
        )
    image = _find_field(path, fields, options.image_column, listing)
    labels = [_find_field(path, fields, name, listing) for name in options.label_columns]
    for field in (image, *labels):
        if not field.column or not field.file_id or field.transform:
            reason = f"transformed ({field.transform})" if field.transform else "not a column of a file"
            raise AnnotatorError(f"{path}: the field {field.id!r:.100} is {reason}, which is not supported.\n{listing}")
        if (field.record_set, field.file_id) != (image.record_set, image.file_id):
            raise AnnotatorError(
                f"{path}: {image.id!r:.100} and {field.id!r:.100} are in different record sets or files. "
                f"Declare fields of one.\n{listing}"
            )
    file, described = _find_file(path, document, image.file_id)
    separators = {field.separator for field in labels}
    if len(separators) > 1:
        raise AnnotatorError(f"{path}: the declared label fields have different separators. Declare one of them.")
    separator = options.separator if options.separator is not None else separators.pop() or None
    columns = replace(
        options,
        image_column=image.column,
        label_columns=tuple(field.column for field in labels),
        separator=separator,
    )
    reader = _choose_reader(path, described, file)
    contents = reader(file, problems, columns)
    unread = [field.id for field in fields if field not in (image, *labels)]
    said = [f"Labels are read from {file.name}, as {path.name} describes it."]
    if unread:
        said.append(f"Not declared in {path.name}: {len(unread):,} other fields (first: {unread[0]:.100}).")
    contents.sentences = [*said, *contents.sentences]
    return contents


def _choose_reader(path: Path, described: Node, file: Path) -> Callable[[Path, Problems, ReadingOptions], Contents]:
    formats = [one for one in _list_values(described, "encodingFormat") if isinstance(one, str)]
    for one in formats:
        if reader := READERS_BY_ENCODING.get(one):
            return reader
    raise AnnotatorError(
        f"{path}: the file {file.name} has the format {', '.join(formats) or 'none'!r:.100}. "
        f"Supported: {', '.join(READERS_BY_ENCODING)}. Import the file itself, or convert it to CSV."
    )


READERS_BY_ENCODING: dict[str, Callable[[Path, Problems, ReadingOptions], Contents]] = {
    "text/csv": read_table,
    "text/tab-separated-values": read_table,
    "application/jsonlines": json_records.read,
    "application/x-parquet": parquet_reader.read,
    "application/vnd.apache.parquet": parquet_reader.read,
}


def _find_field(path: Path, fields: Sequence[SourceField], name: str, listing: str) -> SourceField:
    """Return the field with this id, or the only one with this name."""
    found = [field for field in fields if field.id == name] or [field for field in fields if field.name == name]
    if len(found) == 1:
        return found[0]
    reason = f"{len(found)} fields are called {name!r:.100}; use an id" if found else f"there is no field {name!r:.100}"
    raise AnnotatorError(f"{path}: {reason}.\n{listing}")


def _describe_record_sets(fields: Sequence[SourceField]) -> str:
    names = dict.fromkeys(field.record_set for field in fields)
    lines = []
    for name in list(names)[:MAX_RECORD_SETS_SHOWN]:
        of_set = [f"{field.id:.100}" for field in fields if field.record_set == name]
        more = f" and {len(of_set) - MAX_FIELDS_SHOWN:,} more" if len(of_set) > MAX_FIELDS_SHOWN else ""
        lines.append(f"    {name:.100}: {', '.join(of_set[:MAX_FIELDS_SHOWN])}{more}")
    more = len(names) - MAX_RECORD_SETS_SHOWN
    return "\n".join([*lines, *([f"    and {more:,} more record sets"] if more > 0 else [])]) or "    It has no fields."


CROISSANT = Format(
    name="croissant",
    about="Croissant descriptions (MLCommons): of our exports, or a declared image and label field of others",
    ending=".json",
    recognize=recognize,
    read=read,
)
