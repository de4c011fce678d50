"""The features of one backbone as one list of images over all shards."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from annotator.humanize import format_count
from annotator.store.database.caches import Caches
from annotator.store.database.database import Database
from annotator.store.features.project_contents import HASH_BYTES, ImageContents, ProjectContents, compare_contents
from annotator.store.features.sharded_rows import ShardedRows, ShardPart
from annotator.store.features.shards import (
    DamagedShard,
    Shard,
    list_shards,
    locate_arrays,
    read_ids,
    read_shard,
)
from annotator.store.features.stored_basis import StoredBasis, delete_basis, read_basis, read_basis_name

OTHER_IMAGES_REASON = (
    "their features were made of other images than have these ids now, because they are of another project or an older "
    "project.db was put back. They are not used, and stay where they are; images without others are embedded again"
)


class FeatureCache:
    """A reader of all features of one backbone, with image ids in memory and arrays on disk.

    Attributes:
        image_ids: (N,) int64, in row order. Rows keep their places when images are added.
        features: (N, D) float16, one vector per image, read on demand.
        regions: (N, R, D) float16, one vector per image region, for images without codes.
        codes: (N, R, K) int8 compressed regions: coordinates in `basis`, for images without regions.
        lengths: (N, R) float16 distances of the coded regions from the center of `basis`.
        basis: Basis of the codes, or None before one is published.
        left_out: One sentence per omitted shard or group of images.

    `refresh` replaces these objects, so old ones keep the images of their time.

    An image in two shards is taken from the first: codes before regions, then by name. The cache omits shards coded in
    another basis (their images must be embedded again), images with features that are not finite, and rows whose image
    content differs from the project's (project_contents.py). Rows with unknown image ids count once the project has
    such an image. Omitted files are kept.
    """

    def __init__(self, folder: Path, contents: ImageContents):
        """Create an empty cache, filled by `refresh`."""
        self.folder, self.contents = folder, contents
        self._seen: set[str] = set()
        self._parts: list[ShardPart] = []
        self._unused: list[Path] = []  # shards with regions whose images were all read from others
        self._others: dict[Path, int] = {}  # shards with rows that are not used, and how many are of other images
        self._waiting: dict[Path, int] = {}  # shards with rows of ids that a new image will get, and the lowest
        self._size: tuple[int, int] = (0, 0)
        self._changes = contents.count_changes()
        self.image_ids = np.zeros(0, np.int64)
        self.basis: StoredBasis | None = None
        self.left_out: list[str] = []
        self._build_rows()

    def __len__(self) -> int:
        return len(self.image_ids)

    def refresh(self, own: Path | None = None) -> None:
        """Read new shards, and drop deleted ones.

        Damaged shards are deleted. Shards with another feature size than most are ignored.

        Args:
            own: Shard just written by this process. Older shards of another feature size are deleted.
        """
        paths = list_shards(self.folder)  # before the basis, which is there before the first shard that names it
        gone = {part.path for part in self._parts} - set(paths)
        changes = self.contents.count_changes()
        again = bool(gone) or changes != self._changes
        self._changes = changes
        if again:
            self._reset()
        self._requeue_waiting_shards()
        if self.basis is None:
            self.basis = read_basis(self.folder)
        new: list[Shard] = []
        for path in paths:
            if path.name in self._seen:
                continue
            try:
                shard = read_shard(path)
            except DamagedShard as error:
                self._delete(path, str(error))
                continue
            except OSError:  # gone since, or a disk in trouble: nothing that deleting would mend
                continue
            self._seen.add(path.name)
            if self._is_readable(shard):
                new.append(shard)
        if new and (new := self._filter_by_content(new)) and (new := self._filter_by_size(new, own)):
            self._add_shards(sorted(new, key=lambda shard: shard.basis is None))
        if again or new or self._codes_of != self.basis:
            self._build_rows()

    def refresh_if_changed(self) -> None:
        """Read the shards again if image contents have changed."""
        if self.contents.count_changes() != self._changes:
            self.refresh()

    def list_uncoded_parts(self) -> list[ShardPart]:
        """Return the parts with regions, which can be coded."""
        return [part for part in self._parts if part.has_array("regions")]

    def get_part_arrays(self, part: ShardPart) -> tuple[np.ndarray, np.ndarray, ShardedRows, ShardedRows]:
        """Return the image ids (n,), contents (n, 8), features (n, D) and regions (n, R, D) of one part."""
        start = sum(len(before) for before in self._parts[: self._parts.index(part)])
        features = ShardedRows("features", [part], self._size[1:], np.float16)
        regions = ShardedRows("regions", [part], self._size, np.float16)
        contents = ShardedRows("contents", [part], (HASH_BYTES,), np.uint8)[:]
        return self.image_ids[start : start + len(part)], contents, features, regions

    def replace(self, part: ShardPart, path: Path) -> None:
        """Let a part read from another shard with the same images, and delete its old file if no part uses it."""
        shard = read_shard(path)
        if len(shard.rows) != len(part):
            raise DamagedShard(f"{path} does not hold the {len(part)} images of {part.path}")
        old = part.path
        self._seen.add(path.name)
        part.move(path, shard.arrays, shard.rows)
        if old != path and old not in self._others:
            old.unlink(missing_ok=True)

    def delete_unused_regions(self) -> None:
        """Delete remaining shards of region features once all images have codes."""
        if not self.list_uncoded_parts():
            for path in self._unused:
                path.unlink(missing_ok=True)
            self._unused.clear()

    def _is_readable(self, shard: Shard) -> bool:
        """Return whether a shard is usable, or add the reason to `left_out`."""
        if not len(shard.rows):
            return False
        if shard.basis is None:
            return True
        if self.basis is not None and shard.basis == self.basis.name:
            axes = shard.size[1], shard.arrays["codes"].shape[2]
            if axes == self.basis.axes.shape:
                return True
            self._delete(shard.path, f"its features and codes are {axes}, its axes {self.basis.axes.shape}")
            return False
        self.left_out.append(f"{shard.path}: it was coded along other axes. Its images are embedded again")
        return False

    def _requeue_waiting_shards(self) -> None:
        """Mark shards as unread if they hold images that the project did not have before but has now."""
        newest = self.contents.get_newest_id() if self._waiting else 0
        for path in [path for path, lowest in self._waiting.items() if lowest <= newest]:
            self._seen.discard(path.name)
            del self._waiting[path]

    def _filter_by_content(self, shards: list[Shard]) -> list[Shard]:
        usable: list[Shard] = []
        checked = compare_contents([(shard.image_ids, shard.contents) for shard in shards], self.contents)
        for shard, found in zip(shards, checked, strict=True):
            if found.right.all():
                usable.append(shard)
                continue
            self._others[shard.path] = found.others
            if found.lowest is not None:
                self._waiting[shard.path] = found.lowest
            if found.right.any():
                usable.append(replace(shard, image_ids=shard.image_ids[found.right], rows=shard.rows[found.right]))
        self._update_left_out()
        return usable

    def _update_left_out(self) -> None:
        self.left_out = [sentence for sentence in self.left_out if not sentence.endswith(OTHER_IMAGES_REASON)]
        if images := sum(self._others.values()):
            files = format_count(sum(others > 0 for others in self._others.values()), "file")
            self.left_out.append(f"{format_count(images, 'image')} in {files} of {self.folder}: {OTHER_IMAGES_REASON}")

    def _filter_by_size(self, new: list[Shard], own: Path | None) -> list[Shard]:
        """Return the shards with the feature size of `own`, earlier shards or most images."""
        sizes: Counter[tuple[int, int]] = Counter()
        for shard in new:
            sizes[shard.size] += len(shard.image_ids)
        size = self._size if len(self.image_ids) else sizes.most_common(1)[0][0]
        size = next((shard.size for shard in new if shard.path == own), size)
        for shard in new:
            if shard.size != size:
                # Not deleted: one stray file must not cost the work of days, whichever of them is the stray one.
                self.left_out.append(f"{shard.path}: its features are {shard.size}, those of others {size}")
        if len(self.image_ids) and self._size != size:
            for path in {part.path for part in self._parts}:
                self._delete(path, f"its features are {self._size}, those of the network {size}")
            self.image_ids, self._parts = self.image_ids[:0], []
        if self.basis is not None and len(self.basis.centre) != size[1]:
            if own is not None:
                delete_basis(self.folder)
            self.basis = None
        self._size = size
        return [shard for shard in new if shard.size == size]

    def _reset(self) -> None:
        self._seen.clear()
        self._parts, self._unused = [], []
        self._others.clear()
        self._waiting.clear()
        self.image_ids = self.image_ids[:0]

    def _add_shards(self, shards: list[Shard]) -> None:
        ids = np.concatenate([shard.image_ids for shard in shards])
        first = np.zeros(len(ids), bool)
        first[np.unique(ids, return_index=True)[1]] = True
        fresh = first & ~np.isin(ids, self.image_ids)
        start = 0
        for shard in shards:
            of_shard = fresh[start : start + len(shard.image_ids)]
            start += len(shard.image_ids)
            if of_shard.any():
                self._parts.append(ShardPart(shard.path, shard.arrays, shard.rows[of_shard]))
            elif shard.basis is None and shard.path not in self._others:
                self._unused.append(shard.path)
        self.image_ids = np.concatenate([self.image_ids, ids[fresh]])
        odd = sum(shard.not_finite for shard in shards)
        if odd:
            self.left_out.append(f"{odd:,} images whose features in {self.folder} are not finite: embedded again")

    def _build_rows(self) -> None:
        regions, dimensions = self._size
        axes = 0 if self.basis is None else self.basis.axes.shape[1]
        self._codes_of = self.basis
        self.features = ShardedRows("features", self._parts, (dimensions,), np.float16)
        self.regions = ShardedRows("regions", self._parts, self._size, np.float16)
        self.codes = ShardedRows("codes", self._parts, (regions, axes), np.int8)
        self.lengths = ShardedRows("lengths", self._parts, (regions,), np.float16)

    def _delete(self, path: Path, reason: str) -> None:
        path.unlink(missing_ok=True)
        self.left_out.append(f"{path}: {reason}. It was deleted; its images are embedded again")


def open_features(db: Database, backbone: str) -> FeatureCache:
    cache = FeatureCache(db.paths.features(backbone), ProjectContents(db))
    cache.refresh()
    return cache


@dataclass(frozen=True, eq=False)
class _ShardFacts:
    """The data of one shard that counting needs. `basis` is the name of its basis, or None if it holds regions."""

    image_ids: np.ndarray
    basis: str | None
    lowest: int | None


def count_features(folder: Path, caches: Caches, contents: ImageContents) -> int:
    """Count the images with features and regions."""
    shards, newest = tuple(list_shards(folder)), contents.get_newest_id()
    key = shards, read_basis_name(folder), newest, contents.count_changes()
    return caches.get("images with features", key, lambda: _count_images(folder, shards, caches, contents, newest), 4)


def _count_images(folder: Path, shards: tuple[Path, ...], caches: Caches, contents: ImageContents, newest: int) -> int:
    known, there = _get_known_facts(folder, caches, contents), set(shards)
    for path, found in list(known.items()):
        if path not in there or (found.lowest is not None and found.lowest <= newest):
            known.pop(path, None)
    known |= _read_shard_facts([path for path in shards if path not in known], contents)
    basis = read_basis_name(folder)
    ids = [found.image_ids for found in list(known.values()) if found.basis in (None, basis)]
    return len(np.unique(np.concatenate([np.zeros(0, np.int64), *ids])))


def _get_known_facts(folder: Path, caches: Caches, contents: ImageContents) -> dict[Path, _ShardFacts]:
    return caches.get("image ids of shards", (folder, contents.count_changes()), dict[Path, _ShardFacts], 4)


def _read_shard_facts(shards: list[Path], contents: ImageContents) -> dict[Path, _ShardFacts]:
    read: dict[Path, tuple[np.ndarray, np.ndarray]] = {}
    bases: dict[Path, str | None] = {}
    for path in shards:
        try:
            arrays, bases[path] = locate_arrays(path)
            read[path] = read_ids(path, arrays)
        except (DamagedShard, OSError):
            continue
    checked = zip(read, compare_contents(list(read.values()), contents), strict=True)
    return {path: _ShardFacts(read[path][0][found.right], bases[path], found.lowest) for path, found in checked}
