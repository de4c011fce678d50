"""The libraries that networks come from: one file a library, one line in SOURCES. The first that knows a name loads it.

Begin with source.py, which defines a source.
"""

from models.backbones.sources import open_clip_models, packages, plug_ins, timm_models, torchvision_models
from models.backbones.sources.source import Source

SOURCES: dict[str, Source] = {
    "packages": packages.SOURCE,
    "open_clip": open_clip_models.SOURCE,
    "timm": timm_models.SOURCE,
    "torchvision": torchvision_models.SOURCE,
    "plug-ins": plug_ins.SOURCE,
}
