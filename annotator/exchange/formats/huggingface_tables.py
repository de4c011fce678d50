"""Tables of a Hugging Face data set: image folder metadata, saved Arrow files, or hub Parquet.

Formats: https://huggingface.co/docs/datasets/image_dataset, Dataset.save_to_disk, and Parquet with the schema
key "huggingface". Nothing is unpickled.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from annotator.errors import AnnotatorError
from annotator.exchange.files.arrow_tables import read_arrow_batches, read_parquet_batches, read_parquet_schema
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_csv_rows, read_lines
from annotator.exchange.files.yaml_text import parse_yaml
from annotator.exchange.formats.shared.embedded_extras import EXTRAS_KEY
from annotator.store.disk.open_files import open_file

if TYPE_CHECKING:
    import pyarrow as pa

METADATA_FILES = ("metadata.parquet", "metadata.jsonl", "metadata.csv")
ROWS_PER_BATCH = 1000  # rows
MAX_JSON_BYTES = 4 << 20  # bytes of a JSON or README file that is read as a whole
MAX_FILES_CHECKED = 50  # Parquet files whose schema is looked at
_SHARD_NAME = re.compile(r"^(.+?)(-\d{3,}-of-\d{3,}.*)?$")

Rows = Callable[[list[str] | None], Iterator[dict[str, Any]]]


@dataclass(frozen=True)
class DatasetTable:
    """A data set file with its rows.

    Attributes:
        name: Path relative to the data set.
        folder: Base of its file names: "train/".
        rows: Function from column names (None for all) to rows.
        features: Hub JSON feature by column.
    """

    name: str
    split: str
    folder: str
    rows: Rows
    features: dict[str, Any]


def recognize(path: Path) -> str | None:
    """Return the type of data set in words, or None."""
    if path.is_dir():
        if (path / "dataset_dict.json").is_file() or (path / "state.json").is_file():
            return "a data set saved by Hugging Face datasets: it has " + (
                "dataset_dict.json" if (path / "dataset_dict.json").is_file() else "state.json"
            )
        if files := _find_metadata_files(path):
            return f"an image folder of Hugging Face datasets: it has {files[0].relative_to(path)}"
    if files := _find_parquet_files(path):
        return f"Parquet of Hugging Face datasets: {files[0].name} names features"
    return None


def list_tables(path: Path) -> list[DatasetTable]:
    """Return all files of a data set. Raises AnnotatorError."""
    features = read_readme_features(path) if path.is_dir() else {}
    if (path / "dataset_dict.json").is_file():
        splits = _check_file_names(_read_json(path / "dataset_dict.json").get("splits"))
        if not splits:
            raise AnnotatorError(f"{path / 'dataset_dict.json'}: the field splits is not a list of names.")
        return [table for split in splits for table in _list_saved_tables(path, path / split, split)]
    if (path / "state.json").is_file():
        return _list_saved_tables(path, path, "")
    if path.is_dir() and (files := _find_metadata_files(path)):
        # Metadata names the images in the column file_name.
        if _get_feature_type(features.get("image")) == "Image" and "file_name" not in features:
            features = {"file_name": {"dtype": "string", "_type": "Value"}} | features
            del features["image"]
        return [_make_metadata_table(path, file, features) for file in files]
    if files := _find_parquet_files(path):
        root = path if path.is_dir() else path.parent
        return [_make_parquet_table(root, file, _find_split_name(file, root), "", features) for file in files]
    raise AnnotatorError(
        f"{path} is no data set of Hugging Face: it has neither metadata.jsonl, .csv or .parquet, nor state.json."
    )


def _get_feature_type(feature: Any) -> str:
    return str(feature.get("_type", "")) if isinstance(feature, dict) else ""


def _find_metadata_files(path: Path) -> list[Path]:
    for name in METADATA_FILES:
        if files := sorted(file for level in ("", "*/", "*/*/") for file in path.glob(level + name) if file.is_file()):
            return files
    return []


def _find_parquet_files(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(
            islice((file for level in ("", "data/", "*/") for file in path.glob(f"{level}*.parquet")), 100_000)
        )
        files = [file for file in files if file.is_file()]
    else:
        files = [path] if path.suffix.lower() == ".parquet" and path.is_file() else []
    files = list(dict.fromkeys(files))
    try:
        return (
            files
            if files and all(b"huggingface" in _read_schema_metadata(file) for file in files[:MAX_FILES_CHECKED])
            else []
        )
    except AnnotatorError:
        return []


def _find_split_name(file: Path, root: Path) -> str:
    match = _SHARD_NAME.match(file.stem)
    folder = file.parent.name if file.parent not in (root, root / "data") else ""
    return folder or (match[1] if match else file.stem)


def _make_metadata_table(root: Path, file: Path, features: dict[str, Any]) -> DatasetTable:
    folder = file.parent.relative_to(root).as_posix()
    split = "" if folder == "." else folder.split("/")[-1]
    prefix = "" if folder == "." else f"{folder}/"
    if file.suffix == ".parquet":
        return _make_parquet_table(root, file, split, prefix, features)
    rows = _make_json_reader(file) if file.suffix == ".jsonl" else _make_csv_reader(file)
    return DatasetTable(file.relative_to(root).as_posix(), split, prefix, rows, features)


def _make_parquet_table(root: Path, file: Path, split: str, prefix: str, features: dict[str, Any]) -> DatasetTable:
    name, facts = file.relative_to(root).as_posix(), _read_schema_metadata(file)
    found = _parse_features(facts.get(b"huggingface"), file) or features
    try:
        splits = msgspec.json.decode(facts.get(EXTRAS_KEY.encode(), b"{}"), type=dict[str, str])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        splits = {}
    return DatasetTable(name, splits.get(split, split), prefix, _make_parquet_reader(file), found)


def _read_schema_metadata(file: Path) -> dict[bytes, bytes]:
    import pyarrow as pa

    try:
        return read_parquet_schema(file).metadata or {}
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise AnnotatorError(f"{file} is no whole Parquet file: {error}.") from error


def _parse_features(text: bytes | None, file: Path) -> dict[str, Any]:
    if not text:
        return {}
    try:
        features = msgspec.json.decode(text)["info"]["features"]
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise AnnotatorError(f"{file}: the features in its schema cannot be read: {error}.") from error
    return features if isinstance(features, dict) else {}


def _make_parquet_reader(file: Path) -> Rows:
    return _make_batch_reader(file, read_parquet_batches)


def _make_batch_reader(file: Path, batches: "Callable[..., Iterator[pa.RecordBatch]]") -> Rows:
    import pyarrow as pa

    def rows(wanted: list[str] | None) -> Iterator[dict[str, Any]]:
        try:
            for batch in batches(file, None if wanted is None else set(wanted), ROWS_PER_BATCH):
                yield from batch.to_pylist()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise AnnotatorError(f"{file} cannot be read to its end: {error}.") from error

    return rows


def _list_saved_tables(root: Path, folder: Path, split: str) -> list[DatasetTable]:
    features = _read_json(folder / "dataset_info.json").get("features") or {}
    listed = _read_json(folder / "state.json").get("_data_files")
    names = _check_file_names(
        [file.get("filename") for file in listed if isinstance(file, dict)] if isinstance(listed, list) else []
    )
    if not names:
        raise AnnotatorError(f"{folder / 'state.json'}: the field _data_files does not name files of this folder.")
    return [
        DatasetTable(
            (folder / name).relative_to(root).as_posix(), split, "", _make_arrow_reader(folder / name), features
        )
        for name in names
    ]


def _check_file_names(listed: Any) -> list[str]:
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    usable = all(name not in ("", ".", "..") and not set(name) & set("/\\\0") for name in names)
    return names if usable and len(names) == len(listed or ()) else []


def _make_arrow_reader(file: Path) -> Rows:
    def rows(wanted: list[str] | None) -> Iterator[dict[str, Any]]:
        if not file.is_file():
            raise AnnotatorError(f"{file} is not there, or no file.")
        yield from _make_batch_reader(file, read_arrow_batches)(wanted)

    return rows


def _make_json_reader(file: Path) -> Rows:
    decode = msgspec.json.Decoder(dict[str, Any]).decode

    def rows(wanted: list[str] | None) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(read_lines(file), start=1):
            if line.strip():
                try:
                    yield decode(line)
                except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                    raise AnnotatorError(f"{file}, line {number}: {error}.") from error

    return rows


def _make_csv_reader(file: Path) -> Rows:
    def rows(wanted: list[str] | None) -> Iterator[dict[str, Any]]:
        problems = Problems()
        found = (row for _, row in read_csv_rows(file, problems))
        header = next(found, [])
        for row in found:
            yield dict(zip(header, (_parse_csv_cell(cell) for cell in row), strict=True))
        if problems.count:
            raise problems.error(f"{file} cannot be read:")

    return rows


def _parse_csv_cell(cell: str) -> Any:
    return {"": None, "true": True, "false": False, "0": 0, "1": 1}.get(cell.lower(), cell)


def _read_json(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > MAX_JSON_BYTES:
            raise AnnotatorError(f"{file} has more than {MAX_JSON_BYTES >> 20} MB. Is it the right file?")
        with open_file(file) as opened:
            return msgspec.json.decode(opened.read(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise AnnotatorError(f"{file} cannot be read: {error}.") from error


def read_readme_features(path: Path) -> dict[str, Any]:
    """Return the features that the YAML of README.md declares, as hub JSON."""
    file = path / "README.md"
    try:
        text = file.read_bytes()[:MAX_JSON_BYTES].decode() if file.is_file() else ""
        _, head, _ = text.split("---\n", 2) if text.startswith("---\n") else ("", "", "")
        info: Any = (parse_yaml(head) or {}).get("dataset_info") or {}
        info = info[0] if isinstance(info, list) and info else info
        listed = info.get("features") or []
        return {feature["name"]: _convert_yaml_feature(feature) for feature in listed}
    except (OSError, ValueError) as error:
        raise AnnotatorError(f"{file}: its YAML cannot be read: {error}.") from error
    except (RecursionError, AttributeError, TypeError, KeyError) as error:
        raise AnnotatorError(f"{file}: its YAML cannot be read: {type(error).__name__} {error}.") from error


def _convert_yaml_feature(feature: Any) -> dict[str, Any]:
    if isinstance(feature, list):
        return {inner["name"]: _convert_yaml_feature(inner) for inner in feature}
    for kind in ("list", "sequence", "large_list"):
        if kind in feature:
            inner = feature[kind]
            inner = {"dtype": inner} if isinstance(inner, str) else inner
            return {"feature": _convert_yaml_feature(inner), "_type": "List"}
    if "struct" in feature:
        return _convert_yaml_feature(feature["struct"])
    kind = feature.get("dtype", feature)
    if isinstance(kind, dict) and "class_label" in kind:
        names = kind["class_label"]["names"]
        if isinstance(names, dict):
            names = [names[key] for key in sorted(names, key=int)]
        return {"names": [str(name) for name in names], "_type": "ClassLabel"}
    return {"_type": "Image"} if kind == "image" else {"dtype": str(kind), "_type": "Value"}
