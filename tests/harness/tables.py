"""Table tests: one test that runs over all rows of a table, and names every row that fails.

As parameters, a thousand rows would be a thousand items to collect, name and report; a row takes a millisecond to run.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from itertools import product

import pytest

SHOWN = 10  # failures that are described; the rest are counted


def over(**tables: Iterable) -> Callable:
    """A test of these arguments as one test: it runs for every combination of their values.

    A key such as `name__constants` gives several arguments from each row, a sequence. What else the test asks for are
    fixtures, made once for all rows. Raises AssertionError that names the rows that failed, with the first one's cause.
    """
    arguments = [tuple(key.split("__")) for key in tables]
    rows = list(product(*(list(values) for values in tables.values())))
    assert rows, f"the table of {', '.join(tables)} is empty: this test could not fail"

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def of_all_rows(**fixtures):
            failed, first = [], None
            for row in rows:
                given: dict = {}
                for names, value in zip(arguments, row, strict=True):
                    given |= dict(zip(names, value if len(names) > 1 else (value,), strict=True))
                try:
                    test(**fixtures, **given)
                except (Exception, pytest.fail.Exception) as error:
                    first = first or error
                    failed.append(f"{_described(given)}: {type(error).__name__}: {str(error).splitlines()[:1]}")
            if failed:
                more = [f"and {len(failed) - SHOWN} more"] if len(failed) > SHOWN else []
                listed = "\n  ".join([*failed[:SHOWN], *more])
                raise AssertionError(f"{len(failed)} of {len(rows)} rows fail:\n  {listed}") from first

        asked = inspect.signature(test)
        taken = {name for names in arguments for name in names}
        assert taken <= set(asked.parameters), f"{test.__name__} does not take {taken - set(asked.parameters)}"
        kept = [parameter for name, parameter in asked.parameters.items() if name not in taken]
        of_all_rows.__signature__ = asked.replace(parameters=kept)  # what pytest takes for fixtures
        return of_all_rows

    return decorate


def _described(given: dict) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in given.items())


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
