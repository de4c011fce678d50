"""Untrusted Parquet and Arrow files, read in batches of bounded unpacked size.

Formats: https://parquet.apache.org/docs/file-format, https://arrow.apache.org/docs/format/Columnar.html. A kilobyte can
stand for gigabytes: compressed pages, dictionaries, equal rows. So page headers are read first, dictionaries stay
encoded until text lengths are known, and Arrow must be uncompressed.
"""

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.files.parquet_pages import (
    DELTA_BYTE_ARRAY,
    DICTIONARY_ENCODINGS,
    Page,
    find_longest_text,
    read_pages,
)

if TYPE_CHECKING:
    import pyarrow as pa

MAX_UNPACK_RATIO = 200  # unpacked bytes for each byte of a file: images hardly compress, so a small file holds little
ALWAYS_ALLOWED_BYTES = 256 << 20  # bytes that any file may unpack to
ALWAYS_ALLOWED_MEMBER_BYTES = 64 << 20  # bytes that any member of an archive, or page of a table, may unpack to
ALWAYS_ALLOWED_ROWS = 1_000_000  # rows, or values of a column, that any table may have
MAX_BATCH_BYTES = 64 << 20  # bytes of texts and images in one batch, unless one row has more
MAX_ROW_BYTES = 256 << 20  # bytes of a row of lists
MAX_GROUP_VALUES = 100_000_000  # values of one column of lists in a row group
MAX_COLUMNS = 100_000
ROWS_PER_BATCH = 1000  # rows


class TableTooLargeError(AnnotatorError):
    """The error of a table that unpacks to an implausible size."""


def check_column_count(path: Path, count: int) -> None:
    if count > MAX_COLUMNS:
        raise TableTooLargeError(
            f"{path} has {count:,} columns; {MAX_COLUMNS:,} are read at most. Is the table turned on its side? Else "
            "write one row an answer: image, class, state."
        )


def read_parquet_schema(path: Path) -> "pa.Schema":
    """Return a Parquet file's schema. Raises pyarrow errors and TableTooLargeError."""
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    check_column_count(path, len(schema))
    return schema


def read_parquet_batches(
    path: Path, columns: Collection[str] | None = None, rows: int = ROWS_PER_BATCH
) -> "Iterator[pa.RecordBatch]":
    """Yield batches of at most `rows` rows of a Parquet file, fewer if rows are large.

    `columns` of None selects all. Raises pyarrow errors and TableTooLargeError.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, pre_buffer=False) as file:
        schema, metadata = file.schema_arrow, file.metadata
    check_column_count(path, len(schema))
    names = [name for name in schema.names if columns is None or name in columns]
    wanted = [_replace_views(schema.field(name)) for name in names]
    limit = _UnpackLimit(path)
    limit.add_rows(metadata.num_rows)
    ways = [_plan_row_group(path, group, metadata, set(names), limit) for group in range(metadata.num_row_groups)]
    for group, (at_once, repeated) in enumerate(ways):
        with pq.ParquetFile(path, metadata=metadata, read_dictionary=repeated, pre_buffer=False) as file:
            for batch in file.iter_batches(min(rows, at_once), [group], names, use_threads=False):
                batch.validate(full=True)  # invalid offsets would crash the process
                for part in _split_batch(batch, limit):
                    arrays = [part.column(field.name).cast(field.type) for field in wanted]
                    yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(wanted))


def read_arrow_schema(path: Path) -> "pa.Schema":
    """Return an Arrow stream's schema. Raises pyarrow errors and TableTooLargeError."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as opened, pa.ipc.open_stream(opened) as stream:
        check_column_count(path, len(stream.schema))
        return stream.schema


def read_arrow_batches(
    path: Path, columns: Collection[str] | None = None, rows: int = ROWS_PER_BATCH
) -> "Iterator[pa.RecordBatch]":
    """Yield batches of at most `rows` rows of an Arrow stream, fewer if rows are large.

    `columns` of None selects all. Raises pyarrow errors, and AnnotatorError for unsupported types and large
    tables.
    """
    import pyarrow as pa

    schema = read_arrow_schema(path)
    for field in schema:
        _check_no_views(field.type)
    _check_uncompressed(path)
    limit = _UnpackLimit(path)
    names = [name for name in schema.names if columns is None or name in columns]
    with pa.memory_map(str(path)) as opened, pa.ipc.open_stream(opened) as stream:
        for whole in stream:
            whole.validate(full=True)  # invalid offsets would crash the process
            limit.add_rows(whole.num_rows)
            batch = whole.select(names)
            for start in range(0, batch.num_rows, rows):
                yield from _split_batch(batch.slice(start, rows), limit)


