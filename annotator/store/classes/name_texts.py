"""Prompts for predicting classes from their names with a text-image network."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, cast

from annotator.errors import combine_problems
from annotator.records import Class
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.networks import configuration
from annotator.store.runs.prediction_sources import (
    CLASS_NAMES_SOURCE,
    NAMES_OFF_SETTING,
    NEWEST_GUESS_SETTING,
    load_sources,
    remove_source,
)
from spmll.backbones.curated import reads_text
from spmll.zero_shot.prompts import BACKGROUND_PROMPTS, NAME_SLOT, PROMPT_TEMPLATES, build_prompts, list_names

TEXTS_SETTING, TEMPLATES_SETTING = "name_texts", "name_templates"
MAX_TEXT_CHARACTERS = 200  # letters of a text; networks read some 60 words at most
MAX_TEXTS_PER_CLASS, MAX_TEMPLATES = 30, 100  # texts of a class, templates of a project


@dataclass(frozen=True)
class Wording:
    """The input of a prediction from class names: a text-image network, and prompts for each of `class_ids`."""

    network: str
    class_ids: tuple[int, ...]
    prompts: tuple[tuple[str, ...], ...]

    @cached_property
    def key(self) -> str:
        """Return a hash that identifies the network, classes and prompts."""
        everything = json.dumps([self.network, self.class_ids, self.prompts, BACKGROUND_PROMPTS])
        return hashlib.sha256(everything.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class NameGuess:
    """A record of the newest prediction from class names."""

    # key of its Wording
    wording: str = ""
    # images predicted
    images: int = 0
    # images also compared by patches
    patches: int = 0
    # unix seconds
    at: float = 0.0
    # why it failed, or ""
    error: str = ""


def is_on(db: Database) -> bool:
    """Return whether labels are predicted from class names in this project."""
    return not db.get_setting(NAMES_OFF_SETTING, False)


def set_enabled(db: Database, on: bool) -> None:
    """Turn prediction from class names on or off, and discard the newest prediction."""
    if not on and has_source(db):
        remove_source(db, CLASS_NAMES_SOURCE)  # which sets both settings in the transaction of the removal
        return
    with db.writing():
        db.set_setting(NAMES_OFF_SETTING, not on)
        db.set_setting(NEWEST_GUESS_SETTING, {})


def load_texts(db: Database) -> dict[int, tuple[str, ...]]:
    """Return class id -> prompt texts, for classes whose texts the user has chosen."""
    stored = db.get_setting(TEXTS_SETTING, {})
    if not isinstance(stored, dict):
        return {}
    of_all = cast(dict[str, Any], stored)
    return {int(id_): kept for id_, of_class in of_all.items() if id_.isdigit() and (kept := _filter_strings(of_class))}


def get_default_texts(class_: Class) -> tuple[str, ...]:
    """Return the prompt texts of a class for which the user chose none."""
    return list_names(class_.name, class_.synonyms, class_.description)


def load_templates(db: Database) -> tuple[str, ...]:
    """Return the sentences into which the prompt texts of classes are inserted."""
    return (
        tuple(text for text in _filter_strings(db.get_setting(TEMPLATES_SETTING, [])) if NAME_SLOT in text)
        or PROMPT_TEMPLATES
    )


def set_texts(db: Database, changes: Mapping[int, Sequence[str]]) -> None:
    """Set prompt texts (class id -> texts, empty for the defaults), or raise AnnotatorError listing invalid ones."""
    known = {class_.id: class_ for class_ in classes.load_active_classes(db)}
    wrong = [f"there is no class {class_id}" for class_id in changes if class_id not in known]
    cleaned = {class_id: _clean_texts(some) for class_id, some in changes.items() if class_id in known}
    for class_id, some in cleaned.items():
        name = known[class_id].name
        if len(some) > MAX_TEXTS_PER_CLASS:
            wrong.append(f"{name!r} has {len(some)} texts; at most {MAX_TEXTS_PER_CLASS} are allowed")
        wrong += [f"{name!r}: {reason}" for text in some if (reason := _find_text_problem(text))]
    if wrong:
        raise combine_problems("These texts cannot be used, and nothing was changed:", wrong)
    with db.writing():
        kept = load_texts(db) | cleaned
        chosen = {
            id_: some for id_, some in kept.items() if some and id_ in known and some != get_default_texts(known[id_])
        }
        db.set_setting(TEXTS_SETTING, {str(id_): list(some) for id_, some in chosen.items()})


def set_templates(db: Database, some: Sequence[str]) -> None:
    """Set the sentences around prompt texts (empty for the defaults), or raise AnnotatorError listing invalid ones."""
    cleaned = _clean_texts(some)
    wrong = [
        f"{text[:60]!r} has no {NAME_SLOT}, where the name of a class goes" for text in cleaned if NAME_SLOT not in text
    ]
    wrong += [reason for text in cleaned if (reason := _find_text_problem(text))]
    if len(cleaned) > MAX_TEMPLATES:
        wrong.append(f"there are {len(cleaned)}; at most {MAX_TEMPLATES} are allowed")
    if wrong:
        raise combine_problems("These templates cannot be used, and nothing was changed:", wrong)
    db.set_setting(TEMPLATES_SETTING, [] if cleaned == PROMPT_TEMPLATES else list(cleaned))


def get_text_network(db: Database) -> str:
    """Return the project's network if it compares texts with images, else ""."""
    name = configuration.get_backbone(db)
    return name if reads_text(name) else ""


