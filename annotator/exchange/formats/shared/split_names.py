"""Usual folder names of splits, and split names for files and folders."""

import re

from annotator.exchange.files.safe_names import safe_names
from annotator.exchange.formats.export_view import View

SPLIT_FOLDER_NAMES = frozenset({"train", "training", "val", "valid", "validation", "test", "testing", "dev"})
"""Names of folders and tags, in small letters, that are splits and no classes."""


def make_split_names(view: View, rest: str) -> dict[str, str]:
    """Return a file name for each split, of letters, digits, "_" and ".". Images in no split get `rest`."""
    plain = safe_names([*(re.sub(r"\W", "_", split) for split in view.splits), rest])
    return dict(zip([*view.splits, ""], (name.replace("~", ".") for name in plain), strict=True))
