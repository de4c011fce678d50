"""Batches for training a network: of image files, or of feature maps or pooled features from a frozen network.

A batch holds every image once in each of its views, the first views of all images before the second ones. While
training, view 0 is the weak one (flipped or not) and every further view a strong one (augment.py); otherwise there
is one view, the image as it is.
"""

import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.functional import resize

from spmll.finetune.augment import make_strong_view

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MAX_WORKERS = 16  # beyond that, loader threads wait for Python's global lock


class Examples(ABC):
    """The images of one data set in the form a network takes them.

    Attributes:
        device: Device on which batches are made ready, and on which the network must be.
    """

    device: torch.device

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of images."""

    @abstractmethod
    def batch(self, rows: Tensor, views: int, train: bool, generator: torch.Generator) -> Tensor:
        """Return some images, ready for the network.

        Args:
            rows: (B,) int64, the images.
            views: Number of views of each; 1 when not training.
            train: True: views are random; False: the images as they are.
            generator: Source of randomness (on the CPU).

        Returns:
            (views x B, ...) float32 on `device`: all images in view 0, then all in view 1, ...

        Raises:
            ValueError: Some images cannot be read; the message names them and says why.
        """

    def batches(
        self, parts: Iterable[Tensor], views: int, train: bool, generator: torch.Generator
    ) -> Generator[Tensor, None, None]:
        """Yield `batch` of each of `parts`, in order; a subclass that prepares batches ahead overrides this."""
        for rows in parts:
            yield self.batch(rows, views, train, generator)


class ImageExamples(Examples):
    """Image files, resized to a square and decoded by threads ahead of the network."""

    def __init__(
        self,
        paths: Sequence[Path],
        open_image: Callable[[Path], Image.Image],
        size: int = 448,
        *,
        mean: Sequence[float] | None = IMAGENET_MEAN,
        std: Sequence[float] | None = IMAGENET_STD,
        interpolation: str = "bilinear",
        device: str | torch.device = "cpu",
        workers: int | None = None,
        keep_bytes: int = 2 << 30,
    ):
        """Store the settings; no file is opened yet.

        Args:
            paths: The image files.
            open_image: Function from a path to its picture (Pillow, mode RGB); an exception from it is reported with
                the path.
            size: Pixels, both sides of the square that the network sees; aspect ratios are not kept.
            mean: (3,) subtracted from pixel values in [0, 1]; None: nothing.
            std: (3,) their divisor; None: 1.
            interpolation: "bilinear" or "bicubic".
            device: The device of the batches.
            workers: Threads that decode; None: one a core, at most 16.
            keep_bytes: Memory for decoded pictures (600 kB each at 448 pixels), which are then not decoded again.
        """
        self.paths, self.open_image, self.size = list(paths), open_image, size
        self.interpolation = InterpolationMode(interpolation)
        self.device = torch.device(device)
        self.workers = workers or max(1, min(_count_cores(), MAX_WORKERS))
        as_column = {"device": self.device, "dtype": torch.float32}
        self._mean = torch.tensor([0.0] * 3 if mean is None else list(mean), **as_column).view(1, 3, 1, 1) * 255
        self._std = torch.tensor([1.0] * 3 if std is None else list(std), **as_column).view(1, 3, 1, 1) * 255
        self._kept: dict[int, np.ndarray] = {}
        self._room = keep_bytes
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.paths)

    def batch(self, rows: Tensor, views: int, train: bool, generator: torch.Generator) -> Tensor:
        """Return some images as in Examples: (views x B, 3, size, size)."""
        return next(self.batches([rows], views, train, generator))

    def batches(
        self, parts: Iterable[Tensor], views: int, train: bool, generator: torch.Generator
    ) -> Generator[Tensor, None, None]:
        """Yield batches as in Examples; threads decode at least two batches and four images a thread ahead."""
        # One draw from `generator`, so that the next epoch does not depend on how far the threads were ahead.
        own = torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=generator)))
        parts = iter(parts)
        pending: deque[tuple[list[int], list[Future]]] = deque()
        with ThreadPoolExecutor(self.workers, "views") as pool:
            try:
                while True:
                    while len(pending) < 3 or sum(len(rows) for rows, _ in pending) < 4 * self.workers:
                        rows = next(parts, None)
                        if rows is None:
                            break
                        seeds = torch.randint(2**62, (len(rows),), generator=own).tolist()
                        rows = rows.tolist()
                        jobs = [
                            pool.submit(self._make_views, row, views, train, seed)
                            for row, seed in zip(rows, seeds, strict=True)
                        ]
                        pending.append((rows, jobs))
                    if not pending:
                        return
                    yield self._prepare_batch(*pending.popleft())
            finally:
                for _, jobs in pending:
                    for job in jobs:
                        job.cancel()

    def _prepare_batch(self, rows: list[int], jobs: list[Future]) -> Tensor:
        """Return the pictures of one batch, normalised, on the device. Raise ValueError naming unreadable ones."""
        bad = [(row, error) for row, job in zip(rows, jobs, strict=True) if (error := job.exception())]
        if bad:
            named = "\n".join(f"    image {row}, {self.paths[row]}: {_format_reason(error)}" for row, error in bad[:5])
            more = f"\n    and {len(bad) - 5} more" if len(bad) > 5 else ""
            raise ValueError(
                f"{len(bad)} of the {len(rows)} images of a batch cannot be read:\n{named}{more}\n"
                "Repair them or leave them out, and start again."
            ) from bad[0][1]
        pictures = np.concatenate([np.stack(view) for view in zip(*(job.result() for job in jobs), strict=True)])
        pixels = torch.from_numpy(pictures)
        if self.device.type == "cuda":
            pixels = pixels.pin_memory().to(self.device, non_blocking=True)
        # Channels stay last in memory: convolutions are fastest with that layout.
        return pixels.permute(0, 3, 1, 2).to(self.device, torch.float32).sub_(self._mean).div_(self._std)

    def _make_views(self, row: int, views: int, train: bool, seed: int) -> list[np.ndarray]:
        """Return each view of one image, (size, size, 3) uint8."""
        picture = self._load_picture(row)
        if not train:
            return [picture] * views
        random = Random(seed)
        weak = picture[:, ::-1] if random.random() < 0.5 else picture
        strong = []
        for _ in range(views - 1):
            flipped = picture[:, ::-1] if random.random() < 0.5 else picture
            strong.append(np.array(make_strong_view(Image.fromarray(np.ascontiguousarray(flipped)), random)))
        return [weak, *strong]

    def _load_picture(self, row: int) -> np.ndarray:
        decoded = self._kept.get(row)
        if decoded is not None:
            return decoded
        opened: Any = self.open_image(self.paths[row]).convert("RGB")  # resize takes pictures; its hint says tensors
        picture = np.array(resize(opened, [self.size] * 2, self.interpolation))
        with self._lock:
            if row not in self._kept and picture.nbytes <= self._room:
                self._room -= picture.nbytes
                self._kept[row] = picture
        return picture


class MapExamples(Examples):
    """Feature maps of each image in several views, computed once by a frozen network."""

    def __init__(self, maps: Sequence[np.ndarray], *, weak: int = 1, device: str | torch.device = "cpu"):
        """Store the maps, which are read when they are needed, so they may lie on the disk.

        Args:
            maps: For each image (V, K, h, w) of floats: its views. The first is the image as it is; the first `weak`
                views are weak ones, all others strong ones. V may differ from image to image.
            weak: Number of weak views, the plain image included; the plain image and its mirror image make 2.
            device: The device that computes.
        """
        self.maps, self.weak = maps, weak
        self.device = torch.device(device)

    def __len__(self) -> int:
        return len(self.maps)

    def batch(self, rows: Tensor, views: int, train: bool, generator: torch.Generator) -> Tensor:
        """Return maps of some images as in Examples: (views x B, K, h, w); weak views replace missing strong ones."""
        chance = torch.rand(views, len(rows), generator=generator).tolist()
        picked: list[list[np.ndarray]] = [[] for _ in range(views)]
        for place, row in enumerate(rows.tolist()):
            maps = self.maps[row]
            weak = min(self.weak, len(maps))
            for view in range(views):
                first, last = (0, weak) if view == 0 or weak == len(maps) else (weak, len(maps))
                which = first + int(chance[view][place] * (last - first)) if train else 0
                picked[view].append(np.asarray(maps[which], np.float32))
        ready = torch.from_numpy(np.stack([picture for view in picked for picture in view])).to(self.device)
        if not torch.isfinite(ready).all():
            finite = torch.isfinite(ready).flatten(1).all(1).view(views, -1).all(0)
            bad = rows[~finite.cpu()].tolist()
            raise ValueError(f"The maps of images {', '.join(map(str, bad[:10]))} are not finite. Make them anew.")
        return ready


class FeatureExamples(Examples):
    """Pooled features of each image, computed once by a frozen network, without augmentation."""

    def __init__(self, features: np.ndarray, *, device: str | torch.device = "cpu"):
        """Store the features.

        Args:
            features: (N, D) float32.
            device: The device that computes.
        """
        self.features = torch.from_numpy(features)
        self.device = torch.device(device)

    def __len__(self) -> int:
        return len(self.features)

    def batch(self, rows: Tensor, views: int, train: bool, generator: torch.Generator) -> Tensor:
        """Return features of some images as in Examples: (B, D). Raise ValueError where several views are asked for."""
        if views != 1:
            raise ValueError(f"Features are of one view of each image, not of {views}.")
        return self.features[rows].to(self.device)


def iterate_in_order(examples: Examples, batch: int) -> Iterator[Tensor]:
    """Yield all images without augmentation, in order, in batches of this size."""
    parts = torch.arange(len(examples)).split(batch)
    with closing(examples.batches(parts, 1, False, torch.Generator())) as ready:
        yield from ready


def _format_reason(error: BaseException) -> str:
    return f"{error}".splitlines()[0] if f"{error}" else type(error).__name__


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
