"""The tables of a Hugging Face data set: metadata of an image folder, saved Arrow files, Parquet of the hub.

Formats: https://huggingface.co/docs/datasets/image_dataset (metadata.jsonl, .csv, .parquet), Dataset.save_to_disk
(dataset_info.json, state.json, data-*.arrow; dataset_dict.json for several splits), and Parquet with the key
"huggingface" in its schema. Arrow and Parquet are read in batches, text line by line; nothing is unpickled.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from annotator.errors import AnnotatorError
from annotator.exchange.files.lines import csv_rows, lines
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.tables import arrow_batches, parquet_batches, parquet_schema
from annotator.exchange.files.yaml_text import read_yaml
from annotator.exchange.formats.shared.extras import KEY
from annotator.store.disk.open_files import open_file

if TYPE_CHECKING:
    import pyarrow as pa

METADATA = ("metadata.parquet", "metadata.jsonl", "metadata.csv")
AT_ONCE = 1000  # rows
LARGEST = 4 << 20  # bytes of a JSON or README file that is read as a whole
GLANCED = 50  # Parquet files whose schema is looked at
_SHARD = re.compile(r"^(.+?)(-\d{3,}-of-\d{3,}.*)?$")

Rows = Callable[[list[str] | None], Iterator[dict[str, Any]]]


@dataclass(frozen=True)
class Table:
    """A file of a data set, with its rows.

    Attributes:
        name: Path of the file relative to the data set.
        split: "" without a split.
        folder: The folder that its file names are relative to, relative to the data set: "train/".
        rows: Reads the rows, with the columns asked for, or with all.
        features: Column -> the feature as the hub's JSON names it; {} if the file does not say.
    """

    name: str
    split: str
    folder: str
    rows: Rows
    features: dict[str, Any]


def recognise(path: Path) -> str | None:
    """Return the kind of the data set in words, or None."""
    if path.is_dir():
        if (path / "dataset_dict.json").is_file() or (path / "state.json").is_file():
            return "a data set saved by Hugging Face datasets: it has " + (
                "dataset_dict.json" if (path / "dataset_dict.json").is_file() else "state.json"
            )
        if files := _metadata(path):
            return f"an image folder of Hugging Face datasets: it has {files[0].relative_to(path)}"
    if files := _parquet(path):
        return f"Parquet of Hugging Face datasets: {files[0].name} names features"
    return None


def tables(path: Path) -> list[Table]:
    """Return all files of a data set. Raises AnnotatorError if the path is not a data set or a file cannot be read."""
    features = readme_features(path) if path.is_dir() else {}
    if (path / "dataset_dict.json").is_file():
        splits = _names(_json(path / "dataset_dict.json").get("splits"))
        if not splits:
            raise AnnotatorError(f"{path / 'dataset_dict.json'}: the field splits is not a list of names.")
        return [table for split in splits for table in _saved(path, path / split, split)]
    if (path / "state.json").is_file():
        return _saved(path, path, "")
    if path.is_dir() and (files := _metadata(path)):
        # Metadata names the images in the column file_name.
        if _kind_of(features.get("image")) == "Image" and "file_name" not in features:
            features = {"file_name": {"dtype": "string", "_type": "Value"}} | features
            del features["image"]
        return [_metadata_table(path, file, features) for file in files]
    if files := _parquet(path):
        root = path if path.is_dir() else path.parent
        return [_parquet_table(root, file, _split_of(file, root), "", features) for file in files]
    raise AnnotatorError(
        f"{path} is no data set of Hugging Face: it has neither metadata.jsonl, .csv or .parquet, nor state.json."
    )


def _kind_of(feature: Any) -> str:
    return str(feature.get("_type", "")) if isinstance(feature, dict) else ""


def _metadata(path: Path) -> list[Path]:
    """Return the metadata files of the folder and of two levels below it, all of one kind."""
    for name in METADATA:
        if files := sorted(file for level in ("", "*/", "*/*/") for file in path.glob(level + name) if file.is_file()):
            return files
    return []


def _parquet(path: Path) -> list[Path]:
    """Return the Parquet files with features in their schema, in the folder, its data/ and its direct subfolders."""
    if path.is_dir():
        files = sorted(
            islice((file for level in ("", "data/", "*/") for file in path.glob(f"{level}*.parquet")), 100_000)
        )
        files = [file for file in files if file.is_file()]
    else:
        files = [path] if path.suffix.lower() == ".parquet" and path.is_file() else []
    files = list(dict.fromkeys(files))
    try:
        return files if files and all(b"huggingface" in _schema_facts(file) for file in files[:GLANCED]) else []
    except AnnotatorError:
        return []


def _split_of(file: Path, root: Path) -> str:
    match = _SHARD.match(file.stem)
    folder = file.parent.name if file.parent not in (root, root / "data") else ""
    return folder or (match[1] if match else file.stem)


def _metadata_table(root: Path, file: Path, features: dict[str, Any]) -> Table:
    folder = file.parent.relative_to(root).as_posix()
    split = "" if folder == "." else folder.split("/")[-1]
    prefix = "" if folder == "." else f"{folder}/"
    if file.suffix == ".parquet":
        return _parquet_table(root, file, split, prefix, features)
    rows = _json_rows(file) if file.suffix == ".jsonl" else _csv_rows(file)
    return Table(file.relative_to(root).as_posix(), split, prefix, rows, features)


def _parquet_table(root: Path, file: Path, split: str, prefix: str, features: dict[str, Any]) -> Table:
    name, facts = file.relative_to(root).as_posix(), _schema_facts(file)
    found = _features_of(facts.get(b"huggingface"), file) or features
    try:
        splits = msgspec.json.decode(facts.get(KEY.encode(), b"{}"), type=dict[str, str])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        splits = {}
    return Table(name, splits.get(split, split), prefix, _parquet_rows(file), found)


def _schema_facts(file: Path) -> dict[bytes, bytes]:
    """Return the metadata that programs have written into the schema of a Parquet file."""
    import pyarrow as pa

    try:
        return parquet_schema(file).metadata or {}
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise AnnotatorError(f"{file} is no whole Parquet file: {error}.") from error


def _features_of(text: bytes | None, file: Path) -> dict[str, Any]:
    if not text:
        return {}
    try:
        features = msgspec.json.decode(text)["info"]["features"]
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise AnnotatorError(f"{file}: the features in its schema cannot be read: {error}.") from error
    return features if isinstance(features, dict) else {}


def _parquet_rows(file: Path) -> Rows:
    return _table_rows(file, parquet_batches)


def _table_rows(file: Path, batches: "Callable[..., Iterator[pa.RecordBatch]]") -> Rows:
    import pyarrow as pa

    def rows(wanted: list[str] | None) -> Iterator[dict[str, Any]]:
        try:
            for batch in batches(file, None if wanted is None else set(wanted), AT_ONCE):
                yield from batch.to_pylist()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise AnnotatorError(f"{file} cannot be read to its end: {error}.") from error

    return rows


def _saved(root: Path, folder: Path, split: str) -> list[Table]:
    """Return the Arrow files of Dataset.save_to_disk."""
    features = _json(folder / "dataset_info.json").get("features") or {}
    listed = _json(folder / "state.json").get("_data_files")
    names = _names(
        [file.get("filename") for file in listed if isinstance(file, dict)] if isinstance(listed, list) else []
    )
    if not names:
        raise AnnotatorError(f"{folder / 'state.json'}: the field _data_files does not name files of this folder.")
    return [
        Table((folder / name).relative_to(root).as_posix(), split, "", _arrow_rows(folder / name), features)
        for name in names
    ]


def _names(listed: Any) -> list[str]:
    """Return the names of a list of files, [] if any of them cannot be the name of a file."""
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    usable = all(name not in ("", ".", "..") and not set(name) & set("/\\\0") for name in names)
    return names if usable and len(names) == len(listed or ()) else []


def _arrow_rows(file: Path) -> Rows:
    def rows(wanted: list[str] | None) -> Iterator[dict[str, Any]]:
        if not file.is_file():
            raise AnnotatorError(f"{file} is not there, or no file.")
        yield from _table_rows(file, arrow_batches)(wanted)

    return rows


def _json_rows(file: Path) -> Rows:
    decode = msgspec.json.Decoder(dict[str, Any]).decode

    def rows(wanted: list[str] | None) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(lines(file), start=1):
            if line.strip():
                try:
                    yield decode(line)
                except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                    raise AnnotatorError(f"{file}, line {number}: {error}.") from error

    return rows


def _csv_rows(file: Path) -> Rows:
    def rows(wanted: list[str] | None) -> Iterator[dict[str, Any]]:
        problems = Problems()
        found = (row for _, row in csv_rows(file, problems))
        header = next(found, [])
        for row in found:
            yield dict(zip(header, (_of_csv(cell) for cell in row), strict=True))
        if problems.count:
            raise problems.error(f"{file} cannot be read:")

    return rows


def _of_csv(cell: str) -> Any:
    return {"": None, "true": True, "false": False, "0": 0, "1": 1}.get(cell.lower(), cell)


def _json(file: Path) -> dict[str, Any]:
    """Return the object in a small JSON file. Raises AnnotatorError."""
    try:
        if file.stat().st_size > LARGEST:
            raise AnnotatorError(f"{file} has more than {LARGEST >> 20} MB. Is it the right file?")
        with open_file(file) as opened:
            return msgspec.json.decode(opened.read(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise AnnotatorError(f"{file} cannot be read: {error}.") from error


def readme_features(path: Path) -> dict[str, Any]:
    """Return the features in the YAML of README.md, in the form of the hub's JSON; {} without features."""
    file = path / "README.md"
    try:
        text = file.read_bytes()[:LARGEST].decode() if file.is_file() else ""
        _, head, _ = text.split("---\n", 2) if text.startswith("---\n") else ("", "", "")
        info: Any = (read_yaml(head) or {}).get("dataset_info") or {}
        info = info[0] if isinstance(info, list) and info else info
        listed = info.get("features") or []
        return {feature["name"]: _of_yaml(feature) for feature in listed}
    except (OSError, ValueError) as error:
        raise AnnotatorError(f"{file}: its YAML cannot be read: {error}.") from error
    except (RecursionError, AttributeError, TypeError, KeyError) as error:
        raise AnnotatorError(f"{file}: its YAML cannot be read: {type(error).__name__} {error}.") from error


def _of_yaml(feature: Any) -> dict[str, Any]:
    if isinstance(feature, list):
        return {inner["name"]: _of_yaml(inner) for inner in feature}
    for kind in ("list", "sequence", "large_list"):
        if kind in feature:
            inner = feature[kind]
            inner = {"dtype": inner} if isinstance(inner, str) else inner
            return {"feature": _of_yaml(inner), "_type": "List"}
    if "struct" in feature:
        return _of_yaml(feature["struct"])
    kind = feature.get("dtype", feature)
    if isinstance(kind, dict) and "class_label" in kind:
        names = kind["class_label"]["names"]
        if isinstance(names, dict):
            names = [names[key] for key in sorted(names, key=int)]
        return {"names": [str(name) for name in names], "_type": "ClassLabel"}
    return {"_type": "Image"} if kind == "image" else {"dtype": str(kind), "_type": "Value"}
