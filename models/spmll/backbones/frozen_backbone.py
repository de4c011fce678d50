"""Frozen backbones: pretrained networks from images to features.

`trunk` and `tail` are the published network. `features` runs a fast copy, checked against it. Images are
resized to a square, not cropped, so that objects at the border and heat maps stay complete.
"""

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torchvision.transforms import InterpolationMode
from torchvision.transforms.functional import resize

from spmll.backbones import fast_inference
from spmll.backbones.network_parts import REGION_COUNT, extract_parts
from spmll.backbones.packaged import PACKAGED_BACKBONES
from spmll.backbones.pretrained import load_pretrained
from spmll.backbones.sources.network_source import Pretrained
from spmll.notice import Notice

DEFAULT_BACKBONE = "efficientnet_lite0_320"
OFFLINE_BACKBONES = tuple(PACKAGED_BACKBONES)


class Backbone:
    """A frozen pretrained network that ends in a feature vector.

    Attributes:
        input_size: S, pixels per side.
        mean, std: Normalization of pixels in [0, 1].
        dimensions: D, features per image.
        setting: Description of the fast form.
        device: A GPU, or the CPU once one image does not fit.
        chunk: Images per pass.
        batch_is_settled: Whether `chunk` is tuned.
        whole: From images to features and region features.
        trunk, tail: Images -> map (N, K, h, w) -> (N, D). Without a map the trunk is an identity.
        map_layer: Module that Grad-CAM reads through to_map. None selects the trunk's map.
        sees_regions: Whether regions get their own features.
    """

    def __init__(self, name: str, source: Pretrained, device: str = "cpu", notify: Callable[[str], None] | None = None):
        """Remove the classifier of `source.network` in place. `notify` receives a sentence if the device changes."""
        self.name = name
        self.input_size = source.input_size
        self.mean, self.std, self.interpolation = source.mean, source.std, source.interpolation
        self.device = torch.device(device)
        self._say, self._turn = notify or warn_user, threading.RLock()
        self.batch_is_settled = False
        parts = extract_parts(source, self.device)
        self.whole, self.trunk, self.tail = parts.whole, parts.trunk, parts.tail
        self.map_layer, self.to_map, self.sees_regions = parts.map_layer, parts.to_map, parts.sees_regions
        self._prepare_forward()
        example = self.features(torch.zeros(1, 3, self.input_size, self.input_size, dtype=torch.uint8))
        if not torch.isfinite(example).all():
            raise ValueError(f"{name} makes numbers that are not finite of an image: its weights are damaged.")
        self.dimensions = example.shape[1]

    def _prepare_forward(self) -> None:
        self._mean = self._to_channel_values([value * 255 for value in self.mean])
        self._scale = self._to_channel_values([1 / (value * 255) for value in self.std])
        self._forward, self.setting, self.chunk = fast_inference.find_fastest_forward(
            self.whole, self.input_size, self.device, True
        )

    @property
    def on_gpu(self) -> bool:
        return self.device.type == "cuda"

    def preprocess(self, picture) -> torch.Tensor:
        """Resize a Pillow RGB image to a square: (3, S, S) uint8, channels last in memory."""
        squashed = resize(picture, [self.input_size, self.input_size], InterpolationMode(self.interpolation))
        return torch.from_numpy(np.array(squashed)).permute(2, 0, 1)

    def normalize(self, images: torch.Tensor) -> torch.Tensor:
        """Return normalized pixels (N, 3, S, S) float32 on the device. Raises ValueError for other shapes."""
        size = self.input_size
        if images.ndim != 4 or tuple(images.shape[1:]) != (3, size, size):
            raise ValueError(f"{self.name} takes images of shape (N, 3, {size}, {size}), not {tuple(images.shape)}.")
        # Moved before they are converted: float32 would be four times as many bytes.
        pixels = images.to(self.device).to(torch.float32, memory_format=torch.channels_last, copy=True)
        if images.is_floating_point():
            pixels.mul_(255)
        return pixels.sub_(self._mean).mul_(self._scale)

    def upload(self, images: torch.Tensor) -> torch.Tensor:
        """Copy images to the GPU, or return them unchanged if impossible.

        Blocks until complete, so call it outside the thread of features().
        """
        if not self.on_gpu:
            return images
        try:
            stream = torch.cuda.Stream(self.device)
            with torch.cuda.stream(stream):
                uploaded = images.pin_memory().to(self.device, non_blocking=True)
            stream.synchronize()
        except torch.OutOfMemoryError:
            return images
        return uploaded

    def _to_channel_values(self, values: list[float]) -> float | torch.Tensor:
        """Return one number if all channels have the same value (faster), else a tensor with one value per channel."""
        return values[0] if len(set(values)) == 1 else torch.tensor(values, device=self.device).view(1, 3, 1, 1)

    @torch.inference_mode()
    def features(self, images: torch.Tensor) -> torch.Tensor:
        """Return features (N, D) float32 on the CPU of images (N, 3, S, S), uint8 or floats in [0, 1]. Thread-safe."""
        if len(images) == 0:
            return torch.zeros(0, self.dimensions)
        return torch.cat([part.float().cpu() for part in self.run_in_chunks(images, self._run_forward)])

    @torch.inference_mode()
    def features_and_regions(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return features of images and of their regions from one pass.

        Regions form a GRID x GRID grid, row by row, with the borders of adaptive average pooling. A region is not a
        crop: it depends on its surroundings. If not `sees_regions`, regions get the image's features.

        Returns:
            (N, D), equal to features(), and (N, REGIONS, D), float32 on the CPU.
        """
        if len(images) == 0:
            return torch.zeros(0, self.dimensions), torch.zeros(0, REGION_COUNT, self.dimensions)
        features, regions = zip(*self.run_in_chunks(images, lambda part: self._run_forward(part, True)), strict=True)
        joined, joined_regions = (torch.cat([part.float().cpu() for part in whole]) for whole in (features, regions))
        return joined, joined_regions

    def run_in_chunks(self, images: torch.Tensor, run: Callable[[torch.Tensor], Any]) -> Iterator[Any]:
        """Yield the outputs of `run` for the normalized images of each chunk.

        If GPU memory is full, the chunk is halved. If one image is too much, the network moves to the CPU. Raises
        torch.OutOfMemoryError if that is full.
        """
        while len(images):
            part, device = images[: self.chunk], self.device
            try:
                # A GPU runs one chunk after the other anyway, and the network must not change devices meanwhile.
                with self._turn if self.on_gpu else contextlib.nullcontext():
                    output = run(self.normalize(part))
            except torch.OutOfMemoryError:
                with self._turn:
                    if device == self.device and not self._make_room(len(part)):  # else another thread has made some
                        raise
                continue
            images = images[len(part) :]
            yield output

    def _run_forward(self, images: torch.Tensor, *asked: bool) -> Any:
        return self._forward(images, *asked)

    def _make_room(self, tried: int) -> bool:
        """Halve the chunk, or move the network to the CPU, and return False if neither is possible."""
        if tried > 1:
            self.chunk = max(1, min(self.chunk, tried // 2))
        elif self.on_gpu:
            self._say(format_out_of_memory(self.name))
            with torch.inference_mode(False):  # heat maps need gradients of what is made here
                self.device = torch.device("cpu")
                self.whole.to(self.device)
                self._prepare_forward()
        else:
            return False
        torch.cuda.empty_cache()
        return True

    def add_head(self, weight: torch.Tensor, bias: torch.Tensor) -> nn.Module:
        """Return the network with a linear head: normalized images (N, 3, S, S) -> (N, C).

        Args:
            weight: (C, D), else ValueError.
            bias: (C,).
        """
        return nn.Sequential(self.trunk, self.tail, self.make_head(weight, bias))

    def make_head(self, weight: torch.Tensor, bias: torch.Tensor) -> nn.Linear:
        """Return a frozen linear head with copies of weight (C, D) and bias (C,), checking shapes."""
        weight = torch.as_tensor(weight, dtype=torch.float32, device=self.device)
        bias = torch.as_tensor(bias, dtype=torch.float32, device=self.device)
        if weight.ndim != 2 or weight.shape[1] != self.dimensions or bias.shape != weight.shape[:1]:
            raise ValueError(
                f"{self.name} has {self.dimensions} features, so the head must be (C, {self.dimensions}) and its bias "
                f"(C,); these are {tuple(weight.shape)} and {tuple(bias.shape)}. Was it trained on another backbone?"
            )
        linear = nn.Linear(weight.shape[1], weight.shape[0], device=self.device)
        with torch.no_grad():
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
        return linear.requires_grad_(False)


def format_out_of_memory(name: str) -> str:
    """Return the warning that a network did not fit in GPU memory and runs on the CPU."""
    return f"The GPU has no room for {name}, which therefore runs on the CPU."


def warn_user(sentence: str) -> None:
    warnings.warn(sentence, Notice, stacklevel=2)


def load_on_device(
    name: str, source: Callable[[], Pretrained], device: str | None = None, notify: Callable[[str], None] = warn_user
) -> Backbone:
    """Return the backbone on `device`, or on the CPU if the GPU has no room.

    Args:
        source: Returns the network, called again if it moves to the CPU.
        device: None selects a GPU if available.
    """
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if torch.device(device).type == "cuda":
        try:
            return Backbone(name, source(), device, notify)
        except torch.OutOfMemoryError:
            notify(format_out_of_memory(name))
        torch.cuda.empty_cache()
        device = "cpu"
    return Backbone(name, source(), device, notify)


def load_backbone(name: str = DEFAULT_BACKBONE, device: str | None = "cpu") -> Backbone:
    """Return the pretrained, frozen backbone of this name.

    Args:
        name: Any source's name, or several joined by "+".
        device: None selects a GPU if available.

    Raises:
        ValueError: The name is unknown or the weights are unavailable. They are never random, except in plug-ins.
    """
    return load_on_device(name, lambda: load_pretrained(name), device)
