"""Short forms of tests with many parameters: `make test` runs the first few, `make test-all` all of them."""

from collections.abc import Iterable
from typing import Any

import pytest

ParameterSet = type(pytest.param(None))  # pytest has no public name for it


def mark_slow_after(count: int, values: Iterable[Any], unpack: bool = True) -> list[Any]:
    """Return the parameters of a test, of which those after the first `count` are marked slow.

    Args:
        unpack: A tuple has the values of several parameters.
    """
    sets = [_make_set(value, unpack) for value in values]
    return [
        *sets[:count],
        *(pytest.param(*one.values, marks=[*one.marks, pytest.mark.slow], id=one.id) for one in sets[count:]),
    ]


def _make_set(value: Any, unpack: bool) -> Any:
    if isinstance(value, ParameterSet):
        return value
    return pytest.param(*value) if unpack and isinstance(value, tuple) else pytest.param(value)
