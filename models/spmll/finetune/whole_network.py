"""A pretrained backbone with trained top layers: pooling and a linear layer, or a method's map head."""

from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor, nn

from spmll.backbones.pretrained import Pretrained
from spmll.methods.base import Method

BATCH_NORM = nn.modules.batchnorm._BatchNorm


class WholeNetwork(nn.Module):
    """A module from images to logits: a pretrained network with a linear `classifier` on its `features`."""

    def __init__(self, body: nn.Module, classifier: nn.Linear):
        super().__init__()
        self.body, self.classifier = body, classifier

    def features(self, images: Tensor) -> Tensor:
        """Return pooled features (B, D)."""
        return self.body(images)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (B, C)."""
        return self.classifier(self.body(images))


class MapNetwork(nn.Module):
    """A module whose `body` computes feature maps for a method's `head`. Batch norm of the body stays frozen."""

    def __init__(self, body: nn.Module, head: nn.Module):
        super().__init__()
        self.body, self.head = body, head
        for module in body.modules():
            if isinstance(module, BATCH_NORM):
                module.requires_grad_(False)

    def train(self, mode: bool = True) -> "MapNetwork":
        """Set the mode, but keep batch norm in eval mode."""
        super().train(mode)
        for module in self.body.modules():
            if isinstance(module, BATCH_NORM):
                module.eval()
        return self

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        return self.head(self.body(images))


def build_whole_network(source: Pretrained, classes: int, method: Method, seed: int = 0) -> nn.Module:
    """Return the network that `method` trains end to end, from images to logits (V x B, C).

    A MapNetwork freezes a ResNet's stem and first stage, as in LAGC's code.

    Args:
        source: Its network is changed.

    Raises:
        ValueError: The network's last feature map cannot be found.
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
    if source.library != "torchvision":
        if source.library in ("timm", "open_clip"):  # others have none
            of_timm: Any = source.network
            of_timm.reset_classifier(0)
        return
    name, _ = [(name, module) for name, module in source.network.named_modules() if isinstance(module, nn.Linear)][-1]
    parent, _, child = name.rpartition(".")
    setattr(source.network.get_submodule(parent), child, nn.Identity())


def _find_map_body(source: Pretrained) -> nn.Module:
    """Return the part of a network up to its last feature map, or raise ValueError."""
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
    """A module that runs a timm network without pooling and classifier."""

    network: Any  # torch's hint for a module's attributes knows no methods

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        return self.network.forward_features(images)
