"""Frozen backbones: networks from images to features.

A backbone holds one set of weights in two forms. `trunk` and `tail` are the network as published, which Grad-CAM reads;
`features` runs a copy of it in the fastest form this machine offers (fast_inference.py), checked against the original
when it is loaded. So features and heat maps are of the same network. The features of an image's regions are the outputs
of the
tail for parts of the map: vectors of the same kind as those of the whole image, from the same pass.

Images are resized to a square instead of cropped at the centre as when the networks were trained: an object that is
visible only at the border must stay in the input, and a heat map must cover the whole image.
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
        name: As given to load_backbone.
        input_size: Pixels, the side of the square that features() takes.
        mean, std: Subtracted from pixels in [0, 1], and their divisor (applied by features()).
        interpolation: "bilinear" or "bicubic": how images were resized when the network was trained.
        dimensions: D, the length of a feature vector.
        setting: In words, the form in which features() runs the network.
        device: The device of the network: a GPU, until its memory has no room for a single image, then the CPU.
        chunk: Images that pass through the network at once; a larger batch is split. Halved when the memory of a GPU is
            full.
        batch_is_settled: Whether `chunk` is the largest useful one (batch_size.py).
        whole: Trunk and tail in one, and the regions (spmll/backbones/network_parts.py).
        trunk, tail: Image -> map -> (N, D); the map is (N, K, h, w) where the network ends in one, otherwise the trunk
            does nothing and the tail is the whole network.
        map_layer: A module inside the tail whose output, converted by to_map, Grad-CAM reads; None: the trunk's map.
        sees_regions: Whether regions get features of their own in features_and_regions().
    """

    def __init__(self, name: str, source: Pretrained, device: str = "cpu", notify: Callable[[str], None] | None = None):
        """Remove the classifier of `source.network` (which is changed) and prepare the network on `device`.

        Args:
            name: The name of the network.
            source: The pretrained network, and how it wants its images.
            device: The device that computes.
            notify: Called with a sentence when the network moves to another device; None: a warning.
        """
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
        """Return whether the network is on a CUDA GPU."""
        return self.device.type == "cuda"

    def preprocess(self, picture) -> torch.Tensor:
        """Return a picture (Pillow, mode RGB, any size) as a tensor: (3, S, S) uint8, resized to a square.

        In memory its channels come last, as the network wants them.
        """
        squashed = resize(picture, [self.input_size, self.input_size], InterpolationMode(self.interpolation))
        return torch.from_numpy(np.array(squashed)).permute(2, 0, 1)

    def normalize(self, images: torch.Tensor) -> torch.Tensor:
        """Return pixels as the network takes them: (N, 3, S, S) float32, channels_last, on its device.

        Args:
            images: (N, 3, S, S), uint8 in 0..255 or floating point in [0, 1].

        Raises:
            ValueError: The images have another shape.
        """
        size = self.input_size
        if images.ndim != 4 or tuple(images.shape[1:]) != (3, size, size):
            raise ValueError(f"{self.name} takes images of shape (N, 3, {size}, {size}), not {tuple(images.shape)}.")
        # Moved before they are converted: float32 would be four times as many bytes.
        pixels = images.to(self.device).to(torch.float32, memory_format=torch.channels_last, copy=True)
        if images.is_floating_point():
            pixels.mul_(255)
        return pixels.sub_(self._mean).mul_(self._scale)

    def upload(self, images: torch.Tensor) -> torch.Tensor:
        """Return images, as normalised() takes them, copied to the memory of the GPU.

        Without a GPU, or without room on it, the images are returned as they are. Call it from another thread than
        features(): it waits until the copy is complete, while the GPU computes.
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
        """Return one number if all channels have the same value (several times faster), else a tensor of three."""
        return values[0] if len(set(values)) == 1 else torch.tensor(values, device=self.device).view(1, 3, 1, 1)

    @torch.inference_mode()
    def features(self, images: torch.Tensor) -> torch.Tensor:
        """Return feature vectors of images.

        May be called from several threads at once.

        Args:
            images: (N, 3, S, S), uint8 in 0..255 or floating point in [0, 1]; N may be 0.

        Returns:
            (N, D) float32, on the CPU.

        Raises:
            ValueError: The images have another shape.
        """
        if len(images) == 0:
            return torch.zeros(0, self.dimensions)
        return torch.cat([part.float().cpu() for part in self.run_in_chunks(images, self._run_forward)])

    @torch.inference_mode()
    def features_and_regions(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return feature vectors of images and of their regions, in one pass.

        The regions are a GRID x GRID grid, row by row from the top left, with the borders of torch's adaptive average
        pooling: neighbours share a row where a map does not divide evenly. A region is a vector of the same kind as the
        features; spmll/backbones/network_parts.py describes how each kind of network makes it. With a tail that only
        averages, as that of the EfficientNets and ResNets, regions are the averaged map itself, and where it divides
        evenly, their mean is the features. A region is not a crop: each place depends on its surroundings, too.

        A network that ends neither in a map nor in patches (sees_regions is False) gives each region the features of
        the whole image.

        Args:
            images: As for features().

        Returns:
            (N, D) float32, exactly what features() gives, and (N, REGIONS, D) float32, both on the CPU.

        Raises:
            ValueError: As features() does.
        """
        if len(images) == 0:
            return torch.zeros(0, self.dimensions), torch.zeros(0, REGION_COUNT, self.dimensions)
        features, regions = zip(*self.run_in_chunks(images, lambda part: self._run_forward(part, True)), strict=True)
        joined, joined_regions = (torch.cat([part.float().cpu() for part in whole]) for whole in (features, regions))
        return joined, joined_regions

    def run_in_chunks(self, images: torch.Tensor, run: Callable[[torch.Tensor], Any]) -> Iterator[Any]:
        """Yield the outputs of `run` for the normalised images of each chunk.

        When the memory of the GPU is full, a chunk is repeated with half as many images, which stays the size from then
        on; without room for one image, the network moves to the CPU, and `say` is called. Raises torch.OutOfMemoryError
        when the CPU has no room either.
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
        """Halve the chunk, or if `tried` is 1 move to the CPU; return False if that is already the device."""
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
        """Return the full network: normalised images (N, 3, S, S) to logits (N, C), with a linear head on the features.

        Args:
            weight: (C, D) weights of the head.
            bias: (C,) its bias.

        Raises:
            ValueError: They do not fit the backbone or each other.
        """
        return nn.Sequential(self.trunk, self.tail, self.make_head(weight, bias))

    def make_head(self, weight: torch.Tensor, bias: torch.Tensor) -> nn.Linear:
        """Return a frozen linear layer, features (N, D) to logits (N, C), with copies of weight (C, D) and bias (C,).

        Raises:
            ValueError: They do not fit the backbone or each other.
        """
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
    """Return the message that a network has moved to the CPU."""
    return f"The GPU has no room for {name}, which therefore runs on the CPU."


def warn_user(sentence: str) -> None:
    """Show a warning on the command line."""
    warnings.warn(sentence, Notice, stacklevel=2)


def load_on_device(
    name: str, source: Callable[[], Pretrained], device: str | None = None, notify: Callable[[str], None] = warn_user
) -> Backbone:
    """Return the backbone of a network on `device`; on the CPU, after a call of `say`, if the GPU has no room for it.

    Args:
        name: The name of the network.
        source: Loads the network; called again for the CPU.
        device: None: a GPU if there is one.
        notify: Called with a sentence when the network moves to another device.
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
    """Return the pretrained backbone of that name, frozen and ready on `device`.

    Args:
        name: One of OFFLINE_BACKBONES (installed with this project), else any that a source knows
            (spmll/backbones/sources), or several joined by "+".
        device: "cpu", "cuda", "cuda:1", ...; None: a GPU if there is one.

    Raises:
        ValueError: No library knows the name (near names are listed), or the weights cannot be had (the networks that
            need no download are named). The weights are never random, except those of a plug-in that gives random ones.
    """
    return load_on_device(name, lambda: load_pretrained(name), device)
