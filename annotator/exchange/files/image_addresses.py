"""Image names in the addresses that annotation tools keep: of uploads, of a server's folders, of buckets."""

from annotator.store.images.name_forms import MAX_ADDRESS_CHARACTERS, extract_image_name
from annotator.store.pictures.picture_kinds import HEIC, IMAGE_SUFFIXES

__all__ = ["extract_image_name", "is_image_address"]
IMAGE_ENDINGS = tuple(sorted(IMAGE_SUFFIXES | HEIC.endings))  # of images that other tools read


def is_image_address(address: str) -> bool:
    """Return whether an address ends like the name of an image file; False for 10,000 characters and more."""
    path = extract_image_name(address) if len(address) < MAX_ADDRESS_CHARACTERS else ""
    return path.lower().endswith(IMAGE_ENDINGS)
