"""The tables of a Camtrap DP: their columns, and the three files of a package, loaded into a temporary SQLite file.

Format: Camtrap DP 1.0, https://camtrap-dp.tdwg.org/data. Observations name media by id, and events by deployment and
time, so that the tables are joined; memory does not grow with them.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from annotator.errors import AnnotatorError, several
from annotator.exchange.files.lines import csv_rows
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text import read_text
from annotator.exchange.files.text_cells import unescaped
from annotator.exchange.formats.shared.label_table import header_of
from annotator.exchange.formats.shared.times import seconds_of
from annotator.store.disk.other_databases import Connection, temporary

PACKAGE = "datapackage.json"
BESIDE = ("provenance.csv", "notes.csv")  # of shared/provenance.py
MEDIA, OBSERVATIONS, DEPLOYMENTS = "media", "observations", "deployments"
NEEDED: Mapping[str, Sequence[str]] = {
    MEDIA: ("mediaID", "filePath"),
    OBSERVATIONS: ("observationType",),
    DEPLOYMENTS: ("deploymentID",),
}
"""Table -> the columns without which it cannot be read."""
MARKS: Mapping[str, Sequence[str]] = {
    MEDIA: ("mediaID", "filePath", "deploymentID"),
    OBSERVATIONS: ("observationID", "observationType"),
    DEPLOYMENTS: ("deploymentID", "latitude", "longitude"),
}
"""Table -> the columns by which it is recognised without its package."""
MISSING = frozenset({"", "NA", "NaN", "nan"})
OF_PLACE = ("locationID", "locationName", "latitude", "longitude", "cameraID", "cameraModel")
OF_DEPLOYMENT = (*OF_PLACE, "deploymentStart", "deploymentEnd")
OF_MEDIA = ("mediaID", "deploymentID", "timestamp", "captureMethod")
PROGRAM = "multilabel-annotator"
"""The source that our own packages name."""
CLASS_TAG = "class:"
"""Begins the tag with the class of an observation of our own packages, where no other column gives it."""
OWN_LANGUAGE = "und"
"""The language (ISO 639-3: undetermined) of the names of our classes beside their scientific names."""
LONGEST_FACT = 200  # letters of the name of a fact
OF_OBSERVATION = ("count", "sex", "lifeStage", "behavior")
"""Facts that are kept of a deployment, a medium and an observation."""
_MEDIA = ("mediaID", "deploymentID", "captureMethod", "timestamp", "filePath", "fileName", "fileMediatype")
_OBSERVATION = ("deploymentID", "mediaID", "eventID", "eventStart", "eventEnd", "observationLevel", "observationType")
_OBSERVATION += ("scientificName", *OF_OBSERVATION, "classificationMethod", "classifiedBy")
_OBSERVATION += ("classificationTimestamp", "classificationProbability", "observationTags")


def table_of(path: Path) -> str:
    """Return which table of a Camtrap DP a file is, by its header; "" for another file."""
    if not path.is_file() or path.suffix.lower() not in (".csv", ".tsv", ".txt"):
        return ""
    columns = set(header_of(path)[0])
    return next((name for name, marks in MARKS.items() if columns.issuperset(map(str.lower, marks))), "")


@dataclass
class Package:
    """A package: its files and what its datapackage.json says.

    Attributes:
        folder: The folder that paths are relative to.
        files: Table -> its files.
        names: Scientific name -> language -> vernacular name.
        is_own: An export of this program wrote it.
        has_files: A file of a medium is in its folder; set by the reader.
        has_beside: It is one of our own, with the files of facts and origins beside it.
        said: Sentences about its files.
    """

    folder: Path
    files: dict[str, list[Path]]
    names: dict[str, dict[str, str]] = field(default_factory=dict)
    is_own: bool = False
    has_beside: bool = False
    has_files: bool = True
    said: list[str] = field(default_factory=list)


def open_package(path: Path) -> Package:
    """Return the package in a folder, or the one that a file (datapackage.json or a table) belongs to.

    Raises AnnotatorError with all problems: files that are missing or lie elsewhere.
    """
    folder = path if path.is_dir() else path.parent
    described = path if path.is_file() and table_of(path) == "" else folder / PACKAGE
    package = Package(folder, {})
    problems: list[str] = []
    document: dict[str, Any] = {}
    if os.path.lexists(described) and not described.is_file():
        raise AnnotatorError(f"{described} is no file. Was the package copied as a whole?")
    if described.is_file():
        try:
            found = msgspec.json.decode(read_text(described, "the description of a Camtrap DP").encode())
        except (msgspec.DecodeError, RecursionError) as error:
            raise AnnotatorError(f"{described} is no JSON: {error}. Was it copied as a whole?") from error
        document = found if isinstance(found, dict) else {}
        package.is_own = any(one.get("title") == PROGRAM for one in _dicts(document.get("sources")))
        package.has_beside = package.is_own and all((folder / name).is_file() for name in BESIDE)
        package.names = _vernacular(document)
    for resource in _dicts(document.get("resources")):
        if resource.get("name") in NEEDED:
            files = resource.get("path")
            files = files if isinstance(files, list) else [files]
            package.files[resource["name"]] = [file for one in files if (file := _inside(folder, one, problems))]
    for table in NEEDED:
        if not package.files.get(table) and (folder / f"{table}.csv").is_file():
            package.files[table] = [folder / f"{table}.csv"]
    for table in (MEDIA, OBSERVATIONS):
        if not package.files.get(table) and not problems:
            problems.append(f"{table}.csv is missing: observations name media by mediaID, so both tables are needed")
    if problems:
        raise several(f"The Camtrap DP in {folder} cannot be read:", problems)
    if not package.files.get(DEPLOYMENTS):
        package.said.append("There is no deployments.csv: where and when the cameras stood is not known.")
    return package


def _inside(folder: Path, named: object, problems: list[str]) -> Path | None:
    name = named if isinstance(named, str) else ""
    pure = PurePosixPath(name)
    if not name or pure.is_absolute() or ".." in pure.parts or ":" in name or "\\" in name or "\0" in name:
        problems.append(f"{PACKAGE} names the file {named!r}, which does not lie in the folder; download it there")
        return None
    if not (folder / name).is_file():
        problems.append(f"{PACKAGE} names the file {name!r}, which is not there")
        return None
    if name.lower().endswith((".gz", ".zip")):
        problems.append(f"{name!r} is compressed; unpack it, and change its path in {PACKAGE}")
        return None
    return folder / name


def _dicts(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _vernacular(document: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for taxon in _dicts(document.get("taxonomic")):
        names = taxon.get("vernacularNames")
        if isinstance(taxon.get("scientificName"), str) and isinstance(names, dict):
            texts = {language: name.strip() for language, name in names.items() if isinstance(name, str)}
            found[taxon["scientificName"].strip()] = {language: name for language, name in texts.items() if name}
    return found


def load(package: Package, problems: Problems) -> Connection:
    """Load the tables into a temporary SQLite file, which is deleted when the connection is closed.

    Tables: media, observation and deployment, each with `line` and its columns as text ("" for a missing value), times
    also as unix seconds (at, start, end); member (media, event): the media that belong to an event.

    Raises:
        AnnotatorError: A file is no table, or lacks a column.
    """
    sql = temporary()
    try:
        sql.execute("BEGIN")
        _fill(sql, "media", _MEDIA, {"at": "timestamp"}, package.files[MEDIA], MEDIA, problems)
        times = {"start": "eventStart", "end": "eventEnd", "given_at": "classificationTimestamp"}
        _fill(sql, "observation", _OBSERVATION, times, package.files[OBSERVATIONS], OBSERVATIONS, problems)
        columns = ("deploymentID", *OF_DEPLOYMENT)
        _fill(sql, "deployment", columns, {}, package.files.get(DEPLOYMENTS, []), DEPLOYMENTS, problems)
        _index(sql, problems)
        sql.execute("COMMIT")
    except BaseException:
        sql.close()
        raise
    return sql


def _fill(
    sql: Connection,
    table: str,
    columns: Sequence[str],
    times: Mapping[str, str],
    files: Sequence[Path],
    resource: str,
    problems: Problems,
) -> None:
    listed = ", ".join([*(f'"{name}" TEXT NOT NULL' for name in columns), *(f'"{name}" REAL' for name in times)])
    sql.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, line TEXT NOT NULL, {listed})")
    marks = ", ".join("?" * (1 + len(columns) + len(times)))
    names = ", ".join(["line", *(f'"{name}"' for name in (*columns, *times))])
    insert = f"INSERT INTO {table} ({names}) VALUES ({marks})"
    for file in files:
        sql.executemany(insert, _rows(file, columns, times, resource, problems))


def _rows(
    file: Path, columns: Sequence[str], times: Mapping[str, str], resource: str, problems: Problems
) -> Iterator[list[object]]:
    rows = csv_rows(file, problems, delimiter=header_of(file)[1])
    header = [name.strip() for name in next(rows, (0, [""]))[1]]
    if missing := [name for name in NEEDED[resource] if name not in header]:
        raise AnnotatorError(
            f"{file} has no column {' and no '.join(missing)}, but {', '.join(header)[:300]}. It is no table "
            f"{resource!r} of Camtrap DP 1.0; is the package of an earlier version?"
        )
    places = [header.index(name) if name in header else -1 for name in columns]
    names = [
        (number, at) for number, at in enumerate(places) if at >= 0 and columns[number] in ("filePath", "fileName")
    ]
    time_places = [columns.index(name) for name in times.values()]
    for line, row in rows:
        row.append("")  # of a column that is not there, whose place is -1
        cells = [_value(row[at]) for at in places]
        for number, at in names:  # a file's name may begin with a blank
            cells[number] = unescaped(row[at]) if cells[number] else ""
        yield [f"{file.name}, line {line}", *cells, *(seconds_of(cells[at]) for at in time_places)]


def _value(cell: str) -> str:
    text = cell.strip()
    if text in MISSING:
        return ""
    return unescaped(text) if text[0] == "'" else text


def _index(sql: Connection, problems: Problems) -> None:
    for table, key in (("media", "mediaID"), ("deployment", "deploymentID")):
        sql.execute(f"CREATE INDEX {table}_key ON {table} ({key})")
        twice = f"SELECT max(line), {key} FROM {table} GROUP BY {key} HAVING count(*) > 1 OR {key} = ''"
        for line, value in sql.execute(twice).fetchall():
            problems.add(f"{line}: the {key} {value!r} is {'there twice' if value else 'empty'}")
    # An observation of a medium speaks of it, unless it says that it speaks of the event.
    sql.execute(
        """UPDATE observation SET observationLevel = iif(mediaID = '' OR observationLevel = 'event', 'event', 'media'),
        eventID = iif(eventID = '' AND mediaID = '' AND start NOT NULL, deploymentID || ' ' || eventStart, eventID)"""
    )
    sql.execute("CREATE INDEX observation_media ON observation (mediaID)")
    sql.execute("CREATE INDEX media_time ON media (deploymentID, at)")
    sql.execute("CREATE TABLE member (media TEXT PRIMARY KEY, event TEXT NOT NULL) WITHOUT ROWID")
    sql.execute(
        """INSERT OR IGNORE INTO member SELECT mediaID, eventID FROM observation
        WHERE mediaID != '' AND eventID != '' ORDER BY id"""
    )
    # The media of an event-level observation are those of its deployment between its start and its end.
    sql.execute(
        """INSERT OR IGNORE INTO member SELECT m.mediaID, o.eventID FROM observation o
        JOIN media m ON m.deploymentID = o.deploymentID AND m.at BETWEEN o.start AND o."end"
        WHERE o.observationLevel = 'event' AND o.eventID != '' ORDER BY o.id"""
    )
    sql.execute("CREATE INDEX observation_event ON observation (eventID)")


def deployments(path: Path) -> dict[str, dict[str, str]]:
    """Return deployment -> its facts, of a table with the columns deploymentID, latitude, longitude and others.

    Raises AnnotatorError with all problems.
    """
    if not path.is_file():
        raise AnnotatorError(f"There is no file {path} (the table of deployments). Is the path spelled right?")
    problems, found = Problems(), dict[str, dict[str, str]]()
    rows = csv_rows(path, problems, delimiter=header_of(path)[1])
    header = [name.strip() for name in next(rows, (0, [""]))[1]]
    columns = {name.lower(): at for at, name in enumerate(header)}
    names = {name: columns[name.lower()] for name in ("deploymentID", *OF_DEPLOYMENT) if name.lower() in columns}
    if missing := {"deploymentID", "latitude", "longitude"} - names.keys():
        raise AnnotatorError(
            f"{path} has no column {' and no '.join(sorted(missing))}, but {', '.join(header)[:300]}. A table of "
            "deployments has deploymentID (the folder of the images), latitude and longitude in degrees."
        )
    for line, row in rows:
        facts = {name: row[at].strip() for name, at in names.items() if row[at].strip() not in MISSING}
        name = facts.get("deploymentID", "")
        if not name or name in found:
            problems.add(f"line {line}: the deploymentID {name!r} is {'there twice' if name else 'empty'}")
        for key, most in (("latitude", 90), ("longitude", 180)):
            if key in facts and not _is_degrees(facts[key], most):
                problems.add(f"line {line}: {key} {facts[key]!r} does not lie between -{most} and {most} degrees")
        for key in ("deploymentStart", "deploymentEnd"):
            if key in facts and seconds_of(facts[key]) is None:
                problems.add(f"line {line}: {key} {facts[key]!r} is no time such as 2024-05-01T06:00:00Z")
        found[name] = facts
    if problems.count:
        raise problems.error(f"The table of deployments {path} cannot be used:")
    return found


def _is_degrees(text: str, most: int) -> bool:
    try:
        return -most <= float(text) <= most
    except ValueError:
        return False
