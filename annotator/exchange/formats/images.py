"""A folder of images without labels."""

from pathlib import Path

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.format import Format


def read(path: Path, problems: Problems) -> Contents:
    """No items: every image of the folder is registered, and nothing is said of any."""
    return Contents((), iter(()), folder=path if path.is_dir() else None)


IMAGES = Format("images", "images without labels: a folder, or what was unpacked or downloaded", read=read)
