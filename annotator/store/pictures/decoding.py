"""The only decoder of image files, which are not trusted.

All errors become BadImage. Only PILLOW_FORMATS are tried, and the size is checked before decoding. Models and users see
the same pixels. All threads share a memory budget.
"""

import contextlib
import io
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageFile, UnidentifiedImageError, features

from annotator.errors import AnnotatorError
from annotator.store.disk.open_files import NotARegularFile, get_clock, open_file
from annotator.store.disk.processes import build_temporary_path
from annotator.store.pictures import colors, exif, tiff_bands, tiff_tags
from annotator.store.pictures.array_image import ArrayImage, BadImage, get_stretch
from annotator.store.pictures.bands import NO_BAND_CHOICES, UNCHOSEN_REASON, BandChoices, choose_shown_bands
from annotator.store.pictures.decoding_budget import DECODING_BUDGET
from annotator.store.pictures.exif import UNKNOWN_CAPTURE, Capture
from annotator.store.pictures.extras import open_extra_image, register_heic_formats
from annotator.store.pictures.jpeg import parse_whole_jpeg
from annotator.store.pictures.png16 import open_png16
from annotator.store.pictures.stretching import Stretch

PILLOW_FORMATS = (
    *("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF"),
    *(name for name, feature in (("AVIF", "avif"), ("JPEG2000", "jpg_2000")) if features.check(feature)),
)
START_BYTES = 256  # bytes by which a file is known

# Pillow's own hard limit at its default setting; 720 MB once decoded (4 bytes a pixel).
MAX_PIXELS = 178_956_970
MAX_BYTES_READ_WHOLE = 16_000_000  # bytes; larger files are read while they are decoded


@dataclass(frozen=True)
class ImageFacts:
    """Metadata of a valid image file. The size is after EXIF rotation."""

    width: int
    height: int
    # one of PILLOW_FORMATS, or HEIF, DICOM or RAW
    format: str
    capture: Capture = UNKNOWN_CAPTURE
    # conversion to 8 bits, or None
    stretch: Stretch | None = None
    # displayed bands (`ShownBands.kind`), or ""
    bands: str = ""


def check_image(source: Path | BinaryIO, bands: BandChoices = NO_BAND_CHOICES) -> ImageFacts:
    """Check that a file is neither truncated nor damaged, and return its metadata.

    Reads every byte. For most in-memory JPEGs only the tables are decoded, other JPEGs at 1/8 size.

    Raises only BadImage.
    """
    whole = parse_whole_jpeg(source.getvalue()) if isinstance(source, io.BytesIO) else None
    if whole and whole.width * whole.height <= MAX_PIXELS:
        with contextlib.suppress(BadImage):  # then the whole file is decoded below, and tells what is wrong
            _decode_small(whole.tables)
            facts = exif.parse_block(whole.exif) if whole.exif else (1, UNKNOWN_CAPTURE) if whole.exif == b"" else None
            if facts:
                return ImageFacts(*_turn_size((whole.width, whole.height), facts[0]), "JPEG", facts[1])
            with _translate_errors(), open_image(io.BytesIO(whole.head)) as image:
                size = _turn_size((whole.width, whole.height), read_orientation(image))
                return ImageFacts(*size, "JPEG", exif.extract_capture(image))
    with _translate_errors(), open_image(source, bands) as image:
        header_size, capture = image.size, exif.extract_capture(image)
        image.draft(image.mode, (1, 1))
        with DECODING_BUDGET.reserve(_estimate_load_bytes(image, header_size)), _time_reading(image):
            head = _read_head(image)
            image.load()
            _check_not_cut(image, head)
            stretch = colors.compute_gray_stretch(image) if colors.has_many_bits(image) else get_stretch(image)
        # A TIFF is turned while it is loaded, by EXIF or XMP; a JPEG has become smaller.
        width, height = image.size if image.format in {"TIFF", "RAW"} else header_size
        if read_orientation(image) >= 5:
            width, height = height, width
        shown = image.bands if isinstance(image, ArrayImage) else ""
        return ImageFacts(
            width, height, "JPEG" if image.format == "MPO" else str(image.format), capture, stretch, shown
        )


