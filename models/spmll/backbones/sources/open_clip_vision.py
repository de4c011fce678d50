"""Image and text encoders of open_clip, with the methods of timm's networks."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from typing_extensions import override

TEXTS_PER_BATCH = 64


class ClipVision(nn.Module):
    """An open_clip vision transformer with timm's methods.

    Attributes:
        num_features: K, the token width.
        global_pool: "token" or "avg".
    """

    num_prefix_tokens = 1

    def __init__(self, visual: Any):
        super().__init__()
        self.visual = visual
        self.num_features = int(visual.class_embedding.shape[0])
        self.global_pool = "avg" if visual.pool_type == "avg" else "token"
        self.fc_norm = visual.ln_post if visual.final_ln_after_pool else nn.Identity()

    @staticmethod
    def fits(visual: Any) -> bool:
        return (
            type(visual).__name__ == "VisionTransformer"
            and all(hasattr(visual, name) for name in ("_embeds", "transformer", "ln_post", "final_ln_after_pool"))
            and getattr(visual, "attn_pool", None) is None
            and getattr(visual, "pool_type", "") in ("tok", "avg")
        )

    def reset_classifier(self, classes: int) -> None:
        """Do nothing, since there is no classifier."""

    def forward_features(self, images: Tensor) -> Tensor:
        """Return the tokens of images: (N, T, K)."""
        tokens = self.visual.transformer(self.visual._embeds(images))
        return tokens if self.visual.final_ln_after_pool else self.visual.ln_post(tokens)

    def forward_head(self, tokens: Tensor, pre_logits: bool = False) -> Tensor:
        """Return the features (N, K) of tokens (N, T, K)."""
        return self.fc_norm(tokens[:, 0] if self.global_pool == "token" else tokens[:, 1:].mean(1))

    def forward(self, images: Tensor) -> Tensor:
        return self.forward_head(self.forward_features(images))


class MatrixProduct(nn.Module):
    """A module that multiplies vectors by a matrix (K, E)."""

    def __init__(self, matrix: Tensor):
        super().__init__()
        self.matrix = nn.Parameter(matrix.detach(), requires_grad=False)

    @override
    def forward(self, vectors: Tensor) -> Tensor:
        return vectors @ self.matrix


class ClipText:
    """The `TextEncoder` of an open_clip network."""

    def __init__(self, model: Any, projection: nn.Module, tokenizer: Callable[[], Any]):
        """Store the network. `tokenizer` returns the tokenizer and is called on first use."""
        self._model, self._tokenizer = model, tokenizer
        self._known: Any = None
        self.projection = projection.eval().requires_grad_(False)
        self.scale = float(model.logit_scale.detach().exp())
        bias = getattr(model, "logit_bias", None)
        self.bias = 0.0 if bias is None else float(bias.detach())

    @torch.inference_mode()
    def encode(self, texts: list[str]) -> Tensor:
        if self._known is None:
            try:
                self._known = self._tokenizer()
            except Exception as error:  # no transformers, no network, a damaged file
                said = (str(error).strip() or type(error).__name__).splitlines()[0]
                raise ValueError(
                    f"The tokenizer of this network cannot be had ({said}). pip install 'multilabel-annotator[clip]' "
                    "brings the program for it; its file comes from where the weights come from."
                ) from error
        parts = [
            cast(Tensor, self._model.encode_text(self._known(texts[start : start + TEXTS_PER_BATCH])))
            for start in range(0, len(texts), TEXTS_PER_BATCH)
        ]
        return torch.cat(parts).float() if parts else torch.zeros(0, self._measure_width())

    def _measure_width(self) -> int:
        return int(self._model.encode_text(self._known([""])).shape[1])
