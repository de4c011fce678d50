"""The origin of an import: the source that a person names is fetched if necessary, and its format is recognised."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from annotator.errors import AnnotatorError, several
from annotator.exchange.files.json_stream import check
from annotator.exchange.formats import all_formats, find_format
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.images import IMAGES
from annotator.exchange.formats.shared.provenance import sidecars
from annotator.exchange.imports.folders import refuse_unread_pictures
from annotator.exchange.sources import fetch
from annotator.exchange.sources.source import Fetched, Progress
from annotator.store.locations.addresses import is_address, redacted
from annotator.store.pictures.kinds import looks_like_image
from annotator.store.pictures.leftovers import leftover_of

GLANCED = 200  # files of a folder that may be its labels
LABELS = (".json", ".jsonl", ".csv", ".tsv", ".xml", ".parquet")


@dataclass(frozen=True)
class Origin:
    """The source of an import and its format.

    Attributes:
        name: For the history and for messages: a path, or an address without its secrets.
        path: The file or folder that labels are read from.
        format, why: The format of `path`, and how it was recognised.
        fetched: The unpacked or downloaded files; None if nothing had to be unpacked or downloaded.
        said: Sentences about the source.
        folder: The folder with the images, if labels are read from a file in it that brings no images itself.
    """

    name: str
    path: Path
    format: Format
    why: str
    fetched: Fetched | None = None
    said: Sequence[str] = ()
    folder: Path | None = None


def origin_of(
    project: Path, named: Path | str, format_: str | None, progress: Progress | None = None, may_be_own: bool = True
) -> Origin:
    """Return the origin of a path or an address; an archive is unpacked and an address downloaded first.

    Args:
        format_: The name of its format, None: recognised.
        may_be_own: Whether an address may be one of this machine or its network.

    Raises:
        AnnotatorError: The path does not exist, no format or several formats fit, or the archive has problems (lists
            all).
    """
    named = str(named)
    if not is_address(named) and not Path(named).exists():
        raise AnnotatorError(f"There is nothing at {named} to import. Is the path spelled right?")
    if not is_address(named) and not (Path(named).is_file() or Path(named).is_dir()):
        raise AnnotatorError(f"{named} is neither a file nor a folder, and cannot be imported.")
    name = redacted(named) if is_address(named) else str(Path(named).resolve())
    fetched = fetch(named, project, progress, may_be_own)
    if fetched is None:
        path, chosen, why, said = _recognised([Path(named)], format_)
        has_images = path != Path(named) and _holds_images(Path(named))
        return Origin(name, path, chosen, why, None, said, Path(named) if has_images else None)
    if not fetched.labels:
        return Origin(name, Path(named), IMAGES, "a list of paths", fetched, fetched.said)
    path, chosen, why, said = _recognised(fetched.labels, format_)
    return Origin(name, path, chosen, why, fetched, [*fetched.said, *said])


def _recognised(paths: Sequence[Path], name: str | None) -> tuple[Path, Format, str, Sequence[str]]:
    """Return the path that labels are read from, its format, how it was recognised, and sentences about it.

    The path is the first of the given paths that a format fits. Otherwise, if the last path is a folder: the only
    file in it that a format fits, or else the folder as a folder of images. If `name` gives the format and it fits no
    path, the last path is used.
    """
    if name is not None:
        format_ = find_format(name, "read")
        fits = (path for path in paths if format_.recognise and format_.recognise(path))
        return next(fits, paths[-1]), format_, "as you say", ()
    for path in paths:
        if found := formats_of(path):
            return path, *_only(path, found), ()
    folder = paths[-1]
    if not folder.is_dir():
        return folder, *choose_format(folder, None), ()
    files = _files(folder)
    beside = {path for file in files for path in sidecars(file)}
    inside = [(file, found) for file in files if file not in beside and (found := formats_of(file))]
    if len(inside) == 1:
        file, found = inside[0]
        return file, *_only(file, found), (f"Labels are read from {file.relative_to(folder)}.",)
    if not inside and not _holds_images(folder):
        refuse_unread_pictures(folder)
        return folder, *choose_format(folder, None), ()
    said = [f"Labels may be in {file}, and are not read: import it next." for file, _ in inside[:5]]
    return folder, IMAGES, "a folder of images", said


def choose_format(source: Path, name: str | None) -> tuple[Format, str]:
    """Return the format of a source, and how it was recognised. Raises AnnotatorError if no format or several fit."""
    if name is not None:
        return find_format(name, "read"), "as you say"
    readable = {format_.name: format_ for format_ in all_formats().values() if format_.read}
    found = formats_of(source)
    if not found and source.suffix.lower() in (".csv", ".tsv", ".parquet"):
        return readable[source.suffix.lower()[1:]], "by its name"  # its reader's error names the columns it needs
    if not found:
        if source.suffix.lower() == ".json" and source.is_file():
            check(source)  # if the JSON is broken, this raises an error with the line
        raise AnnotatorError(
            f"{source} is of no format that is known. Known are: {', '.join(readable)}. Say which it is (--format)."
        )
    return _only(source, found)


def formats_of(source: Path) -> list[tuple[Format, str]]:
    """Return the formats that fit a source, each with the reason."""
    readable = (format_ for format_ in all_formats().values() if format_.read and format_.recognise)
    return [(format_, why) for format_ in readable if format_.recognise and (why := format_.recognise(source))]


def _only(source: Path, found: list[tuple[Format, str]]) -> tuple[Format, str]:
    if len(found) > 1:
        fits = [f"{format_.name}: {why}" for format_, why in found]
        raise several(f"{source} fits several formats. Say which it is (--format):", fits)
    return found[0]


def _files(folder: Path) -> list[Path]:
    """Return files that may hold labels, in the folder and its direct subfolders; at most GLANCED."""
    found = (file for level in ("*", "*/*") for file in folder.glob(level) if file.suffix.lower() in LABELS)
    return sorted(islice((file for file in found if file.is_file() and not file.name.startswith(".")), GLANCED))


def _holds_images(folder: Path) -> bool:
    files = islice(folder.rglob("*"), 100_000)
    return any(looks_like_image(file.name) and not leftover_of(str(file.relative_to(folder))) for file in files)
