"""Matching of class names and images in one space, before any label exists."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from spmll.backbones.frozen_backbone import Backbone
from spmll.backbones.sources.network_source import Pretrained, TextEncoder


class TextImageNetwork:
    """A network that maps texts and images to one space.

    Attributes:
        dimensions: E, dimensions of that space.
        scale, bias: logit = scale * (image @ text) + bias.
    """

    def __init__(self, backbone: Backbone, source: Pretrained):
        """Store a backbone and the text encoder of `source`, or raise ValueError if it has none."""
        if source.text is None:
            raise ValueError(
                f"{backbone.name} knows nothing of texts. Networks that do begin with open_clip: "
                "(annotator backbones lists some)."
            )
        self.name, self.backbone = backbone.name, backbone
        self._text: TextEncoder | None = source.text
        self.scale, self.bias = source.text.scale, source.text.bias
        self._projection = source.text.projection.to(backbone.device)
        self._width = self._find_projection_width()
        self.dimensions = self.project_features(torch.zeros(1, backbone.dimensions)).shape[1]

    def encode_texts(self, texts: Sequence[str]) -> Tensor:
        """Return unit text vectors (T, E), or raise ValueError without encoder."""
        if self._text is None:
            raise ValueError(f"The text encoder of {self.name} was freed. Load the network again.")
        return F.normalize(self._text.encode(list(texts)), dim=1) if texts else torch.zeros(0, self.dimensions)

    def free_text_encoder(self) -> None:
        """Free the text encoder's memory. Images still work."""
        self._text = None

    def encode_images(self, images: Tensor) -> Tensor:
        """Return unit vectors (N, E) of images, on the CPU."""
        return self.project_features(self.backbone.features(images))

    @torch.inference_mode()
    def encode_images_and_patches(self, images: Tensor) -> tuple[Tensor, Tensor, tuple[int, int]]:
        """Return unit vectors of images (N, E) and of their patches (N, h x w, E), and the patch grid's size (h, w).

        Each patch is pooled and projected alone, as in MaskCLIP (Zhou et al., ECCV 2022).

        Raises:
            ValueError: The network has no patches or map.
        """
        whole = self.backbone.whole
        if not self.backbone.sees_regions:
            raise ValueError(f"{self.name} does not say where in an image things are.")
        features, patches, grid = [], [], (0, 0)
        for pooled, places, grid_of_all in self.backbone.run_in_chunks(images, whole.features_and_places):  # pyright: ignore
            grid = grid_of_all
            features.append(self.project_features(pooled))
            patches.append(self._project(places))
        return torch.cat(features), torch.cat(patches), grid

    def project_features(self, features: Tensor) -> Tensor:
        """Return unit vectors (..., E) in the space shared with texts, of image features (..., D)."""
        return self._project(features[..., : self._width])

    def project_regions(self, regions: Tensor) -> Tensor:
        """Return unit vectors (..., E) in the space shared with texts, of region features (..., D)."""
        return self._project(regions[..., -self._width :])

    @torch.inference_mode()
    def _project(self, vectors: Tensor) -> Tensor:
        projection = self._projection.to(self.backbone.device)  # it may have gone from the GPU to the CPU
        return F.normalize(projection(vectors.to(self.backbone.device).float()), dim=-1).cpu()

    def _find_projection_width(self) -> int:
        """Return how many of the features are projected, K: all, or half if they begin with a class token."""
        reads_class_token = getattr(self.backbone.whole, "reads_class_token", False)
        return self.backbone.dimensions // 2 if reads_class_token else self.backbone.dimensions
