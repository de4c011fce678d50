"""Finding image files in a folder, and opening the file of a registered image.

Identity is the sha256 of the content. A file that has changed since it was registered is another image: it is never
shown under the old one's decisions. Links are followed only while they stay inside the folder.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.store.pixels import IMAGE_SUFFIXES, BadImage, check_image


@dataclass(frozen=True)
class FoundFile:
    """One file of a folder: an image (sha256, width, height), or kept out for a reason.

    path    relative to the folder, with "/" on every system
    """

    path: str
    bytes: int
    modified_ns: int
    sha256: str = ""
    width: int = 0
    height: int = 0
    reason: str = ""


def list_files(folder: Path, leave_out: Path) -> list[str]:
    """Relative paths of all files below a folder, sorted; hidden ones, and anything in `leave_out`, are passed over.

    Raises AnnotatorError when the folder is missing, is not a folder, or cannot be read.
    """
    if not folder.exists():
        raise AnnotatorError(f"There is no folder {folder}. Is the path spelled right, and the disk mounted?")
    if not folder.is_dir():
        raise AnnotatorError(f"{folder} is a file, but --images wants a folder. Try: --images {folder.parent}")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise AnnotatorError(f"The folder {folder} may not be read. Check its rights.")
    found = []
    for place, folders, names in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and (here / name).resolve() != leave_out
            and not (here / name / "project.db").exists()
        )
        found += [(here / name).relative_to(folder).as_posix() for name in names if not name.startswith(".")]
    return sorted(found)


def inspect_files(
    folder: Path, paths: list[str], known: Mapping[str, tuple[int, int]], threads: int | None = None
) -> Iterator[tuple[str, FoundFile | None]]:
    """Look into each file, several at a time, in order: (path, what it is), or (path, None) where nothing changed.

    known    path -> (bytes, modified_ns) of files looked at before; the same again is not opened
    """
    with ThreadPoolExecutor(threads or os.cpu_count() or 2) as pool:
        yield from zip(paths, pool.map(lambda path: _inspect(folder, path, known.get(path)), paths), strict=True)


def open_checked(folder: Path, path: str, recorded: tuple[int, int], sha256: str) -> Path:
    """The real path of a registered image's file, after making sure that it still holds that image.

    recorded    (bytes, modified_ns) at registration; when they differ, the content is hashed again

    Raises AnnotatorError when the file is gone, lies outside its folder, or holds something else now.
    """
    place = folder / path
    try:
        real = place.resolve(strict=True)
        facts = real.stat()
    except OSError as error:
        raise AnnotatorError(
            f"The file {place} cannot be opened ({error.strerror or error}). If it was moved, run annotator init again "
            "with the folder where it is now: images are known by their content."
        ) from error
    if not real.is_relative_to(folder.resolve()):
        raise AnnotatorError(f"{place} leads out of the image folder {folder}, to {real}: it is not opened.")
    if (facts.st_size, facts.st_mtime_ns) != recorded and _sha256(real) != sha256:
        raise AnnotatorError(
            f"The file {place} has changed since it was registered. Its decisions belong to the old content; "
            "run annotator init again to add the new content as a new image."
        )
    return real


def _inspect(folder: Path, path: str, known: tuple[int, int] | None) -> FoundFile | None:
    place = folder / path
    size = modified = 0
    try:
        real = place.resolve(strict=True)
        facts = real.stat()
        size, modified = facts.st_size, facts.st_mtime_ns
        if known == (size, modified):
            return None
        if not real.is_relative_to(folder.resolve()):
            return FoundFile(path, size, modified, reason=f"a link that leads out of the image folder, to {real}")
        if not real.is_file():
            return FoundFile(path, size, modified, reason="not a regular file")
        if place.suffix.lower() not in IMAGE_SUFFIXES:
            ending = place.suffix or "no ending"
            return FoundFile(
                path,
                size,
                modified,
                reason=f"not an image file ({ending}); read are {', '.join(sorted(IMAGE_SUFFIXES))}",
            )
        image = check_image(real)
        return FoundFile(path, size, modified, _sha256(real), image.width, image.height)
    except BadImage as error:
        return FoundFile(path, size, modified, reason=str(error))
    except OSError as error:
        return FoundFile(path, size, modified, reason=f"cannot be read: {error.strerror or error}")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
