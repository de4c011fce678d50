"""The floor: each file of an export is read whole and written again by the library that people use for it.

Nothing is checked, looked up or stored, and memory grows with the file: less work than an export or an import does.
"""

import json
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

MAX_OBJECT_FILE_BYTES = 1_500_000_000  # bytes of one JSON or XML file: its objects take ten times as much memory


class Library(NamedTuple):
    """The two functions by which a library reads and writes one kind of file."""

    read: Callable[[Path], Any]
    write: Callable[[Any, Path], object]


def _make_json_lines_library() -> Library:
    def read(path: Path) -> list[Any]:
        with path.open(encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def write(values: list[Any], path: Path) -> None:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(value, ensure_ascii=False) + "\n" for value in values)

    return Library(read, write)


def _make_table_library(separator: str) -> Library:
    import pandas as pd

    return Library(
        lambda path: pd.read_csv(path, sep=separator),
        lambda table, path: table.to_csv(path, sep=separator, index=False),
    )


def _make_parquet_library() -> Library:
    import pyarrow.parquet as pq

    return Library(pq.read_table, lambda table, path: pq.write_table(table, path, compression="zstd"))


def _make_json_library() -> Library:
    return Library(
        lambda path: json.loads(path.read_bytes()),
        lambda value, path: path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8"),
    )


def _make_xml_library() -> Library:
    return Library(lambda path: ElementTree.parse(path), lambda tree, path: tree.write(path, encoding="utf-8"))


def _make_array_library() -> Library:
    return Library(lambda path: np.load(path), lambda array, path: np.save(path, array))


def _make_tar_library() -> Library:
    def read(path: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
        with tarfile.open(path) as file:
            return [(member, file.extractfile(member).read()) for member in file if member.isfile()]  # type: ignore[union-attr]

    def write(members: list[tuple[tarfile.TarInfo, bytes]], path: Path) -> None:
        import io

        with tarfile.open(path, "w") as file:
            for member, content in members:
                file.addfile(member, io.BytesIO(content))

    return Library(read, write)


def _make_bytes_library() -> Library:
    return Library(Path.read_bytes, lambda content, path: path.write_bytes(content))


LIBRARY_MAKERS: dict[str, Callable[[], Library]] = {
    ".csv": lambda: _make_table_library(","),
    ".tsv": lambda: _make_table_library("\t"),
    ".jsonl": _make_json_lines_library,
    ".json": _make_json_library,
    ".parquet": _make_parquet_library,
    ".npy": _make_array_library,
    ".xml": _make_xml_library,
    ".tar": _make_tar_library,
}


def measure_floor(
    files: list[Path], copy_folder: Path, progress: Callable[[int, int], None]
) -> dict[str, float] | None:
    """Return the seconds and processor seconds of reading and writing the files; None if one is too large.

    Args:
        files: The files to read and to write again.
        copy_folder: A new folder for what is written.
        progress: Called with (files done, files in all).
    """
    if any(
        path.suffix in (".json", ".jsonl", ".xml") and path.stat().st_size > MAX_OBJECT_FILE_BYTES for path in files
    ):
        return None
    copy_folder.mkdir()
    libraries = {
        suffix: LIBRARY_MAKERS.get(suffix, _make_bytes_library)() for suffix in {path.suffix for path in files}
    }
    taken: dict[str, float] = dict.fromkeys(
        ("read_seconds", "read_cpu_seconds", "write_seconds", "write_cpu_seconds"), 0.0
    )
    for number, path in enumerate(files, start=1):
        library = libraries[path.suffix]
        value = _time_call(taken, "read", lambda: library.read(path))  # noqa: B023 - called at once
        _time_call(taken, "write", lambda: library.write(value, copy_folder / f"{number}{path.suffix}"))  # noqa: B023 - called at once
        if number % 1000 == 0 or number == len(files):
            progress(number, len(files))
    return taken


def _time_call(totals: dict[str, float], operation: str, call: Callable[[], Any]) -> Any:
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    for name, spent in (("seconds", time.perf_counter() - wall), ("cpu_seconds", time.process_time() - cpu)):
        totals[f"{operation}_{name}"] = totals.get(f"{operation}_{name}", 0.0) + spent
    return value
