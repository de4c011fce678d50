"""Image formats of optional extras: HEIC, DICOM and camera raw files.

Content identifies a file. Without the extra, the refusal shows the install command. Raw previews are never used.
"""

import contextlib
from functools import lru_cache
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np
from PIL import Image

from annotator.store.pictures import tiff_tags
from annotator.store.pictures.array_image import ArrayImage, BadImage
from annotator.store.pictures.picture_kinds import DICOM, HEIC, RAW, PictureKind
from annotator.store.pictures.png16 import to_image
from annotator.store.pictures.stretching import Stretch, scale_to_uint8, stretch_values

RAW_SIGNATURES = (b"FUJIFILMCCD-RAW", b"IIRO", b"IIRS", b"MMOR", b"IIU\0")
RAW_BYTES_PER_PIXEL, DICOM_BYTES_PER_PIXEL = 40, 40  # a pixel, while it is read
COLOR_FILTER_VALUES = (32803, 34892)  # photometric interpretations of raw files
# a DICOM that is unpacked as a whole, whatever its size, before anything is known
DEFLATED_TRANSFER_SYNTAX = b"1.2.840.10008.1.2.1.99"


@lru_cache(maxsize=1)
def register_heic_formats() -> tuple[str, ...]:
    """Register pillow-heif's formats and return them, if installed."""
    if not HEIC.is_read:
        return ()
    heif = import_module("pillow_heif")
    heif.options.THUMBNAILS = heif.options.DEPTH_IMAGES = heif.options.AUX_IMAGES = False
    heif.register_heif_opener()
    return ("HEIF",)


def open_extra_image(file: BinaryIO, start: bytes) -> ArrayImage | None:
    """Return an image that needs an extra, else None.

    Args:
        start: At least the first 132 bytes.

    Raises:
        BadImage: The extra is missing, or the kind unsupported.
    """
    if start[128:132] == b"DICM":
        _check_installed(DICOM)
        return _open_dicom(file)
    if _is_raw(file, start):
        _check_installed(RAW)
        return _open_raw(file)
    if start[4:8] == b"ftyp" and start[8:12] in (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"):
        _check_installed(HEIC)
    return None


def _check_installed(kind: PictureKind) -> None:
    if not kind.is_read:
        raise BadImage(f"not an image that is read here, but one of {kind.name}: {kind.advice}")


def _is_raw(file: BinaryIO, start: bytes) -> bool:
    if start.startswith(RAW_SIGNATURES) or start[8:11] == b"CR\x02" or start[4:12] == b"ftypcrx ":
        return True
    if not tiff_tags.is_tiff(start) or (found := tiff_tags.read_tags(file)) is None:
        return False
    is_preview = (
        found.get_number(tiff_tags.SUBFILE, 0) & 1
        and tiff_tags.SUB_IMAGES in found.numbers
        and tiff_tags.MAKE in found.texts
    )
    return (
        bool(is_preview or tiff_tags.DNG in found.numbers)
        or found.get_number(tiff_tags.PHOTOMETRIC, 0) in COLOR_FILTER_VALUES
    )


def _open_raw(file: BinaryIO) -> ArrayImage:
    rawpy = import_module("rawpy")
    file.seek(0)
    with rawpy.imread(file) as raw:
        size = raw.sizes.iwidth, raw.sizes.iheight
    size = size[::-1] if is_raw_turned(raw.sizes.flip) else size

    def read() -> tuple[Image.Image, None]:
        file.seek(0)
        with rawpy.imread(file) as raw:
            return Image.fromarray(raw.postprocess(use_camera_wb=True, output_bps=8)), None

    return ArrayImage(file, "RAW", size, read, cost=RAW_BYTES_PER_PIXEL * size[0] * size[1])


def is_raw_turned(flip: int) -> bool:
    """Return whether LibRaw's flip is a quarter turn (5 or 6)."""
    return flip in (5, 6)


def _open_dicom(file: BinaryIO) -> ArrayImage:
    pydicom = import_module("pydicom")
    file.seek(0)
    if DEFLATED_TRANSFER_SYNTAX in file.read(4096):
        raise BadImage("a DICOM that is packed as a whole (deflated), which is not read: save it unpacked")
    file.seek(0)
    header = pydicom.dcmread(file, stop_before_pixels=True)
    frames = int(header.get("NumberOfFrames") or 1)
    if frames != 1:
        raise BadImage(f"a DICOM of {frames:,} frames, which is not one image: save the frames as files of their own")
    if "Rows" not in header or "Columns" not in header:
        raise BadImage("a DICOM without an image, such as a report or a plan")
    size = int(header.Columns), int(header.Rows)

    def read() -> tuple[Image.Image, Stretch | None]:
        file.seek(0)
        return _decode_dicom_pixels(pydicom.dcmread(file))

    return ArrayImage(file, "DICOM", size, read, cost=DICOM_BYTES_PER_PIXEL * size[0] * size[1])


def _decode_dicom_pixels(data: Any) -> tuple[Image.Image, Stretch | None]:
    pixels = import_module("pydicom.pixels")
    kind = str(data.get("PhotometricInterpretation", "MONOCHROME2"))
    values = data.pixel_array
    if kind == "PALETTE COLOR":
        values = pixels.apply_color_lut(values, data)
        return to_image(*_to_eight_bits(values[..., :3])), None
    if values.ndim == 3:
        if kind.startswith("YBR") and data.file_meta.TransferSyntaxUID.is_compressed is False:
            values = pixels.convert_color_space(values, kind, "RGB")
        return to_image(*_to_eight_bits(values)), None
    padding = data.get("PixelPaddingValue")
    is_padding = None if padding is None else values == padding
    values = pixels.apply_modality_lut(values, data)
    bits = int(data.get("BitsStored") or 16)
    window = _parse_window(data)
    if window:
        low, high = window
        gray = scale_to_uint8(values, low, high)[..., None]
        stretch = Stretch(bits, low, high)
    else:
        if "VOILUTSequence" in data:
            values = pixels.apply_voi_lut(values, data)
        gray, stretch = stretch_values(values[..., None], counts=None if is_padding is None else ~is_padding)
        stretch = Stretch(bits, stretch.low, stretch.high)
    if kind == "MONOCHROME1":
        gray = 255 - gray
    if is_padding is not None:
        gray[is_padding] = 0
    return to_image(gray, None), stretch


def _parse_window(data: Any) -> tuple[float, float] | None:
    """Return the black and white values of the first window (DICOM PS3.3 C.11.2.1.2), or None."""
    with contextlib.suppress(TypeError, ValueError, AttributeError):
        centre, width = (_get_first_number(data.get(name)) for name in ("WindowCenter", "WindowWidth"))
        if str(data.get("VOILUTFunction") or "LINEAR") == "LINEAR":
            centre, width = centre - 0.5, width - 1
        if width > 0 and np.isfinite([centre, width]).all():
            return centre - width / 2, centre + width / 2
    return None


def _get_first_number(value: Any) -> float:
    return float(value[0] if hasattr(value, "__len__") and not isinstance(value, str) else value)


def _to_eight_bits(values: np.ndarray) -> tuple[np.ndarray, None]:
    return (values if values.dtype == np.uint8 else stretch_values(values)[0]), None
