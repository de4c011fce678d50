"""Camtrap DP tables (https://camtrap-dp.tdwg.org/data), joined in SQLite instead of memory."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from annotator.errors import AnnotatorError, combine_problems
from annotator.exchange.files.csv_cells import unescape_formula
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_files import read_text
from annotator.exchange.files.text_lines import read_csv_rows
from annotator.exchange.formats.shared.label_table import read_header
from annotator.exchange.formats.shared.times import parse_iso_time
from annotator.store.disk.other_databases import Connection, open_temporary

PACKAGE_FILE = "datapackage.json"
OWN_SIDECARS = ("provenance.csv", "notes.csv")  # of shared/sidecars.py
MEDIA, OBSERVATIONS, DEPLOYMENTS = "media", "observations", "deployments"
REQUIRED_COLUMNS: Mapping[str, Sequence[str]] = {
    MEDIA: ("mediaID", "filePath"),
    OBSERVATIONS: ("observationType",),
    DEPLOYMENTS: ("deploymentID",),
}
"""Table -> the columns without which it cannot be read."""
IDENTIFYING_COLUMNS: Mapping[str, Sequence[str]] = {
    MEDIA: ("mediaID", "filePath", "deploymentID"),
    OBSERVATIONS: ("observationID", "observationType"),
    DEPLOYMENTS: ("deploymentID", "latitude", "longitude"),
}
"""Table -> the columns by which it is recognised without its package."""
MISSING_VALUES = frozenset({"", "NA", "NaN", "nan"})
PLACE_FACTS = ("locationID", "locationName", "latitude", "longitude", "cameraID", "cameraModel")
DEPLOYMENT_FACTS = (*PLACE_FACTS, "deploymentStart", "deploymentEnd")
OWN_SOURCE_TITLE = "multilabel-annotator"
"""The source that our own packages name."""
CLASS_TAG_PREFIX = "class:"
"""Begins the tag with the class of an observation of our own packages, where no other column gives it."""
OWN_LANGUAGE_CODE = "und"
"""The language (ISO 639-3: undetermined) of the names of our classes beside their scientific names."""
MAX_FACT_NAME_CHARS = 200  # letters of the name of a fact
OBSERVATION_FACTS = ("count", "sex", "lifeStage", "behavior")
"""Facts that are kept of a deployment, a medium and an observation."""
_MEDIA_COLUMNS = ("mediaID", "deploymentID", "captureMethod", "timestamp", "filePath", "fileName", "fileMediatype")
_OBSERVATION_COLUMNS = (
    "deploymentID",
    "mediaID",
    "eventID",
    "eventStart",
    "eventEnd",
    "observationLevel",
    "observationType",
)
_OBSERVATION_COLUMNS += ("scientificName", *OBSERVATION_FACTS, "classificationMethod", "classifiedBy")
_OBSERVATION_COLUMNS += ("classificationTimestamp", "classificationProbability", "observationTags")


def identify_table(path: Path) -> str:
    """Return the name of the Camtrap DP table in a file, by its header, or ""."""
    if not path.is_file() or path.suffix.lower() not in (".csv", ".tsv", ".txt"):
        return ""
    columns = set(read_header(path)[0])
    return next((name for name, marks in IDENTIFYING_COLUMNS.items() if columns.issuperset(map(str.lower, marks))), "")


@dataclass
class Package:
    """The files and description of a Camtrap DP data set."""

    # base of paths
    folder: Path
    files: dict[str, list[Path]]
    # vernacular name by scientific name and language
    names: dict[str, dict[str, str]] = field(default_factory=dict)
    is_own: bool = False
    # whether it has an own export's provenance and notes files
    has_beside: bool = False
    # whether it has media files, set by the reader
    has_files: bool = True
    sentences: list[str] = field(default_factory=list)


def open_package(path: Path) -> Package:
    """Return the package that a folder, datapackage.json or table belongs to.

    Raises AnnotatorError that lists all files that are missing or outside the folder.
    """
    folder = path if path.is_dir() else path.parent
    described = path if path.is_file() and identify_table(path) == "" else folder / PACKAGE_FILE
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
        package.is_own = any(one.get("title") == OWN_SOURCE_TITLE for one in _keep_dicts(document.get("sources")))
        package.has_beside = package.is_own and all((folder / name).is_file() for name in OWN_SIDECARS)
        package.names = _read_vernacular_names(document)
    for resource in _keep_dicts(document.get("resources")):
        if resource.get("name") in REQUIRED_COLUMNS:
            files = resource.get("path")
            files = files if isinstance(files, list) else [files]
            package.files[resource["name"]] = [
                file for one in files if (file := _find_resource_file(folder, one, problems))
            ]
    for table in REQUIRED_COLUMNS:
        if not package.files.get(table) and (folder / f"{table}.csv").is_file():
            package.files[table] = [folder / f"{table}.csv"]
    for table in (MEDIA, OBSERVATIONS):
        if not package.files.get(table) and not problems:
            problems.append(f"{table}.csv is missing: observations name media by mediaID, so both tables are needed")
    if problems:
        raise combine_problems(f"The Camtrap DP in {folder} cannot be read:", problems)
    if not package.files.get(DEPLOYMENTS):
        package.sentences.append("There is no deployments.csv: where and when the cameras stood is not known.")
    return package


def _find_resource_file(folder: Path, named: object, problems: list[str]) -> Path | None:
    name = named if isinstance(named, str) else ""
    pure = PurePosixPath(name)
    if not name or pure.is_absolute() or ".." in pure.parts or ":" in name or "\\" in name or "\0" in name:
        problems.append(f"{PACKAGE_FILE} names the file {named!r}, which does not lie in the folder; download it there")
        return None
    if not (folder / name).is_file():
        problems.append(f"{PACKAGE_FILE} names the file {name!r}, which is not there")
        return None
    if name.lower().endswith((".gz", ".zip")):
        problems.append(f"{name!r} is compressed; unpack it, and change its path in {PACKAGE_FILE}")
        return None
    return folder / name


def _keep_dicts(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _read_vernacular_names(document: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for taxon in _keep_dicts(document.get("taxonomic")):
        names = taxon.get("vernacularNames")
        if isinstance(taxon.get("scientificName"), str) and isinstance(names, dict):
            texts = {language: name.strip() for language, name in names.items() if isinstance(name, str)}
            found[taxon["scientificName"].strip()] = {language: name for language, name in texts.items() if name}
    return found


def load_tables(package: Package, problems: Problems) -> Connection:
    """Load the tables into a temporary SQLite file, deleted on close. Raises AnnotatorError.

    Tables `media`, `observation` and `deployment` have `line`, text columns ("" if missing), and times in Unix
    seconds (at, start, end). Table `member` has (media, event).
    """
    sql = open_temporary()
    try:
        sql.execute("BEGIN")
        _fill_table(sql, "media", _MEDIA_COLUMNS, {"at": "timestamp"}, package.files[MEDIA], MEDIA, problems)
        times = {"start": "eventStart", "end": "eventEnd", "given_at": "classificationTimestamp"}
        _fill_table(
            sql, "observation", _OBSERVATION_COLUMNS, times, package.files[OBSERVATIONS], OBSERVATIONS, problems
        )
        columns = ("deploymentID", *DEPLOYMENT_FACTS)
        _fill_table(sql, "deployment", columns, {}, package.files.get(DEPLOYMENTS, []), DEPLOYMENTS, problems)
        _index_tables(sql, problems)
        sql.execute("COMMIT")
    except BaseException:
        sql.close()
        raise
    return sql


def _fill_table(
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
        sql.executemany(insert, _read_rows(file, columns, times, resource, problems))


def _read_rows(
    file: Path, columns: Sequence[str], times: Mapping[str, str], resource: str, problems: Problems
) -> Iterator[list[object]]:
    rows = read_csv_rows(file, problems, delimiter=read_header(file)[1])
    header = [name.strip() for name in next(rows, (0, [""]))[1]]
    if missing := [name for name in REQUIRED_COLUMNS[resource] if name not in header]:
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
        cells = [_clean_cell(row[at]) for at in places]
        for number, at in names:  # a file's name may begin with a blank
            cells[number] = unescape_formula(row[at]) if cells[number] else ""
        yield [f"{file.name}, line {line}", *cells, *(parse_iso_time(cells[at]) for at in time_places)]


def _clean_cell(cell: str) -> str:
    text = cell.strip()
    if text in MISSING_VALUES:
        return ""
    return unescape_formula(text) if text[0] == "'" else text


def _index_tables(sql: Connection, problems: Problems) -> None:
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


def read_deployments(path: Path) -> dict[str, dict[str, str]]:
    """Return the fields of each deployment. Raises AnnotatorError that lists all problems."""
    if not path.is_file():
        raise AnnotatorError(f"There is no file {path} (the table of deployments). Is the path spelled right?")
    problems, found = Problems(), dict[str, dict[str, str]]()
    rows = read_csv_rows(path, problems, delimiter=read_header(path)[1])
    header = [name.strip() for name in next(rows, (0, [""]))[1]]
    columns = {name.lower(): at for at, name in enumerate(header)}
    names = {name: columns[name.lower()] for name in ("deploymentID", *DEPLOYMENT_FACTS) if name.lower() in columns}
    if missing := {"deploymentID", "latitude", "longitude"} - names.keys():
        raise AnnotatorError(
            f"{path} has no column {' and no '.join(sorted(missing))}, but {', '.join(header)[:300]}. A table of "
            "deployments has deploymentID (the folder of the images), latitude and longitude in degrees."
        )
    for line, row in rows:
        facts = {name: row[at].strip() for name, at in names.items() if row[at].strip() not in MISSING_VALUES}
        name = facts.get("deploymentID", "")
        if not name or name in found:
            problems.add(f"line {line}: the deploymentID {name!r} is {'there twice' if name else 'empty'}")
        for key, most in (("latitude", 90), ("longitude", 180)):
            if key in facts and not _is_degrees(facts[key], most):
                problems.add(f"line {line}: {key} {facts[key]!r} does not lie between -{most} and {most} degrees")
        for key in ("deploymentStart", "deploymentEnd"):
            if key in facts and parse_iso_time(facts[key]) is None:
                problems.add(f"line {line}: {key} {facts[key]!r} is no time such as 2024-05-01T06:00:00Z")
        found[name] = facts
    if problems.count:
        raise problems.error(f"The table of deployments {path} cannot be used:")
    return found


def _is_degrees(text: str, limit: int) -> bool:
    try:
        return -limit <= float(text) <= limit
    except ValueError:
        return False
