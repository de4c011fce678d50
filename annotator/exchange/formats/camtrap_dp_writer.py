"""Export to Camtrap DP 1.0.2.

Present labels become observations of media or events, images without classes blanks, and filled-in labels machine
classifications. The format cannot hold other absent labels. Unknown times and places stay empty and are
reported, because validators require them.
"""

import json
import math
import mimetypes
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from annotator.exchange.files.csv_cells import CsvWriter
from annotator.exchange.formats.export_view import PROBABILITY_DIGITS, Block, Captures, Output, View
from annotator.exchange.formats.shared.camtrap_tables import (
    CLASS_TAG_PREFIX,
    MAX_FACT_NAME_CHARS,
    MISSING_VALUES,
    OBSERVATION_FACTS,
    OWN_LANGUAGE_CODE,
    OWN_SOURCE_TITLE,
    PACKAGE_FILE,
)
from annotator.exchange.formats.shared.times import parse_iso_time
from annotator.humanize import format_count
from annotator.records import ABSENT, FILL_SOURCES, FILLED_BY_ASSUMPTION, PRESENT, Class
from annotator.settings import IMPORT_ANNOTATOR

VERSION = "1.0.2"
PROFILE_URL = f"https://raw.githubusercontent.com/tdwg/camtrap-dp/{VERSION}/"
DEPLOYMENT_COLUMNS = (
    *("deploymentID", "locationID", "locationName", "latitude", "longitude", "coordinateUncertainty"),
    *("deploymentStart", "deploymentEnd", "setupBy", "cameraID", "cameraModel", "cameraDelay", "cameraHeight"),
    *("cameraDepth", "cameraTilt", "cameraHeading", "detectionDistance", "timestampIssues", "baitUse", "featureType"),
    *("habitat", "deploymentGroups", "deploymentTags", "deploymentComments"),
)
FILLED_DEPLOYMENT_COLUMNS = ("locationID", "locationName", "latitude", "longitude", "deploymentStart", "deploymentEnd")
FILLED_DEPLOYMENT_COLUMNS += ("cameraID", "cameraModel")
"""The columns of a deployment that are filled in; validators want the others to be there."""
MEDIA_COLUMNS = (
    *("mediaID", "deploymentID", "captureMethod", "timestamp", "filePath", "filePublic", "fileName", "fileMediatype"),
    *("exifData", "favorite", "mediaComments"),
)
OBSERVATION_COLUMNS = (
    *("observationID", "deploymentID", "mediaID", "eventID", "eventStart", "eventEnd", "observationLevel"),
    *("observationType", "cameraSetupType", "scientificName", "count", "lifeStage", "sex", "behavior"),
    *("individualID", "individualPositionRadius", "individualPositionAngle", "individualSpeed"),
    *("bboxX", "bboxY", "bboxWidth", "bboxHeight", "classificationMethod", "classifiedBy", "classificationTimestamp"),
    *("classificationProbability", "observationTags", "observationComments"),
)
DEPLOYMENT_NAME_FACTS = ("deploymentID", "location", "locationName")
"""Facts by which the deployment of an image is known, the first that it has."""
TIME_FACTS = ("timestamp", "datetime", "DateTime")
ALLOWED_VALUES = {"lifeStage": ("adult", "subadult", "juvenile"), "sex": ("female", "male")}
CAPTURE_METHODS = ("activityDetection", "timeLapse")
HUMAN_NAMES, VEHICLE_NAMES = ("human", "person", "people", "homo sapiens"), ("vehicle",)
ASSUMED_COMMENT = "assumed: what nobody has answered counts as absent"
_BINOMIAL_PATTERN = re.compile(r"[A-Z][a-z]+ [a-z]{2,}(?: [a-z]{2,})?")
_PLAIN_FOLDER = re.compile(r"\w[\w -]*(?:/\w[\w -]*)*")
_ALLOWED_PATH = re.compile(r"[^./~](?:(?!\.\.).)*", re.DOTALL)


@dataclass
class _Deployment:
    """The collected fields of a camera deployment, with the times of its first and last image."""

    facts: dict[str, str] = field(default_factory=dict[str, str])
    first: float = math.inf
    last: float = -math.inf

    @property
    def is_placed(self) -> bool:
        return bool(self.facts["latitude"] and self.facts["longitude"])


@dataclass
class _Event:
    """A labeled event with its deployment and the times of its images."""

    deployment: str
    labels: Any
    first: float = math.inf
    last: float = -math.inf


