"""The feature maps of a project's images, as input to training methods."""

from collections.abc import Iterator, Sequence

import numpy as np

from annotator.errors import AnnotatorError
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.locations.location import ImageSource
from annotator.worker.features.map_cache import WEAK_VIEW_COUNT, MapFiles, StoredMaps
from spmll.trainers.base import Progress

# plain maps of unlabeled images are stored if all fit into this; otherwise made for each run
MAX_STORED_BYTES = 4 << 30
MAPS_PER_BLOCK = 32  # read from the disk


class ProjectMaps:
    """A reader of a project's feature maps, stored for labeled images, and for others if MAX_STORED_BYTES suffices."""

    def __init__(self, db: Database, files: MapFiles, image_ids: np.ndarray):
        self._db, self._files, self._image_ids = db, files, image_ids
        self.channels, self.weak, self.device = files.network.shape[0], WEAK_VIEW_COUNT, "cpu"

    def views(self, rows: np.ndarray, progress: Progress) -> tuple[np.ndarray, Sequence[np.ndarray]]:
        """Return (which rows are readable, the maps of all augmented views of each readable image)."""
        ids = self._image_ids[rows].tolist()
        self._make_maps(ids, True, "making feature maps", progress)
        readable = np.array([self._files.has_maps(image_id, True) for image_id in ids], bool)
        with_maps = [image_id for image_id, has_maps in zip(ids, readable, strict=True) if has_maps]
        return readable, StoredMaps(self._files, with_maps)

    def plain(self, rows: np.ndarray, progress: Progress) -> Iterator[tuple[np.ndarray, Sequence[np.ndarray]]]:
        """Yield per block (which rows are readable, the map of each readable image without augmentation)."""
        state, ids = "asking about all images", self._image_ids[rows].tolist()
        places = {image_id: place for place, image_id in enumerate(ids)}
        if len(ids) * self._files.bytes_each <= MAX_STORED_BYTES:
            self._make_maps(ids, False, state, progress)
        on_disk = [image_id for image_id in ids if self._files.has_maps(image_id, False)]
        for start in range(0, len(on_disk), MAPS_PER_BLOCK):
            some = on_disk[start : start + MAPS_PER_BLOCK]
            progress(state, start, len(ids))
            yield np.array([places[image_id] for image_id in some]), StoredMaps(self._files, some)
        stored, done = set(on_disk), len(on_disk)
        missing = self._find_sources([image_id for image_id in ids if image_id not in stored])
        for keys, made in self._files.iterate_maps(missing, False):
            done += len(keys)
            progress(state, done, len(ids))
            maps = {key: result for key in keys if isinstance(result := made[key], np.ndarray)}
            if maps:
                yield np.array([places[key] for key in maps]), list(maps.values())

    def _make_maps(self, ids: list[int], views: bool, state: str, progress: Progress) -> None:
        progress(state, 0, len(ids))
        items = self._find_sources([image_id for image_id in ids if not self._files.has_maps(image_id, views)])
        have = len(ids) - len(items)
        for done, failures in self._files.make_maps(items, views):
            for image_id, reason in failures.items():
                images.mark_problem(self._db, image_id, reason)
            progress(state, have + done, len(ids))

    def _find_sources(self, ids: list[int]) -> list[tuple[int, ImageSource]]:
        """Return images with their source, marking those without a file."""
        items: list[tuple[int, ImageSource]] = []
        for image_id in ids:
            try:
                items.append((image_id, images.find_image_source(self._db, image_id)))
            except AnnotatorError as error:
                images.mark_problem(self._db, image_id, str(error))
        return items
