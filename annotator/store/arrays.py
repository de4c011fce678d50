"""Arrays on disk: written under another name, then renamed, so that a reader finds a whole file or none.

The probabilities of a run are one .npy (N, C) float16 that the page maps into memory. Features are cached in shards,
each one safetensors file that holds its image ids and the features of the images' regions too, so that a kill never
leaves them out of step. Regions are nine tenths of a shard and stay on the disk until they are asked for.
"""

import json
import os
import time
import uuid
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from annotator.errors import AnnotatorError, DiskFull
from annotator.store.caches import Caches
from annotator.store.folders import sync_folder
from annotator.store.place import make_room

SHARDS_COUNTED = 20_000  # whose image ids are kept by whoever counts: 8 bytes an image
SHARDS_OPEN = 64  # whose regions stay mapped: each takes one of the files a process may have open


@contextmanager
def replacing(target: Path, *, sync: bool = True) -> Generator[Path]:
    """A temporary path in the target's folder that becomes the target when the block ends well.

    sync    False: after a power cut the target may be gone, but never in parts; for what is made again when it is
            missing, and for all but the last of several files of one folder

    Raises DiskFull when the disk takes no more; the temporary file is removed, the old target stays as it was.
    """
    temporary = target.parent / f".{target.name}.{uuid.uuid4().hex[:8]}.part"
    try:
        make_room(target.parent)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
        if sync:
            sync_folder(target.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
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


def save_array(path: Path, array: np.ndarray, *, sync: bool = True) -> None:
    """Write one .npy; sync as in `replacing`. Raises DiskFull."""
    with replacing(path, sync=sync) as temporary, temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def open_array(path: Path) -> np.ndarray:
    """One .npy mapped into memory, read-only. Raises FileNotFoundError, or ValueError for a damaged file."""
    return np.load(path, mmap_mode="r", allow_pickle=False)


def add_features(folder: Path, image_ids: np.ndarray, features: np.ndarray, regions: np.ndarray) -> None:
    """Add a shard to the feature cache.

    image_ids    (n,) int64
    features     (n, D) float16
    regions      (n, R, D) float16, of the regions of each image

    Raises ValueError when the shapes do not fit together, DiskFull.
    """
    if len(image_ids) != len(features) or regions.shape[:1] + regions.shape[2:] != features.shape:
        raise ValueError(
            f"Image ids {image_ids.shape}, features {features.shape} and regions {regions.shape} must be (n,), (n, D) "
            "and (n, R, D)."
        )
    shard = {
        "image_ids": image_ids.astype(np.int64),
        "features": np.ascontiguousarray(features, np.float16),
        "regions": np.ascontiguousarray(regions, np.float16),
    }
    with replacing(folder / f"{uuid.uuid4().hex}.safetensors") as temporary:
        temporary.write_bytes(save(shard))


class Regions:
    """Features of the regions of each image, (N, R, D) float16, on the disk, in the cache's order of rows.

    `regions[rows]`, with rows as numpy takes them (numbers, a mask, a slice), reads only these rows: a new array
    (n, R, D) float16, or (R, D) for one number. Raises IndexError for an unknown row, AnnotatorError when a file has
    gone or been damaged since the cache read it.
    """

    def __init__(self):
        self.shape = (0, 0, 0)
        self.paths: list[Path] = []
        self._where = np.zeros((0, 2), np.int64)  # of each row: which path, and the row in there
        self._opened = lru_cache(SHARDS_OPEN)(_map_regions)  # ends with the object

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: int | slice | np.ndarray | list[int]) -> np.ndarray:
        where = self._where[rows]
        files, places = where.reshape(-1, 2).T
        regions = np.empty((len(files), *self.shape[1:]), np.float16)
        for file in map(int, np.unique(files)):
            in_file = files == file
            regions[in_file] = self._shard(self.paths[file])[places[in_file]]
        return regions if where.ndim == 2 else regions[0]

    def _shard(self, path: Path) -> np.ndarray:
        try:
            return self._opened(path)
        except (OSError, ValueError, KeyError) as error:
            raise AnnotatorError(
                f"The features in {path} can no longer be read ({error}). Was the file moved or changed?\n"
                "    Start the worker again: what is missing is embedded again."
            ) from error

    def grow(self, paths: list[Path], where: np.ndarray, parts: tuple[int, int]) -> None:
        """Take in rows at the end. where: (n, 2), which of `paths`, and the row in there; parts: (R, D)."""
        self._where = np.concatenate([self._where, where + np.array([len(self.paths), 0])])
        self.paths += paths
        self.shape = (len(self._where), *parts)


