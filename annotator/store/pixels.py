"""The only door through which image files are decoded.

The files come from strangers: empty, cut off, mislabelled, or built to fill the
memory. Pillow answers such files with a dozen kinds of exception; here every one
of them becomes a BadImage with a reason a person understands. Only the formats
of FORMATS are ever tried, so a rarely used decoder cannot be reached at all, and
the size in the header is judged before the first pixel is decoded.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageFile, UnidentifiedImageError

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"})
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")

# Pillow's own hard limit at its default setting; 720 MB once decoded (4 bytes a pixel).
MAX_PIXELS = 178_956_970

PAPER = (255, 255, 255)  # what shows through where an image is transparent

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class BadImage(ValueError):
    """A file that cannot be used as an image; the message is one sentence that says why."""


@dataclass(frozen=True)
class ImageFacts:
    """What a sound image file says about itself: size in pixels as people see it (after the EXIF turn), and format."""

    width: int
    height: int
    format: str  # one of FORMATS


def check_image(path: Path) -> ImageFacts:
    """Read the whole file once, to know its size and that it is neither cut off nor damaged.

    A JPEG is decoded at an eighth of its size, which still reads every byte of it and is several times faster.

    Raises BadImage, and nothing else, for whatever is wrong with the file or with reading it.
    """
    with _reasons(), _opened(path) as image:
        width, height = image.size
        image.draft(image.mode, (1, 1))
        image.load()
        if _turn_left_to_do(image) >= 5:
            width, height = height, width
        return ImageFacts(width, height, "JPEG" if image.format == "MPO" else str(image.format))


def open_rgb(source: Path | BinaryIO, at_least: tuple[int, int] | None = None) -> Image.Image:
    """The image as people see it: mode RGB, upright, the first frame of several, on white where it is transparent.

    source    a path, or a binary file that can seek
    at_least  (width, height) in pixels, as people see the image: it may come smaller than it is, but not smaller than
              this (a JPEG is then decoded at 1/2, 1/4 or 1/8, anything else averaged in blocks). None: full size

    Greys of more than 8 bits (X-ray, depth, microscope) are stretched from their own darkest to their own brightest
    value, since a scale of 0 to 65535 says little about what is in use; clipped, most would be black or white.

    Raises BadImage, and nothing else, for whatever is wrong with the file or with reading it.
    """
    with _reasons(), _opened(source) as image:
        orientation = _turn_left_to_do(image)
        wanted = at_least[::-1] if at_least and orientation >= 5 else at_least
        if wanted:
            image.draft(image.mode, wanted)
        image.load()
        rgb = _to_rgb(image)
        if wanted:
            factor = min(rgb.width // max(wanted[0], 1), rgb.height // max(wanted[1], 1))
            if factor >= 2:
                rgb = rgb.reduce(factor)
        if orientation in _TURNS:
            rgb = rgb.transpose(_TURNS[orientation])
        return rgb


def write_display(source: Path, target: Path, longest: int) -> tuple[int, int]:
    """Write an upright copy for the browser, its longer side at most `longest` pixels; return its (width, height).

    target  its suffix decides: .webp, .png, or else JPEG. It is written beside its final name and renamed, so that a
            reader never meets half a file; an existing file is replaced

    Raises BadImage when the source cannot be read, OSError when the target cannot be written.
    """
    with _reasons(), _opened(source) as image:
        width, height = image.size
        profile = image.info.get("icc_profile") if image.mode in {"RGB", "RGBA", "P"} else None
        if _turn_left_to_do(image) >= 5:
            width, height = height, width
    scale = min(1.0, longest / max(width, height))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    picture = open_rgb(source, at_least=size)
    if picture.size != size:
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    kind = {".webp": "WEBP", ".png": "PNG"}.get(target.suffix.lower(), "JPEG")
    options = {"icc_profile": profile} if isinstance(profile, bytes) else {}
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            picture.save(file, kind, quality=85, **options)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return size


@contextlib.contextmanager
def _opened(source: Path | BinaryIO) -> Iterator[ImageFile.ImageFile]:
    """The file with its header read and its size judged; nothing decoded yet."""
    with contextlib.ExitStack() as stack:
        if isinstance(source, str | os.PathLike):
            path = Path(source)
            if not path.exists():
                raise BadImage("no such file")
            if not path.is_file():  # a named pipe would block for ever
                raise BadImage("not a file")
            if path.stat().st_size == 0:
                raise BadImage("empty file (0 bytes)")
            file = stack.enter_context(path.open("rb"))
        else:
            file = source
        try:
            image = stack.enter_context(Image.open(file, formats=FORMATS))
        except Image.DecompressionBombError:
            raise BadImage(_too_large(file)) from None
        if image.width * image.height > MAX_PIXELS:
            raise BadImage(_size_reason(*image.size))
        yield image


@contextlib.contextmanager
def _reasons() -> Iterator[None]:
    """Turn whatever Pillow raises into a BadImage that says why."""
    try:
        yield
    except BadImage:
        raise
    except UnidentifiedImageError:
        names = ", ".join(name.lower() for name in FORMATS)
        raise BadImage(f"not an image, or a format that is not read (read are {names})") from None
    except Image.DecompressionBombError as error:
        raise BadImage(f"too many pixels: {_first_line(error)}") from error
    except MemoryError as error:
        raise BadImage("too large for the memory of this machine") from error
    except PermissionError as error:
        raise BadImage("no permission to read the file") from error
    except Exception as error:  # SyntaxError, struct.error, zlib.error, ValueError, OSError ...: depends on the decoder
        message = _first_line(error)
        cut_off = isinstance(error, EOFError) or "truncated" in message.lower() or "unexpected end" in message.lower()
        raise BadImage(f"{'truncated' if cut_off else 'damaged'}: {message}") from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def _too_large(file: BinaryIO) -> str:
    """The reason for a file whose header Pillow refused to accept; asks its format's own reader for the size."""
    file.seek(0)
    prefix = file.read(16)
    for name in FORMATS:
        factory, accept = Image.OPEN[name]
        if accept is None or accept(prefix) is True:
            file.seek(0)
            with contextlib.suppress(Exception):
                return _size_reason(*factory(file, "").size)
    return f"more pixels than the limit of {MAX_PIXELS:,}"


