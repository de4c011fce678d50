"""Images inside tables: Parquet with bytes or {bytes, path}, and data sets saved by Hugging Face `datasets` (Arrow).

Formats: https://parquet.apache.org/docs/file-format, https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format,
https://huggingface.co/docs/datasets/image_load. Read with pyarrow, ROWS rows at a time (files/tables.py). A file is
named by the path in its struct, by a column of names, or by the number of its row. The key is "<table>, row <number>",
the name that formats/huggingface.py gives an item.
"""

import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from annotator.errors import AnnotatorError
from annotator.exchange.files.tables import arrow_batches, arrow_schema, parquet_batches, parquet_schema
from annotator.exchange.sources.landing import Landing, UnsafeNameError, fetched, landing, path_of
from annotator.exchange.sources.source import Fetched, Progress, Source
from annotator.store.pictures.kinds import looks_like_image

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 16  # rows read at a time: an image may have several megabytes
NAMES = ("file_name", "image_name", "filename", "file", "path", "image_path", "name")
_MAGIC = {
    b"\xff\xd8\xff": ".jpg",
    b"\x89PNG": ".png",
    b"GIF8": ".gif",
    b"BM": ".bmp",
    b"II*\x00": ".tif",
    b"MM\x00*": ".tif",
    b"II+\x00": ".tif",
    b"MM\x00+": ".tif",
    b"\x00\x00\x00\x0cjP  ": ".jp2",
    b"\xff\x4f\xff\x51": ".j2k",
}


class _Table(NamedTuple):
    """A file of a data set. name: its path relative to the data set."""

    name: str
    path: Path


def recognise(path: Path) -> bool:
    """Return whether a path is a table, or a folder of tables, with a column of images."""
    try:
        found = _tables(path)
        return bool(found) and bool(_columns(_schema(found[0].path)).image)
    except Exception:  # an unreadable path is not a table with images
        return False


def fetch(path: Path, project: Path, progress: Progress | None) -> Fetched:
    """Write the images of all tables as files. Labels are read from the tables themselves."""
    path = path.resolve()
    tables = _tables(path)
    with landing(project, str(path), path.stem if path.is_file() else path.name, progress) as place:
        for table in tables:
            _write_images(table, len(tables) > 1, place)
        place.finish()
        if not place.new + place.changed + place.known:
            named = f", only paths such as {place.example!a}" if place.example else ""
            raise AnnotatorError(
                f"{path} has no image in it: none of its {place.passed_over:,} rows has the bytes of one{named}. "
                "Import the folder with the images, or save the data set with them (save_to_disk of datasets does)."
            )
        place.manifest.keep_fact("root", ".")
        found = fetched(place, [path])
        return replace(found, path_of=path_of(place.folder, place.folder))


def _tables(path: Path) -> list[_Table]:
    if path.is_file():
        return [_Table(path.name, path)] if path.suffix.lower() in (".parquet", ".arrow") else []
    if not path.is_dir():
        return []
    if (path / "dataset_dict.json").is_file() or (path / "state.json").is_file():
        files = sorted([*path.glob("*.arrow"), *path.glob("*/*.arrow")])
    else:
        files = sorted([*path.glob("*.parquet"), *path.glob("*/*.parquet")])
    return [_Table(file.relative_to(path).as_posix(), file) for file in files]


class _Columns(NamedTuple):
    image: str
    name: str
    is_struct: bool


def _schema(path: Path) -> "pa.Schema":
    return arrow_schema(path) if path.suffix == ".arrow" else parquet_schema(path)


def _columns(schema: "pa.Schema") -> _Columns:
    """Return the column of images (structs with bytes, or bytes with a likely name) and of names; "" for none."""
    import pyarrow as pa

    texts = {field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)}
    name = next((name for name in NAMES if name in texts), "")
    for field in schema:
        if pa.types.is_struct(field.type) and _is_bytes(
            field.type.field("bytes").type if "bytes" in _inner(field) else None
        ):
            return _Columns(field.name, name, True)
    for field in schema:
        if _is_bytes(field.type) and field.name.lower() in (
            "image",
            "img",
            "bytes",
            "image_bytes",
            "content",
            "picture",
        ):
            return _Columns(field.name, name, False)
    return _Columns("", "", False)


def _inner(field: "pa.Field") -> list[str]:
    return [field.type.field(number).name for number in range(field.type.num_fields)]


def _is_bytes(type_: Any) -> bool:
    import pyarrow as pa

    return type_ is not None and (pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _write_images(table: _Table, is_one_of_several: bool, place: Landing) -> None:
    import pyarrow as pa

    columns = _columns(_schema(table.path))
    if not columns.image:
        return
    folder = f"{Path(table.name).with_suffix('').as_posix()}/" if is_one_of_several else ""
    number = 0
    try:
        for row in _rows(table.path, [name for name in (columns.image, columns.name) if name]):
            number += 1
            _write_image(row, columns, f"{table.name}, row {number}", folder, number, place)
            place.show("Unpacking", place.new + place.changed + place.known)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise AnnotatorError(f"{table.path} cannot be read beyond row {number}: {error}.") from error


def _write_image(row: dict[str, Any], columns: _Columns, key: str, folder: str, number: int, place: Landing) -> None:
    value = row[columns.image]
    content = value.get("bytes") if isinstance(value, dict) else value
    named = value.get("path") if isinstance(value, dict) else None
    if not content:
        place.pass_over(str(named or ""))
        return
    named = named or (row.get(columns.name) if columns.name else None) or ""
    if not looks_like_image(named):
        named = f"{named or f'{number:08}'}{_ending(content)}"
    try:
        entry = place.register_entry(key, f"{folder}{named}", len(content), f"crc:{zlib.crc32(content):08x}")
    except UnsafeNameError as error:
        place.problems.add(f"{key}, {named!a}: {error}")
        return
    if entry is not None:
        place.write(entry, [content])


def _rows(path: Path, columns: list[str]) -> Iterator[dict[str, Any]]:
    batches = arrow_batches if path.suffix == ".arrow" else parquet_batches
    for batch in batches(path, columns, ROWS):
        yield from batch.to_pylist()


def _ending(content: bytes) -> str:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return ".webp"
    if content[4:8] == b"ftyp":
        return ".avif" if content[8:12] in (b"avif", b"avis") else ".heic"
    return next((ending for magic, ending in _MAGIC.items() if content.startswith(magic)), ".img")


TABLES = Source(
    "tables", "Parquet, or a data set saved by Hugging Face datasets, with the bytes of images", recognise, fetch
)
