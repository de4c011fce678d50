"""Feature maps of images, kept on the disk, for the methods that need more than one pooled vector an image.

A map is as much as a hundred pooled vectors (207 kB an image of the default backbone), so each image has a file of its
own, read when a batch needs it. An image that is trained on has several views: unchanged, mirrored, and strongly
augmented ones. They are made once instead of in every epoch, which makes two augmented views affordable without a GPU.
Files are written atomically and never expire, because an image is identified by its content: a killed pass continues
where it ended, and the next run makes only the maps of images labeled since.
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
from models.backbones.feature_maps import FeatureMaps
from models.finetune.augment import make_strong_view
from models.finetune.last_stages import StageInputs

# views of an image that is trained on: unchanged and mirrored; strongly augmented
WEAK_VIEW_COUNT, STRONG_VIEW_COUNT = (2, 2)
VIEWS_PER_STEP = 8  # views a thread makes between two checks of should_stop
MAX_DISK_SHARE = 0.9  # of the free disk that maps may take

Key = TypeVar("Key", bound=int | str)  # of an image: its id, or any name a file may have


class MapFiles:
    """The maps of images by one backbone, in one folder.

    Attributes:
        network: Computes the maps.
        strong: The number of strong views of an image, besides the WEAK_VIEW_COUNT weak ones.
        bands: Which bands are shown of images of many.
        opened: The source given to `make` for an image -> what the decoder reads.
        bytes_each: Bytes of one view of one image.
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
        """Return the file of an image's views, or of its plain map; key: its id, or any name a file may have."""
        return self.folder / ("views" if views else "plain") / f"{key}.npy"

    def has_maps(self, key: int | str, views: bool) -> bool:
        """Return whether the maps exist; the plain map is also the first of the views."""
        return self.get_path(key, True).exists() or (not views and self.get_path(key, False).exists())

    def read(self, key: int | str) -> np.ndarray:
        """Return (V, K, h, w) float16, mapped into memory: the plain map first, then the other views if there are any.

        Raises:
            AnnotatorError: The file is damaged or of another network; it is deleted, so that it is made anew.
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
        """Make and store the maps of images that have none.

        Args:
            items: (key, file) of each image.
            views: All views, or only the plain map.
            should_stop: Called between steps; once it returns True, the work ends.

        Yields:
            (images processed so far, by key why files of this batch could not be read), about every second.

        Raises AnnotatorError before the first one when the disk has not enough room, DiskFull when it is filled
        meanwhile.
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
        """Yield (keys, results by key) for the maps of images, in order and a few at a time, without storing them.

        A result is (V, K, h, w) float16, or a sentence that says why the file cannot be read.
        """
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
    """Return the views of an image (3, S, S) uint8: WEAK_VIEW_COUNT weak ones, the first unchanged, then the strong
        ones.

    Args:
        plain: The image, (3, S, S) uint8.
        key: Seeds the strong views: an image always gets the same ones.
        strong_views: The number of strong views.
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
    """Raise DiskFull when the disk of this folder does not have `needed` bytes to spare."""
    make_folder_in_project(folder)
    free = shutil.disk_usage(folder).free
    if needed_bytes > MAX_DISK_SHARE * free:
        raise DiskFull(
            f"Feature maps need {needed_bytes / 1e9:.1f} GB in {folder}, and {free / 1e9:.1f} GB are free. Free some "
            "space, or choose a method that learns from pooled features; they need a hundredth of that."
        )


class StoredMaps(Sequence):
    """A sequence of the maps of some images; each is read from the disk when it is indexed."""

    def __init__(self, files: MapFiles, keys: Sequence[int | str]):
        self.files, self.keys = files, keys

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.files.read(self.keys[index])
