"""Shards of features for tests: of the images of a project, or of images that are nothing but ids and contents."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from annotator.store.database.database import Database
from annotator.store.features.feature_cache import FeatureCache
from annotator.store.features.project_contents import ProjectContents
from annotator.store.features.shards import SHARD_SUFFIX, CodedRegions, write_shard


@dataclass
class MadeContents:
    """The contents of images 0 .. last; those of different projects differ."""

    last: int = 1_000_000
    project: int = 1

    def get_newest_id(self) -> int:
        return self.last

    def count_changes(self) -> int:
        return 0

    def load_hashes(self, image_ids: np.ndarray) -> np.ndarray:
        contents = np.stack([image_ids, np.full_like(image_ids, self.project)], 1).astype(np.uint32).view(np.uint8)
        contents[image_ids > self.last] = 0
        return contents


def add_shard(
    folder: Path, image_ids: np.ndarray, features: np.ndarray, regions: np.ndarray | CodedRegions, project: int = 1
) -> Path:
    """A shard of made-up images."""
    return write_shard(folder, image_ids, MadeContents(project=project).load_hashes(image_ids), features, regions)


def write_arrays(folder: Path, arrays: dict[str, np.ndarray]) -> Path:
    """A file of these arrays under the name that a shard would have, though it may be none."""
    folder.mkdir(parents=True, exist_ok=True)
    content = save(arrays)
    path = folder / f"{hashlib.sha256(content).hexdigest()}{SHARD_SUFFIX}"
    path.write_bytes(content)
    return path


def add_features(
    db: Database, backbone: str, image_ids: np.ndarray, features: np.ndarray, regions: np.ndarray | CodedRegions
) -> Path:
    """A shard of images of a project."""
    return write_shard(
        db.paths.features(backbone), image_ids, ProjectContents(db).load_hashes(image_ids), features, regions
    )


def read_made(folder: Path) -> FeatureCache:
    """What a folder holds of made-up images."""
    cache = FeatureCache(folder, MadeContents())
    cache.refresh()
    return cache
