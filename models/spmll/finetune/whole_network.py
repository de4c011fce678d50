"""A pretrained backbone and the layers trained on top of it, as one network from images to logits.

For most methods the top is average pooling and one linear layer, as in the papers. A method that reads maps
(Method.reads) brings a network of its own, which takes the last map before pooling.
"""

from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor, nn

from spmll.backbones.pretrained import Pretrained
from spmll.methods.base import Method

BATCH_NORM = nn.modules.batchnorm._BatchNorm


class WholeNetwork(nn.Module):
    """A network from normalised images (B, 3, S, S) to logits (B, C); the linear `classifier` reads `features`."""

    def __init__(self, body: nn.Module, classifier: nn.Linear):
        super().__init__()
        self.body, self.classifier = body, classifier

    def features(self, images: Tensor) -> Tensor:
        """Return the pooled features of images: (B, 3, S, S) -> (B, D)."""
        return self.body(images)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of images: (B, 3, S, S) -> (B, C)."""
        return self.classifier(self.body(images))


class MapNetwork(nn.Module):
    """A network from images to the outputs of `head` on the last map of `body`; batch norm is frozen."""

    def __init__(self, body: nn.Module, head: nn.Module):
        super().__init__()
        self.body, self.head = body, head
        for module in body.modules():
            if isinstance(module, BATCH_NORM):
                module.requires_grad_(False)

    def train(self, mode: bool = True) -> "MapNetwork":
        """Set the mode as in torch, except that batch norm stays in eval mode and keeps its pretrained statistics."""
        super().train(mode)
        for module in self.body.modules():
            if isinstance(module, BATCH_NORM):
                module.eval()
        return self

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Return the outputs of the head for images (V x B, 3, S, S)."""
        return self.head(self.body(images))


def build_whole_network(source: Pretrained, classes: int, method: Method, seed: int = 0) -> nn.Module:
    """Return the network that `method` trains end to end, in float32 on the CPU; `seed` decides weights of new layers.

    Args:
        source: From spmll.backbones.pretrained.pretrained; its network is used and changed.
        classes: C, the number of classes.
        method: The method that is trained with.
        seed: Decides all that is random.

    Returns:
        A module from images (V x B, 3, S, S) to logits (V x B, C). A WholeNetwork, or for a method that reads maps a
            MapNetwork, in which a ResNet's stem and first stage are frozen, as in the published code of LAGC.

    Raises:
        ValueError: The method needs maps and the last map of this network is not known.
    """
    network = source.network.requires_grad_(True)
    example = torch.zeros(1, 3, source.input_size, source.input_size)
    if method.reads == "maps":
        body = _find_map_body(source)
        with torch.no_grad():
            maps = body.eval()(example)
        if maps.ndim != 4:
            raise ValueError(
                f"{method.name} needs a map (N, K, h, w), and {type(network).__name__} ends in {tuple(maps.shape)}. "
                "Take a convolutional network, such as resnet50."
            )
        for name in ("conv1", "bn1", "layer1"):
            if hasattr(network, "conv1") and hasattr(network, "layer1") and hasattr(network, name):
                getattr(network, name).requires_grad_(False)
        return MapNetwork(body, method.build_network(maps.shape[1], classes, torch.Generator().manual_seed(seed)))
    _remove_classifier(source)
    with torch.no_grad():
        dimensions = network.eval()(example).shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return WholeNetwork(network, nn.Linear(dimensions, classes))


def _remove_classifier(source: Pretrained) -> None:
    """Remove the classifier, so that the network ends in pooled features."""
    if source.library != "torchvision":
        if source.library in ("timm", "open_clip"):  # others have none
            of_timm: Any = source.network
            of_timm.reset_classifier(0)
        return
    name, _ = [(name, module) for name, module in source.network.named_modules() if isinstance(module, nn.Linear)][-1]
    parent, _, child = name.rpartition(".")
    setattr(source.network.get_submodule(parent), child, nn.Identity())


def _find_map_body(source: Pretrained) -> nn.Module:
    """Return the part of a network that ends in its last map. Raise ValueError if that part is not known."""
    network = source.network
    if source.library == "timm":
        _remove_classifier(source)
        return _TimmFeatures(network)
    if hasattr(network, "layer4"):  # a ResNet: all but pooling and classifier
        parts = [(name, part) for name, part in network.named_children() if name not in ("avgpool", "fc")]
        return nn.Sequential(OrderedDict(parts))
    features = getattr(network, "features", None)
    if isinstance(features, nn.Module):
        return features
    raise ValueError(
        f"Where {type(network).__name__} has its last map is not known. Take a ResNet, a torchvision network with "
        "`features`, or any convolutional network of timm."
    )


class _TimmFeatures(nn.Module):
    """A timm network without its pooling: forward is its forward_features."""

    network: Any  # torch's hint for a module's attributes knows no methods

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        return self.network.forward_features(images)