class _UnpackLimit:
    """A counter of one table's rows and unpacked bytes that raises TableTooLargeError above its limits."""

    def __init__(self, path: Path):
        self._path, self._size = path, path.stat().st_size
        self._most, self.most_rows = (
            max(ALWAYS_ALLOWED_BYTES, MAX_UNPACK_RATIO * self._size),
            max(ALWAYS_ALLOWED_ROWS, MAX_UNPACK_RATIO * self._size),
        )
        self._rows = 0
        self._bytes = {"pages": 0, "values": 0}

    def add_bytes(self, what: str, size: int) -> None:
        self._bytes[what] += size
        if self._bytes[what] > self._most:
            raise self.error(f"unpacks from {self._size:,} bytes to more than {self._most:,}")

    def add_rows(self, count: int) -> None:
        self._rows += count
        if self._rows > self.most_rows:
            raise self.error(f"has {self._rows:,} rows in {self._size:,} bytes")

    def error(self, what: str) -> TableTooLargeError:
        return TableTooLargeError(
            f"{self._path} {what}, as no table of images and labels does, so that it is not read. If it is right, "
            "write it again as CSV, with the images as files."
        )


@dataclass
class _LeafColumn:
    """The unpacked size of one column in a row group of a Parquet file, from its page headers."""

    path: str
    is_in_lists: bool
    values: int = 0
    # maximum bytes of values that may exceed their bytes in a page
    longest: int = 0
    # number of such values
    named: int = 0
    is_repeated: bool = False


def _plan_row_group(
    path: Path, group: int, metadata: Any, names: set[str], limit: _UnpackLimit
) -> tuple[int, list[str]]:
    """Return the number of rows per batch, and the columns to keep dictionary-encoded."""
    is_every = any("." in name for name in names)  # a dot also separates a column from its sub-columns
    row_group, leaves = metadata.row_group(group), list[_LeafColumn]()
    with path.open("rb") as file:
        for number in range(row_group.num_columns):
            column = metadata.schema.column(number)
            if is_every or column.path.split(".")[0] in names:
                leaves.append(_measure_column(file, row_group.column(number), column, limit))
    large = [leaf.is_repeated and leaf.longest * leaf.named > MAX_BATCH_BYTES // 4 for leaf in leaves]
    repeated = list(compress(leaves, large))
    others = list(compress(leaves, (not is_large for is_large in large)))
    at_most = sum(leaf.longest * leaf.named for leaf in others if leaf.is_in_lists)
    if at_most > MAX_ROW_BYTES:
        raise limit.error(f"has lists whose values may have {at_most:,} bytes")
    in_a_row = sum(leaf.longest for leaf in others if not leaf.is_in_lists)
    return max(1, MAX_BATCH_BYTES // max(1, in_a_row)), [leaf.path for leaf in repeated]


def _measure_column(file: BinaryIO, chunk: Any, column: Any, limit: _UnpackLimit) -> _LeafColumn:
    leaf = _LeafColumn(column.path, column.max_repetition_level > 0)
    start = chunk.data_page_offset
    if chunk.dictionary_page_offset is not None and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    for page in read_pages(file, start, chunk.total_compressed_size if chunk.num_values else 0):
        if page.unpacked > max(ALWAYS_ALLOWED_MEMBER_BYTES, MAX_UNPACK_RATIO * page.packed):
            raise limit.error(
                f"has a page of {page.packed:,} bytes that unpacks to {page.unpacked:,} in the column {leaf.path!a}"
            )
        limit.add_bytes("pages", page.unpacked)
        leaf.values += page.values
        if leaf.values > min(limit.most_rows, MAX_GROUP_VALUES):
            raise limit.error(f"has {leaf.values:,} values in the column {leaf.path!a}")
        if page.entries and column.physical_type == "BYTE_ARRAY":
            leaf.longest = max(leaf.longest, _bound_longest_text(file, page, chunk.compression))
        elif page.encoding == DELTA_BYTE_ARRAY:
            leaf.longest, leaf.named = max(leaf.longest, page.unpacked), leaf.named + page.values
        elif page.encoding in DICTIONARY_ENCODINGS:
            leaf.named += page.values
            leaf.longest = max(leaf.longest, column.length if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0)
            leaf.is_repeated = column.physical_type == "BYTE_ARRAY"
    leaf.is_repeated &= leaf.named == leaf.values
    return leaf


def _bound_longest_text(file: BinaryIO, page: Page, compression: str) -> int:
    """Return an upper limit of the bytes of the longest text in a dictionary page."""
    import pyarrow as pa

    file.seek(page.start)
    content = file.read(page.packed)
    try:
        if compression != "UNCOMPRESSED":
            content = pa.Codec(compression.lower()).decompress(content, page.unpacked, asbytes=True)
    except (pa.ArrowException, OSError, ValueError):  # Hadoop's variant of LZ4, or damaged data
        return page.unpacked
    return find_longest_text(content, page.entries)


def _replace_views(field: "pa.Field") -> "pa.Field":
    import pyarrow as pa

    others = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return field.with_type(others.get(field.type, field.type))


def _split_batch(batch: "pa.RecordBatch", limit: _UnpackLimit) -> "Iterator[pa.RecordBatch]":
    sizes = sum((_measure_values(column) for column in batch.columns), np.zeros(batch.num_rows, np.int64))
    limit.add_bytes("values", int(sizes.sum()))
    if len(sizes) and sizes.max() > MAX_ROW_BYTES:
        raise limit.error(f"has a row of {int(sizes.max()):,} bytes")
    ends, start = np.cumsum(sizes), 0
    while start < batch.num_rows:
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + MAX_BATCH_BYTES, "right")))
        yield batch.slice(start, stop - start)
        start = stop


