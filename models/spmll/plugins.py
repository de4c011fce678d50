"""Plug-ins: objects that installed packages add by entry points, declared in pyproject.toml.

    [project.entry-points."annotator.formats"]
    tag-list = "annotator_example.tag_list:TAG_LIST"

They run with the program's rights. Unusable ones are skipped with a warning. Packages are read once per process.
"""

import re
import warnings
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from spmll.notice import Notice

_NAME_PATTERN = re.compile(r"[A-Za-z0-9][\w.-]{0,60}", re.ASCII)


class PluginWarning(Notice):
    """A warning that a plug-in is skipped."""


@cache
def find_plugins(group: str, reserved_names: Iterable[str]) -> dict[str, EntryPoint]:
    """Return the entry points of a plug-in group by name, not loaded.

    Taken, ambiguous or invalid names give a PluginWarning.

    Args:
        reserved_names: Names that plug-ins cannot take, as a frozenset or tuple.
    """
    taken, wanted = set(reserved_names), defaultdict[str, list[EntryPoint]](list)
    for entry in entry_points(group=group):
        wanted[entry.name].append(entry)
    found: dict[str, EntryPoint] = {}
    for name, entries in sorted(wanted.items()):
        packages = " and ".join(sorted({describe_package(entry) for entry in entries}))
        if name in taken:
            warn_left_out(f"{group}: {packages} cannot add {name!r}: there is one of that name already, and it stays.")
        elif len({entry.value for entry in entries}) > 1:
            warn_left_out(f"{group}: {packages} both add {name!r}. None of them is used; uninstall one.")
        elif not _NAME_PATTERN.fullmatch(name):
            warn_left_out(f"{group}: {packages} cannot add {name!r}: a name is letters, digits, '.', '_' and '-'.")
        else:
            found[name] = entries[0]
    return found


def load_plugin(entry: EntryPoint, kind: type | None = None) -> Any:
    """Load an entry point (`kind`: required type), or return None with a PluginWarning."""
    try:
        thing = entry.load()
    except Exception as error:  # whatever the plug-in's own code raises
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        warn_left_out(
            f"{entry.group}: {entry.name!r} of {describe_package(entry)} cannot be loaded and is left out: {reason}"
        )
        return None
    if kind is not None and not isinstance(thing, kind):
        named = f"{kind.__module__}.{kind.__qualname__}"
        warn_left_out(
            f"{entry.group}: {entry.name!r} of {describe_package(entry)} is left out: {entry.value} is no {named}."
        )
        return None
    return thing


def describe_package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.module


def warn_left_out(sentence: str) -> None:
    warnings.warn(sentence, PluginWarning, stacklevel=3)
