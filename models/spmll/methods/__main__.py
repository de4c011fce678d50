"""The command `python -m spmll.methods`, which writes table.json for code without torch."""

import inspect
import json
from types import NoneType
from typing import Any, get_args

from spmll.catalog import METHOD_NEEDS, REPRODUCTION_VERDICTS, TABLE_PATH
from spmll.losses.base import unknown_name_error
from spmll.methods import DEFAULT_METHOD, METHODS
from spmll.methods.base import Method

TABLE_FIELDS = (
    *("name", "title", "paper", "year", "url", "assumes", "reads", "full_labels", "yardstick"),
    *("needs", "reproduced", "open_points"),
)
PARAMETER_TYPES = (float, int, bool, str, NoneType)


def format_table() -> str:
    """Return the text of table.json. Raises ValueError for an invalid parameter, `needs` or `reproduced`."""
    for method in METHODS.values():
        _check_method(method)
    methods = [
        {key: getattr(method, key) for key in TABLE_FIELDS} | {"parameters": _describe_parameters(method)}
        for method in METHODS.values()
    ]
    lines = ",\n".join(json.dumps(method, ensure_ascii=False) for method in methods)  # a line each: diffs can be read
    return f'{{"default": {json.dumps(DEFAULT_METHOD)}, "methods": [\n{lines}\n]}}\n'


def _check_method(method: type[Method]) -> None:
    for need in method.needs:
        if need not in METHOD_NEEDS:
            raise unknown_name_error(f"need (method {method.name!r}):", need, METHOD_NEEDS)
    verdict, colon, reason = method.reproduced.partition(": ")
    if verdict not in REPRODUCTION_VERDICTS or not colon or not reason:
        raise ValueError(
            f"Method {method.name!r}: reproduced = {method.reproduced!r} must be one of "
            f"{', '.join(REPRODUCTION_VERDICTS)}, then a colon and why or how."
        )


def _describe_parameters(method: type[Method]) -> list[dict[str, Any]]:
    parameters = []
    for name, parameter in inspect.signature(method).parameters.items():
        kinds = get_args(parameter.annotation) or (parameter.annotation,)
        if parameter.default is parameter.empty or not set(kinds) <= set(PARAMETER_TYPES):
            raise ValueError(
                f"Method {method.name!r}: parameter {parameter} must have a default and a plain type: "
                f"{', '.join(kind.__name__ for kind in PARAMETER_TYPES)}, or several of them joined by |."
            )
        names = ["None" if kind is NoneType else kind.__name__ for kind in kinds]
        parameters.append({"name": name, "default": parameter.default, "kinds": names})
    return parameters


if __name__ == "__main__":
    TABLE_PATH.write_text(format_table(), encoding="utf-8")
