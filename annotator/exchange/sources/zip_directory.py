"""Zip directories read in parts, because that of a million members takes 0.6 GB of memory.

zipfile reads each part as the directory of the same archive. Format:
https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3.12 to 4.3.16.
"""

import io
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

MEMBERS_PER_PART = 10_000  # members whose directory is in memory
DIRECTORY_BYTES_PER_PART = 16 << 20  # bytes of the directory in memory
MAX_COMMENT_BYTES = 65_535
_END_RECORD = struct.Struct("<4s4H2LH")
_ZIP64_LOCATOR = struct.Struct("<4sLQL")
_ZIP64_END_RECORD = struct.Struct("<4sQ2H2L4Q")
_ENTRY_LENGTHS = struct.Struct("<4s24x3H")
_ENTRY_HEADER_BYTES = 46  # bytes of an entry before its name


@dataclass(frozen=True)
class Directory:
    """The position of the list of members in a zip file."""

    members: int
    # start, size: offset and length in bytes
    start: int
    size: int
    # stated offset, less than `start` by the bytes before the archive
    offset: int


def find_directory(file: IO[bytes]) -> Directory:
    size = file.seek(0, io.SEEK_END)
    begin = max(0, size - MAX_COMMENT_BYTES - _END_RECORD.size - _ZIP64_LOCATOR.size)
    file.seek(begin)
    tail = file.read()
    at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) - at < _END_RECORD.size:
        raise zipfile.BadZipFile("it has no list of its members at its end")
    end = begin + at
    _, _, _, _, members, length, offset, _ = _END_RECORD.unpack_from(tail, at)
    before = tail[max(0, at - _ZIP64_LOCATOR.size) : at]
    if len(before) == _ZIP64_LOCATOR.size and before.startswith(b"PK\6\7"):
        end -= _ZIP64_LOCATOR.size + _ZIP64_END_RECORD.size
        file.seek(max(0, end))
        record = file.read(_ZIP64_END_RECORD.size)
        if len(record) < _ZIP64_END_RECORD.size or not record.startswith(b"PK\6\6"):
            raise zipfile.BadZipFile("the end of its list of members is damaged")
        _, _, _, _, _, _, _, members, length, offset = _ZIP64_END_RECORD.unpack(record)
    if length > end or offset > end - length:
        raise zipfile.BadZipFile("its list of members lies outside of it")
    return Directory(members, end - length, length, offset)


def open_parts(file: IO[bytes], directory: Directory) -> Iterator[zipfile.ZipFile]:
    """Yield archives that each list only the next members of the file. Raises zipfile.BadZipFile."""
    at, last = directory.start, directory.start + directory.size
    while at < last:
        file.seek(at)
        entries, count = io.BytesIO(), 0
        while at < last and count < MEMBERS_PER_PART and entries.tell() < DIRECTORY_BYTES_PER_PART:
            head = file.read(_ENTRY_HEADER_BYTES)
            if len(head) < _ENTRY_HEADER_BYTES or not head.startswith(b"PK\1\2"):
                raise zipfile.BadZipFile("its list of members is damaged")
            _, *lengths = _ENTRY_LENGTHS.unpack_from(head)
            entries.write(head + file.read(sum(lengths)))
            at, count = at + _ENTRY_HEADER_BYTES + sum(lengths), count + 1
        if at > last:
            raise zipfile.BadZipFile("its list of members is damaged")
        with zipfile.ZipFile(_Part(file, directory, entries.getvalue(), count)) as archive:
            yield archive


class _Part(io.RawIOBase):
    """A file object with the archive's member data, followed by a directory of some of its members."""

    def __init__(self, file: IO[bytes], directory: Directory, entries: bytes, count: int):
        self._file, self._start, self._at = file, directory.start, 0
        end64 = _ZIP64_END_RECORD.pack(b"PK\6\6", 44, 45, 45, 0, 0, count, count, len(entries), directory.offset)
        locator = _ZIP64_LOCATOR.pack(b"PK\6\7", 0, directory.offset + len(entries), 1)
        end = _END_RECORD.pack(b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
        self._rest = entries + end64 + locator + end

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._start + len(self._rest)}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        wanted = self._start + len(self._rest) - self._at if size is None or size < 0 else size
        content = b""
        if self._at < self._start and wanted > 0:
            self._file.seek(self._at)
            content = self._file.read(min(wanted, self._start - self._at))
        if len(content) < wanted and self._at + len(content) >= self._start:
            begin = self._at + len(content) - self._start
            content += self._rest[begin : begin + wanted - len(content)]
        self._at += len(content)
        return content
