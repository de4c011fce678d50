"""Zip archives (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT).

All members are checked before unpacking. Bytes are counted too, as directories may be false. CRC-32 and size
show changes.
"""

import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.sources.fetch_folder import (
    FetchFolder,
    UnsafeNameError,
    build_fetched,
    is_wanted_file,
    open_fetch_folder,
    safe_path,
)
from annotator.exchange.sources.source import FetchedFiles, Source
from annotator.exchange.sources.unpack_limits import UnpackLimits
from annotator.exchange.sources.zip_directory import find_directory, open_parts
from annotator.progress_callbacks import StepCallback
from annotator.store.disk.open_files import open_file

CHUNK_BYTES = 1 << 20
_SPECIAL_FILE_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a named pipe",
}
_BROKEN_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


def recognize(path: Path) -> bool:
    return path.suffix.lower() == ".zip" and path.is_file()


def fetch(path: Path, project: Path, progress: StepCallback | None) -> FetchedFiles:
    path = path.resolve()
    with open_fetch_folder(project, str(path), path.stem, progress) as place:
        try:
            with open_file(path) as file:
                limits, directory = UnpackLimits(path), find_directory(file)
                place.check_disk_space(
                    sum(_check_members(archive, place, limits) for archive in open_parts(file, directory))
                )
                place.finish()
                done = 0
                for archive in open_parts(file, directory):
                    for member in archive.infolist():
                        done += 1
                        if not member.is_dir() and is_wanted_file(member.filename):
                            _unpack_member(archive, member, place, limits)
                        place.report_progress("Unpacking", done, directory.members)
                return build_fetched(place, [path])
        except _BROKEN_ZIP_ERRORS as error:
            if (first := path.with_suffix(".z01")).exists():
                raise AnnotatorError(
                    f"{path} is the last part of a divided zip file ({first.name} is next to it), which is not "
                    "supported. Unpack all parts first and import the folder, or make one .zip of it."
                ) from error
            raise AnnotatorError(f"{path} is no whole zip: {error}. Was it copied or downloaded to its end?") from error


def _check_members(archive: zipfile.ZipFile, place: FetchFolder, limits: UnpackLimits) -> int:
    size = 0
    for member in archive.infolist():
        name, kind = member.filename, stat.S_IFMT(member.external_attr >> 16)
        if member.is_dir():
            continue
        if kind not in (0, stat.S_IFREG):
            place.problems.add(f"{name!a} is {_SPECIAL_FILE_KINDS.get(kind, 'no file')}")
            continue
        try:
            safe_path(name)
        except UnsafeNameError as error:
            place.problems.add(f"{name!a}: {error}")
            continue
        if not is_wanted_file(name):
            place.skip_entry(name)
            continue
        if member.flag_bits & 1:
            place.problems.add(f"{name!a} is encrypted; unpack the archive yourself and import the folder")
        elif problem := limits.find_problem(member.file_size, member.compress_size):
            place.problems.add(f"{name!a}: {problem}")
        if not _is_unpacked(place, member):
            size += member.file_size
    return size


def _is_unpacked(place: FetchFolder, member: zipfile.ZipInfo) -> bool:
    known = place.manifest.get_entry(member.filename.encode("utf-8", "backslashreplace").decode())
    return bool(known and not known.is_wanted and known.bytes == member.file_size)


def _unpack_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: FetchFolder, limits: UnpackLimits) -> None:
    name = member.filename
    entry = place.register_entry(place.make_key(name), name, member.file_size, f"crc:{member.CRC:08x}")
    if entry is None:
        return
    try:
        place.write_entry(entry, _read_chunks(archive, member, limits))
    except _BROKEN_ZIP_ERRORS as error:
        raise zipfile.BadZipFile(f"the member {name!a}: {error}") from error


def _read_chunks(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limits: UnpackLimits) -> Iterator[bytes]:
    size = 0
    with archive.open(member) as opened:
        while chunk := opened.read(CHUNK_BYTES):
            size += len(chunk)
            if size > member.file_size:
                raise zipfile.BadZipFile(f"it unpacks to more than the {member.file_size:,} bytes that it states")
            limits.add_bytes(len(chunk))
            yield chunk
    if size != member.file_size:
        raise zipfile.BadZipFile(f"it has {size:,} of {member.file_size:,} bytes")


ZIP = Source("zip", "a .zip with images, unpacked into the project", recognize, fetch)
