"""Darwin Core Archives, such as GBIF downloads: meta.xml, occurrences and their images.

Format: https://dwc.tdwg.org/text. meta.xml names the columns of each table by terms. The multimedia table gives images
to occurrences by the core's id. Tables are joined in SQLite instead of memory.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError
from annotator.exchange.files.contained_paths import find_file_inside
from annotator.exchange.files.image_addresses import extract_image_name
from annotator.exchange.files.json_stream import read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_lines
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.tool_records import LeftOut
from annotator.exchange.reading.class_name_checks import OddNameCollector
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import PRESENT, UNSURE
from annotator.store.disk.other_databases import Connection, open_temporary
from annotator.store.pictures.files import list_files

META_FILE = "meta.xml"
MAX_META_BYTES = 4 << 20
XML_NAMESPACE = "{http://rs.tdwg.org/dwc/text/}"
OCCURRENCE_ROWS, MEDIA_ROWS = ("occurrence",), ("multimedia", "image")
"""Last words of row types, in lower case."""
STILL_IMAGE_TYPES = ("", "stillimage", "image")
ADDRESS_TERMS = ("accessURI", "identifier")
FIELD_TERMS = ("taxonRank", "eventDate", "countryCode")
NAME_TERMS = ("scientificName", "genus", "specificEpithet")
OTHER_TERMS = ("occurrenceStatus", "identificationQualifier", "associatedMedia")


@dataclass(frozen=True)
class _Table:
    """A table of an archive: its files, form, and place by term."""

    row_type: str
    files: Sequence[str]
    delimiter: str
    quote: str
    header_lines: int
    id_place: int
    place_by_term: dict[str, int]
    default_by_term: dict[str, str]


def recognize(path: Path) -> str | None:
    file = path / META_FILE if path.is_dir() else path
    if file.name != META_FILE or not file.is_file():
        return None
    start = read_start(file)
    is_archive = b"<archive" in start and b"http://rs.tdwg.org/dwc/text/" in start
    return "a Darwin Core Archive: meta.xml names the columns of its tables" if is_archive else None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images of occurrences. Raises AnnotatorError for archives without them, or with an event core."""
    root = path if path.is_dir() else path.parent
    core, extensions = _read_meta(root)
    media = [one for one in extensions if one.row_type in MEDIA_ROWS]
    if core.row_type not in OCCURRENCE_ROWS or not {NAME_TERMS[0], NAME_TERMS[2]} & core.place_by_term.keys():
        raise AnnotatorError(
            f"{root / META_FILE} has a core of {core.row_type} rows. Only archives whose core is occurrences with "
            "scientificName say what an image shows. Write a table with the columns image and label instead."
        )
    if not media and "associatedMedia" not in core.place_by_term:
        raise AnnotatorError(
            f"{root / META_FILE} lists no multimedia table and no associatedMedia, so that no image is named. "
            "Download the archive with its multimedia extension."
        )
    sql, left_out = open_temporary(), LeftOut()
    names = _fill_occurrences(sql, root, core, problems)
    if media:
        _fill_media(sql, root, media[0], problems, left_out)
    odd_names = OddNameCollector(options.accepted_names)
    for (name,) in sql.execute("SELECT DISTINCT name FROM occurrence WHERE name <> ''"):
        odd_names.add(name)
    question = odd_names.make_question("scientificName")
    _count_unread(sql, left_out)
    unread = [file for one in extensions if one not in media[:1] for file in one.files]
    said = [
        f"{names} names the present class of each image of an occurrence.",
        *left_out.format_sentences(),
        *([f"Tables that are not read: {', '.join(unread[:10])}."] if unread else []),
    ]
    folder = root if list_files(root, leave_out=root).list_images() else None
    return Contents((), _read_items(sql), folder, "occurrence", said, [question] if question else [])


def _read_meta(root: Path) -> tuple[_Table, list[_Table]]:
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    file = root / META_FILE
    try:
        tree = fromstring(read_start(file, MAX_META_BYTES), forbid_dtd=True)
        core, others = tree.find(f"{XML_NAMESPACE}core"), tree.findall(f"{XML_NAMESPACE}extension")
        if core is None:
            raise AnnotatorError(f"{file} has no <core>. Was it copied as a whole?")
        return _parse_table(core), [_parse_table(one) for one in others]
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise AnnotatorError(f"{file} cannot be read as a description of an archive: {error}.") from error


def _parse_table(element: Any) -> _Table:
    key = element.find(f"{XML_NAMESPACE}id")
    key = element.find(f"{XML_NAMESPACE}coreid") if key is None else key
    fields = [(_last_word(one.get("term", "")), one) for one in element.findall(f"{XML_NAMESPACE}field")]
    delimiter = element.get("fieldsTerminatedBy", ",").replace("\\t", "\t")
    if len(delimiter) != 1:
        raise ValueError(f"fieldsTerminatedBy is {delimiter!r:.40}, not one character")
    return _Table(
        _last_word(element.get("rowType", "")).lower(),
        [one.text.strip() for one in element.iter(f"{XML_NAMESPACE}location") if one.text],
        delimiter,
        element.get("fieldsEnclosedBy", '"')[:1],
        int(element.get("ignoreHeaderLines", "0")),
        int(key.get("index")) if key is not None else 0,
        {term: int(one.get("index")) for term, one in fields if one.get("index")},
        {term: one.get("default") for term, one in fields if one.get("default")},
    )