@lru_cache(maxsize=64)
def _decode_small(content: bytes) -> None:
    with _translate_errors(), open_image(io.BytesIO(content)) as image:
        image.load()


def read_capture(path: Path) -> Capture:
    """Return capture metadata from the file's header. Raises only BadImage."""
    with _translate_errors(), open_file(path) as file, open_image(file) as image:
        return exif.extract_capture(image)


def open_rgb(
    source: Path | BinaryIO, at_least: tuple[int, int] | None = None, bands: BandChoices = NO_BAND_CHOICES
) -> Image.Image:
    """Return the first frame as displayed: upright RGB in sRGB, on white where transparent.

    Args:
        at_least: Minimum (width, height) of the result, for faster decoding, or None for full size.
        bands: Bands to show of multi-band images, which are refused without a choice.

    Orientation follows EXIF, else XMP. Without an ICC profile, colors are assumed sRGB. Values above 8 bits are
    stretched from the image's darkest to its brightest. Waits for DECODING_BUDGET.

    Raises only BadImage.
    """
    with _translate_errors(), _decode_image(source, lambda size: at_least, bands) as (picture, _):
        return picture


def write_display(
    source: Path | BinaryIO, target: Path, longest: int, bands: BandChoices = NO_BAND_CHOICES
) -> tuple[int, int]:
    """Write an upright copy with a longer side of at most `longest` pixels, and return (width, height).

    Args:
        target: Suffix .webp, .png, else JPEG. Replaced atomically.

    Raises BadImage for the source, OSError for the target.
    """
    with contextlib.ExitStack() as stack:
        with _translate_errors():
            picture, original = stack.enter_context(_decode_image(source, lambda size: _fit_size(size, longest), bands))
            size = _fit_size(original, longest)
            if picture.size != size:
                picture = picture.resize(size, Image.Resampling.LANCZOS)
        kind = {".webp": "WEBP", ".png": "PNG"}.get(target.suffix.lower(), "JPEG")
        quality = {"quality": 95, "subsampling": 0} if size == original and kind == "JPEG" else {"quality": 85}
        with get_clock().restart():
            _write_picture(picture, target, kind, quality)
    return size


@contextlib.contextmanager
def open_image(source: Path | BinaryIO, bands: BandChoices = NO_BAND_CHOICES) -> Generator[ImageFile.ImageFile]:
    """Open an image file and check its header and size, without decoding.

    Paths are read whole up to MAX_BYTES_READ_WHOLE.

    Raises BadImage or Pillow errors.
    """
    with contextlib.ExitStack() as stack:
        if isinstance(source, str | os.PathLike):
            try:
                file = stack.enter_context(open_file(Path(source)))
            except FileNotFoundError:
                raise BadImage("no such file") from None
            except NotARegularFile:  # a named pipe would block for ever
                raise BadImage("not a file") from None
            size = os.fstat(file.fileno()).st_size
            if size == 0:
                raise BadImage("empty file (0 bytes)")
            # Read before memory is granted: a stalled disk must not keep it from other images.
            if size <= MAX_BYTES_READ_WHOLE:
                file = io.BytesIO(file.read())
        else:
            file = source
        image = _open_array_image(file, bands)
        try:
            if image is None:
                image = stack.enter_context(Image.open(file, formats=(*PILLOW_FORMATS, *register_heic_formats())))
                image = open_png16(file, image) or image
        except Image.DecompressionBombError:
            raise BadImage(_explain_too_large(file)) from None
        except UnidentifiedImageError:
            file.seek(0)
            if (start := file.read(START_BYTES))[4:8] == b"ftyp":  # a file of boxes: AVIF, HEIC, a video
                brand = start[8:12].decode("ascii", "replace")
                raise BadImage(f"truncated, damaged, or no still image (it begins as {brand!a} does)") from None
            raise
        if image.width * image.height > MAX_PIXELS:
            raise BadImage(_format_size_reason(*image.size))
        yield image


