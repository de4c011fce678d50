"""Stored int8 codes of whole images, from which a worker updates the current run after new decisions.

    image-codes/<sha256>.npy         (N, K) int8
    image-codes/index.safetensors    the basis, the images, their shards and the .npy name

The index is written last, so a kill leaves the previous one.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from annotator.indexing import find_positions
from annotator.store.database.arrays import replace_file_atomically, save_rows
from annotator.store.features.sharded_rows import ShardedRows, ShardPart
from annotator.store.features.shards import DamagedShard, locate_arrays, read_ids
from annotator.store.features.stored_basis import StoredBasis
from spmll.rows import Rows

CODES_FOLDER, INDEX_FILE = "image-codes", "index.safetensors"
HASH_CHUNK_BYTES = 1 << 24  # bytes at once


@dataclass(frozen=True, eq=False)
class StoredCodes:
    """The stored codes (int8 compressed features) of whole images, and the data from which they were computed."""

    basis: StoredBasis
    # (N,) int64
    image_ids: np.ndarray
    shards: list[str]
    # (N,) int32 index into `shards`
    shard_of: np.ndarray
    # (N, K) int8, memory-mapped
    codes: np.ndarray

    def find_rows(self, image_ids: np.ndarray, shards: Sequence[str], shard_of: np.ndarray) -> np.ndarray:
        """Return each image's row in `codes`, (n,) int64, or -1 if it has none or its shard has changed.

        Args:
            shard_of: (n,), index of each image into `shards`.
        """
        rows, known = find_positions(image_ids, self.image_ids, np.argsort(self.image_ids, kind="stable"))
        numbers = {name: number for number, name in enumerate(self.shards)}
        same = np.array([numbers.get(name, -1) for name in shards], np.int64)
        if not known.any():
            return np.full(len(image_ids), -1)
        return np.where(known & (self.shard_of[rows] == same[shard_of]), rows, -1)


def save_codes(
    folder: Path, basis: StoredBasis, image_ids: np.ndarray, shards: Sequence[str], shard_of: np.ndarray, codes: Rows
) -> None:
    """Replace the stored codes (N, K) of a feature folder."""
    place = folder / CODES_FOLDER
    name = f"{_digest(codes)}.npy"
    save_rows(place / name, codes, np.int8, sync=False)
    arrays = {
        "centre": np.ascontiguousarray(basis.centre, np.float32),
        "axes": np.ascontiguousarray(basis.axes, np.float32),
        "scales": np.ascontiguousarray(basis.scales, np.float32),
        "image_ids": np.ascontiguousarray(image_ids, np.int64),
        "shard_of": np.ascontiguousarray(shard_of, np.int32),
    }
    metadata = {"codes": name, "basis": basis.name, "shards": json.dumps(list(shards))}
    with replace_file_atomically(place / INDEX_FILE) as temporary:
        temporary.write_bytes(save(arrays, metadata))
    for old in place.glob("*.npy"):
        if old.name != name:
            with suppress(OSError):  # mapped, on a system that then keeps it
                old.unlink()


def read_codes(folder: Path) -> StoredCodes | None:
    """Return and check a folder's stored codes, or None if missing or damaged."""
    place = folder / CODES_FOLDER
    try:
        file: Any = safe_open(place / INDEX_FILE, framework="numpy")  # not typed
        with file as opened:
            metadata: dict[str, str] = opened.metadata() or {}
            arrays: dict[str, np.ndarray] = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        basis = StoredBasis(arrays["centre"], arrays["axes"], arrays["scales"])
        image_ids, shard_of = arrays["image_ids"], arrays["shard_of"]
        shards, name = json.loads(metadata["shards"]), metadata["codes"]
        # Mapped as if it could be written, which torch wants.
        codes = np.asarray(np.load(place / Path(name).name, mmap_mode="c", allow_pickle=False))
        fits = codes.dtype == np.int8 and codes.shape == (len(image_ids), basis.axes.shape[1])
        fits = fits and shard_of.shape == image_ids.shape and int(shard_of.max(initial=-1)) < len(shards)
        if not fits or basis.name != metadata["basis"] or name != f"{_digest(codes)}.npy":
            return None
        return StoredCodes(basis, image_ids, shards, shard_of, codes)
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, EOFError):
        return None


def read_features(folder: Path, kept: StoredCodes) -> tuple[ShardedRows, np.ndarray]:
    """Return the original features of coded images, (n, D) float16 on disk.

    Also return each coded image's row in them, (N,) int64, -1 if unreadable.
    """
    parts: list[ShardPart] = []
    places, begin = np.full(len(kept.image_ids), -1, np.int64), 0
    by_shard = np.argsort(kept.shard_of, kind="stable")
    ends = np.searchsorted(kept.shard_of[by_shard], np.arange(len(kept.shards) + 1))
    for number, name in enumerate(kept.shards):
        images = by_shard[ends[number] : ends[number + 1]]
        path = folder / Path(name).name
        try:
            arrays, _ = locate_arrays(path)
            ids, _ = read_ids(path, arrays)
        except (OSError, DamagedShard):
            continue
        rows, known = find_positions(kept.image_ids[images], ids, np.argsort(ids, kind="stable"))
        kept_rows, of_images = np.unique(rows[known], return_inverse=True)
        if len(kept_rows):
            parts.append(ShardPart(path, arrays, kept_rows))
            places[images[known]] = begin + of_images
            begin += len(kept_rows)
    return ShardedRows("features", parts, parts[0].shape("features") if parts else (0,), np.float16), places


def _digest(codes: Rows) -> str:
    digest = hashlib.sha256(repr(codes.shape).encode())
    rows = max(HASH_CHUNK_BYTES // max(codes.shape[1], 1), 1)
    for start in range(0, len(codes), rows):
        digest.update(np.ascontiguousarray(codes[start : start + rows]).data)
    return digest.hexdigest()
