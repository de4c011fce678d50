"""The report of keywords in photos that an import does not read."""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from annotator.exchange.files.photo_keywords import read_photo_keywords
from annotator.exchange.files.xmp_packets import MAX_PACKET_BYTES, KeywordPacket, parse_packet
from annotator.exchange.formats.keywords import KEYWORDS, SIDECAR_SUFFIX
from annotator.exchange.formats.shared.keyword_choice import list_most
from annotator.exchange.imports.image_folders import ListedFolder
from annotator.humanize import format_count
from annotator.store.disk.open_files import open_file
from annotator.store.pictures.files import unescape_path

MAX_PHOTOS_SEEN = 2000  # evenly spread over the folder
MAX_SECONDS = 2.0  # on a slow disk


def describe_unread_keywords(folder: ListedFolder) -> list[str]:
    """Return a sentence with the number of keywords in a folder's new images, if any. Looks at some of many images."""
    images = folder.new[:: -(-len(folder.new) // MAX_PHOTOS_SEEN) or 1]
    counts: Counter[str] = Counter()
    tagged = seen = 0
    end = time.monotonic() + MAX_SECONDS
    for image in images:
        names = _list_keywords(folder.path / unescape_path(image))
        counts.update(names)
        tagged, seen = tagged + bool(names), seen + 1
        if time.monotonic() > end:
            break
    if not counts:
        return []
    verb = "was" if len(counts) == 1 else "were"
    of_all = "" if seen == len(folder.new) else f" of the {seen:,} looked at ({len(folder.new):,} in all)"
    return [
        f"{format_count(len(counts), 'keyword')} in {format_count(tagged, 'image')}{of_all} {verb} not read: "
        f"{list_most(counts)}. --format {KEYWORDS.name} reads them."
    ]


def _list_keywords(path: Path) -> Sequence[str]:
    packets = [_parse_sidecar(place) for place in (Path(f"{path}{SIDECAR_SUFFIX}"), path.with_suffix(SIDECAR_SUFFIX))]
    with suppress(ValueError):
        packets.append(read_photo_keywords(path))
    return list(dict.fromkeys(name for packet in packets for name in packet.list_names()))


def _parse_sidecar(path: Path) -> KeywordPacket:
    try:
        with open_file(path) as file:
            return parse_packet(file.read(MAX_PACKET_BYTES + 1))
    except (OSError, ValueError):
        return KeywordPacket()