def _measure_values(array: Any) -> np.ndarray:
    """Return the bytes of each text or binary value, (n,) int64, also of dictionary-encoded ones."""
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.types as types

    pc: Any = pyarrow.compute  # its functions are created at import, so type checkers do not know them
    kind = array.type
    if types.is_dictionary(kind):
        known = array.indices.is_valid().to_numpy(zero_copy_only=False)
        codes = array.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        sizes = np.append(_measure_values(array.dictionary), 0)
        return np.where(known, sizes[codes], 0)
    if types.is_struct(kind):
        parts = (_measure_values(part) for part in array.flatten())
        return sum(parts, np.zeros(len(array), np.int64))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        ends = np.concatenate(([0], np.cumsum(_measure_values(array.values))))
        return ends[offsets[1:]] - ends[offsets[:-1]]
    if types.is_fixed_size_list(kind):
        inner = _measure_values(array.flatten())
        if array.null_count:
            return np.full(len(array), int(inner.sum()), np.int64)
        return inner.reshape(len(array), -1).sum(1)
    variable = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    if any(is_one(kind) for is_one in variable):
        return pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if types.is_fixed_size_binary(kind):
        return np.full(len(array), kind.byte_width, np.int64)
    if types.is_primitive(kind) or types.is_null(kind) or types.is_decimal(kind):
        return np.zeros(len(array), np.int64)
    if isinstance(kind, pa.BaseExtensionType):
        return _measure_values(array.storage)
    if types.is_string_view(kind) or types.is_binary_view(kind):  # only from Parquet, where views share no bytes
        return _measure_values(array.cast(pa.large_binary()))
    raise _unread_type_error(kind)


def _check_no_views(kind: Any) -> None:
    """Raise for types whose values share bytes, because a kilobyte of views can stand for gigabytes."""
    import pyarrow as pa
    import pyarrow.types as types

    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    shared = (types.is_string_view, types.is_binary_view, types.is_list_view, types.is_large_list_view)
    if any(is_one(kind) for is_one in (*shared, types.is_run_end_encoded, types.is_union)):
        raise _unread_type_error(kind)
    if types.is_dictionary(kind):
        _check_no_views(kind.value_type)
    for number in range(kind.num_fields):
        _check_no_views(kind.field(number).type)


def _unread_type_error(kind: Any) -> AnnotatorError:
    return AnnotatorError(f"A column has the type {kind}, which is not read. Write the table with texts and numbers.")


def _check_uncompressed(path: Path) -> None:
    """Raise for a stream with compressed buffers (see https://flatbuffers.dev/internals)."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as opened:
        reader = pa.ipc.MessageReader.open_stream(opened)
        while True:
            try:
                message = reader.read_next_message()
            except StopIteration:
                return
            text = message.metadata.to_pybytes()
            try:
                is_compressed = _is_compressed(text)
            except struct.error as error:
                raise AnnotatorError(f"{path} is no whole stream of Arrow: {error}.") from error
            if is_compressed:
                raise TableTooLargeError(
                    f"{path} has compressed batches, and what they unpack to is not known beforehand, so that they are "
                    "not read. Write it again uncompressed (save_to_disk of datasets does), or as Parquet."
                )


def _is_compressed(text: bytes) -> bool:
    [root] = struct.unpack_from("<I", text)
    kind_at, header_at = _find_slot(text, root, 1), _find_slot(text, root, 2)
    kind = text[kind_at] if kind_at and kind_at < len(text) else 0
    if kind not in (2, 3) or not header_at:  # DictionaryBatch, RecordBatch
        return False
    header = header_at + struct.unpack_from("<I", text, header_at)[0]
    if kind == 2:
        inner = _find_slot(text, header, 1)
        header = inner + struct.unpack_from("<I", text, inner)[0]
    return bool(_find_slot(text, header, 3))


def _find_slot(text: bytes, table: int, number: int) -> int:
    vtable = table - struct.unpack_from("<i", text, table)[0]
    if vtable < 0:
        raise struct.error("a table without fields")
    [size] = struct.unpack_from("<H", text, vtable)
    place = 4 + 2 * number
    offset = struct.unpack_from("<H", text, vtable + place)[0] if place < size else 0
    return table + offset if offset else 0
