"""The coding basis of region features, one file per backbone. The first one published stays, because codes need it."""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from annotator.store.database.arrays import replace_file_atomically
from annotator.store.disk.durable import sync_folder
from annotator.store.features.shards import BASIS_FILE

BASIS_ARRAYS = ("centre", "axes", "scales")


@dataclass(frozen=True, eq=False)
class StoredBasis:
    """A basis as arrays."""

    # (D,) float32 origin
    centre: np.ndarray
    # (D, K) float32
    axes: np.ndarray
    # (K,) float32 size of one int8 step
    scales: np.ndarray
    # sha256 of all three
    name: str = field(init=False)

    def __post_init__(self):
        digest = hashlib.sha256(repr(self.axes.shape).encode())
        for array in (self.centre, self.axes, self.scales):
            digest.update(np.ascontiguousarray(array, "<f4").tobytes())
        object.__setattr__(self, "name", digest.hexdigest())


def read_basis(folder: Path) -> StoredBasis | None:
    """Return the basis of a feature folder, or None if missing or damaged."""
    try:
        file: Any = safe_open(folder / BASIS_FILE, framework="numpy")  # not typed
        with file as opened:
            metadata: dict[str, str] = opened.metadata() or {}
            basis = StoredBasis(*(opened.get_tensor(array) for array in BASIS_ARRAYS))
    except (OSError, SafetensorError):
        return None
    return basis if basis.name == metadata.get("name") else None


def read_basis_name(folder: Path) -> str | None:
    try:
        file: Any = safe_open(folder / BASIS_FILE, framework="numpy")  # not typed
        with file as opened:
            metadata: dict[str, str] = opened.metadata() or {}
            return metadata.get("name")
    except (OSError, SafetensorError):
        return None


def delete_basis(folder: Path) -> None:
    (folder / BASIS_FILE).unlink(missing_ok=True)


def publish_basis(folder: Path, basis: StoredBasis) -> StoredBasis:
    """Store `basis` unless the folder has one, and return the stored one."""
    settled = read_basis(folder)
    if settled is not None:
        return settled
    target = folder / BASIS_FILE
    if target.exists():  # damaged: codes made with it cannot be read any more
        target.unlink(missing_ok=True)
    arrays = {name: np.ascontiguousarray(getattr(basis, name), np.float32) for name in BASIS_ARRAYS}
    with replace_file_atomically(folder / f"{basis.name}.basis") as temporary:
        temporary.write_bytes(save(arrays, {"name": basis.name}))
    written = folder / f"{basis.name}.basis"
    with suppress(FileExistsError):  # another process was first
        _claim_name(written, target)
    written.unlink(missing_ok=True)
    sync_folder(folder)
    return read_basis(folder) or basis


def _claim_name(written: Path, target: Path) -> None:
    """Rename a file, or raise FileExistsError if another process did first."""
    try:
        os.link(written, target)
    except FileExistsError:
        raise
    except OSError:  # a disk without links
        if target.exists():
            raise FileExistsError(target) from None
        written.replace(target)
