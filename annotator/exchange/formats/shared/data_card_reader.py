"""Class fields, such as description and synonyms, from the data card of an export.

Unreadable cards and cards of other files are ignored.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from annotator.store.classes.class_facts import ClassFacts
from annotator.store.disk.open_files import open_file

MAX_CARD_BYTES = 64 << 20
FOLDER_CARD_NAME = "data_card.json"


class _Class(msgspec.Struct):
    name: str
    description: str = ""
    # None: a card that was written before it had such facts
    key: str | None = None
    position: int = 0
    heading: str = ""
    colour: str = ""
    synonyms: list[str] = []
    examples: list[str] = []


class _Card(msgspec.Struct):
    classes: list[_Class]
    written: dict[str, Any] = {}
    choices: dict[str, Any] = {}


_DECODER = msgspec.json.Decoder(_Card)


def find_card(path: Path) -> Path | None:
    """Return the data card of an exported file or folder, if any."""
    card = path / FOLDER_CARD_NAME if path.is_dir() else path.with_name(f"{path.stem}.card.json")
    return card if card.is_file() and card.stat().st_size <= MAX_CARD_BYTES else None


def read_class_facts(path: Path) -> list[ClassFacts]:
    """Return the fields of each class (description, synonyms, ...) from an export's data card."""
    card = _load_card(path)
    every = card.classes if card else []
    facts = (msgspec.structs.asdict(class_) for class_ in every if class_.key is not None)
    return [ClassFacts(**fact) for fact in facts]


def read_class_columns(path: Path) -> Sequence[str]:
    """Return the classes that have a column in the exported table, or []."""
    card = _load_card(path)
    columns = (card.choices.get("columns") or {}) if card else {}
    if card is None or not isinstance(columns, dict) or columns.get("long") or columns.get("chosen"):
        return []
    return [class_.name for class_ in card.classes]


def _load_card(path: Path) -> _Card | None:
    card_path = find_card(path)
    if card_path is None:
        return None
    try:
        with open_file(card_path) as file:
            card = _DECODER.decode(file.read())
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return card if path.is_dir() or path.name in card.written else None