class FeatureCache:
    """All features of one backbone, read shard by shard as they appear.

    image_ids    (N,) int64, in the order of the rows, which keep their places when more come
    features     (N, D) float16
    regions      Regions (N, R, D), read from the disk when asked for

    left_out     what was left out, one sentence each

    Shards of older versions, without regions, are left where they are and not counted: their images have yet to be
    embedded. Images whose features are not finite are not counted either.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._seen: set[str] = set()
        self.image_ids = np.zeros(0, np.int64)
        self.features = np.zeros((0, 0), np.float16)
        self.regions = Regions()
        self.left_out: list[str] = []

    def refresh(self) -> None:
        """Read the shards that are new. A damaged one is deleted: its images are then embedded again. So is one whose
        features are of another size than those of most images."""
        new: dict[Path, _Shard] = {}
        for path in _shards(self.folder):
            if path.name in self._seen:
                continue
            try:
                shard = _read_shard(path)
            except (SafetensorError, ValueError) as error:
                self._delete(path, str(error))
                continue
            except OSError:  # gone since, or a disk in trouble: nothing that deleting would mend
                continue
            self._seen.add(path.name)
            if shard is not None and len(shard.image_ids):
                new[path] = shard
        if new:
            self._take_in(self._of_one_size(new))

    def _of_one_size(self, new: dict[Path, "_Shard"]) -> dict[Path, "_Shard"]:
        """The new shards whose features have the size of most of their images. Earlier shards of another size are
        deleted, because the worker has just added these with the network in use."""
        sizes: Counter[tuple[int, int]] = Counter()
        for shard in new.values():
            sizes[shard.size] += len(shard.image_ids)
        size = sizes.most_common(1)[0][0]
        for path in [path for path, shard in new.items() if shard.size != size]:
            self._delete(path, f"its features are {new.pop(path).size}, those of most images {size}")
        if len(self.image_ids) and self.regions.shape[1:] != size:
            for path in self.regions.paths:
                self._delete(path, f"its features are {self.regions.shape[1:]}, those of the network {size}")
            self.image_ids, self.features, self.regions = self.image_ids[:0], np.zeros((0, 0), np.float16), Regions()
        return new

    def _take_in(self, new: dict[Path, "_Shard"]) -> None:
        shards = list(new.values())
        new_ids, first = np.unique(np.concatenate([shard.image_ids for shard in shards]), return_index=True)
        fresh = ~np.isin(new_ids, self.image_ids)
        where = np.concatenate(
            [np.stack([np.full(len(a), n), a], 1) for n, a in enumerate(shard.rows for shard in shards)]
        )
        rows = np.concatenate([shard.features for shard in shards])[first[fresh]]
        self.image_ids = np.concatenate([self.image_ids, new_ids[fresh]])
        self.features = np.concatenate([self.features, rows]) if self.features.size else rows
        self.regions.grow(list(new), where[first[fresh]], shards[0].size)
        odd = sum(shard.odd for shard in shards)
        if odd:
            self.left_out.append(f"{odd:,} images whose features in {self.folder} are not finite: embedded again")

    def _delete(self, path: Path, reason: str) -> None:
        path.unlink(missing_ok=True)
        self.left_out.append(f"{path}: {reason}. It was deleted; its images are embedded again")


@dataclass(frozen=True, eq=False)
class _Shard:
    """What is usable of a shard: image_ids (n,), features (n, D), their rows in the file (n,), size (R, D) of its
    regions; odd: how many images have features that are not finite."""

    image_ids: np.ndarray
    features: np.ndarray
    rows: np.ndarray
    size: tuple[int, int]
    odd: int


def _read_shard(path: Path) -> _Shard | None:
    """None for one without regions. Raises SafetensorError, ValueError for shapes that do not fit, OSError."""
    file: Any = safe_open(path, framework="numpy")  # not typed
    with file as shard:
        if "regions" not in shard.keys():  # noqa: SIM118  (it is no dict)
            return None
        ids: np.ndarray = shard.get_tensor("image_ids")
        features: np.ndarray = shard.get_tensor("features")
        regions: tuple[int, ...] = tuple(shard.get_slice("regions").get_shape())
    if ids.ndim != 1 or features.ndim != 2 or regions[:1] + regions[2:] != features.shape or len(ids) != len(features):
        raise ValueError(f"image ids {ids.shape}, features {features.shape} and regions {regions} do not fit together")
    rows = np.flatnonzero(np.isfinite(features).all(1))
    size = regions[1], regions[2]
    return _Shard(ids[rows].astype(np.int64), features[rows], rows, size, len(ids) - len(rows))


def count_features(folder: Path, caches: Caches) -> int:
    """How many images have features, with those of their regions, without reading the features themselves.

    caches    of the project: a shard never changes once it is written, so each is read once
    """
    shards = tuple(_shards(folder))
    return caches.get("images with features", shards, lambda: _count_images(shards, caches), 4)


def _count_images(shards: tuple[Path, ...], caches: Caches) -> int:
    ids: list[np.ndarray] = []
    for path in shards:
        try:
            ids.append(caches.get("image ids of shards", path, partial(_ids_in, path), SHARDS_COUNTED))
        except (SafetensorError, OSError):
            continue
    return len(np.unique(np.concatenate(ids))) if ids else 0


def _ids_in(path: Path) -> np.ndarray:
    file: Any = safe_open(path, framework="numpy")  # not typed
    with file as shard:
        names = shard.keys()
        return shard.get_tensor("image_ids") if "regions" in names else np.zeros(0, np.int64)


def _shards(folder: Path) -> list[Path]:
    """Those that are written to the end."""
    return sorted(path for path in folder.glob("*.safetensors") if not path.name.startswith("."))


def _map_regions(path: Path) -> np.ndarray:
    """The regions in a shard, mapped into memory, which safetensors itself does not offer.

    Such a file is the length of its header (8 bytes), the header (JSON: where each tensor lies in the rest) and the
    tensors: https://github.com/huggingface/safetensors#format
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        region_header = json.loads(file.read(length))["regions"]
    return np.memmap(path, "<f2", "r", 8 + length + region_header["data_offsets"][0], tuple(region_header["shape"]))