def build_wording(db: Database) -> Wording | None:
    """Return the network and prompts for a prediction from class names, or None if it is off or impossible."""
    name = get_text_network(db)
    if not name or not is_on(db):
        return None
    known, chosen, around = classes.load_active_classes(db), load_texts(db), load_templates(db)
    if not known:
        return None
    of_classes = tuple(tuple(build_prompts(chosen.get(one.id) or get_default_texts(one), around)) for one in known)
    return Wording(name, tuple(one.id for one in known), of_classes)


def load_newest_guess(db: Database) -> NameGuess:
    """Return the newest prediction from names, or an empty one."""
    stored = cast(dict[str, Any], db.get_setting(NEWEST_GUESS_SETTING, {}))
    try:
        return NameGuess(**{field.name: stored[field.name] for field in fields(NameGuess)})
    except (KeyError, TypeError):
        return NameGuess()


def save_guess(db: Database, one: NameGuess) -> None:
    """Store the newest prediction from names."""
    db.set_setting(NEWEST_GUESS_SETTING, asdict(one))


def has_source(db: Database) -> bool:
    """Return whether trainings use a stored prediction from class names."""
    return any(source.name == CLASS_NAMES_SOURCE for source in load_sources(db))


def describe_state(db: Database) -> str:
    """Return a sentence about the state of prediction from class names."""
    name, newest = get_text_network(db), load_newest_guess(db)
    if not is_on(db):
        return "Switched off: nothing is guessed from names."
    if not name:
        before = [source.annotator for source in load_sources(db) if source.name == CLASS_NAMES_SOURCE]
        return (
            f"{configuration.get_backbone(db)} knows no texts, so nothing is guessed from names. Networks that do "
            "begin with open_clip: (annotator backbones lists some)."
            + "".join(f" What {other} guessed before stays in use." for other in before)
        )
    if newest.error:
        return f"Nothing is guessed from names: {newest.error}"
    current = build_wording(db)
    if current is None:
        return "There are no classes yet."
    if newest.wording != current.key or not has_source(db):
        return f"The worker guesses with {name} soon."
    if newest.patches < newest.images:
        return (
            f"Guessed with {name} for {newest.images:,} images, from whole images so far; the worker looks at their "
            "patches when it has nothing else to do."
        )
    return f"Guessed with {name} for {newest.images:,} images, from whole images and their patches."


def _filter_strings(stored: Any) -> tuple[str, ...]:
    if not isinstance(stored, list):
        return ()
    return tuple(text for text in cast(list[Any], stored) if isinstance(text, str) and text.strip())


def _clean_texts(some: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.strip() for text in some if text.strip()))


def _find_text_problem(text: str) -> str:
    if len(text) > MAX_TEXT_CHARACTERS:
        return f"{text[:40]!r}... has {len(text):,} letters; at most {MAX_TEXT_CHARACTERS} are allowed"
    return "" if text.isprintable() else f"{text[:60]!r} holds a letter that cannot be printed"
