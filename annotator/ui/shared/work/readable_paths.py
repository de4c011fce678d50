"""The server files that pages may read.

Image folders and data set files are allowed. Other and hidden files are refused, because reader errors may quote them.
URLs must not lead into the local network.
"""

from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.sources.fetch_folder import LABEL_SUFFIXES
from annotator.exchange.sources.path_list import PATHS, is_hidden_path
from annotator.exchange.sources.tar_archive import TAR_SUFFIXES
from annotator.store.locations.addresses import Address, check_host, parse_location

LIST_SUFFIXES = (".txt", ".lst")
READABLE_SUFFIXES = (*sorted(LABEL_SUFFIXES - {".md", ".cls", ".xmp"}), ".lst", ".zip", ".arrow", *TAR_SUFFIXES)


def parse_absolute_path(given: str) -> Path:
    """Return a typed absolute path, or raise AnnotatorError."""
    text = given.strip()
    if not text:
        raise AnnotatorError("Type the path first.")
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:  # "~nobody"
        raise AnnotatorError(f"{text}: {error}") from error
    if not path.is_absolute() or "\0" in text:
        raise AnnotatorError(f"{text} is not a whole path. Begin with / (on Windows with a drive), or with ~ for home.")
    return path


def resolve_source(given: str) -> Address | Path:
    """Return a typed path or URL, or raise AnnotatorError if not readable."""
    text = given.strip()
    named = parse_location(text)
    if isinstance(named, Address):
        if named.is_web:
            check_host(named.host, may_be_own=False)
        return named
    path = parse_absolute_path(text)
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise AnnotatorError(f"There is nothing at {path}. Is the path spelled right?") from None
    for place in (path, real):
        if is_hidden_path(place):
            raise AnnotatorError(f"{path} is hidden, or lies in a hidden folder. Pages do not read those.")
    if not real.is_dir() and not all(place.name.lower().endswith(READABLE_SUFFIXES) for place in (path, real)):
        raise AnnotatorError(
            f"{path} does not end as files of data sets do. Pages read folders and: {', '.join(READABLE_SUFFIXES)}."
        )
    if real.suffix.lower() in LIST_SUFFIXES and real.is_file() and not PATHS.recognize(real):
        raise AnnotatorError(f"{path} is no list of images: its first line has to be the path of one.")
    return path


def resolve_file(given: str) -> Path:
    """Return a typed path of a file, or raise AnnotatorError if it is not a file that pages may read."""
    path = resolve_source(given)
    if isinstance(path, Address) or not path.is_file():
        raise AnnotatorError(f"{path} is not a file on this machine.")
    return path


def resolve_folder(given: str) -> Path:
    """Return a typed path of an image folder, or raise AnnotatorError if pages may not read it."""
    path = resolve_source(given)
    if isinstance(path, Address) or not path.is_dir():
        raise AnnotatorError(f"{path} is no folder.")
    return path
