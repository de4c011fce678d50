"""Tar files, compressed or not, and WebDataset shards, read as streams.

tarfile parses headers (pax, ustar, GNU long names) and extracts nothing. Keys are "<shard>/<member>", as in
formats/webdataset.py.
"""

import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from lzma import LZMAError
from pathlib import Path
from typing import IO

from annotator.errors import AnnotatorError
from annotator.exchange.formats.webdataset import Member, UnreadMemberError
from annotator.exchange.formats.webdataset import recognize_shards as recognize_shards
from annotator.exchange.sources.fetch_folder import (
    FetchFolder,
    UnsafeNameError,
    build_fetched,
    is_wanted_file,
    make_path_finder,
    open_fetch_folder,
    safe_path,
)
from annotator.exchange.sources.source import FetchedFiles, Source
from annotator.exchange.sources.unpack_limits import UnpackLimits
from annotator.progress_callbacks import StepCallback
from annotator.store.disk.open_files import open_file
from annotator.store.locations.web_servers import MAX_MEMBER_BYTES
from annotator.store.pictures.picture_kinds import looks_like_image

TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
CHUNK_BYTES = 1 << 20
MAX_CHECKSUM_BYTES = 64 << 20  # bytes of a member whose checksum is worked out; larger ones are known by their time
_BROKEN_TAR_ERRORS = (tarfile.TarError, zlib.error, LZMAError, EOFError, OSError, ValueError, OverflowError)


def recognize(path: Path) -> bool:
    return bool(_list_shards(path))


def _list_shards(path: Path) -> list[Path]:
    try:
        if path.is_dir():
            inside = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
            has_images = any(entry.is_dir() or looks_like_image(entry.name) for entry in inside)
            return [] if has_images else sorted(entry for entry in inside if entry.suffix == ".tar")
        return [path] if path.name.lower().endswith(TAR_SUFFIXES) and path.is_file() else []
    except OSError:
        return []


def fetch(path: Path, project: Path, progress: StepCallback | None) -> FetchedFiles:
    path = path.resolve()
    shards = _list_shards(path)
    images_only = recognize_shards(path) is not None  # labels of WebDataset are read from the shards
    name = path.name if path.is_dir() else path.name[: -len(_find_suffix(path))]
    with open_fetch_folder(project, str(path), name, progress) as place:
        for shard in shards:
            _unpack_shard(shard, place, images_only)
        place.finish()
        found = build_fetched(place, [path])
        return replace(found, find_path=make_path_finder(place.folder, found.folders[0][0]))


def _find_suffix(path: Path) -> str:
    return max((ending for ending in TAR_SUFFIXES if path.name.lower().endswith(ending)), key=len)


def _unpack_shard(shard: Path, place: FetchFolder, images_only: bool) -> None:
    last = "the first"
    limits = UnpackLimits(shard)
    try:
        with open_file(shard) as file, tarfile.open(fileobj=file, mode="r|*", tarinfo=Member) as archive:
            while (member := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # tarfile keeps all that it has seen
                last = f"after the member {member.name!a}"
                limits.add_bytes(member.size)  # in a compressed archive, skipped members are unpacked too
                if not member.isdir() and _should_unpack(member, place, images_only):
                    last = f"in the member {member.name!a}"
                    _unpack_member(archive, member, shard, place)
                place.report_progress("Unpacking", place.new + place.changed + place.known)
    except UnreadMemberError as error:
        raise AnnotatorError(f"{shard}: {error}. Nothing of it was registered.") from error
    except _BROKEN_TAR_ERRORS as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise AnnotatorError(
            f"{shard} is no whole tar, {last}: {error}. Was it copied or downloaded to its end? Nothing of it was "
            f"registered; what was unpacked stays in {place.folder}."
        ) from error


def _should_unpack(member: tarfile.TarInfo, place: FetchFolder, images_only: bool) -> bool:
    name = member.name
    if not member.isreg():
        kind = "a link" if member.issym() or member.islnk() else "a device or pipe"
        place.problems.add(f"{name!a} is {kind}")
        return False
    try:
        safe_path(name)
    except UnsafeNameError as error:
        place.problems.add(f"{name!a}: {error}")
        return False
    if not is_wanted_file(name) or (images_only and not looks_like_image(name)):
        if not is_wanted_file(name):
            place.skip_entry(name)
        return False
    if member.size > MAX_MEMBER_BYTES:
        place.problems.add(
            f"{name!a} has {member.size:,} bytes, more than the {MAX_MEMBER_BYTES:,} of an image or labels"
        )
        return False
    return not place.problems.count  # after a problem, the other members are only checked


def _unpack_member(archive: tarfile.TarFile, member: tarfile.TarInfo, shard: Path, place: FetchFolder) -> None:
    """Write a new or changed member of a tar. Small ones are compared by CRC-32, larger ones by time and size."""
    opened = archive.extractfile(member)
    assert opened is not None  # _should_unpack has checked isreg
    chunks: Iterable[bytes] = _read_chunks(opened, member.size)
    stamp = f"mtime:{member.mtime}"
    if member.size <= MAX_CHECKSUM_BYTES:
        content = b"".join(chunks)
        chunks, stamp = [content], f"crc:{zlib.crc32(content):08x}"
    entry = place.register_entry(place.make_key(f"{shard.name}/{member.name}"), member.name, member.size, stamp)
    if entry is not None:
        place.write_entry(entry, chunks)


def _read_chunks(opened: IO[bytes], size: int) -> Iterator[bytes]:
    while size > 0:
        chunk = opened.read(min(CHUNK_BYTES, size))
        if not chunk:
            raise EOFError(f"{size:,} bytes are missing")
        size -= len(chunk)
        yield chunk


TAR = Source("tar", "a .tar, .tar.gz, ... with images, or a folder of WebDataset shards", recognize, fetch)