def write(view: View, output: Output) -> None:
    """Write the package, with some 300 bytes of memory per deployment and event."""
    writer = _PackageWriter(view, output)
    with output.open_text("media.csv") as media, output.open_text("observations.csv") as observations:
        writer.media, writer.observations = CsvWriter(media, view.raw), CsvWriter(observations, view.raw)
        writer.media.write_row(MEDIA_COLUMNS)
        writer.observations.write_row(OBSERVATION_COLUMNS)
        for block in view.blocks():
            taken = view.load_captures([image.id for image in block.images])
            for row in range(len(block.images)):
                writer.write_image(block, row, taken)
        writer.write_events()
    with output.open_text("deployments.csv") as file:
        rows = CsvWriter(file, view.raw)
        rows.write_row(DEPLOYMENT_COLUMNS)
        for name in sorted(writer.deployments):
            rows.write_row(writer.build_deployment_row(name))
    with output.open_text(PACKAGE_FILE) as file:
        json.dump(_build_description(view, writer), file, indent=2, ensure_ascii=False)
        file.write("\n")
    view.sentences.extend(writer.format_sentences())


class _PackageWriter:
    """The tables of the package while they are written."""

    media: CsvWriter
    observations: CsvWriter

    def __init__(self, view: View, output: Output):
        self.deployments: dict[str, _Deployment] = {}
        self.labeled: dict[str, _Event] = {}
        self.untimed, self.newest = 0, -math.inf
        self._view, self._output = view, output
        self.taxa = [_Taxon(class_) for class_ in view.classes]
        self._by_name = {taxon.name: taxon for taxon in self.taxa}
        self._is_filled = np.isin(view.sources, FILL_SOURCES)
        self._assumed = view.sources.index(FILLED_BY_ASSUMPTION) if FILLED_BY_ASSUMPTION in view.sources else -1

    def write_image(self, block: Block, row: int, taken: Captures) -> None:
        image, facts = block.images[row], block.attributes[row]
        self.newest = max(
            self.newest, float(np.nan_to_num(block.decided_at[row], nan=-math.inf).max(initial=-math.inf))
        )
        at = next((at for name in TIME_FACTS if (at := parse_iso_time(facts.get(name, ""))) is not None), None)
        at = taken.at.get(image.id) if at is None else at
        self.untimed += at is None
        name = next((facts[key] for key in DEPLOYMENT_NAME_FACTS if facts.get(key)), "")
        name = name or image.name.replace("\\", "/").rpartition("/")[0] or "deployment"
        deployment = self.deployments.setdefault(name, _Deployment())
        for key in FILLED_DEPLOYMENT_COLUMNS:
            if facts.get(key):
                deployment.facts.setdefault(key, facts[key])
        if at is not None:
            deployment.first, deployment.last = min(deployment.first, at), max(deployment.last, at)
        file = block.files[row]
        if ".." in file:  # which paths of the format cannot have
            file = f"{image.id}{file[file.rindex('.') :]}"
        # Below the folder that it is in, so that its deployment is known by its name.
        folder = image.name.rpartition("/")[0]
        when, written = format_iso_second(at), f"{folder if _PLAIN_FOLDER.fullmatch(folder) else 'media'}/{file}"
        if not (file and self._output.write_image(image, written)):
            written = image.name
            if not _ALLOWED_PATH.fullmatch(written):
                written = f"media/{written.lstrip('./~')}".replace("..", "_")
        kind = mimetypes.guess_type(image.name)[0] or ""
        kind = kind if kind.startswith("image/") else "image/jpeg"
        method = facts.get("captureMethod", "")
        method = method if method in CAPTURE_METHODS else ""
        medium = str(image.id)
        self.media.write_row((medium, name, method, when, written, "false", image.name, kind, "", "", ""))
        event = taken.events.get(image.id, "")
        if event and taken.labels.get(event):
            labeled = self.labeled.setdefault(event, _Event(name, taken.labels[event]))
            if at is not None:
                labeled.first, labeled.last = min(labeled.first, at), max(labeled.last, at)
        start = {
            "deploymentID": name,
            "mediaID": medium,
            "eventID": event,
            "eventStart": when,
            "eventEnd": when,
            "observationLevel": "media",
        }
        for number, rest in enumerate(self._list_observations(block, row, facts), start=1):
            self._write_observation({"observationID": f"{medium}-{number}", **start, **rest})

    def _write_observation(self, facts: Mapping[str, object]) -> None:
        self.observations.write_row([facts.get(name, "") for name in OBSERVATION_COLUMNS])

    def _list_observations(self, block: Block, row: int, facts: Mapping[str, str]) -> Iterator[dict[str, object]]:
        values = block.values[row]
        present = np.flatnonzero(values == 1).tolist()
        for column in present:
            taxon = self.taxa[column]
            yield {
                **taxon.columns,
                **_find_label_facts(taxon.name, facts),
                **self._describe_classifier(block, row, column),
            }
        if present:
            return
        if len(values) and (values == 0).all():
            decided = block.decided_at[row]
            column = int(np.nanargmax(decided)) if not np.isnan(decided).all() else 0
            filled = np.flatnonzero(self._is_filled[block.sources[row]])
            who = self._describe_classifier(block, row, int(filled[0]) if len(filled) else column)
            who["classificationProbability"] = ""  # one number cannot say it of all classes
            is_assumed = bool((block.sources[row] == self._assumed).any())
            yield {"observationType": "blank", **who, "observationComments": ASSUMED_COMMENT if is_assumed else ""}
        elif facts.get("observationType") in ("unknown", "unclassified"):
            yield {"observationType": facts["observationType"]}

    def _describe_classifier(self, block: Block, row: int, column: int) -> dict[str, object]:
        if self._is_filled[block.sources[row, column]]:
            probability = block.probabilities[row, column]
            known = "" if math.isnan(probability) else round(float(probability), PROBABILITY_DIGITS)
            program = self._view.sources[block.sources[row, column]]
            return _classification_columns("machine", program, "", known)
        person, at = self._view.annotators[block.annotators[row, column]], float(block.decided_at[row, column])
        origin = block.origins.get((row, column)) if block.origins else None
        if origin and (origin.annotator or origin.decided_at is not None):
            person, at = origin.annotator, math.nan if origin.decided_at is None else origin.decided_at
        elif person == IMPORT_ANNOTATOR:  # which is no person
            person, at = "", math.nan
        return _classification_columns("human", person, "" if math.isnan(at) else format_iso_second(at))

    def write_events(self) -> None:
        number = 0
        for name in sorted(self.labeled):
            event = self.labeled[name]
            for label in event.labels:
                if label.state == ABSENT or (label.state != PRESENT and label.class_name):
                    continue
                taxon = self._by_name.get(label.class_name)
                if label.class_name and taxon is None:  # a class that is not exported
                    continue
                number += 1
                given = "" if label.decided_at is None else format_iso_second(label.decided_at)
                self._write_observation(
                    {
                        "observationID": f"event-{number}",
                        "deploymentID": event.deployment,
                        "eventID": name,
                        "eventStart": format_iso_second(event.first),
                        "eventEnd": format_iso_second(event.last),
                        "observationLevel": "event",
                        **(taxon.columns if taxon else {"observationType": "blank"}),
                        **_classification_columns("human", label.annotator, given),
                    }
                )

    def build_deployment_row(self, name: str) -> list[object]:
        one = self.deployments[name]
        facts = {**one.facts, **self._view.deployments.get(name, {}), "deploymentID": name}
        for key, at in (("deploymentStart", one.first), ("deploymentEnd", one.last)):
            known = parse_iso_time(facts.get(key, ""))
            facts[key] = format_iso_second(known if known is not None else at)
        for key, most in (("latitude", 90), ("longitude", 180)):
            facts[key] = _clean_degrees(facts.get(key, ""), most)
        one.facts = facts
        return [facts.get(key, "") for key in DEPLOYMENT_COLUMNS]

    def format_sentences(self) -> Iterator[str]:
        unplaced = [name for name, one in self.deployments.items() if not one.is_placed]
        if unplaced:
            yield (
                f"{format_count(len(unplaced), 'deployment')} without latitude and longitude (the first: "
                f"{unplaced[0]!r}), which Camtrap DP needs: the package is not valid until they are known. Give a "
                "table with the columns deploymentID, latitude, longitude by --deployments FILE."
            )
        if self.untimed:
            yield (
                f"{format_count(self.untimed, 'image')} without the time at which it was taken, which Camtrap DP "
                "needs: the package is not valid until it is known. Import a table with the columns image, timestamp."
            )
        guessed = [taxon.name for taxon in self.taxa if taxon.is_animal and not taxon.is_scientific]
        if guessed:
            yield (
                f"scientificName is the name of the class where no scientific name is known: {', '.join(guessed[:5])}"
                f"{', ...' if len(guessed) > 5 else ''}. Add the scientific name to the synonyms of the class "
                "(such as Vulpes vulpes), and it is written instead."
            )
        yield (
            "Times without a time zone are written as UTC. datapackage.json says samplingDesign opportunistic and "
            "captureMethod activityDetection: change what is not so."
        )


