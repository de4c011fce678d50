"""Camtrap DP 1.0: a data package of camera trap observations (https://camtrap-dp.tdwg.org).

Observations of media become present labels, observations of events become event labels, and machine
classifications become scores. Counts, sex, life stage, behavior and deployment data become fields.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from annotator.errors import AnnotatorError
from annotator.exchange.files.json_stream import read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.camtrap_dp_writer import write
from annotator.exchange.formats.contents import EMPTY_EVENT_CLASS, Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.shared.camtrap_tables import (
    CLASS_TAG_PREFIX,
    DEPLOYMENT_FACTS,
    MAX_FACT_NAME_CHARS,
    MEDIA,
    OBSERVATION_FACTS,
    OBSERVATIONS,
    OWN_LANGUAGE_CODE,
    PACKAGE_FILE,
    PLACE_FACTS,
    Package,
    identify_table,
    load_tables,
    open_package,
)
from annotator.exchange.reading.reading_options import Interpretation, ReadingOptions
from annotator.humanize import format_count
from annotator.records import PRESENT
from annotator.store.disk.other_databases import Connection, Row
from annotator.store.locations.addresses import is_address
from annotator.store.pictures.files import looks_like_image

SCIENTIFIC_NAME, VERNACULAR_NAMES = "scientificName", "vernacularNames"
HUMAN, VEHICLE, ANIMAL, BLANK = "human", "vehicle", "animal", "blank"
UNCLASSIFIED_TYPES = ("unknown", "unclassified")


def recognize(path: Path) -> str | None:
    if path.is_dir():
        is_package = (path / PACKAGE_FILE).is_file() and _is_package_description(path / PACKAGE_FILE)
        if is_package or all(identify_table(path / f"{table}.csv") for table in (MEDIA, OBSERVATIONS)):
            return "a Camtrap DP: it has media.csv and observations.csv"
        return None
    if path.name == PACKAGE_FILE and _is_package_description(path):
        return "a Camtrap DP: its resources are media and observations"
    table = identify_table(path)
    return f"the table {table!r} of a Camtrap DP" if table else None


def _is_package_description(path: Path) -> bool:
    start = read_start(path)
    is_named = b"camtrap-dp" in start
    return start[:1] == b"{" and (is_named or (b'"media"' in start and b'"observations"' in start))


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the labels of a package, whose tables are first loaded into a temporary database."""
    package = open_package(path)
    usual = f"{VERNACULAR_NAMES}.{OWN_LANGUAGE_CODE}" if package.is_own else SCIENTIFIC_NAME
    columns = options.label_columns or (usual,)
    languages = sorted({language for of_taxon in package.names.values() for language in of_taxon})
    known = [SCIENTIFIC_NAME, *(f"{VERNACULAR_NAMES}.{language}" for language in languages)]
    if columns[0] not in (usual, *known):
        raise AnnotatorError(f"{path} cannot name classes by {columns[0]!r}. It has: {', '.join(known)}.")
    sql = load_tables(package, problems)
    try:
        names = _ClassNamer(package, columns[0])
        # Of our own packages the data card lists them, and says more.
        classes = [] if package.is_own else list(_list_classes(sql, names, package))
        others = known[1:]
        why = f"classes are called by `{columns[0]}`" + (f"; {' and '.join(others)} would do, too" if others else "")
        decided = [
            Interpretation("label_columns", columns[0], why, True, tuple({SCIENTIFIC_NAME, *others} - {columns[0]}))
        ]
        said = [
            *package.sentences,
            "Blank observations say that nothing is there; people and vehicles are the classes human and vehicle.",
            *_describe_left_out(sql),
        ]
        package.has_files = any(_find_local_file(package, row[0]) for row in sql.execute("SELECT filePath FROM media"))
    except BaseException:
        sql.close()
        raise
    folder = package.folder if package.has_files else None
    return Contents(classes, _read_items(sql, package, names, said), folder, "row", said, decided)


class _ClassNamer:
    """A lookup of class names by taxon: scientific, or vernacular in one language."""

    def __init__(self, package: Package, column: str):
        self._names, self._column, self._is_own = package.names, column, package.is_own

    def find_class(self, row: Row | Mapping[str, Any]) -> str:
        kind, tag = row["observationType"], row["observationTags"]
        if self._is_own and tag.startswith(CLASS_TAG_PREFIX):
            return tag.removeprefix(CLASS_TAG_PREFIX)
        if kind in (HUMAN, VEHICLE):
            return kind
        if kind != ANIMAL:
            return ""
        return self.name_taxon(row[SCIENTIFIC_NAME]) if row[SCIENTIFIC_NAME] else ANIMAL

    def name_taxon(self, name: str) -> str:
        language = self._column.partition(".")[2]
        return self._names.get(name, {}).get(language, name) if self._column.startswith(VERNACULAR_NAMES) else name


