"""Embedding speed of the worker's pipeline, compared with a bare forward pass and a plain loop.

The three alternate. The forward pass uses random pixels in memory and the faster way of sharing cores. The plain loop
is float32, one image at a time.
"""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
from PIL import Image
from torch import nn
from torchvision import transforms

from annotator.benchmark.scratch import scratch_folder
from annotator.errors import AnnotatorError
from annotator.settings import SAMPLE_DATA_FOLDER
from annotator.store.pictures.bands import NO_BAND_CHOICES
from annotator.store.pictures.decoding import BadImage, open_rgb
from annotator.store.pictures.picture_kinds import IMAGE_SUFFIXES
from annotator.worker.features.backbone import check_license_accepted
from annotator.worker.features.embed import embed_images, embedding_threads
from spmll.backbones.batch_size import tune_batch_size
from spmll.backbones.frozen_backbone import DEFAULT_BACKBONE, Backbone, load_backbone

PHOTOS_PER_ROUND, GPU_PHOTOS_PER_ROUND = 96, 4096  # in each timing
MAX_PLAIN_LOOP_PHOTOS = 512
LARGE_PHOTO_PIXELS = (4000, 3000)  # 12 megapixels, what telephones have taken for years


def measure(
    images: Path | None = None,
    *,
    backbone: str = DEFAULT_BACKBONE,
    rounds: int = 7,
    photos_a_round: int | None = None,
    large: int = 24,
) -> dict:
    """Compare the pipeline with the forward pass and the loop, on photos and on generated 12-megapixel JPEGs.

    Args:
        images: Photo folder, repeated if too small. None selects the sample data.
        photos_a_round: Images per timing. The plain loop gets a third.
        large: 12-megapixel JPEGs per timing.

    Raises:
        AnnotatorError: Without a readable image, or for a license that was not accepted.
    """
    check_license_accepted(backbone)
    network = load_backbone(backbone, None)
    tune_batch_size(network)
    photos_a_round = photos_a_round or (GPU_PHOTOS_PER_ROUND if network.on_gpu else PHOTOS_PER_ROUND)
    photos = _list_readable_photos(images or SAMPLE_DATA_FOLDER / "images")
    photos = [photos[index % len(photos)] for index in range(photos_a_round)]
    # The plain loop gets its own copy of the network, laid out in the order torch has by default.
    spare = load_backbone(backbone, None)
    plain = nn.Sequential(spare.trunk, spare.tail).to(memory_format=torch.contiguous_format)
    with scratch_folder() as folder:
        large_photos = _write_large_photos(photos, folder, large)
        third, large_third = max(1, min(len(photos) // 3, MAX_PLAIN_LOOP_PHOTOS)), max(1, len(large_photos) // 3)
        speeds = _measure_rivals(
            {
                "photos": lambda: _measure_speed(lambda: _embed_photos(photos, network), len(photos)),
                "forward_shared_pass": lambda: _measure_speed(_build_shared_pass(network, len(photos)), len(photos)),
                "forward_pass_each": lambda: _measure_speed(_build_pass_per_core(network, len(photos)), len(photos)),
                "photos_plain_loop": lambda: _measure_speed(_build_plain_loop(photos[:third], network, plain), third),
                "megapixel12": lambda: _measure_speed(lambda: _embed_photos(large_photos, network), len(large_photos)),
                "megapixel12_plain_loop": lambda: _measure_speed(
                    _build_plain_loop(large_photos[:large_third], network, plain), large_third
                ),
            },
            rounds,
        )
    forward = max("forward_shared_pass", "forward_pass_each", key=lambda name: statistics.median(speeds[name]))
    names = {
        "photos_images_per_second": "photos",
        "photos_forward_only_images_per_second": forward,
        "photos_plain_loop_images_per_second": "photos_plain_loop",
        "megapixel12_images_per_second": "megapixel12",
        "megapixel12_plain_loop_images_per_second": "megapixel12_plain_loop",
    }
    return {
        "bench": "embedding",
        "figures": {
            **{name: round(statistics.median(speeds[key]), 2) for name, key in names.items()},
            "image_side_pixels": network.input_size,
            "images_at_once": network.chunk,
            "on_gpu": int(network.on_gpu),
            "rounds": rounds,
            "cores": os.cpu_count() or 1,
        },
        "ratios": {
            "photos_over_forward_only": _compute_median_ratio(speeds["photos"], speeds[forward]),
            "photos_over_plain_loop": _compute_median_ratio(speeds["photos"], speeds["photos_plain_loop"]),
            "megapixel12_over_plain_loop": _compute_median_ratio(
                speeds["megapixel12"], speeds["megapixel12_plain_loop"]
            ),
        },
    }


def _compute_median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 3)


def _measure_rivals(rivals: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    speeds: dict[str, list[float]] = {name: [] for name in rivals}
    for number in range(rounds + 1):
        for name, run in rivals.items():
            speed = run()
            if number:
                speeds[name].append(speed)
    return speeds


def _measure_speed(run: Callable[[], object], images: int) -> float:
    start = time.perf_counter()
    run()
    return images / (time.perf_counter() - start)


def _embed_photos(paths: Sequence[Path], network: Backbone) -> None:
    done = sum(len(part.indices) for part in embed_images(paths, network, regions=True, bands=NO_BAND_CHOICES))
    if done != len(paths):
        raise AnnotatorError(f"Only {done} of {len(paths)} images could be embedded, so the figures would be wrong.")


def _draw_pixels(network: Backbone, count: int) -> torch.Tensor:
    size = network.input_size
    pixels = torch.randint(
        0, 256, (count, 3, size, size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )
    return network.upload(pixels.contiguous(memory_format=torch.channels_last))


def _build_shared_pass(network: Backbone, count: int) -> Callable[[], object]:
    """Return a function for one forward pass of `count` images, in one batch that all cores share."""
    pixels = _draw_pixels(network, count)
    return lambda: network.features(pixels)


def _build_pass_per_core(network: Backbone, count: int) -> Callable[[], None]:
    """Return a function for one forward pass of `count` images, divided among threads with a batch each."""
    parts = _draw_pixels(network, count).split(network.chunk if network.on_gpu else 8)

    def run() -> None:
        with embedding_threads() as pool:
            list(pool.map(network.features, parts))

    return run


def _build_plain_loop(paths: Sequence[Path], network: Backbone, plain: nn.Module) -> Callable[[], None]:
    interpolation = transforms.InterpolationMode(network.interpolation)
    prepare = transforms.Compose(
        [
            transforms.Resize((network.input_size, network.input_size), interpolation),
            transforms.ToTensor(),
            transforms.Normalize(network.mean, network.std),
        ]
    )

    def run() -> None:
        for path in paths:
            with torch.no_grad():
                plain(cast(torch.Tensor, prepare(Image.open(path).convert("RGB")))[None].to(network.device))

    return run


def _list_readable_photos(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise AnnotatorError(
            f"There is no folder {folder}. Give one with photos: annotator bench embedding --images DIR"
        )
    files = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in IMAGE_SUFFIXES]
    readable = []
    for path in files:
        try:
            open_rgb(path)
        except BadImage:
            continue
        readable.append(path)
    if not readable:
        raise AnnotatorError(f"{folder} holds no image that can be read ({len(files)} files have an image's name).")
    return readable


def _write_large_photos(photos: Sequence[Path], folder: Path, count: int) -> list[Path]:
    noise = np.random.default_rng(0)
    paths = []
    for number in range(count):
        picture = open_rgb(photos[number % len(photos)]).resize(LARGE_PHOTO_PIXELS, Image.Resampling.BICUBIC)
        grain = noise.normal(0, 6, (LARGE_PHOTO_PIXELS[1], LARGE_PHOTO_PIXELS[0], 1)).astype(np.float32)
        pixels = np.clip(np.asarray(picture, np.float32) + grain, 0, 255).astype(np.uint8)
        paths.append(folder / f"{number:03d}.jpg")
        Image.fromarray(pixels).save(paths[-1], "JPEG", quality=90)
    return paths
