"""Arrays on disk: written under another name, then renamed, so that a reader finds a whole file or none.

The probabilities of a run are one .npy (N, C) float16 that the page maps into memory. Features are cached in shards,
each one safetensors file that holds its image ids too, so that a kill never leaves the two out of step.
"""

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from annotator.errors import DiskFull


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary path in the target's folder that becomes the target when the block ends well.

    Raises DiskFull when the disk takes no more; the temporary file is removed, the old target stays as it was.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f".{target.name}.{uuid.uuid4().hex[:8]}.part"
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise DiskFull(
            f"{target} could not be written: {error.strerror or error}. Nothing of it was kept"
            + ("; the file that was there before is as it was." if target.exists() else ".")
            + "\n    Is the disk full, or the folder write-protected? Free some space and try again."
        ) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sweep(folder: Path, older_than: float = 0.0, names: str = "**/.*") -> None:
    """Remove what killed processes were in the middle of writing in a folder.

    older_than    seconds; younger files may belong to a process at work
    names         how the temporary files begin (a glob pattern); all of them, at any depth, unless told otherwise
    """
    for part in folder.glob(f"{names}.part") if folder.exists() else ():
        with suppress(OSError):
            if time.time() - part.stat().st_mtime >= older_than:
                part.unlink()


def save_array(path: Path, array: np.ndarray) -> None:
    """Write one .npy. Raises DiskFull."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def open_array(path: Path) -> np.ndarray:
    """One .npy mapped into memory, read-only. Raises FileNotFoundError, or ValueError for a damaged file."""
    return np.load(path, mmap_mode="r", allow_pickle=False)


def add_features(folder: Path, image_ids: np.ndarray, features: np.ndarray) -> None:
    """Add a shard to the feature cache.

    image_ids    (n,) int64
    features     (n, D) float16
    """
    shard = {"image_ids": image_ids.astype(np.int64), "features": features.astype(np.float16)}
    with replacing(folder / f"{uuid.uuid4().hex}.safetensors") as temporary:
        temporary.write_bytes(save(shard))


class FeatureCache:
    """All features of one backbone, read shard by shard as they appear.

    image_ids    (N,) int64, in the order of the rows
    features     (N, D) float16
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._seen: set[str] = set()
        self.image_ids = np.zeros(0, np.int64)
        self.features = np.zeros((0, 0), np.float16)

    def refresh(self) -> None:
        """Read the shards that are new. A damaged one is deleted: its images are then embedded again."""
        ids, features = [], []
        for path in sorted(self.folder.glob("*.safetensors")) if self.folder.exists() else ():
            if path.name in self._seen or path.name.startswith("."):
                continue
            try:
                shard = load_file(path)
                ids.append(shard["image_ids"])
                features.append(shard["features"])
            except (SafetensorError, KeyError, OSError):
                path.unlink(missing_ok=True)
                continue
            self._seen.add(path.name)
        if not ids:
            return
        new_ids, first = np.unique(np.concatenate(ids), return_index=True)
        fresh = ~np.isin(new_ids, self.image_ids)
        rows = np.concatenate(features)[first[fresh]]
        self.image_ids = np.concatenate([self.image_ids, new_ids[fresh]])
        self.features = np.concatenate([self.features, rows]) if self.features.size else rows


def count_features(folder: Path) -> int:
    """How many images have features, without reading the features themselves."""
    from safetensors import safe_open

    ids = []
    for path in folder.glob("*.safetensors") if folder.exists() else ():
        if path.name.startswith("."):
            continue
        try:
            with safe_open(path, framework="numpy") as shard:
                ids.append(shard.get_tensor("image_ids"))
        except (SafetensorError, OSError):
            continue
    return len(np.unique(np.concatenate(ids))) if ids else 0
