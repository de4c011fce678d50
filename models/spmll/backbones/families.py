"""Networks used with another input size or pooling than timm's defaults, without importing torch."""

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class NetworkFamily:
    """A group of timm networks used with another input size or pooling.

    Attributes:
        architectures: Name pattern.
        published_size, used_size: Input sides in pixels.
        pooling: Empty selects timm's default.
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
    """Return a timm architecture's family, or None for timm's defaults."""
    return next((family for family in NETWORK_FAMILIES if fnmatchcase(architecture, family.architectures)), None)
