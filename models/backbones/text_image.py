"""Images and texts in one space: what a text-image network says of names, before anybody has answered anything.

Features that are on the disk are enough for images and regions; patches need the image once more.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from models.backbones.networks import Backbone
from models.backbones.sources.source import Pretrained, TextEncoder


class TextImage:
    """A text-image network.

    Attributes:
        name: As of its backbone.
        backbone: Its images.
        dimensions: E, of the space that both share.
        scale, bias: The network's logit of an image and a text is scale * (image @ text) + bias.
    """

    def __init__(self, backbone: Backbone, source: Pretrained):
        """source: what the backbone was made of. Raises ValueError for a network that knows nothing of texts."""
        if source.text is None:
            raise ValueError(
                f"{backbone.name} knows nothing of texts. Networks that do begin with open_clip: "
                "(annotator backbones lists some)."
            )
        self.name, self.backbone = backbone.name, backbone
        self._text: TextEncoder | None = source.text
        self.scale, self.bias = source.text.scale, source.text.bias
        self._projection = source.text.projection.to(backbone.device)
        self._width = self._projection_width()
        self.dimensions = self.of_features(torch.zeros(1, backbone.dimensions)).shape[1]

    def texts(self, texts: Sequence[str]) -> Tensor:
        """(T, E) float32 of length 1. Raises ValueError where the tokenizer cannot be had, or the encoder is freed."""
        if self._text is None:
            raise ValueError(f"The text encoder of {self.name} was freed. Load the network again.")
        return F.normalize(self._text.encode(list(texts)), dim=1) if texts else torch.zeros(0, self.dimensions)

    def free_text_encoder(self) -> None:
        """Give back its memory, which may be more than that of the images' half; images can still be compared."""
        self._text = None

    def images(self, images: Tensor) -> Tensor:
        """(N, 3, S, S), as Backbone.features takes them -> (N, E) of length 1, on the CPU."""
        return self.of_features(self.backbone.features(images))

    @torch.inference_mode()
    def images_and_patches(self, images: Tensor) -> tuple[Tensor, Tensor, tuple[int, int]]:
        """The same; of each patch, or place of the map, row by row: (N, h x w, E) of length 1; and (h, w).

        A patch is what the network's own pooling and projection make of it alone: attention pooling passes on its
        value, as in MaskCLIP (Zhou et al., ECCV 2022); of a network with a class token, its last token is projected.
        Raises ValueError for a network that ends neither in a map nor in patches.
        """
        whole = self.backbone.whole
        if not self.backbone.sees_regions:
            raise ValueError(f"{self.name} does not say where in an image things are.")
        features, patches, grid = [], [], (0, 0)
        for pooled, places, grid_of_all in self.backbone.in_chunks(images, whole.features_and_places):  # pyright: ignore
            grid = grid_of_all
            features.append(self.of_features(pooled))
            patches.append(self._shared(places))
        return torch.cat(features), torch.cat(patches), grid

    def of_features(self, features: Tensor) -> Tensor:
        """Features (..., D), as Backbone.features gives them -> (..., E) of length 1, on the CPU."""
        return self._shared(features[..., : self._width])

    def of_regions(self, regions: Tensor) -> Tensor:
        """Features of regions (..., D), as Backbone.features_and_regions gives them -> (..., E) of length 1."""
        return self._shared(regions[..., -self._width :])

    @torch.inference_mode()
    def _shared(self, vectors: Tensor) -> Tensor:
        projection = self._projection.to(self.backbone.device)  # it may have gone from the GPU to the CPU
        return F.normalize(projection(vectors.to(self.backbone.device).float()), dim=-1).cpu()

    def _projection_width(self) -> int:
        """K: all features, or where they are the class token and the average of the patches, the half of them."""
        reads_class_token = getattr(self.backbone.whole, "reads_class_token", False)
        return self.backbone.dimensions // 2 if reads_class_token else self.backbone.dimensions