class _Taxon:
    """The name of a class in observations.

    Attributes:
        scientific: Scientific name, else class name, or "" for no animal.
        columns: Type, scientific name, and a tag if these are ambiguous.
    """

    def __init__(self, class_: Class):
        self.name = class_.name
        word = class_.name.casefold()
        kind = "human" if word in HUMAN_NAMES else "vehicle" if word in VEHICLE_NAMES else "animal"
        self.is_animal = kind == "animal" and word != "animal"
        known = [name for name in (class_.name, *class_.synonyms) if _BINOMIAL_PATTERN.fullmatch(name)]
        self.scientific = (known[0] if known else class_.name) if self.is_animal else ""
        self.is_scientific = bool(known)
        is_plain = self.scientific.strip() == self.scientific and self.scientific not in MISSING_VALUES
        read = self.name if self.is_animal and is_plain else kind
        tag = "" if read == self.name else f"{CLASS_TAG_PREFIX}{self.name}"
        self.columns = {"observationType": kind, "scientificName": self.scientific, "observationTags": tag}


def _classification_columns(method: str, by: str, at: str, probability: object = "") -> dict[str, object]:
    return {
        "classificationMethod": method,
        "classifiedBy": by,
        "classificationTimestamp": at,
        "classificationProbability": probability,
    }


