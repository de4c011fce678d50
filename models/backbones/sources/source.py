"""What a source of networks is, and what it gives: a network with its weights, and how its images are prepared."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from torch import Tensor, nn

from models.backbones.packaged import PACKAGED, plugin_backbones


class TextEncoder(Protocol):
    """The other half of a text-image network (models/backbones/text_image.py uses it).

    Attributes:
        projection: Pooled features (..., K) of the network's images to the space that both share, (..., E).
        scale, bias: By which the network multiplies, and what it adds to, a product of two unit vectors: its logit.
    """

    projection: nn.Module
    scale: float
    bias: float

    def encode(self, texts: list[str]) -> Tensor:
        """(T, E) float32, of any length. Raises ValueError where its tokenizer cannot be had."""
        ...


@dataclass(frozen=True)
class Pretrained:
    """A network with its own classifier still on, and how its images were prepared when it was trained.

    Attributes:
        library: "timm", "open_clip" or "torchvision", which say where the classifier is; "joined" for several networks;
            "" for a network that has no classifier: it maps images (N, 3, S, S) to features (N, D).
        text: None for a network that knows nothing of texts.
    """

    network: nn.Module
    library: str
    input_size: int  # pixels; the side of a square
    mean: tuple[float, float, float]  # of pixel values in [0, 1]
    std: tuple[float, float, float]
    interpolation: str  # "bilinear" or "bicubic"
    text: TextEncoder | None = None

    def images_only(self) -> "Pretrained":
        """The same without its text encoder, which need not travel."""
        return replace(self, text=None)


@dataclass(frozen=True)
class Source:
    """One library, or place, that networks come from.

    Attributes:
        knows: Whether a name is one of its names.
        load: The network of such a name, on the CPU and in eval mode, never with random weights. Raises ValueError.
        names: Those that can be listed, for near ones of a name that nobody knows.
    """

    knows: Callable[[str], bool]
    load: Callable[[str], Pretrained]
    names: Callable[[], Iterable[str]] = tuple


def offline_choice() -> str:
    """A sentence that names the networks that are always there."""
    return f"These come installed and need no download: {', '.join((*PACKAGED, *plugin_backbones()))}."


def no_weights(name: str, error: Exception) -> str:
    """A message: the weights of a network cannot be had."""
    return f"The weights of {name} cannot be had ({reason(error)}). Is this machine offline? {offline_choice()}"


def reason(error: Exception) -> str:
    """The first line of what an exception says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
