"""Image names in the URLs and paths that annotation tools store."""

from annotator.store.images.name_forms import MAX_ADDRESS_CHARACTERS, extract_image_name
from annotator.store.pictures.picture_kinds import HEIC, IMAGE_SUFFIXES

__all__ = ["extract_image_name", "is_image_address"]
IMAGE_ENDINGS = tuple(sorted(IMAGE_SUFFIXES | HEIC.endings))  # of images that other tools read


def is_image_address(address: str) -> bool:
    """Return whether a text is a short URL or path with the ending of an image file."""
    path = extract_image_name(address) if len(address) < MAX_ADDRESS_CHARACTERS else ""
    return path.lower().endswith(IMAGE_ENDINGS)
