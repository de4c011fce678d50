"""The splits of an export as names of files and folders, for formats that have one a split."""

import re

from annotator.exchange.files.safe_names import safe_names
from annotator.exchange.formats.view import View


def split_names(view: View, rest: str) -> dict[str, str]:
    """Split -> its name, of letters, digits, "_" and ".", as Hugging Face allows them; "" (in no split) -> rest."""
    plain = safe_names([*(re.sub(r"\W", "_", split) for split in view.splits), rest])
    return dict(zip([*view.splits, ""], (name.replace("~", ".") for name in plain), strict=True))
