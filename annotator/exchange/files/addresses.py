"""Image names in the addresses that annotation tools keep: of uploads, of a server's folders, of buckets."""

from annotator.store.images.name_forms import LONGEST_ADDRESS, image_name

__all__ = ["image_name", "looks_like_image"]
ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".jfif", ".avif", ".heic")


def looks_like_image(address: str) -> bool:
    """Return whether an address ends like the name of an image file; False for 10,000 characters and more."""
    path = image_name(address) if len(address) < LONGEST_ADDRESS else ""
    return path.lower().endswith(ENDINGS)