def _list_classes(sql: Connection, names: _ClassNamer, package: Package) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    query = f"""SELECT observationType, {SCIENTIFIC_NAME}, observationTags FROM observation
        GROUP BY 1, 2, 3 ORDER BY min(id)"""
    for kind, taxon, tags in sql.execute(query):
        name = names.find_class({"observationType": kind, SCIENTIFIC_NAME: taxon, "observationTags": tags})
        if name and name not in seen:
            seen.add(name)
            known = package.names.get(taxon, {}) if kind == ANIMAL else {}
            about = [taxon] if kind == ANIMAL and taxon and name != taxon else []
            yield name, "; ".join([*about, *(text for text in known.values() if text != name)])


def _describe_left_out(sql: Connection) -> Iterator[str]:
    counts = [
        (
            "observation o WHERE o.mediaID != '' AND o.mediaID NOT IN (SELECT mediaID FROM media)",
            ("observation", "observations"),
            "left out: media.csv has no medium of that id",
            "o.mediaID",
        ),
        (
            """observation o WHERE o.observationLevel = 'event' AND o.mediaID = ''
            AND o.eventID NOT IN (SELECT event FROM member)""",
            ("observation of an event", "observations of events"),
            "left out: no medium belongs to the event",
            "o.eventID",
        ),
        (
            """media o WHERE o.deploymentID NOT IN (SELECT deploymentID FROM deployment)
            AND EXISTS (SELECT 1 FROM deployment)""",
            ("medium", "media"),
            "without facts of a deployment: deployments.csv has none of that id",
            "o.deploymentID",
        ),
        (
            "observation o WHERE o.observationType IN ('unknown', 'unclassified')",
            ("observation", "observations"),
            "unknown or unclassified: they name no class",
            "o.line",
        ),
        (
            """observation o WHERE o.observationType NOT IN
            ('animal', 'human', 'vehicle', 'blank', 'unknown', 'unclassified')""",
            ("observation", "observations"),
            "left out: their observationType is none of Camtrap DP 1.0",
            "o.line || ': ' || o.observationType",
        ),
    ]
    for where, words, what, example in counts:
        many, first = sql.execute(f"SELECT count(*), min({example}) FROM {where}").fetchone()
        if many:
            yield f"{format_count(many, *words)} {what} (the first: {first!r})."


def _read_items(sql: Connection, package: Package, names: _ClassNamer, said: list[str]) -> Iterator[Item]:
    """Yield one item per image, then append sentences on unused data to `said`."""
    wanted = ", ".join(f'd."{name}" AS "of_{name}"' for name in DEPLOYMENT_FACTS)
    query = f"""SELECT m.id AS number, m.line AS place, m.filePath, m.fileName, m.fileMediatype, m.mediaID AS medium,
        m.deploymentID AS deployment, m.timestamp, m.captureMethod, {wanted}, e.event, o.* FROM media m
        LEFT JOIN member e ON e.media = m.mediaID LEFT JOIN deployment d ON d.deploymentID = m.deploymentID
        LEFT JOIN observation o ON o.mediaID = m.mediaID AND o.observationLevel = 'media' ORDER BY m.id, o.id"""
    counts: dict[str, int] = dict.fromkeys(("videos", "unscored", "both"), 0)
    with closing(sql):
        rows = sql.cursor()
        rows.row_factory = Row
        for _, group in groupby(rows.execute(query), lambda row: row["number"]):
            medium = list(group)
            if medium[0]["fileMediatype"].startswith(("video/", "audio/")):
                counts["videos"] += 1
                continue
            yield _build_item(sql, package, names, medium, counts)
    if counts["videos"]:
        said.append(
            f"{format_count(counts['videos'], 'video or sound', 'videos and sounds')} left out: only images are read."
        )
    if counts["unscored"]:
        said.append(
            f"{format_count(counts['unscored'], 'observation')} by a machine left out: blank, or without a "
            "classificationProbability."
        )
    if counts["both"]:
        said.append(
            f"{format_count(counts['both'], 'image')} blank by one observation and not by another: they keep what they "
            "show and do not count as complete."
        )


