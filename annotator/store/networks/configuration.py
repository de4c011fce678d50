"""The project's configuration for training: the network whose features are used, the method, and its parameters."""

import math
from collections.abc import Sequence
from typing import Any, cast

from annotator.errors import AnnotatorError, did_you_mean, several
from annotator.settings import DEFAULT_BACKBONE, DEFAULT_METHOD
from annotator.store.database.database import Database
from annotator.store.networks.adapted import NEXT
from annotator.store.runs.prediction_sources import NAMES, NAMES_OFF, sources
from models import catalogue
from models.backbones.curated import reads_text
from models.catalogue import NEEDS

OWN = "None"  # the beginning of `paper` of methods without one
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def method(db: Database) -> str:
    """Return the method of the next run; the default where the setting names an unknown one."""
    name = db.setting("method", DEFAULT_METHOD)
    return name if _is_known(name) else DEFAULT_METHOD


def parameters(db: Database) -> dict[str, Any]:
    """Return the parameters that differ from the method's defaults, without unknown ones and values of another type."""
    stored = _parameters_setting(db)
    kinds = {parameter.name: parameter.kinds for parameter in about(method(db)).parameters}
    if not _is_known(db.setting("method", DEFAULT_METHOD)):
        return {}
    return {key: value for key, value in stored.items() if key in kinds and _is_of(value, kinds[key])}


def _parameters_setting(db: Database) -> dict[str, Any]:
    """Return the setting as it is stored; {} where it is no JSON object."""
    stored = db.setting("parameters", {})
    return cast(dict[str, Any], stored) if isinstance(stored, dict) else {}


def backbone(db: Database) -> str:
    """Return the network whose features are cached and learned from."""
    name = db.setting("backbone", DEFAULT_BACKBONE)
    return name if isinstance(name, str) and name else DEFAULT_BACKBONE


def ignored(db: Database) -> list[str]:
    """Return one sentence for each setting that cannot be followed."""
    sentences: list[str] = []
    for key, used in (("method", method(db)), ("backbone", backbone(db))):
        if db.setting(key, used) != used:
            sentences.append(f"{key} {db.setting(key)!r}: there is none of that name, so {used!r} is used")
    stored, used = db.setting("parameters", {}), parameters(db)
    if stored != used:
        ignored_ = {key: value for key, value in _parameters_setting(db).items() if key not in used}
        ignored_ = ignored_ if isinstance(stored, dict) else stored
        sentences.append(f"parameters {ignored_!r}: method {method(db)!r} does not take them, so its defaults are used")
    return sentences


def about(name: str) -> catalogue.Entry:
    """Return the catalogue's entry of a method. Raises AnnotatorError for an unknown one, listing the known ones."""
    known = catalogue.methods()
    if name not in known:
        raise AnnotatorError(f"No method is called {name!r}. {did_you_mean(name, known, shown=len(known))}")
    return known[name]


def source(name: str) -> str:
    """Return the origin of a method, for people: its paper, or the paper that this project's own method is built on."""
    known = catalogue.methods()
    entry = known[name]
    if not entry.paper.startswith(OWN):
        return f"{entry.paper} {entry.year}"
    roots = [other for other in known.values() if other.url == entry.url and not other.paper.startswith(OWN)]
    built_on = f", built on {roots[0].name}: {roots[0].paper} {roots[0].year}" if roots else ""
    return f"This project's own ({entry.year}){built_on}"


