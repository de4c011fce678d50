"""The definition of a source of networks, and of its product: a network with weights and image preparation."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from torch import Tensor, nn

from spmll.backbones.packaged import PACKAGED_BACKBONES, find_plugin_backbones


class TextEncoder(Protocol):
    """The text encoder of a text-image network (spmll/backbones/text_image.py uses it).

    Attributes:
        projection: Module from pooled image features (..., K) to the shared space (..., E).
        scale, bias: The network's logit is scale * (product of two unit vectors) + bias.
    """

    projection: nn.Module
    scale: float
    bias: float

    def encode(self, texts: list[str]) -> Tensor:
        """Return (T, E) float32 vectors of texts, of any length. Raise ValueError where the tokenizer cannot be had."""
        ...


@dataclass(frozen=True)
class Pretrained:
    """A network that still has its classifier, and how its images were prepared when it was trained.

    Attributes:
        library: "timm", "open_clip" or "torchvision", which determine where the classifier is; "joined" for several
            networks; "" for a network that has no classifier: it maps images (N, 3, S, S) to features (N, D).
        text: The text encoder; None for a network without one.
    """

    network: nn.Module
    library: str
    input_size: int  # pixels; the side of a square
    mean: tuple[float, float, float]  # of pixel values in [0, 1]
    std: tuple[float, float, float]
    interpolation: str  # "bilinear" or "bicubic"
    text: TextEncoder | None = None

    def images_only(self) -> "Pretrained":
        """Return a copy without the text encoder, which need not be sent to other machines."""
        return replace(self, text=None)


@dataclass(frozen=True)
class Source:
    """One library, or place, that networks come from.

    Attributes:
        knows: Returns whether a name is one of its names.
        load: Returns the network of such a name, on the CPU and in eval mode, never with random weights. Raises
            ValueError.
        names: Returns the names that can be listed, to suggest near ones for an unknown name.
    """

    knows: Callable[[str], bool]
    load: Callable[[str], Pretrained]
    names: Callable[[], Iterable[str]] = tuple


def describe_offline_choice() -> str:
    """Return a sentence that names the networks that need no download."""
    return f"These come installed and need no download: {', '.join((*PACKAGED_BACKBONES, *find_plugin_backbones()))}."


def format_no_weights(name: str, error: Exception) -> str:
    """Return the message that the weights of a network cannot be had."""
    return (
        f"The weights of {name} cannot be had ({format_reason(error)}). Is this machine offline? "
        f"{describe_offline_choice()}"
    )


def format_reason(error: Exception) -> str:
    """Return the first line of an exception's message; its type if the message is empty."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
