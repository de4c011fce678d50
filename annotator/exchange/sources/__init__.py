"""The table of sources, SOURCES: one file and one line for each place that images come from when it is no folder.

Files that are unpacked or downloaded land in <project>/imported/<name>/ (landing.py), within the limits of bombs.py.
The rules for addresses are in store/locations/. Begin with source.py.
"""

from dataclasses import replace
from pathlib import Path

from annotator.exchange.sources.path_list import PATHS
from annotator.exchange.sources.path_list import fetch as fetch_paths
from annotator.exchange.sources.source import Fetched, Progress, Source
from annotator.exchange.sources.tables import TABLES
from annotator.exchange.sources.tar_archive import TAR
from annotator.exchange.sources.urls import URLS
from annotator.exchange.sources.urls import fetch as fetch_address
from annotator.exchange.sources.zip_archive import ZIP

SOURCES: dict[str, Source] = {source.name: source for source in (URLS, ZIP, TAR, TABLES, PATHS)}
"""Name -> the source, in the order in which they are tried."""


def source_of(named: str) -> Source | None:
    """Return the Source that handles `named`; None for a local folder or label file."""
    return next((source for source in SOURCES.values() if source.recognise(named)), None)


def fetch(named: str, project: Path, progress: Progress | None = None, may_be_own: bool = True) -> Fetched | None:
    """Make files of the source that a person names; repeating it fetches files that are new or have changed.

    An archive that was downloaded is unpacked.

    Args:
        named: A path or an address, as the person wrote it.
        project: The project folder.
        progress: Called during long steps; an exception that it raises ends the work. None: nobody is told.
        may_be_own: The person is this machine's own user: an address may be one of the machine or its network, and a
            list may name hidden files.

    Returns:
        The files; None for a local folder or label file, which needs no fetching.

    Raises:
        AnnotatorError: The source cannot be fetched; the message lists all problems.
    """
    source = source_of(named)
    if source is None:
        return None
    if source is PATHS:
        return fetch_paths(named, project, progress, may_be_hidden=may_be_own)
    if source is not URLS:
        return source.fetch(named, project, progress)
    found = fetch_address(named, project, progress, may_be_own)
    folder = found.folders[0][0]
    only = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    inside = only[0] if len(only) == 1 and only[0].is_file() else folder
    further = source_of(str(inside))
    if further is None or further is PATHS:  # paths of another machine
        return found
    unpacked = further.fetch(str(inside), project, progress)
    return replace(unpacked, said=[*found.said, *unpacked.said], places=[*found.places, *unpacked.places])
