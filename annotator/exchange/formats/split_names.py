"""The splits of an export as names of files and folders, for formats that have one a split."""

import re
import unicodedata
from collections import Counter

from annotator.exchange.formats.view import View

LONGEST = 60  # letters
_UNSAFE = re.compile(r"[^\w-]")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)$", re.IGNORECASE)


def split_names(view: View, rest: str) -> dict[str, str]:
    """Split -> its name in paths, different whatever the case; "" (images that are in no split) -> rest."""
    used = Counter([rest.casefold()])
    names = {"": rest}
    for split in view.splits:
        name = _UNSAFE.sub("_", unicodedata.normalize("NFC", split))[:LONGEST]
        if not name or _DEVICES.match(name):
            name = f"_{name}"
        used[name.casefold()] += 1
        number = used[name.casefold()]
        names[split] = name if number == 1 else f"{name}~{number}"
    return names
