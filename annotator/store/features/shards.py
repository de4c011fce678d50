"""One shard of features: a safetensors file named by the sha256 of its content.

It holds image_ids (n,) int64, contents (n, 8) uint8 (sha256 prefix of each image, project_contents.py),
features (n, D) float16, and for the R regions of each image either

    regions (n, R, D) float16       backbone features, 23 KB per image, or
    codes (n, R, K) int8            coordinates in a basis (stored_basis.py) named in the metadata, with
    lengths (n, R) float16          exact distances from its center, 2.3 KB per image

The first images of a project have regions, because the basis is learned from them. Afterwards all have codes.
"""

import hashlib
import json
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from annotator.store.database.arrays import replace_file_atomically
from annotator.store.features.project_contents import HASH_BYTES

SHARD_SUFFIX = ".safetensors"
BASIS_FILE = f"basis{SHARD_SUFFIX}"  # stored_basis.py; beside the shards
CHUNK_ROWS = 8192  # whose features are looked at at once: 21 MB
ARRAY_DTYPES = {
    "image_ids": "<i8",
    "contents": "u1",
    "features": "<f2",
    "regions": "<f2",
    "codes": "i1",
    "lengths": "<f2",
}
SAFETENSORS_DTYPES = {"<i8": "I64", "<f2": "F16", "i1": "I8", "u1": "U8"}  # as the header of the file names these types
FLOAT16_EXPONENT_MASK = np.uint16(0x7C00)  # the bits of a float16 that are all set in inf and nan


@dataclass(frozen=True, eq=False)
class CodedRegions:
    """The coded regions of n images."""

    # (n, R, K) int8 steps along the basis axes
    codes: np.ndarray
    # (n, R) float16 distances from the basis center
    lengths: np.ndarray
    basis: str


@dataclass(frozen=True)
class PackedShard:
    """A shard as bytes, named by their sha256."""

    name: str
    content: bytes


@dataclass(frozen=True)
class ArrayLocation:
    """The offset in bytes, shape and type of an array in a file."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        return prod(self.shape[1:]) * self.dtype.itemsize


@dataclass(frozen=True, eq=False)
class Shard:
    """The usable rows of a shard file, and where its arrays are."""

    path: Path
    # (n,) int64
    image_ids: np.ndarray
    # (n, 8) uint8, sha256 prefixes
    contents: np.ndarray
    # (n,) int64, ascending row of each image in the file
    rows: np.ndarray
    # (R, D): number of regions per image and feature size
    size: tuple[int, int]
    # name of the basis of its codes, or None if it holds regions
    basis: str | None
    # array name -> location in the file
    arrays: dict[str, ArrayLocation]
    # images omitted because their features are not finite
    not_finite: int = 0


class DamagedShard(ValueError):
    """An error for a shard whose content has changed."""


def pack_shard(
    image_ids: np.ndarray, contents: np.ndarray, features: np.ndarray, regions: np.ndarray | CodedRegions
) -> PackedShard:
    """Return a shard as bytes, for a process that cannot write to the folder itself.

    Args:
        image_ids: (n,) int64.
        contents: (n, 8) uint8 sha256 prefixes (project_contents.py).
        features: (n, D) float16.
        regions: (n, R, D) float16 features of each image's regions, or their codes.

    Raises:
        ValueError: The shapes do not match.
    """
    arrays: dict[str, np.ndarray] = {
        "image_ids": np.ascontiguousarray(image_ids, np.int64),
        "contents": np.ascontiguousarray(contents, np.uint8),
        "features": np.ascontiguousarray(features, np.float16),
    }
    metadata: dict[str, str] = {}
    if isinstance(regions, CodedRegions):
        arrays["codes"] = np.ascontiguousarray(regions.codes, np.int8)
        arrays["lengths"] = np.ascontiguousarray(regions.lengths, np.float16)
        metadata["basis"] = regions.basis
    else:
        arrays["regions"] = np.ascontiguousarray(regions, np.float16)
    reason = _find_shape_problem({name: array.shape for name, array in arrays.items()})
    if reason:
        raise ValueError(reason)
    content = save(arrays, metadata)
    return PackedShard(hashlib.sha256(content).hexdigest(), content)


def publish_shard(folder: Path, packed: PackedShard) -> Path:
    """Write a packed shard idempotently and return its path, or raise DiskFull or DamagedShard."""
    if hashlib.sha256(packed.content).hexdigest() != packed.name:
        raise DamagedShard(f"The shard {packed.name[:12]} has changed on its way. Send it again.")
    path = folder / f"{packed.name}{SHARD_SUFFIX}"
    with replace_file_atomically(path) as temporary:
        temporary.write_bytes(packed.content)
    return path


def write_shard(
    folder: Path,
    image_ids: np.ndarray,
    contents: np.ndarray,
    features: np.ndarray,
    regions: np.ndarray | CodedRegions,
) -> Path:
    """Pack and publish a shard, and return its path."""
    return publish_shard(folder, pack_shard(image_ids, contents, features, regions))


def list_shards(folder: Path) -> list[Path]:
    """Return the finished shards in a folder, by name."""
    return sorted(
        path for path in folder.glob(f"*{SHARD_SUFFIX}") if not path.name.startswith(".") and path.name != BASIS_FILE
    )


def read_shard(path: Path) -> Shard:
    """Read and check a shard, and return its usable rows.

    Raises:
        DamagedShard: The content has changed, or its arrays do not match.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != path.stem:
            raise DamagedShard("its content is not the one that was written (sha256)")
    arrays, basis = locate_arrays(path)
    rows = _find_finite_rows(path, arrays["features"])
    regions = arrays["codes" if "codes" in arrays else "regions"]
    size = regions.shape[1], arrays["features"].shape[1]
    ids, contents = read_ids(path, arrays)
    return Shard(path, ids[rows], contents[rows], rows, size, basis, arrays, len(ids) - len(rows))


