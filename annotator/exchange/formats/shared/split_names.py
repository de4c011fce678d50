"""Splits by name: how folders are called that are splits, and those of an export as names of files and folders."""

import re

from annotator.exchange.files.safe_names import safe_names
from annotator.exchange.formats.view import View

SPLITS = frozenset({"train", "training", "val", "valid", "validation", "test", "testing", "dev"})
"""Names of folders and tags, in small letters, that are splits and no classes."""


def split_names(view: View, rest: str) -> dict[str, str]:
    """Split -> its name, of letters, digits, "_" and ".", as Hugging Face allows them; "" (in no split) -> rest."""
    plain = safe_names([*(re.sub(r"\W", "_", split) for split in view.splits), rest])
    return dict(zip([*view.splits, ""], (name.replace("~", ".") for name in plain), strict=True))
