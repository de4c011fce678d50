"""The project's training configuration: backbone, method and its parameters."""

import math
from collections.abc import Sequence
from typing import Any, cast

from annotator.errors import AnnotatorError, combine_problems, did_you_mean
from annotator.settings import DEFAULT_BACKBONE, DEFAULT_METHOD
from annotator.store.database.database import Database
from annotator.store.networks.adapted_networks import NEXT_BACKBONE_SETTING
from annotator.store.runs.prediction_sources import CLASS_NAMES_SOURCE, NAMES_OFF_SETTING, load_sources
from spmll import catalog
from spmll.backbones.curated import reads_text
from spmll.catalog import METHOD_NEEDS

OWN_METHOD_PREFIX = "None"  # the beginning of `paper` of methods without one
TRUE_WORDS, FALSE_WORDS = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def get_method(db: Database) -> str:
    """Return the next training's method."""
    name = db.get_setting("method", DEFAULT_METHOD)
    return name if _is_known(name) else DEFAULT_METHOD


def get_parameters(db: Database) -> dict[str, Any]:
    """Return the valid non-default method parameters."""
    stored = _get_parameters_setting(db)
    kinds = {parameter.name: parameter.type_names for parameter in get_method_entry(get_method(db)).parameters}
    if not _is_known(db.get_setting("method", DEFAULT_METHOD)):
        return {}
    return {key: value for key, value in stored.items() if key in kinds and _has_kind(value, kinds[key])}


def _get_parameters_setting(db: Database) -> dict[str, Any]:
    stored = db.get_setting("parameters", {})
    return cast(dict[str, Any], stored) if isinstance(stored, dict) else {}


def get_backbone(db: Database) -> str:
    name = db.get_setting("backbone", DEFAULT_BACKBONE)
    return name if isinstance(name, str) and name else DEFAULT_BACKBONE


def describe_ignored_settings(db: Database) -> list[str]:
    """Return a sentence per invalid setting."""
    sentences: list[str] = []
    for key, used in (("method", get_method(db)), ("backbone", get_backbone(db))):
        if db.get_setting(key, used) != used:
            sentences.append(f"{key} {db.get_setting(key)!r}: there is none of that name, so {used!r} is used")
    stored, used = db.get_setting("parameters", {}), get_parameters(db)
    if stored != used:
        ignored_ = {key: value for key, value in _get_parameters_setting(db).items() if key not in used}
        ignored_ = ignored_ if isinstance(stored, dict) else stored
        sentences.append(
            f"parameters {ignored_!r}: method {get_method(db)!r} does not take them, so its defaults are used"
        )
    return sentences


def get_method_entry(name: str) -> catalog.MethodEntry:
    """Return a method's catalog entry. Raises AnnotatorError if unknown."""
    known = catalog.load_methods()
    if name not in known:
        raise AnnotatorError(f"No method is called {name!r}. {did_you_mean(name, known, max_listed=len(known))}")
    return known[name]


def describe_method_source(name: str) -> str:
    """Return a method's paper, or the paper that this project's own method builds on."""
    known = catalog.load_methods()
    entry = known[name]
    if not entry.paper.startswith(OWN_METHOD_PREFIX):
        return f"{entry.paper} {entry.year}"
    roots = [
        other for other in known.values() if other.url == entry.url and not other.paper.startswith(OWN_METHOD_PREFIX)
    ]
    built_on = f", built on {roots[0].name}: {roots[0].paper} {roots[0].year}" if roots else ""
    return f"This project's own ({entry.year}){built_on}"


