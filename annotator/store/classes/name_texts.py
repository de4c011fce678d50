"""The texts by which a text-image network guesses classes from their names, and the progress of the guess.

Settings: `name_texts`, texts of a class in place of its name, synonyms and description; `name_templates`, the sentences
that texts are inserted in; `names_off`; `guessed_from_names`, the inputs of the newest guess. The guess itself is a
prediction source called NAMES (prediction_sources.py), so that it is weighted, logged and shown like any other source.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, cast

from annotator.errors import several
from annotator.records import Class
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.networks import configuration
from annotator.store.runs.prediction_sources import NAMES, NAMES_OFF, remove, sources
from models.backbones.curated import reads_text
from models.zero_shot.prompts import NOTHING, SLOT, TEMPLATES, names_of, prompts

TEXTS, TEMPLATES_OF, GUESSED = "name_texts", "name_templates", "guessed_from_names"
LONGEST = 200  # letters of a text; networks read some 60 words at most
MOST_TEXTS, MOST_TEMPLATES = 30, 100  # texts of a class, templates of a project


@dataclass(frozen=True)
class Wording:
    """The inputs of a guess, besides the images.

    Attributes:
        network: The text-image network.
        prompts: The prompts of each class, in the order of `class_ids`.
    """

    network: str
    class_ids: tuple[int, ...]
    prompts: tuple[tuple[str, ...], ...]

    @cached_property
    def key(self) -> str:
        """Return a hash that is equal for equal network, classes and prompts."""
        everything = json.dumps([self.network, self.class_ids, self.prompts, NOTHING])
        return hashlib.sha256(everything.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class Guessed:
    """The newest guess.

    Attributes:
        wording: Key of its Wording.
        images: Number of images guessed.
        patches: Number of images whose patches were compared, too.
        at: Unix seconds.
        error: Why no guess could be made; "" when one was made.
    """

    wording: str = ""
    images: int = 0
    patches: int = 0
    at: float = 0.0
    error: str = ""


def is_on(db: Database) -> bool:
    """Return whether guessing from names is switched on; it also needs a network that reads texts."""
    return not db.setting(NAMES_OFF, False)


def set_enabled(db: Database, on: bool) -> None:
    """Switch guessing from names on or off, and forget the newest guess; the worker makes the next one."""
    if not on and has_source(db):
        remove(db, NAMES)
    with db.writing():
        db.set_setting(NAMES_OFF, not on)
        db.set_setting(GUESSED, {})


def texts(db: Database) -> dict[int, tuple[str, ...]]:
    """Return the texts that people chose for classes: class id -> texts; classes with the usual texts are left out."""
    stored = db.setting(TEXTS, {})
    if not isinstance(stored, dict):
        return {}
    of_all = cast(dict[str, Any], stored)
    return {int(id_): kept for id_, of_class in of_all.items() if id_.isdigit() and (kept := _strings(of_class))}


def usual_texts(class_: Class) -> tuple[str, ...]:
    """Return the texts of a class for which nobody has chosen any."""
    return names_of(class_.name, class_.synonyms, class_.description)


def templates(db: Database) -> tuple[str, ...]:
    """Return the sentences that the texts of classes are inserted in."""
    return tuple(text for text in _strings(db.setting(TEMPLATES_OF, [])) if SLOT in text) or TEMPLATES


def choose_texts(db: Database, changes: Mapping[int, Sequence[str]]) -> None:
    """Set the texts of classes (class id -> texts); no texts restore the usual ones.

    Raises:
        AnnotatorError: Texts cannot be used; names all of them, and nothing is changed.
    """
    known = {class_.id: class_ for class_ in classes.all_classes(db)}
    wrong = [f"there is no class {class_id}" for class_id in changes if class_id not in known]
    cleaned = {class_id: _cleaned(some) for class_id, some in changes.items() if class_id in known}
    for class_id, some in cleaned.items():
        name = known[class_id].name
        if len(some) > MOST_TEXTS:
            wrong.append(f"{name!r} has {len(some)} texts; at most {MOST_TEXTS} are allowed")
        wrong += [f"{name!r}: {reason}" for text in some if (reason := _unusable(text))]
    if wrong:
        raise several("These texts cannot be used, and nothing was changed:", wrong)
    with db.writing():
        kept = texts(db) | cleaned
        chosen = {id_: some for id_, some in kept.items() if some and id_ in known and some != usual_texts(known[id_])}
        db.set_setting(TEXTS, {str(id_): list(some) for id_, some in chosen.items()})


def choose_templates(db: Database, some: Sequence[str]) -> None:
    """Set the sentences that texts are inserted in; an empty list restores the usual ones.

    Raises:
        AnnotatorError: Templates cannot be used; names all of them, and nothing is changed.
    """
    cleaned = _cleaned(some)
    wrong = [f"{text[:60]!r} has no {SLOT}, where the name of a class goes" for text in cleaned if SLOT not in text]
    wrong += [reason for text in cleaned if (reason := _unusable(text))]
    if len(cleaned) > MOST_TEMPLATES:
        wrong.append(f"there are {len(cleaned)}; at most {MOST_TEMPLATES} are allowed")
    if wrong:
        raise several("These templates cannot be used, and nothing was changed:", wrong)
    db.set_setting(TEMPLATES_OF, [] if cleaned == TEMPLATES else list(cleaned))


def network(db: Database) -> str:
    """Return the network in use if it reads texts, else ""."""
    name = configuration.backbone(db)
    return name if reads_text(name) else ""


def wording(db: Database) -> Wording | None:
    """Return the inputs of a guess that would begin now.

    None where no guess is possible: switched off, a network that reads no texts, or no classes.
    """
    name = network(db)
    if not name or not is_on(db):
        return None
    known, chosen, around = classes.all_classes(db), texts(db), templates(db)
    if not known:
        return None
    of_classes = tuple(tuple(prompts(chosen.get(one.id) or usual_texts(one), around)) for one in known)
    return Wording(name, tuple(one.id for one in known), of_classes)


def guessed(db: Database) -> Guessed:
    """Return the newest guess; an empty Guessed without one."""
    stored = cast(dict[str, Any], db.setting(GUESSED, {}))
    try:
        return Guessed(**{field.name: stored[field.name] for field in fields(Guessed)})
    except (KeyError, TypeError):
        return Guessed()


def note(db: Database, one: Guessed) -> None:
    """Store the newest guess."""
    db.set_setting(GUESSED, asdict(one))


def has_source(db: Database) -> bool:
    """Return whether trainings have a guess from names as a prediction source."""
    return any(source.name == NAMES for source in sources(db))


def state_in_words(db: Database) -> str:
    """Return a sentence or two on whether and how classes are guessed from their names."""
    name, newest = network(db), guessed(db)
    if not is_on(db):
        return "Switched off: nothing is guessed from names."
    if not name:
        before = [source.annotator for source in sources(db) if source.name == NAMES]
        return (
            f"{configuration.backbone(db)} knows no texts, so nothing is guessed from names. "
            "Networks that do begin with open_clip: (annotator backbones lists some)."
            + "".join(f" What {other} guessed before stays in use." for other in before)
        )
    if newest.error:
        return f"Nothing is guessed from names: {newest.error}"
    current = wording(db)
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


def _strings(stored: Any) -> tuple[str, ...]:
    if not isinstance(stored, list):
        return ()
    return tuple(text for text in cast(list[Any], stored) if isinstance(text, str) and text.strip())


def _cleaned(some: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.strip() for text in some if text.strip()))


def _unusable(text: str) -> str:
    if len(text) > LONGEST:
        return f"{text[:40]!r}... has {len(text):,} letters; at most {LONGEST} are allowed"
    return "" if text.isprintable() else f"{text[:60]!r} holds a letter that cannot be printed"
