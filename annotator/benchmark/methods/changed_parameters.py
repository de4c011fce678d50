"""Changed constants of methods in a comparison, from `--set NAME.PARAMETER=VALUE`."""

from collections.abc import Collection, Sequence
from typing import Any

from annotator.errors import AnnotatorError, combine_problems, did_you_mean
from annotator.store.networks.configuration import parse_parameters
from spmll.methods import METHODS, make_method


def parse_changes(words: Sequence[str], method_names: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the changed constants by method, the last one if repeated. Raises AnnotatorError for invalid words."""
    of_method: dict[str, list[str]] = {}
    wrong: list[str] = []
    for word in words:
        left, equals, value = word.partition("=")
        name, dot, parameter = left.strip().partition(".")
        if not (equals and dot):
            wrong.append(f"{word!r} is not of the form NAME.PARAMETER=VALUE, such as gr.q3=1.5")
        elif name not in METHODS:
            wrong.append(f"no method is called {name!r}. {did_you_mean(name, METHODS, 99)}")
        elif name not in method_names:
            wrong.append(f"{word!r} changes {name}, which does not take part: name it with --methods")
        else:
            of_method.setdefault(name, []).append(f"{parameter}={value}")
    changed = {}
    for name, settings in of_method.items():
        try:
            changed[name] = parse_parameters(name, settings)
            make_method(name, **changed[name])
        except (AnnotatorError, ValueError) as error:
            wrong.append(str(error))
    if wrong:
        raise combine_problems("--set cannot be used like this:", wrong)
    return changed