def check_method_needs(name: str, db: Database | None = None, network: str | None = None) -> None:
    """Raise AnnotatorError with advice if a method needs unavailable class name scores.

    Args:
        db: None for a new project.
        network: Backbone chosen with the method, None for the current one.
    """
    if "text" not in get_method_entry(name).needs:
        return
    if db is not None and any(source.name == CLASS_NAMES_SOURCE for source in load_sources(db)):
        return
    network = network or (get_backbone(db) if db is not None else DEFAULT_BACKBONE)
    if not reads_text(network):
        raise AnnotatorError(
            f"Method {name!r} needs {METHOD_NEEDS['text']}, and this project has none: {network} knows no texts.\n"
            "    Choose a network that does, such as open_clip:PE-Core-T-16-384/meta (annotator backbones lists them; "
            "annotator backbone PROJECT NAME, or Settings), or another method."
        )
    if db is not None and db.get_setting(NAMES_OFF_SETTING, False):
        raise AnnotatorError(
            f"Method {name!r} needs {METHOD_NEEDS['text']}, and guessing from names is switched off in this project.\n"
            "    Switch it on (annotator names PROJECT --on, or Class names on Settings), or choose another method."
        )


def set_method(db: Database, name: str, changed: dict[str, Any] | None = None) -> None:
    """Set the method from the next training on.

    Args:
        changed: Non-default parameters. All others are reset.

    Raises:
        AnnotatorError: The method is unknown or unusable.
    """
    check_method_needs(name, db)
    # In this order a run that begins in between never gives one method the parameters of another.
    db.set_setting("parameters", {})
    db.set_setting("method", name)
    db.set_setting("parameters", changed or {})


def set_backbone(db: Database, name: str) -> None:
    """Set the backbone and cancel one in preparation."""
    with db.writing():
        db.set_setting("backbone", name)
        db.set_setting(NEXT_BACKBONE_SETTING, "")


def parse_parameters(name: str, words: Sequence[str]) -> dict[str, Any]:
    """Parse `--set key=value` into a method's types. Raises AnnotatorError listing all problems and parameters."""
    known = {parameter.name: parameter for parameter in get_method_entry(name).parameters}
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for word in words:
        key, equals, text = word.partition("=")
        key, text = key.strip(), text.strip()
        if not equals:
            wrong.append(f"{word!r} is not of the form key=value")
        elif key not in known:
            wrong.append(f"no parameter is called {key!r}. {did_you_mean(key, known, max_listed=len(known))}")
        else:
            try:
                values[key] = _parse_value(text, known[key].type_names)
            except ValueError:
                kinds = " or ".join(KIND_DESCRIPTIONS.get(kind, kind) for kind in known[key].type_names)
                wrong.append(f"{key} = {text!r} must be {kinds}")
    if wrong:
        raise _build_parameter_error(name, wrong)
    return values


def build_parameter_error(name: str, reason: str) -> AnnotatorError:
    """Return the error to raise for parameter values that a method rejected for this reason."""
    return _build_parameter_error(name, [reason])


def _build_parameter_error(name: str, wrong: Sequence[str]) -> AnnotatorError:
    problems = combine_problems(f"Method {name!r} cannot be trained like this, and nothing was changed:", wrong)
    listed = (
        ", ".join(f"{key}={format_value(value)}" for key, value in get_method_entry(name).defaults.items()) or "none"
    )
    return AnnotatorError(f"{problems}\nIts parameters and their defaults: {listed}")


def format_value(value: Any) -> str:
    """Format a parameter value as it is typed after --set."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _is_known(name: Any) -> bool:
    return isinstance(name, str) and name in catalog.load_methods()


def _has_kind(value: Any, kinds: Sequence[str]) -> bool:
    kind = "None" if value is None else type(value).__name__
    known = kind in kinds or (kind == "int" and "float" in kinds)
    return known and not (isinstance(value, float) and not math.isfinite(value))


KIND_DESCRIPTIONS = {
    "float": "a number",
    "int": "a whole number",
    "bool": "true or false",
    "str": "a word",
    "None": "none",
}


def _parse_value(text: str, kinds: Sequence[str]) -> Any:
    if "None" in kinds and text.lower() == "none":
        return None
    if "bool" in kinds and text.lower() in TRUE_WORDS + FALSE_WORDS:
        return text.lower() in TRUE_WORDS
    for kind, parse in (("int", int), ("float", float)):
        if kind not in kinds:
            continue
        try:
            number = parse(text)
        except ValueError:
            continue
        if math.isfinite(number):
            return number
    if "str" in kinds and text:
        return text
    raise ValueError(text)