def _find_label_facts(name: str, facts: Mapping[str, str]) -> dict[str, str]:
    found = {fact: facts.get(f"{fact} of {name}"[:MAX_FACT_NAME_CHARS], "") for fact in OBSERVATION_FACTS}
    count = found["count"]
    if not (count.isascii() and count.isdigit() and int(count[:9]) > 0):
        found["count"] = ""
    for fact, words in ALLOWED_VALUES.items():
        if found[fact] not in words:
            found[fact] = ""
    return found


def format_iso_second(at: float | None) -> str:
    """Format Unix seconds as ISO 8601, or return "" for None and infinity."""
    if at is None or not math.isfinite(at):
        return ""
    return datetime.fromtimestamp(math.floor(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def _clean_degrees(text: str, limit: int) -> str:
    try:
        number = float(text)
    except ValueError:
        return ""
    return text.strip() if -limit <= number <= limit else ""


def _build_description(view: View, writer: _PackageWriter) -> dict[str, Any]:
    people = [{"title": name} for name in view.annotators if name not in ("", IMPORT_ANNOTATOR)] or [
        {"title": "unknown"}
    ]
    described: dict[str, Any] = {
        "resources": [
            {
                "name": name,
                "path": f"{name}.csv",
                "profile": "tabular-data-resource",
                "format": "csv",
                "mediatype": "text/csv",
                "encoding": "utf-8",
                "schema": f"{PROFILE_URL}{name}-table-schema.json",
            }
            for name in ("deployments", "media", "observations")
        ],
        "profile": f"{PROFILE_URL}camtrap-dp-profile.json",
        "name": "camera-trap-labels",
        # The moment of the newest answer, so that an unchanged data set is written the same.
        "created": format_iso_second(writer.newest) or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "title": "Camera trap labels",
        "contributors": people,
        "version": "1.0",
        "sources": [{"title": OWN_SOURCE_TITLE}],
        "project": {
            "title": "Camera trap labels",
            "samplingDesign": "opportunistic",
            "captureMethod": ["activityDetection"],
            "individualAnimals": False,
            "observationLevel": ["media", "event"] if writer.labeled else ["media"],
        },
        "spatial": _build_spatial(writer),
    }
    starts = [one.facts["deploymentStart"] for one in writer.deployments.values() if one.facts["deploymentStart"]]
    ends = [one.facts["deploymentEnd"] for one in writer.deployments.values() if one.facts["deploymentEnd"]]
    if starts and ends:
        described["temporal"] = {"start": min(starts)[:10], "end": max(ends)[:10]}
    described["taxonomic"] = [
        {"scientificName": taxon.scientific, "vernacularNames": {OWN_LANGUAGE_CODE: taxon.name}}
        for taxon in writer.taxa
        if taxon.is_animal
    ]
    if view.card.get("cite"):
        described["bibliographicCitation"] = view.card["cite"]
    return described


def _build_spatial(writer: _PackageWriter) -> dict[str, Any]:
    placed = [one.facts for one in writer.deployments.values() if one.is_placed]
    points = [[float(facts["longitude"]), float(facts["latitude"])] for facts in placed]
    return {"type": "MultiPoint", "coordinates": points} if points else {"type": "GeometryCollection", "geometries": []}
