"""An image whose pixels another reader than Pillow's makes, in the shape of Pillow's images, for the one decoder."""

from collections.abc import Callable
from typing import Any, BinaryIO

from PIL import Image, ImageFile

from annotator.store.pictures.stretching import Stretch

STRETCH_KEY = "stretch"  # in the `info` of a loaded image: its Stretch


class BadImage(ValueError):
    """A file that cannot be used as an image; the message is one sentence that says why."""


class ArrayImage(ImageFile.ImageFile):
    """An opened file, of which only the header is read until `load` is called.

    Attributes:
        cost: The most bytes that `load` takes besides the result.
        bands: What is shown of an image of many bands (bands.py), "" for others.
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
        """Do nothing: the header has been read."""

    def load(self) -> Any:
        """Read the pixels: mode L, LA, RGB or RGBA of 8 bits, upright where nothing in the file turns them later."""
        if self._im is None:
            picture, stretch = self._read()
            picture.load()
            self.im, self._mode, self._size = picture.im, picture.mode, picture.size
            if stretch:
                self.info[STRETCH_KEY] = stretch
        return Image.Image.load(self)

    def draft(self, mode: str | None, size: tuple[int, int] | None) -> None:
        """Do nothing: the pixels exist in one size only."""


def get_stretch(image: Image.Image) -> Stretch | None:
    """Return how the values of a loaded image became 8 bits; None where they had 8 bits."""
    found = image.info.get(STRETCH_KEY)
    return found if isinstance(found, Stretch) else None
