"""Where networks come from: one file a library, one line in SOURCES. The first source that knows a name gives it.

source.py               Source, and Pretrained, which a source gives
packages.py             weights installed with this project
timm_models.py          timm's names, hf-hub:REPOSITORY, local-dir:FOLDER
open_clip_models.py     open_clip:ARCHITECTURE/TAG, open_clip:local-dir:FOLDER, open_clip:hf-hub:REPOSITORY
open_clip_vision.py     open_clip's own image encoders in the form of timm's; its text encoders
torchvision_models.py   torchvision's names
plug_ins.py             what installed packages add
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
