"""Pillow-like images with pixels from other readers."""

from collections.abc import Callable
from typing import Any, BinaryIO

from PIL import Image, ImageFile

from annotator.store.pictures.stretching import Stretch

STRETCH_KEY = "stretch"  # in the `info` of a loaded image: its Stretch


class BadImage(ValueError):
    """The error for an unusable image file, with a one-sentence reason."""


class ArrayImage(ImageFile.ImageFile):
    """A Pillow image of an open file, whose pixels a given function reads in `load`.

    Attributes:
        cost: Maximum bytes for `load` besides the result.
        bands: Displayed bands of a multi-band image, or "".
    """

    def __init__(
        self,
        file: BinaryIO,
        format_: str,
        size: tuple[int, int],
        read: Callable[[], tuple[Image.Image, Stretch | None]],
        *,
        cost: int,
        bands: str = "",
        info: dict[Any, Any] | None = None,
        is_transparent: bool = False,
    ):
        Image.Image.__init__(self)  # that of ImageFile would open the file
        self.fp, self.format, self._size, self._mode = file, format_, size, "RGBA" if is_transparent else "RGB"
        self.tile, self.readonly, self.filename = [], 0, ""
        self._exclusive_fp = self._close_exclusive_fp_after_loading = False
        self.info = dict(info or {})
        self.cost, self.bands, self._read = cost, bands, read

    def _open(self) -> None:
        """Do nothing, because the file is already open."""

    def load(self) -> Any:
        """Read the pixels: 8-bit L, LA, RGB or RGBA."""
        if self._im is None:
            picture, stretch = self._read()
            picture.load()
            self.im, self._mode, self._size = picture.im, picture.mode, picture.size
            if stretch:
                self.info[STRETCH_KEY] = stretch
        return Image.Image.load(self)

    def draft(self, mode: str | None, size: tuple[int, int] | None) -> None:
        """Do nothing, because `load` reads the full size."""


def get_stretch(image: Image.Image) -> Stretch | None:
    """Return a loaded image's conversion to 8 bits, or None."""
    found = image.info.get(STRETCH_KEY)
    return found if isinstance(found, Stretch) else None