def refuse_unmet(name: str, db: Database | None = None, network: str | None = None) -> None:
    """Raise AnnotatorError for a method that needs scores of class names, where a project cannot have them.

    The message says how to get them.

    Args:
        name: The name of the method.
        db: The project; None: a new one.
        network: The one that is chosen together with the method; None: that of the project, or the default.
    """
    if "text" not in about(name).needs:
        return
    if db is not None and any(source.name == NAMES for source in sources(db)):
        return
    network = network or (backbone(db) if db is not None else DEFAULT_BACKBONE)
    if not reads_text(network):
        raise AnnotatorError(
            f"Method {name!r} needs {NEEDS['text']}, and this project has none: {network} knows no texts.\n"
            "    Choose a network that does, such as open_clip:PE-Core-T-16-384/meta (annotator backbones lists them; "
            "annotator backbone PROJECT NAME, or Settings), or another method."
        )
    if db is not None and db.setting(NAMES_OFF, False):
        raise AnnotatorError(
            f"Method {name!r} needs {NEEDS['text']}, and guessing from names is switched off in this project.\n"
            "    Switch it on (annotator names PROJECT --on, or Class names on Settings), or choose another method."
        )


def choose_method(db: Database, name: str, changed: dict[str, Any] | None = None) -> None:
    """Set the method from the next run on.

    Args:
        db: The project's database.
        name: The name of the method.
        changed: Parameters that differ from the method's defaults; all others are reset to them.

    Raises:
        AnnotatorError: For an unknown method, listing the known ones, and as refuse_unmet does.
    """
    refuse_unmet(name, db)
    # In this order a run that begins in between never gives one method the parameters of another.
    db.set_setting("parameters", {})
    db.set_setting("method", name)
    db.set_setting("parameters", changed or {})


def choose_backbone(db: Database, name: str) -> None:
    """Set the network from now on; its missing features are computed. A network in preparation is dropped."""
    with db.writing():
        db.set_setting("backbone", name)
        db.set_setting(NEXT, "")


def read_parameters(name: str, words: Sequence[str]) -> dict[str, Any]:
    """Parse `--set key=value` for a method; the last value of a repeated key counts.

    Returns:
        The named parameters, each of the type that the method's signature declares.

    Raises:
        AnnotatorError: With all problems, and the method's parameters with their defaults.
    """
    known = {parameter.name: parameter for parameter in about(name).parameters}
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for word in words:
        key, equals, text = word.partition("=")
        key, text = key.strip(), text.strip()
        if not equals:
            wrong.append(f"{word!r} is not of the form key=value")
        elif key not in known:
            wrong.append(f"no parameter is called {key!r}. {did_you_mean(key, known, shown=len(known))}")
        else:
            try:
                values[key] = _read(text, known[key].kinds)
            except ValueError:
                kinds = " or ".join(KINDS.get(kind, kind) for kind in known[key].kinds)
                wrong.append(f"{key} = {text!r} must be {kinds}")
    if wrong:
        raise _refused(name, wrong)
    return values


def refused(name: str, reason: str) -> AnnotatorError:
    """Return the error for values that the method itself rejects, with its parameters and their defaults."""
    return _refused(name, [reason])


def _refused(name: str, wrong: Sequence[str]) -> AnnotatorError:
    problems = several(f"Method {name!r} cannot be trained like this, and nothing was changed:", wrong)
    listed = ", ".join(f"{key}={shown(value)}" for key, value in about(name).defaults.items()) or "none"
    return AnnotatorError(f"{problems}\nIts parameters and their defaults: {listed}")


def shown(value: Any) -> str:
    """Return a parameter's value in the form that --set takes."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _is_known(name: Any) -> bool:
    return isinstance(name, str) and name in catalogue.methods()


def _is_of(value: Any, kinds: Sequence[str]) -> bool:
    kind = "None" if value is None else type(value).__name__
    known = kind in kinds or (kind == "int" and "float" in kinds)
    return known and not (isinstance(value, float) and not math.isfinite(value))


KINDS = {
    "float": "a number",
    "int": "a whole number",
    "bool": "true or false",
    "str": "a word",
    "None": "none",
}


def _read(text: str, kinds: Sequence[str]) -> Any:
    """Return the text as the first of these kinds that it fits. Raises ValueError if it fits none of them."""
    if "None" in kinds and text.lower() == "none":
        return None
    if "bool" in kinds and text.lower() in TRUE + FALSE:
        return text.lower() in TRUE
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
