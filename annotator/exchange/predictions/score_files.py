"""Scores of other models in files, read as blocks.

Tables are long (image, class, score) or wide (image, one column per class). A .npy array (images, classes)
needs two text files of names.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from annotator.errors import AnnotatorError, did_you_mean
from annotator.exchange.files.arrow_tables import check_column_count, read_parquet_batches, read_parquet_schema
from annotator.exchange.files.csv_cells import unescape_formula
from annotator.exchange.files.json_stream import check_json
from annotator.exchange.files.npy import NPY_MAGIC, load_array
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import (
    TableBytes,
    read_first_line,
    read_header_line,
    read_lines,
    read_table_lines,
    split_header,
)
from annotator.exchange.formats import all_formats, match_formats
from annotator.exchange.formats.contents import Contents, Item, ScoresOverLow
from annotator.exchange.reading import column_names
from annotator.exchange.reading.cell_words import normalize_word
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.store.runs.prediction_boxes import CellBoxes

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_BLOCK = 8192  # rows of an array, or items, in one block
CSV_BLOCK_BYTES = 1 << 20  # of a CSV in one block
IMAGE_COLUMNS = ("image", "sha256", "file", "filename", "file_name", "path")
CLASS_COLUMNS = ("class", "label", "category", "tag")
SCORE_COLUMNS = ("score", "probability", "confidence", "logit")
INDEX_COLUMNS = ("", "__index_level_0__")  # columns of the index that pandas writes by default
OWN_FORMATS = ("csv", "parquet", "npy")


T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ScoreBlock:
    """The scores of several images."""

    # image name or file sha256 per row
    images: Sequence[str]
    # place in the file per row
    places: Sequence[int | str]
    classes: Sequence[str]
    # (n, C) float, NaN for none
    scores: np.ndarray
    # detector boxes that gave the scores, if known
    boxes: CellBoxes | None = None


@dataclass(frozen=True)
class ScoreFile:
    """A file of scores in a recognized format."""

    format: str
    why: str
    # noun for ScoreBlock.places, such as "row"
    place: str
    # remarks, complete after reading
    sentences: Sequence[str]
    # readable once
    blocks: Iterator[ScoreBlock]
    # classes to omit if the project lacks them
    dispensable: Collection[str] = ()


def read_scores(
    path: Path,
    problems: Problems,
    format_name: str | None = None,
    images_file: Path | None = None,
    classes_file: Path | None = None,
) -> ScoreFile:
    """Recognize a file of scores, which are read with its blocks.

    Raises AnnotatorError for unreadable files. Problems of rows are reported.

    Args:
        format_name: None recognizes it.
        images_file, classes_file: Row and column names of a .npy array, one per line.
    """
    if not path.exists():
        raise AnnotatorError(f"There is nothing at {path}. Is the path spelled right?")
    name, why = _recognize_format(path, format_name)
    if name == "npy":
        return ScoreFile(name, why, "row", (), _read_array(path, images_file, classes_file))
    if images_file or classes_file:
        raise AnnotatorError(
            "--images-file and --classes-file belong to a .npy array; this file names its images itself."
        )
    if name == "parquet":
        return _read_table(name, why, _read_parquet_columns(path), lambda: _read_checked_batches(path), path, problems)
    if name == "csv":
        header, delimiter = _read_header(path)
        return _read_table(name, why, header, lambda: _read_csv_batches(path, header, delimiter), path, problems)
    read = all_formats()[name].read
    assert read is not None  # checked by _recognised
    contents = read(path, problems, ReadingOptions())
    return ScoreFile(name, why, contents.place, contents.sentences, _read_item_scores(contents), contents.dispensable)


def _recognize_format(path: Path, name: str | None) -> tuple[str, str]:
    formats = {key: format_ for key, format_ in all_formats().items() if format_.read and key not in ("csv", "tsv")}
    if name is not None:
        if name == "tsv":
            return "csv", "as you say"
        if name not in OWN_FORMATS and name not in formats:
            known = did_you_mean(name, [*OWN_FORMATS, *formats], max_listed=len(OWN_FORMATS) + len(formats))
            raise AnnotatorError(f"No format with scores is called {name!r}. {known}")
        return name, "as you say"
    start = b""
    if path.is_file():
        with path.open("rb") as file:
            start = file.read(8)
        if start[: len(NPY_MAGIC)] == NPY_MAGIC:
            return "npy", "a NumPy array"
        if start[:4] == b"PAR1":
            return "parquet", "a Parquet file"
    for format_, why in match_formats(path):  # before plain tables: a CSV of Open Images is a format of its own
        if format_.name in formats:
            return format_.name, why
    # The first line is decoded, so that JSON in UTF-16 is told from a table, and why it cannot be read is said.
    is_json = path.is_file() and read_first_line(path).lstrip("\ufeff \t\r\n").startswith(("{", "["))
    if is_json:
        check_json(path)
    if not is_json and "image" in read_header_line(path).lower():
        return "csv", "a table with a column of images"
    if not is_json and path.is_file() and read_first_line(path):
        return "csv", "a text file"
    raise AnnotatorError(f"{path} is of no format that holds scores. Known are: {', '.join([*OWN_FORMATS, *formats])}.")


def _read_item_scores(contents: Contents) -> Iterator[ScoreBlock]:
    items = iter(contents.items)
    while batch := list(islice(items, ROWS_PER_BLOCK)):
        batch = [item for item in batch if item.scores]
        if not batch:
            continue
        parts = [_split_scores(item) for item in batch]
        lows = {id(low): low for _, low in parts}
        places: dict[str, int] = {}
        for names in (*lows.values(), *(given for given, _ in parts)):
            for name in names:
                places.setdefault(name, len(places))
        low_places = {key: [places[name] for name in low] for key, low in lows.items()}
        values = {key: list(low.values()) for key, low in lows.items()}
        scores = np.full((len(batch), len(places)), np.nan)
        for row, (given, low) in enumerate(parts):
            scores[row, low_places[id(low)]] = values[id(low)]
            for name, score in given.items():
                scores[row, places[name]] = score if score == score else np.inf  # nan, too, is then refused
        names = [item.sha256 or item.image for item in batch]
        yield ScoreBlock(names, [item.place for item in batch], list(places), scores, _collect_boxes(batch, places))


_NO_LOW_SCORES: Mapping[str, float] = {}


def _split_scores(item: Item) -> tuple[Mapping[str, float], Mapping[str, float]]:
    scores = item.scores
    return (scores.given, scores.low) if isinstance(scores, ScoresOverLow) else (scores, _NO_LOW_SCORES)


def _collect_boxes(batch: Sequence[Item], places: Mapping[str, int]) -> CellBoxes | None:
    boxes = [(row, box) for row, item in enumerate(batch) for box in item.boxes if box.class_name in places]
    if not boxes:
        return None
    return CellBoxes(
        np.array([row for row, _ in boxes]),
        np.array([places[box.class_name] for _, box in boxes]),
        np.array([box[1:5] for _, box in boxes], np.float64),
        np.array([box.score for _, box in boxes], np.float64),
    )


def _read_array(path: Path, images_file: Path | None, classes_file: Path | None) -> Iterator[ScoreBlock]:
    if images_file is None or classes_file is None:
        raise AnnotatorError(
            f"{path} is an array without names. Say what its rows and columns are, by two files with one name a line "
            "(--images-file NAMES.txt, --classes-file CLASSES.txt)."
        )
    array = load_array(path, path.parent)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise AnnotatorError(f"{path} is {array.dtype} {array.shape}; it must hold numbers, (images, classes).")
    names = list(_read_names(classes_file))
    if len(names) != array.shape[1] or len(set(names)) != len(names):
        raise AnnotatorError(
            f"{path} has {array.shape[1]:,} columns, {classes_file} {len(names):,} names, "
            f"{len(set(names)):,} of them different."
        )
    images, start = _read_names(images_file), 0
    while batch := list(islice(images, ROWS_PER_BLOCK)):
        rows = np.array(array[start : start + len(batch)], np.float64)
        if len(rows) != len(batch):
            break
        yield ScoreBlock(batch, range(start + 1, start + 1 + len(batch)), names, rows)
        start += len(batch)
    left = len(batch) + sum(1 for _ in images)
    if left or start != len(array):
        raise AnnotatorError(f"{path} has {len(array):,} rows, {images_file} {start + left:,} names.")


def _read_names(path: Path) -> Iterator[str]:
    for line in read_lines(path):
        if name := line.strip("\r\n"):
            yield name


def _read_header(path: Path) -> tuple[list[str], str]:
    return split_header(next(read_table_lines(path), ""))


def _read_csv_batches(path: Path, header: list[str], delimiter: str) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa
    import pyarrow.csv as pc

    try:
        yield from pc.open_csv(
            pa.PythonFile(TableBytes(path), mode="r"),
            pc.ReadOptions(block_size=CSV_BLOCK_BYTES, column_names=header, skip_rows=1, use_threads=False),
            pc.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            pc.ConvertOptions(column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False),
        )
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise AnnotatorError(f"{path} cannot be read as a table: {error}.") from error


def _read_parquet_columns(path: Path) -> list[str]:
    import pyarrow as pa

    try:
        return read_parquet_schema(path).names
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise AnnotatorError(f"{path} cannot be read as Parquet: {error}.") from error


def _read_checked_batches(path: Path) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    try:
        yield from read_parquet_batches(path, rows=ROWS_PER_BLOCK)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise AnnotatorError(f"{path} cannot be read as Parquet: {error}.") from error


def _read_table(
    name: str,
    why: str,
    header: list[str],
    batches: "Callable[[], Iterator[pa.RecordBatch]]",
    path: Path,
    problems: Problems,
) -> ScoreFile:
    check_column_count(path, len(header))
    repeated = sorted(column for column, count in Counter(header).items() if count > 1)
    if repeated:
        raise AnnotatorError(f"{path} has several columns called {', '.join(map(repr, repeated))}.")
    named = {normalize_word(column): column for column in reversed(header)}
    image, score = (
        next((named[word] for word in words if word in named), None)
        for words in (("image", "sha256", *column_names.IMAGE_COLUMN_NAMES), column_names.SCORE_COLUMN_NAMES)
    )
    class_ = next((column for column in header if column_names.parse_label_column(column)), None)
    if image is None or len(header) < 2:
        raise AnnotatorError(
            f"{path} has the columns {', '.join(header)[:300]}. It needs image,class,score (a row a cell) or image and "
            "one column a class; a column sha256 instead of image names images by the content of their files."
        )
    if class_ and score:
        said = [f"One row a cell: {image}, {class_}, {score}."]
        return ScoreFile(name, why, "row", said, _read_long_batches(batches(), (image, class_, score), problems))
    classes = [
        column
        for column in header
        if column != image and column.strip().lower() not in (*IMAGE_COLUMNS, *INDEX_COLUMNS)
    ]
    return ScoreFile(
        name,
        why,
        "row",
        [f"{len(classes)} columns of classes."],
        _read_wide_batches(batches(), image, classes, problems),
    )


def _read_wide_batches(
    batches: "Iterator[pa.RecordBatch]", image: str, columns: list[str], problems: Problems
) -> Iterator[ScoreBlock]:
    row, names = 1, [unescape_formula(column.strip()) for column in columns]
    for batch in batches:
        places = range(row, row + batch.num_rows)
        images = [unescape_formula(text) for text in _to_texts(batch.column(image))]
        values = [_to_numbers(batch.column(column), column, places, problems) for column in columns]
        row += batch.num_rows
        yield ScoreBlock(images, places, names, np.stack(values, 1))


def _read_long_batches(
    batches: "Iterator[pa.RecordBatch]", columns: tuple[str, str, str], problems: Problems
) -> Iterator[ScoreBlock]:
    row = 1
    for batch in batches:
        places = np.arange(row, row + batch.num_rows)
        row += batch.num_rows
        names, column = _encode_values([unescape_formula(name.strip()) for name in _to_texts(batch.column(columns[1]))])
        images = [unescape_formula(text) for text in _to_texts(batch.column(columns[0]))]
        # A second score of a cell gets a row of its own, so that it is noticed.
        again = _count_earlier_equals(_encode_values(images)[1] * max(len(names), 1) + column)
        rows, at = _encode_values(list(zip(images, again.tolist(), strict=True)))
        numbers = _to_numbers(batch.column(columns[2]), columns[2], places.tolist(), problems)
        scores = np.full((len(rows), len(names)), np.nan)
        scores[at, column] = numbers
        firsts = np.unique(at, return_index=True)[1]
        yield ScoreBlock([image for image, _ in rows], places[firsts].tolist(), names, scores)


def _encode_values(values: list[T]) -> tuple[list[T], np.ndarray]:
    """Return the distinct values in order of appearance, and the index of each value in them, (n,) int64."""
    place: dict[T, int] = {}
    codes = np.array([place.setdefault(value, len(place)) for value in values], np.int64)
    return list(place), codes


def _count_earlier_equals(keys: np.ndarray) -> np.ndarray:
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.searchsorted(ordered, ordered)
    result = np.empty(len(keys), np.int64)
    result[order] = np.arange(len(keys)) - first
    return result


def _to_texts(column: "pa.Array") -> list[str]:
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _to_numbers(column: "pa.Array", name: str, places: Sequence[int], problems: Problems) -> np.ndarray:
    """Return a column as (n,) float64, NaN for empty cells and for other texts, which are reported."""
    import pyarrow as pa
    import pyarrow.compute

    pc: Any = pyarrow.compute  # its functions are created at import, so type checkers do not know them
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if is_text:
        column = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
    try:
        numbers = pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
        given = pc.is_valid(column).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.array(
            [_to_number(value, name, place, problems) for value, place in zip(column.to_pylist(), places, strict=True)]
        )
    numbers = np.where(given, numbers, np.nan)
    for at in np.flatnonzero(given & ~np.isfinite(numbers)).tolist():
        problems.add(f"row {places[at]}: the score {numbers[at]} in column {name!r} is not a number")
        numbers[at] = np.nan
    return numbers


def _to_number(value: Any, name: str, place: int, problems: Problems) -> float:
    if value is None:
        return np.nan
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        problems.add(f"row {place}: the score {str(value)[:60]!r} in column {name!r} is not a number")
        return np.nan
    return number
