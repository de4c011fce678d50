"""The methods by name. The table is the registry: a new method is one file and one entry here."""

import inspect
from typing import Any

from models.losses.base import no_such
from models.methods.an import AN
from models.methods.base import Method
from models.methods.em_apl import EMAPL
from models.methods.gr import GR

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        AN,
        EMAPL,
        GR,
    )
}

DEFAULT_METHOD = "gr"


def make_method(name: str = DEFAULT_METHOD, **parameters: Any) -> Method:
    """A method by its name, with some of its parameters changed.

    Raises ValueError for a method or a parameter there is not, listing those there are.
    """
    if name not in METHODS:
        raise no_such("method", name, METHODS)
    known = defaults_of(name)
    for parameter in parameters:
        if parameter not in known:
            raise no_such(f"parameter of method {name!r}:", parameter, known)
    return METHODS[name](**parameters)


def defaults_of(name: str) -> dict[str, Any]:
    """The parameters of a method and their defaults. Raises ValueError for an unknown name."""
    if name not in METHODS:
        raise no_such("method", name, METHODS)
    return {argument.name: argument.default for argument in inspect.signature(METHODS[name]).parameters.values()}
