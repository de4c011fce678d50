"""Unpacked sizes of Parquet pages by their headers, which readers trust more than the footer.

Format: https://parquet.apache.org/docs/file-format/data-pages and
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

DICTIONARY_ENCODINGS = frozenset({2, 8})  # encodings: PLAIN_DICTIONARY, RLE_DICTIONARY
DELTA_BYTE_ARRAY = 7  # DELTA_BYTE_ARRAY: a text shares a prefix with the text before it
_DATA_PAGE_FIELD, _DATA_PAGE_V2_FIELD, _DICTIONARY_PAGE_FIELD = 5, 8, 7  # field ids of a page header
_FIRST_READ_BYTES, _MAX_HEADER_BYTES = 512, 16 << 20  # bytes of a header


class Page(NamedTuple):
    """The header of one Parquet page."""

    # file offset of the content
    start: int
    # packed, unpacked: bytes in the file and decompressed
    packed: int
    unpacked: int
    # number of values of a data page, including nulls, else 0
    values: int
    # number of entries of a dictionary page, else 0
    entries: int
    encoding: int


def read_pages(file: BinaryIO, start: int, size: int) -> Iterator[Page]:
    """Yield the pages of a column. Damaged headers raise ValueError."""
    end = start + size
    while start < end:
        header, length = _read_header(file, start, end)
        kind = next((header[field] for field in (_DATA_PAGE_FIELD, _DATA_PAGE_V2_FIELD) if field in header), {})
        encoding = kind.get(4 if _DATA_PAGE_V2_FIELD in header else 2, -1)
        entries = header.get(_DICTIONARY_PAGE_FIELD, {}).get(1, 0)
        page = Page(start + length, header.get(3, -1), header.get(2, -1), kind.get(1, 0), entries, encoding)
        if min(page.packed, page.unpacked, page.values, page.entries) < 0:
            raise ValueError(f"a page at byte {start:,} has no size")
        yield page
        start += length + page.packed


def find_longest_text(content: bytes, entries: int) -> int:
    """Return the number of bytes of the longest of the texts in a dictionary page."""
    at = most = 0
    for _ in range(entries):
        size = int.from_bytes(content[at : at + 4], "little")
        if at + 4 + size > len(content):
            break
        at += 4 + size
        if size > most:
            most = size
    return most


def _read_header(file: BinaryIO, start: int, end: int) -> tuple[dict[int, Any], int]:
    size = _FIRST_READ_BYTES
    while True:
        file.seek(start)
        reader = _ThriftReader(file.read(min(size, end - start)))
        try:
            return reader.read_struct(), reader.at
        except IndexError:
            if size >= min(_MAX_HEADER_BYTES, end - start):
                raise ValueError(f"the header of a page at byte {start:,} has no end") from None
            size *= 16


class _ThriftReader:
    """A reader of the integers in nested Thrift structs."""

    def __init__(self, text: bytes):
        self._text, self.at = text, 0

    def read_struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the integers of the next struct by field id. Raises IndexError if truncated, ValueError if damaged."""
        if depth > 8:
            raise ValueError("a header of a page is nested too deep")
        numbers: dict[int, Any] = {}
        field = 0
        while byte := self._read_byte():
            field = field + (byte >> 4) if byte >> 4 else self._read_signed()
            value = self._read_value(byte & 15, depth)
            if value is not None:
                numbers[field] = value
        return numbers

    def _read_value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):  # true, false
            return None
        if kind in (4, 5, 6):
            return self._read_signed()
        if kind in (3, 7, 8):
            self._skip_bytes({3: 1, 7: 8}.get(kind) or self._read_varint())
            return None
        if kind in (9, 10):
            head = self._read_byte()
            for _ in range(self._read_varint() if head >> 4 == 15 else head >> 4):
                self._read_value(3 if head & 15 in (1, 2) else head & 15, depth + 1)
            return None
        if kind == 12:
            return self.read_struct(depth + 1)
        raise ValueError(f"a header of a page has a field of the unknown kind {kind}")

    def _read_byte(self) -> int:
        self.at += 1
        return self._text[self.at - 1]

    def _skip_bytes(self, size: int) -> None:
        self.at += size
        if self.at > len(self._text):
            raise IndexError

    def _read_varint(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self._read_byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise ValueError("a header of a page has a number without an end")

    def _read_signed(self) -> int:
        value = self._read_varint()
        return (value >> 1) ^ -(value & 1)
