"""Pretrained networks by name, with their preprocessing. Weights are never random."""

import difflib
import warnings
from pathlib import Path

from spmll.backbones.joined_networks import NAME_SEPARATOR, join_networks
from spmll.backbones.packaged import PLUGIN_GROUP, find_plugin_backbones
from spmll.backbones.sources import SOURCES
from spmll.backbones.sources.network_source import Pretrained, describe_offline_choice
from spmll.backbones.sources.timm_models import LOCAL_DIR_PREFIX
from spmll.plugins import PluginWarning, describe_package

MAX_JOINED = 4


def load_pretrained(name: str) -> Pretrained:
    """Load a network with published weights, on the CPU, in eval mode.

    Args:
        name: Any source's name, or several joined by "+".

    Raises:
        ValueError: The name is unknown, or the weights are unavailable or changed.
    """
    parts = split_joined_name(name)
    if len(parts) == 1:
        return _load_one(parts[0])
    if len(parts) > MAX_JOINED or len(set(parts)) < len(parts):
        raise ValueError(f"{name!r} joins {len(parts)} networks; up to {MAX_JOINED} different ones can be joined.")
    return join_networks([_load_one(part) for part in parts])


def split_joined_name(name: str) -> list[str]:
    """Split a name at "+", except for the path of an existing folder."""
    _, is_folder, folder = name.partition(LOCAL_DIR_PREFIX)
    if is_folder and Path(folder).is_dir():
        return [name]
    return [part.strip() for part in name.split(NAME_SEPARATOR)]


def _load_one(name: str) -> Pretrained:
    for library, source in SOURCES.items():
        if source.knows(name):
            _warn_of_name_clash(name, library)
            return source.load(name)
    known = [known for source in SOURCES.values() for known in source.names()]
    near = list(dict.fromkeys(difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.8)))
    near += difflib.get_close_matches(name.split(".")[0].lower(), known, n=5, cutoff=0.6)
    near = list(dict.fromkeys(near))[:5]
    hint = f"Near it: {', '.join(near)}. " if near else ""
    raise ValueError(f"No backbone is called {name!r}. {hint}{describe_offline_choice()}")


def _warn_of_name_clash(name: str, library: str) -> None:
    if library in ("timm", "torchvision") and (entry := find_plugin_backbones().get(name)):
        message = (
            f"{PLUGIN_GROUP}: {describe_package(entry)} cannot add {name!r}: {library} has one of that name, which is "
            "used."
        )
        warnings.warn(message, PluginWarning, stacklevel=2)
