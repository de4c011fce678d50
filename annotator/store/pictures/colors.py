"""Conversion of stored pixels to sRGB: profiles, bit depths, transparency.

Profiles equivalent to sRGB are skipped, so that values stay exact.
"""

import io
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image, ImageCms

from annotator.store.pictures.stretching import STRIP_PIXELS, Stretch, scale_to_uint8

CMS: Any = ImageCms  # its profiles are typed in part only
PAPER_COLOR = (255, 255, 255)  # what shows through where an image is transparent
MAX_PROFILE_BYTES = 8_000_000  # bytes; printing profiles have up to 3 MB
MAX_COLOR_DIFFERENCE = 2  # of 255: a profile that moves no colour further than this is taken for sRGB
ALPHA_MODES = frozenset({"RGBA", "LA", "PA", "La", "RGBa"})


def has_many_bits(image: Image.Image) -> bool:
    """Return whether gray values exceed 8 bits."""
    return image.mode in {"I", "F"} or image.mode.startswith("I;16")


def is_transparent(image: Image.Image) -> bool:
    """Return whether any pixel can be transparent."""
    return image.mode in ALPHA_MODES or "transparency" in image.info


def to_averageable_mode(image: Image.Image) -> Image.Image:
    """Convert to L, RGB, CMYK, LAB, LA or RGBA, whose pixels can be averaged, without color management."""
    if has_many_bits(image):
        return stretch_gray(image)
    if image.mode == "LA":
        return image
    if is_transparent(image):
        return image.convert("LA" if image.mode in {"La", "L"} else "RGBA")
    if image.mode in {"L", "RGB", "CMYK", "LAB"}:
        return image
    return image.convert("L" if image.mode == "1" else "RGB")


def to_srgb(picture: Image.Image, profile: bytes | None) -> Image.Image:
    """Return an RGB image in sRGB, on white where transparent.

    Args:
        picture: From `to_averageable_mode`.
        profile: ICC profile. None or unusable means sRGB.
    """
    if picture.mode in {"LA", "RGBA"}:
        opaque = to_srgb(picture.getchannel("L") if picture.mode == "LA" else picture.convert("RGB"), profile)
        paper = Image.new("RGB", picture.size, PAPER_COLOR)
        paper.paste(opaque, mask=picture.getchannel("A"))
        return paper
    if profile and picture.mode == "L" and _get_color_space(profile) == "RGB":
        picture = picture.convert("RGB")
    conversion = _build_transform(profile or b"", picture.mode)
    if conversion is None:
        return picture if picture.mode == "RGB" else picture.convert("RGB")
    transform, mode = conversion
    if mode != picture.mode:  # Lab values in a file of three channels
        picture = Image.merge(mode, picture.split())
    return _apply_transform(picture, transform)


def is_srgb(profile: bytes | None, mode: str) -> bool:
    """Return whether this mode (RGB or L) and profile are practically sRGB."""
    if not profile:
        return True
    if mode == "L" and _get_color_space(profile) == "RGB":
        mode = "RGB"
    # This decoder ignores an unusable profile; another decoder may apply it.
    return _get_color_space(profile) == {"L": "GRAY"}.get(mode, mode) and _build_transform(profile, mode) is None


def stretch_gray(image: Image.Image) -> Image.Image:
    """Scale a gray image to 8 bits, from darkest to brightest. Constant and non-finite images become medium gray."""
    low, high, kind = _find_value_range(image)
    if high <= low or not np.isfinite([low, high]).all():
        return Image.new("L", image.size, 128)
    gray = np.empty((image.height, image.width), np.uint8)
    table = scale_to_uint8(np.arange(65536), low, high) if kind == np.uint16 else None
    for top, values in _iterate_strips(image):
        gray[top : top + len(values)] = scale_to_uint8(values, low, high) if table is None else table[values]
    return Image.fromarray(gray)


def compute_gray_stretch(image: Image.Image) -> Stretch:
    """Return the value range that `stretch_gray` scales to 8 bits."""
    low, high, kind = _find_value_range(image)
    bits = 16 if image.mode.startswith("I;16") else 8 * kind.itemsize
    return Stretch(bits, low, high) if np.isfinite([low, high]).all() else Stretch(bits, 0.0, 0.0)


def _find_value_range(image: Image.Image) -> tuple[float, float, np.dtype]:
    """Return lowest and highest finite values (inf, -inf if none) and dtype."""
    low, high, kind = np.inf, -np.inf, np.dtype(np.uint16)
    for _, values in _iterate_strips(image):
        kind = values.dtype
        finite = values[np.isfinite(values)] if kind.kind == "f" else values
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    return low, high, kind


def _iterate_strips(image: Image.Image) -> Iterator[tuple[int, np.ndarray]]:
    rows = max(1, STRIP_PIXELS // image.width)
    for top in range(0, image.height, rows):
        yield top, np.asarray(image.crop((0, top, image.width, min(top + rows, image.height))))


@lru_cache(maxsize=32)
def _get_color_space(profile: bytes) -> str:
    try:
        return _open_profile(profile).profile.xcolor_space.strip()
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return ""


@lru_cache(maxsize=32)
def _build_transform(profile: bytes, mode: str) -> tuple[ImageCms.ImageCmsTransform, str] | None:
    """Return the transform to sRGB and its input mode, or None if unneeded."""
    space = _get_color_space(profile) if profile else ""
    wanted = {"RGB": "RGB", "L": "GRAY", "CMYK": "CMYK", "LAB": "Lab"}[mode]
    if mode == "RGB" and space == "Lab":
        mode, wanted = "LAB", "Lab"
    if space != wanted and mode != "LAB":
        return None
    try:
        source = _open_profile(profile) if space == wanted else CMS.createProfile("LAB")
        transform = CMS.buildTransform(source, CMS.createProfile("sRGB"), mode, "RGB")
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return None
    return None if mode in {"RGB", "L"} and _is_identity(transform, mode) else (transform, mode)


def _is_identity(transform: ImageCms.ImageCmsTransform, mode: str) -> bool:
    steps = np.linspace(0, 255, 9).round().astype(np.uint8)
    if mode == "L":
        before = np.arange(256, dtype=np.uint8)[None]
    else:
        before = np.stack(np.meshgrid(steps, steps, steps), -1).reshape(1, -1, 3)
    after = np.asarray(_apply_transform(Image.fromarray(before), transform)).astype(int)
    return bool(np.abs(after - before.reshape(1, -1, 1 if mode == "L" else 3)).max() <= MAX_COLOR_DIFFERENCE)


def _apply_transform(picture: Image.Image, transform: ImageCms.ImageCmsTransform) -> Image.Image:
    converted = ImageCms.applyTransform(picture, transform)
    assert converted is not None  # None is for inPlace=True
    return converted


def _open_profile(profile: bytes) -> Any:
    if len(profile) > MAX_PROFILE_BYTES:
        raise ValueError("too large")
    return CMS.ImageCmsProfile(io.BytesIO(profile))
