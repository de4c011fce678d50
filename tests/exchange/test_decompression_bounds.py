"""What a small file stands for is bounded: tables, Arrow, YAML and wide tables that unpack to gigabytes are refused.

Each bomb is read in a child process, whose memory is what the system says of it.
"""

import io
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from harness.tables import over
from PIL import Image

from annotator.errors import AnnotatorError
from annotator.exchange.files import arrow_tables, parquet_pages
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.yaml_text import parse_yaml
from annotator.exchange.formats import FORMATS
from annotator.exchange.predictions.score_files import read_scores
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.exchange.sources import fetch_source

pytestmark = pytest.mark.process

LONG = "x" * 4_000_000
TIMES = 1150  # that a file of two kilobytes has it: 4.6 GB
MOST = 500 << 10  # KB of memory that may be needed
FEATURES = {name: {"dtype": "string", "_type": "Value"} for name in ("file_name", "label")}


def again(text: str | bytes, times: int = TIMES) -> pa.Array:
    """The same text so many times, by its number in a dictionary."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(times, np.int32)), pa.array([text]))


def packed(folder: Path, columns: dict, name: str = "table.parquet", **options) -> Path:
    table = pa.table(columns)
    of_hub = options.pop("of_hub", False)
    if of_hub:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": FEATURES}})})
    pq.write_table(table, folder / name, compression="zstd", store_schema=of_hub, **options)
    assert (folder / name).stat().st_size < 200_000
    return folder / name


def arrow(folder: Path, columns: dict) -> Path:
    table = pa.table(columns)
    (folder / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
    (folder / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(folder / "data.arrow", table.schema, options=options) as stream:
        stream.write_table(table)
    return folder


def bitmap() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (2000, 2000)).save(file, "BMP")
    return file.getvalue()


NAMES = [f"{number % 4:02}.jpg" for number in range(TIMES)]
BOMBS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a long class, again and again": (lambda at: packed(at, {"image": NAMES, "labels": again(LONG)}), "parquet"),
    "a long annotator": (
        lambda at: packed(at, {"image": NAMES, "class": ["fox"] * TIMES, "annotator": again(LONG)}), "parquet"),
    "a list of long classes": (
        lambda at: packed(
            at, {"image": ["00.jpg"], "labels": pa.ListArray.from_arrays(
                pa.array([0, TIMES], pa.int32()), again(LONG))}), "parquet"),
    "a page of zeros": (
        lambda at: packed(at, {"image": ["00.jpg"], "labels": ["\0" * 300_000_000]}, use_dictionary=False), "parquet"),
    "rows of nothing": (
        lambda at: packed(at, {name: pa.nulls(30_000_000, pa.string()) for name in ("image", "labels")}), "parquet"),
    "the hub's": (
        lambda at: packed(at, {"file_name": NAMES, "label": again(LONG)}, of_hub=True), "huggingface"),
    "metadata of the hub": (
        lambda at: packed(at, {"file_name": NAMES, "label": again(LONG)}, "metadata.parquet").parent, "huggingface"),
    "saved by the hub's": (
        lambda at: arrow(at, {"file_name": ["00.jpg"], "label": ["x" * 400_000_000]}), "huggingface"),
    "names of scores": (lambda at: packed(at, {"image": again(LONG), "fox": np.linspace(0, 1, TIMES)}), "scores"),
    "images": (
        lambda at: packed(at, {"image": again(bitmap(), 150), "file_name": NAMES[:150]}, "images.parquet",
                          dictionary_pagesize_limit=1 << 26), "images"),
    "images of the hub": (lambda at: arrow(at, {"image": [bytes(400_000_000)], "file_name": ["00.jpg"]}), "images"),
}  # fmt: skip


def read(path: Path, kind: str, project: Path) -> None:
    if kind == "images":
        fetch_source(path, project)
        return
    if kind == "scores":
        for _ in read_scores(path, Problems(), path.suffix.strip(".")).blocks:
            pass
        return
    reader = FORMATS[kind].read
    assert reader is not None
    for _ in reader(path, Problems(), ReadingOptions()).items:
        pass


def in_a_child(call: Callable[[], None]) -> tuple[str, int]:
    """The error of a call, "" for none, and by how many KB the memory of its process grew."""
    source, target = os.pipe()
    child = os.fork()
    if not child:
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the highest memory so far is that of now
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            said = ""
            try:
                call()
            except AnnotatorError as error:
                said = str(error)
            except BaseException as error:
                said = f"not told in words: {error!r}"
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            os.write(target, json.dumps([said[:500], grown]).encode())
        finally:
            os._exit(0)
    os.close(target)
    with os.fdopen(source) as told:
        text = told.read()
    os.waitpid(child, 0)
    assert text, "the process was killed"
    return tuple(json.loads(text))


@pytest.mark.slow
@over(name=BOMBS)
def test_table_that_unpacks_to_gigabytes_is_refused_in_little_memory(tmp_path_factory, name):
    folder, project = tmp_path_factory.mktemp("bomb"), tmp_path_factory.mktemp("project")
    make, kind = BOMBS[name]
    path = make(folder)
    said, grown = in_a_child(lambda: read(path, kind, project))
    assert grown < MOST, f"{grown:,} KB, {said}"
    assert "not read" in said and ("write it again" in said.lower() or "uncompressed" in said), said
    assert sum(file.stat().st_size for file in project.rglob("*") if file.is_file()) < 300_000_000


def test_repetitive_tables_within_the_limits_are_read_unchanged(tmp_path):
    kinds = pa.map_(pa.string(), pa.string())
    columns = {
        "image": [f"{number:04}.jpg" for number in range(2500)],
        "labels": [["fox", "cat"], [], None, ["cat"], [""]] * 500,
        "who": pa.array(["Ann", None] * 1250).dictionary_encode(),
        "facts": pa.array([[("a", "1")], None] * 1250, kinds),
        "picture": [{"bytes": b"abc", "path": "a"}, None] * 1250,
        "view": pa.array(["u", "v"] * 1250, pa.string_view()),
        "fixed": pa.array([b"abc", None] * 1250, pa.binary(3)),
        "dotted.name": ["d"] * 2500,
    }
    table = pa.table(columns)
    encodings = {"dotted.name": "DELTA_BYTE_ARRAY", "image": "DELTA_LENGTH_BYTE_ARRAY"}
    several: list[dict[str, Any]] = [
        {},
        {"use_dictionary": False},
        {"data_page_version": "2.0"},
        {"row_group_size": 700, "data_page_size": 500},
        {"use_dictionary": False, "column_encoding": encodings},
    ]
    for number, options in enumerate(several):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table, path, **options)
        found = [row for batch in arrow_tables.read_parquet_batches(path) for row in batch.to_pylist()]
        assert found == table.to_pylist(), options
        some = [
            row
            for batch in arrow_tables.read_parquet_batches(path, {"view", "dotted.name"}, 7)
            for row in batch.to_pylist()
        ]
        assert some == table.select(["view", "dotted.name"]).to_pylist(), options
    plain = table.drop_columns(["view"])
    with pa.ipc.new_stream(tmp_path / "a.arrow", plain.schema) as stream:
        stream.write_table(plain)
    assert [row for batch in arrow_tables.read_arrow_batches(tmp_path / "a.arrow") for row in batch.to_pylist()] == (
        plain.to_pylist()
    )
    with pa.ipc.new_stream(tmp_path / "v.arrow", table.schema) as stream:
        stream.write_table(table)
    with pytest.raises(AnnotatorError, match="string_view, which is not read"):
        list(arrow_tables.read_arrow_batches(tmp_path / "v.arrow"))


def test_values_of_all_parquet_pages_sum_to_the_row_count(tmp_path):
    texts = ["a" * number for number in range(3000)]
    pq.write_table(pa.table({"a": texts, "b": range(3000)}), tmp_path / "a.parquet", data_page_size=2000)
    group = pq.read_metadata(tmp_path / "a.parquet").row_group(0)
    with (tmp_path / "a.parquet").open("rb") as file:
        for number in range(2):
            column = group.column(number)
            start = column.dictionary_page_offset or column.data_page_offset
            found = list(parquet_pages.read_pages(file, start, column.total_compressed_size))
            assert sum(page.values for page in found) == 3000 and len(found) > 2
            assert 0 < sum(page.unpacked for page in found) <= column.total_uncompressed_size
        with pytest.raises(ValueError):
            list(parquet_pages.read_pages(file, 4, 3))


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_yaml_with_expanding_aliases_is_refused(tmp_path):
    for text in (f"{LAUGHS}names: *i\n", f"a: &a '{'x' * 5000}'\nnames: [{', '.join(['*a'] * 5000)}]\n"):
        (tmp_path / "data.yaml").write_text(text)
        (tmp_path / "images").mkdir(exist_ok=True)
        said, grown = in_a_child(lambda: read(tmp_path / "data.yaml", "yolo", tmp_path))
        assert "aliases" in said and "Write them out" in said and grown < MOST, (said, grown)
        (tmp_path / "README.md").write_text(
            f"---\n{text}dataset_info:\n  features:\n  - name: label\n    dtype: {{class_label: {{names: *a}}}}\n---\n"
        )
        (tmp_path / "metadata.jsonl").write_text('{"file_name": "a.jpg", "label": 0}\n')
        with pytest.raises(AnnotatorError, match="aliases"):
            read(tmp_path, "huggingface", tmp_path)
    with pytest.raises(ValueError, match="contains itself"):
        parse_yaml("a: &a [*a]")
    with pytest.raises(ValueError, match="nested too deep"):
        parse_yaml("[" * 10_000)
    assert parse_yaml("a: &a [1, no]\nb: *a\nc: {<<: {d: 2}}") == {"a": [1, False], "b": [1, False], "c": {"d": 2}}
    assert parse_yaml("a: &a [1, no]\nb: *a", only_texts=True) == {"a": ["1", "no"], "b": ["1", "no"]}


@over(kind=["csv", "scores"])
def test_table_with_too_many_columns_is_refused(tmp_path_factory, kind):
    folder = tmp_path_factory.mktemp("wide")
    names = [f"c{number}" for number in range(arrow_tables.MAX_COLUMNS + 1)]
    (folder / "a.csv").write_text(f"image,{','.join(names)}\n00.jpg{',1' * len(names)}\n")
    with pytest.raises(AnnotatorError, match="100,002 columns; 100,000 are read at most"):
        read(folder / "a.csv", kind, folder)
