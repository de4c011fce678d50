"""Image names in the addresses that annotation tools keep: of uploads, of a server's folders, of buckets."""

from annotator.store.images.name_forms import LONGEST_ADDRESS, image_name
from annotator.store.pictures.kinds import HEIC, IMAGE_SUFFIXES

__all__ = ["image_name", "looks_like_image"]
ENDINGS = tuple(sorted(IMAGE_SUFFIXES | HEIC.endings))  # of images that other tools read


def looks_like_image(address: str) -> bool:
    """Return whether an address ends like the name of an image file; False for 10,000 characters and more."""
    path = image_name(address) if len(address) < LONGEST_ADDRESS else ""
    return path.lower().endswith(ENDINGS)
