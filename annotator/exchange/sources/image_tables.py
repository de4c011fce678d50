"""Images in Parquet tables and in Arrow data sets of Hugging Face `datasets`.

Formats: https://parquet.apache.org/docs/file-format,
https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format,
https://huggingface.co/docs/datasets/image_load. Keys are "<table>, row <number>", as in
formats/huggingface.py.
"""

import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from annotator.errors import AnnotatorError
from annotator.exchange.files.arrow_tables import (
    read_arrow_batches,
    read_arrow_schema,
    read_parquet_batches,
    read_parquet_schema,
)
from annotator.exchange.sources.fetch_folder import (
    FetchFolder,
    UnsafeNameError,
    build_fetched,
    make_path_finder,
    open_fetch_folder,
)
from annotator.exchange.sources.source import FetchedFiles, Source
from annotator.progress_callbacks import StepCallback
from annotator.store.pictures.picture_kinds import looks_like_image

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_BATCH = 16  # rows read at a time: an image may have several megabytes
NAME_COLUMNS = ("file_name", "image_name", "filename", "file", "path", "image_path", "name")
_SUFFIX_BY_MAGIC = {
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


class _TableFile(NamedTuple):
    """A file of the data set with its relative name."""

    name: str
    path: Path


def recognize(path: Path) -> bool:
    """Return whether a table or folder of tables has an image column."""
    try:
        found = _list_tables(path)
        return bool(found) and bool(_find_columns(_read_schema(found[0].path)).image)
    except Exception:  # an unreadable path is not a table with images
        return False


def fetch(path: Path, project: Path, progress: StepCallback | None) -> FetchedFiles:
    path = path.resolve()
    tables = _list_tables(path)
    with open_fetch_folder(project, str(path), path.stem if path.is_file() else path.name, progress) as place:
        for table in tables:
            _write_images(table, len(tables) > 1, place)
        place.finish()
        if not place.new + place.changed + place.known:
            named = f", only paths such as {place.example!a}" if place.example else ""
            raise AnnotatorError(
                f"{path} has no image in it: none of its {place.skipped:,} rows has the bytes of one{named}. Import "
                "the folder with the images, or save the data set with them (save_to_disk of datasets does)."
            )
        place.manifest.set_fact("root", ".")
        found = build_fetched(place, [path])
        return replace(found, find_path=make_path_finder(place.folder, place.folder))


def _list_tables(path: Path) -> list[_TableFile]:
    if path.is_file():
        return [_TableFile(path.name, path)] if path.suffix.lower() in (".parquet", ".arrow") else []
    if not path.is_dir():
        return []
    if (path / "dataset_dict.json").is_file() or (path / "state.json").is_file():
        files = sorted([*path.glob("*.arrow"), *path.glob("*/*.arrow")])
    else:
        files = sorted([*path.glob("*.parquet"), *path.glob("*/*.parquet")])
    return [_TableFile(file.relative_to(path).as_posix(), file) for file in files]


class _Columns(NamedTuple):
    image: str
    name: str
    is_struct: bool


def _read_schema(path: Path) -> "pa.Schema":
    return read_arrow_schema(path) if path.suffix == ".arrow" else read_parquet_schema(path)


def _find_columns(schema: "pa.Schema") -> _Columns:
    import pyarrow as pa

    texts = {field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)}
    name = next((name for name in NAME_COLUMNS if name in texts), "")
    for field in schema:
        if pa.types.is_struct(field.type) and _is_binary_type(
            field.type.field("bytes").type if "bytes" in _struct_field_names(field) else None
        ):
            return _Columns(field.name, name, True)
    for field in schema:
        if _is_binary_type(field.type) and field.name.lower() in (
            "image",
            "img",
            "bytes",
            "image_bytes",
            "content",
            "picture",
        ):
            return _Columns(field.name, name, False)
    return _Columns("", "", False)


def _struct_field_names(field: "pa.Field") -> list[str]:
    return [field.type.field(number).name for number in range(field.type.num_fields)]


def _is_binary_type(type_: Any) -> bool:
    import pyarrow as pa

    return type_ is not None and (pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _write_images(table: _TableFile, is_one_of_several: bool, place: FetchFolder) -> None:
    import pyarrow as pa

    columns = _find_columns(_read_schema(table.path))
    if not columns.image:
        return
    folder = f"{Path(table.name).with_suffix('').as_posix()}/" if is_one_of_several else ""
    number = 0
    try:
        for row in _read_rows(table.path, [name for name in (columns.image, columns.name) if name]):
            number += 1
            _write_image(row, columns, f"{table.name}, row {number}", folder, number, place)
            place.report_progress("Unpacking", place.new + place.changed + place.known)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise AnnotatorError(f"{table.path} cannot be read beyond row {number}: {error}.") from error


def _write_image(
    row: dict[str, Any], columns: _Columns, key: str, folder: str, number: int, place: FetchFolder
) -> None:
    value = row[columns.image]
    content = value.get("bytes") if isinstance(value, dict) else value
    named = value.get("path") if isinstance(value, dict) else None
    if not content:
        place.skip_entry(str(named or ""))
        return
    named = named or (row.get(columns.name) if columns.name else None) or ""
    if not looks_like_image(named):
        named = f"{named or f'{number:08}'}{_detect_suffix(content)}"
    try:
        entry = place.register_entry(key, f"{folder}{named}", len(content), f"crc:{zlib.crc32(content):08x}")
    except UnsafeNameError as error:
        place.problems.add(f"{key}, {named!a}: {error}")
        return
    if entry is not None:
        place.write_entry(entry, [content])


def _read_rows(path: Path, columns: list[str]) -> Iterator[dict[str, Any]]:
    batches = read_arrow_batches if path.suffix == ".arrow" else read_parquet_batches
    for batch in batches(path, columns, ROWS_PER_BATCH):
        yield from batch.to_pylist()


def _detect_suffix(content: bytes) -> str:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return ".webp"
    if content[4:8] == b"ftyp":
        return ".avif" if content[8:12] in (b"avif", b"avis") else ".heic"
    return next((ending for magic, ending in _SUFFIX_BY_MAGIC.items() if content.startswith(magic)), ".img")


TABLES = Source(
    "tables", "Parquet, or a data set saved by Hugging Face datasets, with the bytes of images", recognize, fetch
)
