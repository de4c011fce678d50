"""Feature maps on disk, for methods that need more than one pooled vector per image.

Views (image augmentations) are computed once, not per epoch. Files never expire, so a killed pass resumes.
"""

import io
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import numpy as np
import torch
from PIL import Image

from annotator.errors import AnnotatorError, DiskFull
from annotator.store.database.arrays import open_array, remove_unfinished_files, save_array
from annotator.store.database.project_identity import make_folder_in_project
from annotator.store.locations.location import ImageSource, open_source
from annotator.store.pictures.bands import BandChoices
from annotator.store.pictures.decoding import BadImage, open_rgb
from annotator.worker.features.embed import embedding_threads
from spmll.backbones.feature_maps import FeatureMaps
from spmll.finetune.augment import make_strong_view
from spmll.finetune.last_stages import StageInputs

# views of an image that is trained on: unchanged and mirrored; strongly augmented
WEAK_VIEW_COUNT, STRONG_VIEW_COUNT = (2, 2)
VIEWS_PER_STEP = 8  # views a thread makes between two checks of should_stop
MAX_DISK_SHARE = 0.9  # of the free disk that maps may take

Key = TypeVar("Key", bound=int | str)  # of an image: its id, or any name a file may have


class MapFiles:
    """The stored feature maps of one backbone, V views (K, h, w) per image.

    Attributes:
        strong: Number of strongly augmented views per image.
        opened: Function from an image's source to the decoder's input.
        bytes_each: Bytes per view.
    """

    def __init__(
        self,
        folder: Path,
        network: FeatureMaps | StageInputs,
        strong: int = STRONG_VIEW_COUNT,
        open_file: Callable[[Any], Path | io.BytesIO] = partial(open_source, patient=True),
        *,
        bands: BandChoices,
    ):
        self.folder, self.network, self.strong, self.opened = folder, network, strong, open_file
        self.bands = bands
        self.bytes_each = 2 * int(np.prod(network.shape))
        remove_unfinished_files(folder, exclusive=True)

    def get_path(self, key: int | str, views: bool) -> Path:
        """Return the file that holds an image's maps: of all views, or of the plain image only."""
        return self.folder / ("views" if views else "plain") / f"{key}.npy"

    def has_maps(self, key: int | str, views: bool) -> bool:
        """Return whether an image's maps are stored. The first view is the plain map."""
        return self.get_path(key, True).exists() or (not views and self.get_path(key, False).exists())

    def read(self, key: int | str) -> np.ndarray:
        """Return an image's stored views (V, K, h, w) float16, memory-mapped, plain map first.

        Raises:
            AnnotatorError: The file is damaged or of another backbone. It is deleted.
        """
        path = self.get_path(key, True)
        path = path if path.exists() else self.get_path(key, False)
        try:
            maps = open_array(path)
            if maps.shape[1:] != self.network.shape:
                raise ValueError(f"its maps are {maps.shape[1:]}, not {self.network.shape}")
        except (ValueError, EOFError, OSError) as error:
            path.unlink(missing_ok=True)
            raise AnnotatorError(
                f"The maps in {path} cannot be read ({error}). They were deleted; train again to make them anew."
            ) from error
        return maps

    def make_maps(
        self, items: Sequence[tuple[Key, ImageSource]], views: bool, should_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[int, dict[Key, str]]]:
        """Compute and store missing maps. Raises DiskFull, or AnnotatorError if disk space is short.

        Args:
            items: (key, file) per image.
            views: Whether to compute all views instead of the plain map.

        Yields:
            (images processed, key -> read error), about every second.
        """
        missing = [(key, path) for key, path in items if not self.has_maps(key, views)]
        needed = len(missing) * self.bytes_each * (WEAK_VIEW_COUNT + self.strong if views else 1)
        check_disk_space(self.folder, needed)
        done = len(items) - len(missing)
        for batch, made in self.iterate_maps(missing, views, should_stop):
            for key, maps in made.items():
                if not isinstance(maps, str):
                    save_array(self.get_path(key, views), maps, sync=False)
            done += len(batch)
            yield done, {key: maps for key, maps in made.items() if isinstance(maps, str)}

    def iterate_maps(
        self, items: Sequence[tuple[Key, ImageSource]], views: bool, should_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[list[Key], dict[Key, np.ndarray | str]]]:
        """Yield (keys, results by key) per batch: maps (V, K, h, w) float16 or a read error."""
        each = max(1, VIEWS_PER_STEP // (WEAK_VIEW_COUNT + self.strong)) if views else VIEWS_PER_STEP
        batches = iter([items[start : start + each] for start in range(0, len(items), each)])
        pending: deque[tuple[list[Key], Future[dict[Key, np.ndarray | str]]]] = deque()
        with embedding_threads() as pool:
            try:
                while True:
                    while len(pending) < 2 * pool.size and not should_stop() and (batch := next(batches, None)):
                        pending.append(([key for key, _ in batch], pool.submit(self._compute_maps, batch, views)))
                    if not pending:
                        return
                    keys, future = pending.popleft()
                    yield keys, future.result()
            finally:
                for _, future in pending:
                    future.cancel()

    def _compute_maps(self, batch: Sequence[tuple[Key, ImageSource]], views: bool) -> dict[Key, np.ndarray | str]:
        backbone = self.network.backbone
        size = backbone.input_size, backbone.input_size
        made: dict[Key, np.ndarray | str] = {}
        for key, path in batch:
            try:
                plain = backbone.preprocess(open_rgb(self.opened(path), at_least=size, bands=self.bands))
            except (BadImage, AnnotatorError) as error:
                made[key] = str(error)
                continue
            made[key] = self.network(torch.stack(make_views(plain, key, self.strong) if views else [plain])).numpy()
        return made


def make_views(plain: torch.Tensor, key: int | str, strong_views: int = STRONG_VIEW_COUNT) -> list[torch.Tensor]:
    """Return WEAK_VIEW_COUNT weak views (unchanged and mirrored), then strong ones.

    Args:
        plain: (3, S, S) uint8.
        key: Seed of the strong views.
    """
    mirrored = plain.flip(2)
    strong = []
    for number in range(strong_views):
        random = Random(f"{key}/{number}")
        start = (mirrored if random.random() < 0.5 else plain).permute(1, 2, 0).numpy()
        changed = make_strong_view(Image.fromarray(np.ascontiguousarray(start)), random)
        strong.append(torch.from_numpy(np.array(changed)).permute(2, 0, 1))
    return [plain, mirrored, *strong]


def check_disk_space(folder: Path, needed_bytes: int) -> None:
    """Raise DiskFull if the folder's disk cannot spare `needed_bytes`."""
    make_folder_in_project(folder)
    free = shutil.disk_usage(folder).free
    if needed_bytes > MAX_DISK_SHARE * free:
        raise DiskFull(
            f"Feature maps need {needed_bytes / 1e9:.1f} GB in {folder}, and {free / 1e9:.1f} GB are free. Free some "
            "space, or choose a method that learns from pooled features; they need a hundredth of that."
        )


class StoredMaps(Sequence):
    """A sequence of image maps, read from disk when indexed."""

    def __init__(self, files: MapFiles, keys: Sequence[int | str]):
        self.files, self.keys = files, keys

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.files.read(self.keys[index])
