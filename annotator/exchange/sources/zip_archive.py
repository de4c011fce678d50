"""Zip: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, by the standard library's zipfile.

The whole directory is checked before anything is unpacked, AT_ONCE members at a time (zip_directory.py), for names that
lead out, links, devices, encrypted members and implausible sizes. Unpacked bytes are counted as well, because a
directory may lie. The checksum (CRC-32) and the size of a member say whether it has changed, without unpacking it.
"""

import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.exchange.sources.bombs import Limits
from annotator.exchange.sources.landing import Landing, UnsafeNameError, fetched, is_wanted, landing, safe_path
from annotator.exchange.sources.source import Fetched, Progress, Source
from annotator.exchange.sources.zip_directory import directory_of, parts
from annotator.store.disk.open_files import open_file

CHUNK = 1 << 20
_KINDS = {stat.S_IFLNK: "a link", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a named pipe"}
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


def recognise(path: Path) -> bool:
    """Return whether a path is a file that ends in .zip."""
    return path.suffix.lower() == ".zip" and path.is_file()


def fetch(path: Path, project: Path, progress: Progress | None) -> Fetched:
    """Unpack members that are new or have changed."""
    path = path.resolve()
    with landing(project, str(path), path.stem, progress) as place:
        try:
            with open_file(path) as file:
                limits, directory = Limits(path), directory_of(file)
                place.check_room(sum(_checked(archive, place, limits) for archive in parts(file, directory)))
                place.finish()
                done = 0
                for archive in parts(file, directory):
                    for member in archive.infolist():
                        done += 1
                        if not member.is_dir() and is_wanted(member.filename):
                            _unpack(archive, member, place, limits)
                        place.show("Unpacking", done, directory.members)
                return fetched(place, [path])
        except _BROKEN as error:
            raise AnnotatorError(f"{path} is no whole zip: {error}. Was it copied or downloaded to its end?") from error


def _checked(archive: zipfile.ZipFile, place: Landing, limits: Limits) -> int:
    """Return the bytes of the members to be unpacked; a problem of any member is noted as a problem of the source."""
    size = 0
    for member in archive.infolist():
        name, kind = member.filename, stat.S_IFMT(member.external_attr >> 16)
        if member.is_dir():
            continue
        if kind not in (0, stat.S_IFREG):
            place.problems.add(f"{name!a} is {_KINDS.get(kind, 'no file')}")
            continue
        try:
            safe_path(name)
        except UnsafeNameError as error:
            place.problems.add(f"{name!a}: {error}")
            continue
        if not is_wanted(name):
            place.pass_over(name)
            continue
        if member.flag_bits & 1:
            place.problems.add(f"{name!a} is encrypted; unpack the archive yourself and import the folder")
        elif problem := limits.problem_of(member.file_size, member.compress_size):
            place.problems.add(f"{name!a}: {problem}")
        if not _is_there(place, member):
            size += member.file_size
    return size


def _is_there(place: Landing, member: zipfile.ZipInfo) -> bool:
    known = place.manifest.entry(member.filename.encode("utf-8", "backslashreplace").decode())
    return bool(known and not known.is_wanted and known.bytes == member.file_size)


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: Landing, limits: Limits) -> None:
    name = member.filename
    entry = place.register_entry(place.key_of(name), name, member.file_size, f"crc:{member.CRC:08x}")
    if entry is None:
        return
    try:
        place.write(entry, _chunks(archive, member, limits))
    except _BROKEN as error:
        raise zipfile.BadZipFile(f"the member {name!a}: {error}") from error


def _chunks(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limits: Limits) -> Iterator[bytes]:
    size = 0
    with archive.open(member) as opened:
        while chunk := opened.read(CHUNK):
            size += len(chunk)
            if size > member.file_size:
                raise zipfile.BadZipFile(f"it unpacks to more than the {member.file_size:,} bytes that it states")
            limits.add(len(chunk))
            yield chunk
    if size != member.file_size:
        raise zipfile.BadZipFile(f"it has {size:,} of {member.file_size:,} bytes")


ZIP = Source("zip", "a .zip with images, unpacked into the project", recognise, fetch)
