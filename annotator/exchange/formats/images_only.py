"""The format of image folders without labels."""

from pathlib import Path

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.format import Format


def read(path: Path, problems: Problems) -> Contents:
    """Return a folder without items, so that all its images are registered."""
    return Contents((), iter(()), folder=path if path.is_dir() else None)


IMAGES = Format("images", "images without labels: a folder, or what was unpacked or downloaded", read=read)