def _build_item(sql: Connection, package: Package, names: _ClassNamer, rows: list[Row], counts: dict[str, int]) -> Item:
    first = rows[0]
    file = _find_local_file(package, first["filePath"])
    item = Item(_image_name(package, first), first["place"], labels=[], scores={}, file=file, answered=False)
    facts = {name: first[name] for name in ("timestamp", "captureMethod")}
    facts |= {"mediaID": first["medium"], "deploymentID": first["deployment"]}
    facts |= {name: first[f"of_{name}"] or "" for name in DEPLOYMENT_FACTS}
    if package.has_beside:  # which hold the facts of the project as they were
        facts = {name: text for name, text in facts.items() if name in PLACE_FACTS}
    item.event = first["event"] or ""
    item.event_labels = _read_event_labels(sql, names, item.event) if item.event else ()
    found = _MediumLabels(names, package.has_beside)
    for row in rows:
        if row["observationType"] is not None:
            found.add(row)
    item.labels, item.scores = found.labels, found.scores
    item.answered = bool(found.labels or found.blank)
    item.exhaustive = found.blank and not found.labels and not found.is_open
    counts["unscored"] += found.unscored
    counts["both"] += found.blank and not item.exhaustive
    if found.is_open and not package.has_beside:
        facts["observationType"] = found.is_open
    facts |= {} if package.has_beside else found.facts()
    item.attributes = {name: text for name, text in facts.items() if text}
    return item


class _MediumLabels:
    """A collector of the labels, scores and fields of one image ("medium") or event."""

    def __init__(self, names: _ClassNamer, has_origins: bool = False):
        self._names, self._has_origins = names, has_origins
        self.labels: list[ImportedLabel] = []
        self.scores: dict[str, float] = {}
        self.blank, self.is_open, self.unscored = False, "", 0
        self._facts: dict[str, list[str]] = {}

    def add(self, row: Row | Mapping[str, Any]) -> None:
        name = self._names.find_class(row)
        probability = _parse_number(row["classificationProbability"])
        # Without a method, a number strictly between 0 and 1 can only be the score of a machine.
        if row["classificationMethod"] == "machine" or (
            not row["classificationMethod"] and probability is not None and 0 < probability < 1
        ):
            if name and probability is not None and 0 <= probability <= 1:
                self.scores[name] = max(probability, self.scores.get(name, 0.0))
            elif row["observationType"] not in UNCLASSIFIED_TYPES:
                self.unscored += 1
        elif name:
            # The file of origins beside our own packages is more exact.
            by = () if self._has_origins else (row["classifiedBy"], row["given_at"])
            self.labels.append(ImportedLabel(name, PRESENT, *by))
            for fact in OBSERVATION_FACTS:
                if row[fact]:
                    self._facts.setdefault(f"{fact} of {name}"[:MAX_FACT_NAME_CHARS], []).append(row[fact])
        elif row["observationType"] == BLANK:
            self.blank = True
        elif row["observationType"] in UNCLASSIFIED_TYPES:
            self.is_open = row["observationType"]

    def facts(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, values in self._facts.items():
            if name.startswith("count of") and all(value.isascii() and value.isdigit() for value in values):
                found[name] = str(sum(int(value[:9]) for value in values))
            else:
                found[name] = " | ".join(dict.fromkeys(values))[:2000]
        return found


def _read_event_labels(sql: Connection, names: _ClassNamer, event: str) -> list[ImportedLabel]:
    cursor = sql.cursor()
    cursor.row_factory = Row
    found = _MediumLabels(names)
    for row in cursor.execute("SELECT * FROM observation WHERE eventID = ? AND observationLevel = 'event'", [event]):
        found.add(row)
        if row["observationType"] == BLANK and found.blank:
            blank = ImportedLabel(EMPTY_EVENT_CLASS, PRESENT, row["classifiedBy"], row["given_at"])
            found.labels.append(blank)
            found.blank = False
    return found.labels


def _parse_number(text: str) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _find_local_file(package: Package, path: str) -> str:
    is_below = package.has_files and path[:1] != "/" and ".." not in path.split("/") and not {"\\", "\0"} & {*path}
    if not is_below or not looks_like_image(path) or is_address(path):
        return ""
    try:
        return path if os.path.isfile(f"{package.folder}/{path}") else ""  # noqa: PTH113 - quicker than a Path
    except (OSError, ValueError):  # a name that no file can have
        return ""


def _image_name(package: Package, row: Row) -> str:
    path, name = row["filePath"], row["fileName"]
    if package.is_own and name:
        return name
    if is_address(path):
        inside = unquote(urlsplit(path).path).lstrip("/")
        if looks_like_image(inside) and (not name or inside.endswith(name)):
            return inside
        return name or inside or row["medium"]
    return path or name or row["medium"]


CAMTRAP_DP = Format(
    name="camtrap-dp",
    about="Camtrap DP 1.0: media, observations and deployments of camera traps. Read by camtrapdp, Agouti and GBIF",
    recognize=recognize,
    read=read,
    write=write,
    lost=FormatLosses(unknown=False, unsure=True, absent=True, provenance=True),
)
