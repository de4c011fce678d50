"""The format of image folders without labels."""

from pathlib import Path

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.format import Format
from annotator.exchange.reading.reading_options import ReadingOptions


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return contents without items, so that all images of the folder are registered."""
    return Contents((), iter(()), folder=path if path.is_dir() else None)


IMAGES = Format("images", "images without labels: a folder, or what was unpacked or downloaded", read=read)