def _size_reason(width: int, height: int) -> str:
    return f"{width:,} x {height:,} pixels is more than the limit of {MAX_PIXELS / 1e6:,.0f} million pixels"


def _turn_left_to_do(image: Image.Image) -> int:
    """EXIF orientation 1 to 8; 1 (upright) where there is none, it cannot be read, or Pillow turns the image itself."""
    if image.format == "TIFF":
        return 1
    try:
        value = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # a spoilt EXIF block is no reason to lose the image
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode in {"I", "F"} or image.mode.startswith("I;16"):
        return _stretch(image).convert("RGB")
    if image.mode in {"RGBA", "LA", "PA", "La", "RGBa"} or "transparency" in image.info:
        with_alpha = image.convert("RGBA")
        rgb = Image.new("RGB", image.size, PAPER)
        rgb.paste(with_alpha, mask=with_alpha.getchannel("A"))
        return rgb
    # Even an RGB image is copied: what leaves here no longer hangs on an open file.
    return image.copy() if image.mode == "RGB" else image.convert("RGB")


def _stretch(image: Image.Image) -> Image.Image:
    """A grey image of many bits as 8 bits, its own darkest value black and its own brightest white."""
    values = np.asarray(image)
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if high <= low:
        return Image.new("L", image.size, 128)
    values = np.nan_to_num(values.astype(np.float64), nan=low, posinf=high, neginf=low)
    return Image.fromarray(np.round((values - low) / (high - low) * 255).astype(np.uint8))