def locate_arrays(path: Path) -> tuple[dict[str, ArrayLocation], str | None]:
    """Return a shard's arrays by name, and its basis name, or raise DamagedShard or OSError.

    See https://github.com/huggingface/safetensors#format
    """
    try:
        file: Any = safe_open(path, framework="numpy")  # not typed; checks the form
        with file as shard:
            metadata: dict[str, str] = shard.metadata() or {}
    except SafetensorError as error:
        raise DamagedShard(str(error)) from error
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    arrays = {
        name: ArrayLocation(8 + length + header[name]["data_offsets"][0], tuple(header[name]["shape"]), np.dtype(kind))
        for name, kind in ARRAY_DTYPES.items()
        if name in header
    }
    if not {"image_ids", "contents", "features"} <= arrays.keys() or not {"regions", "codes"} & arrays.keys():
        raise DamagedShard("it has no image ids, contents, features, or neither regions nor codes of them")
    strange = [name for name in arrays if header[name]["dtype"] != SAFETENSORS_DTYPES[ARRAY_DTYPES[name]]]
    if strange:
        raise DamagedShard(f"its {' and '.join(strange)} are of another type")
    if reason := _find_shape_problem({name: array.shape for name, array in arrays.items()}):
        raise DamagedShard(reason)
    return arrays, metadata.get("basis")


def read_ids(path: Path, arrays: dict[str, ArrayLocation]) -> tuple[np.ndarray, np.ndarray]:
    """Return the image ids (n,) int64 and contents (n, 8) uint8 of a shard. Raises OSError."""
    ids, contents = arrays["image_ids"], arrays["contents"]
    return (
        _read_array(path, ids, 0, ids.shape[0]).astype(np.int64),
        _read_array(path, contents, 0, contents.shape[0]),
    )


def _find_shape_problem(shapes: dict[str, tuple[int, ...]]) -> str:
    ids, features = shapes["image_ids"], shapes["features"]
    if shapes["contents"] != (*ids, HASH_BYTES):
        return f"Image ids {ids} and contents {shapes['contents']} must be (n,) and (n, {HASH_BYTES})."
    if "codes" in shapes:
        codes, lengths = shapes["codes"], shapes.get("lengths", ())
        if len(ids) == 1 and len(features) == 2 and len(codes) == 3 and ids == features[:1] == codes[:1]:
            return "" if lengths == codes[:2] else f"Codes {codes} and lengths {lengths} must be (n, R, K) and (n, R)."
        return f"Image ids {ids}, features {features} and codes {codes} must be (n,), (n, D) and (n, R, K)."
    regions = shapes["regions"]
    if len(ids) == 1 and len(features) == 2 and ids == features[:1] and regions[:1] + regions[2:] == features:
        return ""
    return f"Image ids {ids}, features {features} and regions {regions} must be (n,), (n, D) and (n, R, D)."


def _find_finite_rows(path: Path, features: ArrayLocation) -> np.ndarray:
    finite = [np.zeros(0, bool)]
    for start in range(0, features.shape[0], CHUNK_ROWS):
        block = _read_array(path, features, start, min(CHUNK_ROWS, features.shape[0] - start))
        bits = block.astype(np.float16, copy=False).view(np.uint16) & FLOAT16_EXPONENT_MASK
        finite.append((bits != FLOAT16_EXPONENT_MASK).all(1))
    return np.flatnonzero(np.concatenate(finite))


def _read_array(path: Path, array: ArrayLocation, start: int, count: int) -> np.ndarray:
    values = np.fromfile(
        path, array.dtype, count * prod(array.shape[1:]), offset=array.offset + start * array.row_bytes
    )
    return values.reshape(count, *array.shape[1:])
