"""Several networks as one, "NAME+NAME", with features of equal length concatenated."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from spmll.backbones.sources.network_source import Pretrained

NAME_SEPARATOR = "+"


class NetworkGroup(nn.Module):
    """A container module of several networks, which network_parts.py runs and joins."""

    def __init__(self, sources: Sequence[Pretrained]):
        super().__init__()
        self.sources = [source.images_only() for source in sources]
        self.networks = nn.ModuleList(source.network for source in sources)

    def forward(self, images: Tensor) -> Tensor:
        """Raise ValueError, since a group cannot be trained."""
        raise ValueError("Joined networks cannot be trained as a whole. Name one of them.")


def join_networks(sources: Sequence[Pretrained]) -> Pretrained:
    """Join networks into one for pixels in [0, 1]."""
    size = max(source.input_size for source in sources)
    interpolation = "bicubic" if any(source.interpolation == "bicubic" for source in sources) else "bilinear"
    return Pretrained(NetworkGroup(sources).eval(), "joined", size, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), interpolation)


def prepare_pixels(images: Tensor, source: Pretrained) -> Tensor:
    """Resize and normalize pixels in [0, 1] for one network."""
    if images.shape[-1] != source.input_size:
        size = (source.input_size, source.input_size)
        images = functional.interpolate(images, size, mode=source.interpolation, antialias=True).clamp(0, 1)
    mean, std = (images.new_tensor(values).view(1, 3, 1, 1) for values in (source.mean, source.std))
    return (images - mean) / std