def _last_word(address: str) -> str:
    return address.rstrip("/").replace("#", "/").rpartition("/")[2]


def _iter_rows(root: Path, table: _Table, problems: Problems) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (id, value by term) of the rows of a table."""
    quoting = csv.QUOTE_MINIMAL if table.quote else csv.QUOTE_NONE
    for name in table.files:
        if not find_file_inside(root, name):
            problems.add(f"{META_FILE} names {name!r:.100}, which is not in {root}")
            continue
        lines = read_lines(root / name)
        reader = csv.reader(lines, delimiter=table.delimiter, quotechar=table.quote or '"', quoting=quoting)
        try:
            for number, row in enumerate(reader, start=1):
                if number <= table.header_lines or not row:
                    continue
                places = [table.id_place, *table.place_by_term.values()]
                if max(places) >= len(row):
                    problems.add(f"{name}, row {number}: {len(row)} cells instead of {max(places) + 1}")
                    continue
                found = {term: row[place].strip() for term, place in table.place_by_term.items()}
                yield row[table.id_place], {**table.default_by_term, **{key: one for key, one in found.items() if one}}
        except csv.Error as error:
            raise AnnotatorError(f"{root / name} is not a table in line {reader.line_num}: {error}.") from error


def _fill_occurrences(sql: Connection, root: Path, core: _Table, problems: Problems) -> str:
    """Fill the tables `occurrence` and `media` from the core, and return the term of the class names."""
    columns = ", ".join((*FIELD_TERMS, *OTHER_TERMS[:2]))
    sql.execute(f"CREATE TABLE occurrence (id TEXT PRIMARY KEY, name, {columns}) WITHOUT ROWID")
    sql.execute("CREATE TABLE media (occurrence TEXT, image TEXT)")
    is_named = "scientificName" in core.place_by_term
    for key, row in _iter_rows(root, core, problems):
        joined = " ".join(filter(None, (row.get(term, "") for term in NAME_TERMS[1:])))
        name = row.get("scientificName", "") if is_named else joined if row.get("specificEpithet") else ""
        values = [key, name, *(row.get(term, "") for term in (*FIELD_TERMS, *OTHER_TERMS[:2]))]
        sql.execute(f"INSERT OR REPLACE INTO occurrence VALUES ({', '.join('?' * len(values))})", values)
        addresses = (one.strip() for one in row.get("associatedMedia", "").split("|"))
        sql.executemany("INSERT INTO media VALUES (?, ?)", ((key, one) for one in addresses if one))
    return "scientificName" if is_named else "genus + specificEpithet"


def _fill_media(sql: Connection, root: Path, table: _Table, problems: Problems, left_out: LeftOut) -> None:
    for key, row in _iter_rows(root, table, problems):
        address = next((row[term] for term in ADDRESS_TERMS if row.get(term)), "")
        kind, medium = _last_word(row.get("type", "")).lower(), row.get("format", "image/").lower()
        if kind not in STILL_IMAGE_TYPES or ("/" in medium and not medium.startswith("image/")):
            left_out.add("medium is not a still image", "media are not still images", address or key)
        elif not address:
            left_out.add("medium has no address", "media have no address", key)
        else:
            sql.execute("INSERT INTO media VALUES (?, ?)", (key, address))


def _count_unread(sql: Connection, left_out: LeftOut) -> None:
    absent = "SELECT count(*), min(id) FROM occurrence WHERE lower(occurrenceStatus) = 'absent'"
    lost = "SELECT count(*), min(image) FROM media WHERE occurrence NOT IN (SELECT id FROM occurrence)"
    nameless = "SELECT count(*), min(id) FROM occurrence WHERE name = ''"
    for query, one, many in (
        (absent, "occurrence is absent", "occurrences are absent"),
        (nameless, "occurrence has no name", "occurrences have no name"),
        (lost, "image belongs to no occurrence", "images belong to no occurrence"),
    ):
        count, first = sql.execute(query).fetchone()
        if count:
            left_out.add(one, many, first, count)


def _read_items(sql: Connection) -> Iterator[Item]:
    query = "SELECT DISTINCT image, id, name, occurrenceStatus, identificationQualifier, {} FROM media JOIN occurrence"
    rows = sql.execute(query.format(", ".join(FIELD_TERMS)) + " ON occurrence = id ORDER BY image, id")
    for image, key, name, status, qualifier, *fields in rows:
        state = UNSURE if qualifier else PRESENT  # such as "cf." or "?"
        is_answer = bool(name) and status.lower() != "absent"
        facts = {term: value for term, value in zip(FIELD_TERMS, fields, strict=True) if value}
        labels = [ImportedLabel(name, state)] if is_answer else []
        yield Item(extract_image_name(image), key, labels, attributes=facts, answered=is_answer)


DARWIN_CORE = Format(
    name="darwin-core",
    about="A Darwin Core Archive such as a GBIF download: names of occurrences with images",
    recognize=recognize,
    read=read,
)
