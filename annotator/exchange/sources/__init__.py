"""The table of sources, SOURCES: one file and one line for each kind of file that images come out of.

Files that are unpacked or downloaded land in <project>/imported/<name>/ (landing.py), within the limits of bombs.py.
Addresses are read by urls.py; the rules for them are in store/locations/. Begin with source.py.
"""

from dataclasses import replace
from pathlib import Path

from annotator.exchange.sources.path_list import PATHS
from annotator.exchange.sources.path_list import fetch as fetch_paths
from annotator.exchange.sources.source import Fetched, Progress, Source
from annotator.exchange.sources.tables import TABLES
from annotator.exchange.sources.tar_archive import TAR
from annotator.exchange.sources.urls import fetch as fetch_address
from annotator.exchange.sources.zip_archive import ZIP
from annotator.store.locations.addresses import Address

SOURCES: dict[str, Source] = {source.name: source for source in (ZIP, TAR, TABLES, PATHS)}
"""Name -> the source, in the order in which they are tried."""


def source_of(path: Path) -> Source | None:
    """Return the Source that handles a path; None for a folder or label file."""
    return next((source for source in SOURCES.values() if source.recognise(path)), None)


def fetch(
    named: Address | Path, project: Path, progress: Progress | None = None, may_be_own: bool = True
) -> Fetched | None:
    """Make files of the source that a person names; repeating it fetches files that are new or have changed.

    An archive that was downloaded is unpacked.

    Args:
        named: The path or address that the person gave.
        project: The project folder.
        progress: Called during long steps; an exception that it raises ends the work. None: nobody is told.
        may_be_own: The person is this machine's own user: an address may be one of the machine or its network, and a
            list may name hidden files.

    Returns:
        The files; None for a local folder or label file, which needs no fetching.

    Raises:
        AnnotatorError: The source cannot be fetched; the message lists all problems.
    """
    if isinstance(named, Path):
        source = source_of(named)
        if source is PATHS:
            return fetch_paths(named, project, progress, may_be_hidden=may_be_own)
        return source.fetch(named, project, progress) if source else None
    found = fetch_address(named, project, progress, may_be_own)
    folder = found.folders[0][0]
    only = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    inside = only[0] if len(only) == 1 and only[0].is_file() else folder
    further = source_of(inside)
    if further is None or further is PATHS:  # paths of another machine
        return found
    unpacked = further.fetch(inside, project, progress)
    return replace(unpacked, said=[*found.said, *unpacked.said], places=[*found.places, *unpacked.places])
