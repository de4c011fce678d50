"""Classification networks of torchvision."""

from typing import Any

import torchvision

from spmll.backbones.sources.network_source import Pretrained, Source, format_no_weights


def names() -> list[str]:
    return torchvision.models.list_models(torchvision.models)


def load(name: str) -> Pretrained:
    """Return a torchvision network with its weights, or raise ValueError."""
    try:
        published: Any = torchvision.models.get_model_weights(name)  # an enumeration of its own for each network
        weights = published.DEFAULT
        network = torchvision.models.get_model(name, weights=weights, progress=False)
    except Exception as error:  # urllib, http, checksum and cache errors alike
        raise ValueError(format_no_weights(name, error)) from error
    preprocessing = weights.transforms()
    interpolation = "bicubic" if "bicubic" in str(preprocessing.interpolation).lower() else "bilinear"
    size = max(preprocessing.crop_size)
    return Pretrained(
        network.eval(), "torchvision", size, tuple(preprocessing.mean), tuple(preprocessing.std), interpolation
    )


SOURCE = Source(lambda name: name in names(), load, names)
