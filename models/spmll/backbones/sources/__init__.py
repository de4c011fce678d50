"""Libraries of networks, one per file. The first that knows a name loads it."""

from spmll.backbones.sources import open_clip_models, packaged_models, plugin_models, timm_models, torchvision_models
from spmll.backbones.sources.network_source import Source

SOURCES: dict[str, Source] = {
    "packages": packaged_models.SOURCE,
    "open_clip": open_clip_models.SOURCE,
    "timm": timm_models.SOURCE,
    "torchvision": torchvision_models.SOURCE,
    "plug-ins": plugin_models.SOURCE,
}