def _open_array_image(file: BinaryIO, bands: BandChoices) -> ArrayImage | None:
    """Return an image that Pillow cannot read (many bands, high bit depth, optional formats), or None."""
    file.seek(0)
    start = file.read(START_BYTES)
    if image := open_extra_image(file, start):
        return image
    if not tiff_tags.is_tiff(start):
        return None
    try:
        layout = tiff_bands.read_layout(file)
        if layout is None:
            return None
        count = len(layout.colors)
        shown = choose_shown_bands(count, *layout.named_bands, bands) if count > 1 else None
    except (ValueError, AnnotatorError) as error:
        raise BadImage(f"not an image that is read here: a TIFF, but {error}") from None
    if count > 1 and shown is None:
        names = f" (named {', '.join(layout.names)})" if any(layout.names) else ""
        example = "1" if count < 3 else "3,2,1"
        kind = "bits" if layout.dtype.kind in "ui" else "bits, floating"
        raise BadImage(
            f"{count} bands of {8 * layout.dtype.itemsize} {kind}{names}; {UNCHOSEN_REASON} until it is said "
            f"(annotator bands PROJECT {example}; of a new project, init --bands {example})"
        )
    return tiff_bands.open_bands(file, layout, shown.three if shown else None, shown.kind if shown else "")


def _check_not_cut(image: ImageFile.ImageFile, head: bytes) -> None:
    """Raise BadImage for a JPEG 2000 with colors cut to black or an unnamed fourth band."""
    if image.format != "JPEG2000" or image.mode not in {"RGB", "RGBA"}:
        return
    if image.mode == "RGBA" and b"cdef" not in head:
        raise BadImage("JPEG 2000 of 4 bands, which does not say what the fourth is. Save it as a TIFF")
    size = head.find(b"\xff\x4f\xff\x51")
    if 0 <= size < len(head) - 43 and (bits := (head[size + 42] & 0x7F) + 1) > 8:
        brightest = int(np.asarray(image.convert("RGB")).max())
        if brightest < 128:
            raise BadImage(
                f"JPEG 2000 in colour of {bits} bits, of which this decoder keeps the upper 8, and the brightest value "
                f"is {brightest} of 255. Save it as a TIFF of 16 bits"
            )


def _read_head(image: ImageFile.ImageFile) -> bytes:
    if image.format != "JPEG2000" or image.fp is None:
        return b""
    place = image.fp.tell()
    image.fp.seek(0)
    head = image.fp.read(4096)
    image.fp.seek(place)
    return head


def read_orientation(image: ImageFile.ImageFile) -> int:
    """Return the orientation, 1 to 8, from EXIF, else XMP, else 1. A PNG must be loaded first."""
    if image.format in {"TIFF", "RAW", "DICOM", "HEIF"}:
        return 1
    try:
        value = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # a spoilt EXIF block is no reason to lose the image
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


