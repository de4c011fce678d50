"""The interface of a network source, and the network that it returns."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from torch import Tensor, nn

from spmll.backbones.packaged import PACKAGED_BACKBONES, find_plugin_backbones


class TextEncoder(Protocol):
    """The text encoder of a text-image network.

    Attributes:
        projection: From pooled image features (..., K) to the space shared with texts (..., E).
        scale, bias: logit = scale * cosine + bias.
    """

    projection: nn.Module
    scale: float
    bias: float

    def encode(self, texts: list[str]) -> Tensor:
        """Return text vectors (T, E), or raise ValueError without a tokenizer."""
        ...


@dataclass(frozen=True)
class Pretrained:
    """A pretrained network with its classifier and the preparation of its input images.

    Attributes:
        library: "timm", "open_clip", "torchvision", "joined", or "" without a classifier.
    """

    network: nn.Module
    library: str
    input_size: int  # pixels; the side of a square
    mean: tuple[float, float, float]  # of pixel values in [0, 1]
    std: tuple[float, float, float]
    interpolation: str  # "bilinear" or "bicubic"
    text: TextEncoder | None = None

    def images_only(self) -> "Pretrained":
        """Return a copy without the text encoder, to send to other machines."""
        return replace(self, text=None)


@dataclass(frozen=True)
class Source:
    """A library or other place from which networks are loaded.

    Attributes:
        knows: Returns whether it has a network of this name.
        load: Returns a network with published weights, or raises ValueError.
        names: Lists names, to suggest similar ones.
    """

    knows: Callable[[str], bool]
    load: Callable[[str], Pretrained]
    names: Callable[[], Iterable[str]] = tuple


def describe_offline_choice() -> str:
    """Return a sentence with the networks that need no download."""
    return f"These come installed and need no download: {', '.join((*PACKAGED_BACKBONES, *find_plugin_backbones()))}."


def format_no_weights(name: str, error: Exception) -> str:
    """Return the error message for a network whose weights are unavailable."""
    return (
        f"The weights of {name} cannot be had ({format_reason(error)}). Is this machine offline? "
        f"{describe_offline_choice()}"
    )


def format_reason(error: Exception) -> str:
    """Return the first line of an exception's message, or its type."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
