"""How this project is trained: the network whose features are used, the method on top of them, and its parameters."""

import math
from collections.abc import Sequence
from typing import Any

from annotator.errors import AnnotatorError, did_you_mean, several
from annotator.settings import DEFAULT_BACKBONE, DEFAULT_METHOD
from annotator.store.database import Database
from models import catalogue

OWN = "None"  # how `paper` begins where there is none
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def method(db: Database) -> str:
    """The method of the next run; the default where the setting names none there is."""
    name = db.setting("method", DEFAULT_METHOD)
    return name if _is_known(name) else DEFAULT_METHOD


def parameters(db: Database) -> dict[str, Any]:
    """The method's parameters that differ from its own defaults; none that it does not have or of another type."""
    kept = db.setting("parameters", {})
    kinds = {one.name: one.kinds for one in about(method(db)).parameters}
    if not isinstance(kept, dict) or not _is_known(db.setting("method", DEFAULT_METHOD)):
        return {}
    return {key: value for key, value in kept.items() if key in kinds and _is_of(value, kinds[key])}


def backbone(db: Database) -> str:
    """The network whose features are cached and learned from."""
    name = db.setting("backbone", DEFAULT_BACKBONE)
    return name if isinstance(name, str) and name else DEFAULT_BACKBONE


def ignored(db: Database) -> list[str]:
    """What the settings ask for and cannot have, one sentence each."""
    told = []
    for key, used in (("method", method(db)), ("backbone", backbone(db))):
        if db.setting(key, used) != used:
            told.append(f"{key} {db.setting(key)!r}: there is none of that name, so {used!r} is used")
    kept, used = db.setting("parameters", {}), parameters(db)
    if kept != used:
        dropped = {key: value for key, value in kept.items() if key not in used} if isinstance(kept, dict) else kept
        told.append(f"parameters {dropped!r}: method {method(db)!r} does not take them, so its defaults are used")
    return told


def about(name: str) -> catalogue.Entry:
    """What there is to know of a method. Raises AnnotatorError for one there is not, listing those there are."""
    known = catalogue.methods()
    if name not in known:
        raise AnnotatorError(f"No method is called {name!r}. {did_you_mean(name, known, shown=len(known))}")
    return known[name]


def source(name: str) -> str:
    """Where a method is from, for people: its paper, or for one of our own, what it was built on (the same address)."""
    known = catalogue.methods()
    one = known[name]
    if not one.paper.startswith(OWN):
        return f"{one.paper} {one.year}"
    roots = [other for other in known.values() if other.url == one.url and not other.paper.startswith(OWN)]
    built_on = f", built on {roots[0].name}: {roots[0].paper} {roots[0].year}" if roots else ""
    return f"This project's own ({one.year}){built_on}"


def choose_method(db: Database, name: str, changed: dict[str, Any] | None = None) -> None:
    """Use this method from the next run on.

    changed     parameters that shall differ from the method's defaults; all others take their default, whatever they
                were for this or another method before

    Raises AnnotatorError listing the methods there are.
    """
    about(name)
    # In this order, so that a run which begins in between never gives one method the parameters of another.
    db.set_setting("parameters", {})
    db.set_setting("method", name)
    db.set_setting("parameters", changed or {})


def choose_backbone(db: Database, name: str) -> None:
    """Use this network from now on; its features are computed where they are missing."""
    db.set_setting("backbone", name)


def read_parameters(name: str, words: Sequence[str]) -> dict[str, Any]:
    """What `--set key=value` means for a method; a key given twice takes its last value.

    returns     the named parameters, each of the type that the method's own signature says

    Raises AnnotatorError with everything that is wrong, and the parameters there are with their defaults.
    """
    known = {one.name: one for one in about(name).parameters}
    found, wrong = {}, []
    for word in words:
        key, equals, text = word.partition("=")
        key, text = key.strip(), text.strip()
        if not equals:
            wrong.append(f"{word!r} is not of the form key=value")
        elif key not in known:
            wrong.append(f"no parameter is called {key!r}. {did_you_mean(key, known, shown=len(known))}")
        else:
            try:
                found[key] = _read(text, known[key].kinds)
            except ValueError:
                kinds = " or ".join(KINDS.get(kind, kind) for kind in known[key].kinds)
                wrong.append(f"{key} = {text!r} must be {kinds}")
    if wrong:
        raise _refused(name, wrong)
    return found


def refused(name: str, reason: str) -> AnnotatorError:
    """The error for values that a method itself does not take, with the parameters there are."""
    return _refused(name, [reason])


def _refused(name: str, wrong: Sequence[str]) -> AnnotatorError:
    told = several(f"Method {name!r} cannot be trained like this, and nothing was changed:", wrong)
    listed = ", ".join(f"{key}={shown(value)}" for key, value in about(name).defaults.items()) or "none"
    return AnnotatorError(f"{told}\nIts parameters and their defaults: {listed}")


def shown(value: Any) -> str:
    """A parameter's value, as --set takes it."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _is_known(name: Any) -> bool:
    return isinstance(name, str) and name in catalogue.methods()


def _is_of(value: Any, kinds: Sequence[str]) -> bool:
    kind = "None" if value is None else type(value).__name__
    return (kind in kinds or (kind == "int" and "float" in kinds)) and (kind != "float" or math.isfinite(value))


KINDS = {
    "float": "a number",
    "int": "a whole number",
    "bool": "true or false",
    "str": "a word",
    "None": "none",
}


def _read(text: str, kinds: Sequence[str]) -> Any:
    """The first of these kinds that the text can be. Raises ValueError if it can be none of them."""
    if "None" in kinds and text.lower() == "none":
        return None
    if "bool" in kinds and text.lower() in TRUE + FALSE:
        return text.lower() in TRUE
    for kind in (one for one in ("int", "float") if one in kinds):
        try:
            number = {"int": int, "float": float}[kind](text)
        except ValueError:
            continue
        if math.isfinite(number):
            return number
    if "str" in kinds and text:
        return text
    raise ValueError(text)
