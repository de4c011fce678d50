"""Training batches of image files, feature maps or pooled features.

A batch has view 0 of all images, then view 1, ... In training, view 0 is weak and others are strong (augment.py).
"""

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
from spmll.usable_cores import count_usable_cores

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MAX_WORKERS = 16  # beyond that, loader threads wait for Python's global lock


class Examples(ABC):
    """Base class of inputs to networks: batches of a data set's images."""

    device: torch.device

    @abstractmethod
    def __len__(self) -> int:
        """Count the images."""

    @abstractmethod
    def batch(self, rows: Tensor, views: int, train: bool, generator: torch.Generator) -> Tensor:
        """Return images ready for the network.

        Args:
            rows: (B,) int64.
            views: Per image, 1 outside training.
            train: Whether views are random.

        Returns:
            (views x B, ...) float32, view by view.

        Raises:
            ValueError: Unreadable images, named.
        """

    def batches(
        self, parts: Iterable[Tensor], views: int, train: bool, generator: torch.Generator
    ) -> Generator[Tensor, None, None]:
        """Yield the result of `batch` for each part, in order. Subclasses may prepare ahead."""
        for rows in parts:
            yield self.batch(rows, views, train, generator)


class ImageExamples(Examples):
    """Batches of image files, resized to squares and decoded ahead by threads."""

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
        """Store the settings without opening files.

        Args:
            open_image: From a path to a Pillow RGB image.
            size: Pixels per side.
            mean: (3,) for pixels in [0, 1], or None.
            std: (3,) or None.
            workers: Decoding threads, at most 16 by default.
            keep_bytes: Memory for decoded images.
        """
        self.paths, self.open_image, self.size = list(paths), open_image, size
        self.interpolation = InterpolationMode(interpolation)
        self.device = torch.device(device)
        self.workers = workers or max(1, min(count_usable_cores(), MAX_WORKERS))
        as_column = {"device": self.device, "dtype": torch.float32}
        self._mean = torch.tensor([0.0] * 3 if mean is None else list(mean), **as_column).view(1, 3, 1, 1) * 255
        self._std = torch.tensor([1.0] * 3 if std is None else list(std), **as_column).view(1, 3, 1, 1) * 255
        self._kept: dict[int, np.ndarray] = {}
        self._room = keep_bytes
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.paths)

    def batch(self, rows: Tensor, views: int, train: bool, generator: torch.Generator) -> Tensor:
        """Return (views x B, 3, size, size)."""
        return next(self.batches([rows], views, train, generator))

    def batches(
        self, parts: Iterable[Tensor], views: int, train: bool, generator: torch.Generator
    ) -> Generator[Tensor, None, None]:
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
        """Return a normalized batch, or raise ValueError naming unreadable images."""
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
    """Batches of feature maps in several views, precomputed by a frozen network."""

    def __init__(self, maps: Sequence[np.ndarray], *, weak: int = 1, device: str | torch.device = "cpu"):
        """Store the maps, which may be on disk.

        Args:
            maps: (V, K, h, w) per image: plain, weak, then strong views. V may differ.
            weak: Number of weak views, including the plain one.
        """
        self.maps, self.weak = maps, weak
        self.device = torch.device(device)

    def __len__(self) -> int:
        return len(self.maps)

    def batch(self, rows: Tensor, views: int, train: bool, generator: torch.Generator) -> Tensor:
        """Return stored feature maps, (views x B, K, h, w) of K channels: one weakly augmented, the others strongly.

        Images without strongly augmented maps have weak ones instead. Outside training, each view is the first of its
        kind.
        """
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
    """Batches of pooled features, precomputed by a frozen network."""

    def __init__(self, features: np.ndarray, *, device: str | torch.device = "cpu"):
        """Store features (N, D) float32."""
        self.features = torch.from_numpy(features)
        self.device = torch.device(device)

    def __len__(self) -> int:
        return len(self.features)

    def batch(self, rows: Tensor, views: int, train: bool, generator: torch.Generator) -> Tensor:
        """Return features (B, D), or raise ValueError for several views."""
        if views != 1:
            raise ValueError(f"Features are of one view of each image, not of {views}.")
        return self.features[rows].to(self.device)


def iterate_in_order(examples: Examples, batch: int) -> Iterator[Tensor]:
    """Yield batches of all images in order, without augmentation."""
    parts = torch.arange(len(examples)).split(batch)
    with closing(examples.batches(parts, 1, False, torch.Generator())) as ready:
        yield from ready


def _format_reason(error: BaseException) -> str:
    return f"{error}".splitlines()[0] if f"{error}" else type(error).__name__
