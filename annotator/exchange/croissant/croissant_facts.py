"""Facts about a data set that only people know: its name, creators, uses, biases and collection.

They are read from a JSON file once, and stored in the project for all later exports.
"""

import json
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from annotator.errors import AnnotatorError, combine_problems, did_you_mean
from annotator.roles import Right
from annotator.store.database.database import Database
from annotator.store.disk.open_files import open_file

FACTS_SETTING = "croissant_facts"
MAX_FACTS_BYTES = 1 << 20
MAX_TEXT_CHARACTERS = 20_000
CREATOR_TYPES = ("Person", "Organization")
CREATOR_KEYS = ("type", "name", "url", "email")
REQUIRED_FACTS = ("license", "creator", "version", "datePublished", "citeAs")
"""Facts without which validators of Croissant report an issue, or venues refuse a data set."""
_VERSION_PATTERN = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?", re.ASCII
)


@dataclass(frozen=True)
class FactField:
    """A fact of the form. A `has_many` fact is a text or a list of texts."""

    key: str
    # its name on the page
    label: str
    about: str
    has_many: bool = False


FACT_FIELDS = {
    field.key: field
    for field in (
        FactField("name", "Name", "name of the data set"),
        FactField("description", "Description", "contents and purpose"),
        FactField(
            "creator", "Creators", 'list of {"type": "Person" or "Organization", "name": ..., "url": ..., "email": ...}'
        ),
        FactField("license", "License", "URL or SPDX identifier, such as CC-BY-4.0"),
        FactField("url", "Web page", "web page of the data set"),
        FactField("version", "Version", "version as MAJOR.MINOR.PATCH"),
        FactField("datePublished", "Date of publication", "date as YYYY-MM-DD"),
        FactField("citeAs", "Citation", "citation, such as BibTeX"),
        FactField("keywords", "Keywords", "search words", has_many=True),
        FactField("rai:dataCollection", "Collection", "how the images were collected"),
        FactField(
            "rai:dataCollectionType", "Kind of collection", "kind of collection, such as Observations", has_many=True
        ),
        FactField("rai:dataCollectionRawData", "Raw data", "the raw data that the images come from"),
        FactField("rai:dataPreprocessingProtocol", "Steps before annotation", "steps before annotation", has_many=True),
        FactField("rai:annotatorDemographics", "Annotators", "who the annotators are", has_many=True),
        FactField("rai:dataUseCases", "Intended uses", "intended uses", has_many=True),
        FactField("rai:dataLimitations", "Limitations", "known limitations, besides the measured ones", has_many=True),
        FactField("rai:dataBiases", "Biases", "known biases", has_many=True),
        FactField("rai:dataSocialImpact", "Social impact", "consequences for people"),
        FactField(
            "rai:personalSensitiveInformation",
            "Personal or sensitive content",
            "personal or sensitive content",
            has_many=True,
        ),
        FactField("rai:dataReleaseMaintenancePlan", "Maintenance", "plan for updates"),
    )
}


def read_facts(path: Path) -> dict[str, Any]:
    """Return the facts in a JSON file. Raises AnnotatorError with all invalid entries."""
    try:
        with open_file(path) as file:
            text = file.read(MAX_FACTS_BYTES + 1)
        if len(text) > MAX_FACTS_BYTES:
            raise AnnotatorError(f"{path} has more than {MAX_FACTS_BYTES:,} bytes. Check the path: facts are short.")
        facts = json.loads(text.decode("utf-8-sig"))
    except OSError as error:
        raise AnnotatorError(f"{path} cannot be read: {error.strerror or error}. Check the path.") from error
    except (ValueError, RecursionError) as error:
        raise AnnotatorError(f"{path} is not valid JSON: {error}. Write one object, such as {_EXAMPLE}") from error
    if not isinstance(facts, dict):
        raise AnnotatorError(f"{path} is not a JSON object. Write one, such as {_EXAMPLE}")
    if problems := list_fact_problems(facts):
        raise combine_problems(f"{path} cannot be used:", problems)
    return facts


_EXAMPLE = '{"name": "Birds", "version": "1.0.0", "creator": [{"type": "Person", "name": "Ann"}]}'


def list_fact_problems(facts: dict[str, Any]) -> list[str]:
    """Return why facts are invalid, one sentence for each."""
    return [problem for key, value in facts.items() if (problem := _find_problem(key, value))]


def store_facts(db: Database, facts: dict[str, Any]) -> None:
    """Store the facts in the project. They replace earlier ones."""
    db.set_setting(FACTS_SETTING, facts, Right.REVIEW)


def load_facts(db: Database) -> dict[str, Any]:
    """Return the stored facts that are valid."""
    known = db.get_setting(FACTS_SETTING, {})
    if not isinstance(known, dict):
        return {}
    return {key: value for key, value in known.items() if not _find_problem(key, value)}


def _find_problem(key: str, value: Any) -> str:
    """Return why a fact is invalid, or ""."""
    field = FACT_FIELDS.get(key)
    if field is None:
        return f"{key!r:.100} is not a known fact. {did_you_mean(key, FACT_FIELDS, len(FACT_FIELDS))}"
    if key == "creator":
        return _find_creator_problem(value)
    texts = value if field.has_many and isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and 0 < len(text.strip()) <= MAX_TEXT_CHARACTERS for text in texts):
        kind = "a text or a list of texts" if field.has_many else "a text"
        return f"{key!r} is {value!r:.100}; it must be {kind} ({field.about})."
    if key == "version" and not is_version(str(value)):
        return f"'version' is {value!r:.100}; it must be MAJOR.MINOR.PATCH, such as 1.0.0."
    if key == "datePublished" and not _is_date(str(value)):
        return f"'datePublished' is {value!r:.100}; it must be a date, such as 2026-05-01."
    return ""


def _find_creator_problem(value: Any) -> str:
    creators = value if isinstance(value, list) else [value]
    for creator in creators:
        is_valid = (
            isinstance(creator, dict)
            and creator.keys() <= set(CREATOR_KEYS)
            and creator.get("type") in CREATOR_TYPES
            and bool(creator.get("name"))
            and all(isinstance(text, str) and len(text) <= MAX_TEXT_CHARACTERS for text in creator.values())
        )
        if not is_valid:
            return f"'creator' has {creator!r:.100}; write {FACT_FIELDS['creator'].about}."
    return "" if creators else "'creator' is empty. Leave it out, or name a creator."


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def is_version(text: str) -> bool:
    """Return whether a text is a version as Croissant requires: MAJOR.MINOR.PATCH."""
    return bool(_VERSION_PATTERN.fullmatch(text))
