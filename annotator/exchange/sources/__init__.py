"""The table of all kinds of image sources, SOURCES, with one file per kind. Start with source.py."""

from dataclasses import replace
from pathlib import Path

from annotator.exchange.sources.image_tables import TABLES
from annotator.exchange.sources.path_list import PATHS
from annotator.exchange.sources.path_list import fetch_paths as fetch_paths
from annotator.exchange.sources.source import FetchedFiles, Source
from annotator.exchange.sources.tar_archive import TAR
from annotator.exchange.sources.urls import fetch_address as fetch_address
from annotator.exchange.sources.zip_archive import ZIP
from annotator.progress_callbacks import StepCallback
from annotator.store.locations.addresses import Address

SOURCES: dict[str, Source] = {source.name: source for source in (ZIP, TAR, TABLES, PATHS)}
"""Name -> the source, in the order in which they are tried."""


def match_source(path: Path) -> Source | None:
    """Return the Source that recognizes a path, or None for folders and label files."""
    return next((source for source in SOURCES.values() if source.recognize(path)), None)


def fetch_source(
    target: Address | Path, project: Path, progress: StepCallback | None = None, may_be_own: bool = True
) -> FetchedFiles | None:
    """Fetch the new and changed files of a source, and unpack a downloaded archive.

    Args:
        target: Path or URL.
        project: Project folder.
        progress: Called during long steps. An exception cancels.
        may_be_own: Allow URLs of this machine and hidden files.

    Returns:
        The files, or None if the path needs no fetching.

    Raises:
        AnnotatorError: Lists all problems.
    """
    if isinstance(target, Path):
        source = match_source(target)
        if source is PATHS:
            return fetch_paths(target, project, progress, may_be_hidden=may_be_own)
        return source.fetch(target, project, progress) if source else None
    found = fetch_address(target, project, progress, may_be_own)
    folder = found.folders[0][0]
    only = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    inside = only[0] if len(only) == 1 and only[0].is_file() else folder
    further = match_source(inside)
    if further is None or further is PATHS:  # paths of another machine
        return found
    unpacked = further.fetch(inside, project, progress)
    return replace(
        unpacked,
        sentences=[*found.sentences, *unpacked.sentences],
        fetch_folders=[*found.fetch_folders, *unpacked.fetch_folders],
    )