@contextlib.contextmanager
def _decode_image(
    source: Path | BinaryIO, choose: Callable[[tuple[int, int]], tuple[int, int] | None], bands: BandChoices
) -> Generator[tuple[Image.Image, tuple[int, int]]]:
    """Yield the image of `open_rgb` and its full size, with memory reserved."""
    with open_image(source, bands) as image:
        size, turn, wanted = image.size, 1, None
        if image.format in {"JPEG", "MPO"}:
            turn = read_orientation(image)
            wanted = choose(_turn_size(size, turn))
            if wanted:
                image.draft(image.mode, _turn_size(wanted, turn))
        with DECODING_BUDGET.reserve(_estimate_decode_bytes(image, size)):
            with _time_reading(image):
                head = _read_head(image)
            image.load()
            _check_not_cut(image, head)
            if image.format not in {"JPEG", "MPO"}:
                size, turn = image.size, read_orientation(image)  # a TIFF is turned by now
                wanted = choose(_turn_size(size, turn))
            picture = colors.to_averageable_mode(image)
            if wanted:
                wide, high = _turn_size(wanted, turn)
                factor = min(picture.width // max(wide, 1), picture.height // max(high, 1))
                if factor >= 2:
                    picture = picture.reduce(factor)
            many_bits = colors.has_many_bits(image)
            picture = colors.to_srgb(picture, None if many_bits else image.info.get("icc_profile"))
            if turn in tiff_tags.TURN_BY_ORIENTATION:
                picture = picture.transpose(tiff_tags.TURN_BY_ORIENTATION[turn])
            # The result must not depend on the open file.
            yield (image.copy() if picture is image else picture), _turn_size(size, turn)


def _time_reading(image: ImageFile.ImageFile) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if isinstance(image.fp, io.BytesIO) else get_clock().restart()


def _turn_size(size: tuple[int, int], turn: int) -> tuple[int, int]:
    return (size[1], size[0]) if turn >= 5 else size


def _fit_size(size: tuple[int, int], longest: int) -> tuple[int, int]:
    scale = min(1.0, longest / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _write_picture(picture: Image.Image, target: Path, kind: str, quality: dict[str, int]) -> None:
    temporary = build_temporary_path(target)
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            picture.save(file, kind, **quality)
            file.flush()
            os.fsync(file.fileno())  # otherwise a power cut could leave a partly written picture under this name
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _estimate_load_bytes(image: ImageFile.ImageFile, whole: tuple[int, int]) -> int:
    """Return the maximum bytes for reading the pixels at the drafted size."""
    if isinstance(image, ArrayImage):
        return image.cost
    pixels, all_pixels = image.width * image.height, whole[0] * whole[1]
    stored = 1 if image.mode in {"1", "L", "P"} else 2 if image.mode.startswith("I;16") else 4
    # Progressive JPEG: the coefficients of the whole image. WebP: two canvases, and the bytes between. TIFF: one strip
    # may be the whole image, and turning it makes another.
    # AVIF: planes of 16 bits and their RGBA; JPEG 2000: four bytes a channel, twice.
    decoders = {"WEBP": 16, "TIFF": 2 * stored, "GIF": 4, "AVIF": 12, "HEIF": 12, "JPEG2000": 32}
    decoder = decoders.get(str(image.format), 0)
    return pixels * (stored + decoder) + (6 * all_pixels if image.info.get("progressive") else 0)


def _estimate_decode_bytes(image: ImageFile.ImageFile, whole: tuple[int, int]) -> int:
    steps = 14 if colors.is_transparent(image) else 6 if colors.has_many_bits(image) else 8
    return _estimate_load_bytes(image, whole) + steps * image.width * image.height


@contextlib.contextmanager
def _translate_errors() -> Generator[None]:
    """Turn Pillow errors into BadImage with a reason."""
    try:
        yield
    except BadImage:
        raise
    except UnidentifiedImageError:
        names = ", ".join(name.lower() for name in PILLOW_FORMATS)
        raise BadImage(f"not an image, or a format that is not read (read are {names})") from None
    except Image.DecompressionBombError as error:
        raise BadImage(f"too many pixels: {_get_first_line(error)}") from error
    except MemoryError as error:
        raise BadImage("too large for the memory of this machine") from error
    except PermissionError as error:
        raise BadImage("no permission to read the file") from error
    except Exception as error:  # SyntaxError, struct.error, zlib.error, ValueError, OSError ...: depends on the decoder
        message = _get_first_line(error)
        cut_off = isinstance(error, EOFError) or "truncated" in message.lower() or "unexpected end" in message.lower()
        raise BadImage(f"{'truncated' if cut_off else 'damaged'}: {message}") from error


def _get_first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def _explain_too_large(file: BinaryIO) -> str:
    """Return the reason for a header that Pillow refused, with the size if readable."""
    file.seek(0)
    prefix = file.read(16)
    for name in PILLOW_FORMATS:
        factory, accept = Image.OPEN[name]
        if accept is None or accept(prefix) is True:
            file.seek(0)
            with contextlib.suppress(Exception):
                return _format_size_reason(*factory(file, "").size)
    return f"more pixels than the limit of {MAX_PIXELS:,}"


def _format_size_reason(width: int, height: int) -> str:
    return f"{width:,} x {height:,} pixels is more than the limit of {MAX_PIXELS / 1e6:,.0f} million pixels"
