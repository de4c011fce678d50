"""Unpooled feature maps of a frozen backbone, for methods that read maps."""

import threading

import torch
from torch import Tensor

from spmll.backbones import fast_inference
from spmll.backbones.frozen_backbone import Backbone


class FeatureMaps:
    """A function object that computes unpooled feature maps of images (`shape`: channels K, height h, width w)."""

    def __init__(self, backbone: Backbone):
        """Prepare the backbone. Raise ValueError without a spatial map."""
        self.backbone = backbone
        self._seen = threading.local()  # several threads may be inside at once
        if backbone.map_layer is None:
            self._forward, _, _ = fast_inference.find_fastest_forward(
                backbone.trunk, backbone.input_size, backbone.device
            )
        else:
            backbone.map_layer.register_forward_hook(self._store_map)
            self._forward = self._forward_through_hook
        size = backbone.input_size
        example = self(torch.zeros(1, 3, size, size, dtype=torch.uint8))
        if example.ndim != 4 or example.shape[2:].numel() <= 1:
            raise ValueError(
                f"{backbone.name} has no map that shows where things are (its last one is {tuple(example.shape[1:])}). "
                "Choose a convolutional backbone."
            )
        self.shape = tuple(example.shape[1:])

    @torch.inference_mode()
    def __call__(self, images: Tensor) -> Tensor:
        """Return float16 maps (N, K, h, w) of uint8 images (N, 3, S, S). Thread-safe."""
        maps = torch.cat([part.float() for part in self.backbone.run_in_chunks(images, self._forward)])
        # Half precision ends at 65504; what is beyond would become infinite.
        return maps.clamp_(-65504, 65504).half().contiguous().cpu()

    def _store_map(self, _module: torch.nn.Module, _inputs: tuple, output: Tensor) -> None:
        self._seen.map = output

    def _forward_through_hook(self, images: Tensor) -> Tensor:
        self.backbone.tail(self.backbone.trunk(images))
        return self.backbone.to_map(self._seen.map)
