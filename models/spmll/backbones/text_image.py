"""Images and texts in one space: how well the names of classes fit images, before anybody has answered.

Images and regions need only the stored features; patches need the image itself again.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from spmll.backbones.frozen_backbone import Backbone
from spmll.backbones.sources.network_source import Pretrained, TextEncoder


class TextImageNetwork:
    """A text-image network.

    Attributes:
        name: Name of its backbone.
        backbone: The image encoder.
        dimensions: E, of the space that images and texts share.
        scale, bias: The network's logit of an image and a text is scale * (image @ text) + bias.
    """

    def __init__(self, backbone: Backbone, source: Pretrained):
        """Store a backbone and the text encoder of `source`, from which the backbone was made.

        Raises:
            ValueError: The network has no text encoder.
        """
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
        """Return the vectors of texts, (T, E) float32 of length 1.

        Raises:
            ValueError: The tokenizer cannot be had, or the text encoder was freed.
        """
        if self._text is None:
            raise ValueError(f"The text encoder of {self.name} was freed. Load the network again.")
        return F.normalize(self._text.encode(list(texts)), dim=1) if texts else torch.zeros(0, self.dimensions)

    def free_text_encoder(self) -> None:
        """Free the memory of the text encoder, which may be more than that of the image encoder; images still work."""
        self._text = None

    def encode_images(self, images: Tensor) -> Tensor:
        """Return the vectors (N, E) of length 1, on the CPU, of images as Backbone.features takes them."""
        return self.project_features(self.backbone.features(images))

    @torch.inference_mode()
    def encode_images_and_patches(self, images: Tensor) -> tuple[Tensor, Tensor, tuple[int, int]]:
        """Return vectors of images (N, E) and of their patches, row by row, (N, h x w, E), all of length 1; and (h, w).

        Without patches, the places of the map are used. The vector of a patch is the network's own pooling and
        projection of that patch alone: attention pooling passes on its value, as in MaskCLIP (Zhou et al., ECCV 2022);
        in a network with a class token, its last token is projected.

        Raises:
            ValueError: The network ends neither in a map nor in patches.
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
        """Return the vectors (..., E) of length 1, on the CPU, of features (..., D) as Backbone.features gives them."""
        return self._project(features[..., : self._width])

    def project_regions(self, regions: Tensor) -> Tensor:
        """Return the vectors (..., E) of length 1 of region features (..., D) from Backbone.features_and_regions."""
        return self._project(regions[..., -self._width :])

    @torch.inference_mode()
    def _project(self, vectors: Tensor) -> Tensor:
        projection = self._projection.to(self.backbone.device)  # it may have gone from the GPU to the CPU
        return F.normalize(projection(vectors.to(self.backbone.device).float()), dim=-1).cpu()

    def _find_projection_width(self) -> int:
        """Return K: all features, or half of them where they are the class token and the average of the patches."""
        reads_class_token = getattr(self.backbone.whole, "reads_class_token", False)
        return self.backbone.dimensions // 2 if reads_class_token else self.backbone.dimensions
