"""The source of an import: fetched if needed, with its format recognized."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.images_only import IMAGES
from annotator.exchange.imports import label_files
from annotator.exchange.reading.reading_options import Interpretation, ReadingOptions
from annotator.exchange.sources import fetch_source
from annotator.exchange.sources.source import FetchedFiles
from annotator.progress_callbacks import StepCallback
from annotator.store.locations.addresses import Address


@dataclass(frozen=True)
class LocatedSource:
    """The source of an import and its format."""

    # path, or URL without secrets
    name: str
    # file or folder with labels
    path: Path
    # format, why: format of `path` and its reason
    format: Format
    why: str
    fetched: FetchedFiles | None = None
    sentences: Sequence[str] = ()
    # image folder, for label files without images
    folder: Path | None = None
    # possible places of labels
    paths: Sequence[Path] = ()
    # more label files of this format
    other_paths: Sequence[Path] = ()
    interpretations: Sequence[Interpretation] = ()


def locate_source(
    project: Path,
    named: Address | Path,
    format_: str | None,
    progress: StepCallback | None = None,
    may_be_own: bool = True,
    reading: ReadingOptions | None = None,
) -> LocatedSource:
    """Locate the labels of a path or URL, after unpacking or downloading if needed.

    Args:
        format_: None recognizes it.

    Raises:
        AnnotatorError: Missing path, no or several formats, or archive problems (lists all).
    """
    local = named if isinstance(named, Path) else None
    if local and not local.exists():
        raise AnnotatorError(f"There is nothing at {local} to import. Is the path spelled right?")
    if local and not (local.is_file() or local.is_dir()):
        raise AnnotatorError(f"{local} is neither a file nor a folder, and cannot be imported.")
    name = str(local.resolve() if local else named)
    fetched = fetch_source(named, project, progress, may_be_own)
    if local and fetched and not fetched.labels:
        return LocatedSource(name, local, IMAGES, "a list of paths", fetched, fetched.sentences)
    paths = fetched.labels if fetched else ([local] if local else [])
    return _locate_labels(
        LocatedSource(name, paths[0], IMAGES, "", fetched, paths=paths), format_, reading or ReadingOptions()
    )


def relocate_source(origin: LocatedSource, format_: str | None, reading: ReadingOptions) -> LocatedSource:
    """Find the labels of a located source again with other options. Raises as `locate_source`."""
    return _locate_labels(origin, format_, reading) if origin.paths else origin


def _locate_labels(origin: LocatedSource, format_: str | None, reading: ReadingOptions) -> LocatedSource:
    found = label_files.find(origin.paths, format_, reading)
    named = origin.paths[0]
    is_inside = origin.fetched is None and found.path != named and label_files.contains_images(named)
    return replace(
        origin,
        path=found.path,
        format=found.format,
        why=found.why,
        sentences=[*(origin.fetched.sentences if origin.fetched else ()), *found.sentences],
        folder=named if is_inside else None,
        other_paths=found.other_paths,
        interpretations=found.interpretations,
    )
