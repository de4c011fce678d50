"""Zip files of exports for download."""

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from annotator.errors import AnnotatorError, DiskFull
from annotator.progress_callbacks import ProgressCallback

MAX_ZIP_FILES = 200_000  # a zip lists all its files in memory, and again in the program that unpacks it
CHUNK_BYTES = 1 << 20
COMPRESSED_SUFFIXES = {
    ".jpg",
    ".jpeg",
    ".png",
    ".webp",
    ".gif",
    ".avif",
    ".heic",
    ".tif",
    ".tiff",
    ".tar",
    ".zip",
    ".parquet",
}
"""Endings of files that do not become smaller."""
TOO_MANY_FILES_MESSAGE = (
    f"The export has more than {MAX_ZIP_FILES:,} files, too many for a zip. Write it to a folder on the server instead."
)


def zip_folder(folder: Path, target: Path, progress: ProgressCallback) -> int:
    """Zip all files of a folder in constant memory, and return the size in bytes.

    Linked files are packed. An exception from `progress` cancels and deletes the zip. Raises DiskFull, or (for too many
    files) AnnotatorError.
    """
    files: list[Path] = []
    for path in _list_files(folder):
        files.append(path)
        if len(files) > MAX_ZIP_FILES:
            raise AnnotatorError(TOO_MANY_FILES_MESSAGE)
    total = done = 0
    try:
        total = sum(path.stat().st_size for path in files)
        with zipfile.ZipFile(target, "x") as archive:
            for path in files:
                info = zipfile.ZipInfo.from_file(path, path.relative_to(folder), strict_timestamps=False)
                is_packed = path.suffix.lower() in COMPRESSED_SUFFIXES
                info.compress_type = zipfile.ZIP_STORED if is_packed else zipfile.ZIP_DEFLATED
                with path.open("rb") as source, archive.open(info, "w") as out:
                    while chunk := source.read(CHUNK_BYTES):
                        out.write(chunk)
                        done += len(chunk)
                        progress(done, total)
        return target.stat().st_size
    except OSError as error:
        target.unlink(missing_ok=True)
        raise DiskFull(
            f"The zip could not be written: {error.strerror or error}. Nothing of it was kept.\n"
            "    Is the disk of the project full? Free some space and try again."
        ) from error
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def _list_files(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            yield Path(place, name)
