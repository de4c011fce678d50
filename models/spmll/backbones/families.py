"""Networks whose frozen features are used with another input size or pooling than timm's; without torch.

Each row gives the reason. All other networks take the size that their weights were published for, and timm's pooling.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class NetworkFamily:
    """Networks of timm that are used here with another input size or pooling than timm's default.

    Attributes:
        architectures: A pattern of timm's architecture names.
        published_size, used_size: Sides of the input, in pixels: timm's, and the one used here.
        pooling: timm's name of the pooling; "": timm's default.
    """

    architectures: str
    published_size: int
    used_size: int
    pooling: str
    why: str


NETWORK_FAMILIES = (
    NetworkFamily(
        "vit_*_dinov2",
        518,
        224,
        "token",
        "DINOv2 was trained at 224 pixels, and its authors' linear evaluation uses 224; the short last phase at 518 is "
        "for dense tasks. 518 means 1,369 patches instead of 256: five times the tokens.",
    ),
    NetworkFamily(
        "vit_*_dinov3*",
        256,
        256,
        "token",
        "DINOv3's authors take the class token; timm's default for its architecture (Eva) is the average.",
    ),
)


def find_family(architecture: str) -> NetworkFamily | None:
    """Return the family of an architecture of timm; None for those that are used with timm's defaults."""
    return next((family for family in NETWORK_FAMILIES if fnmatchcase(architecture, family.architectures)), None)
