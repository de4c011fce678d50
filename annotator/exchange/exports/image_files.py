"""Images in an export: names that every system allows, and the files themselves, linked, copied or resized."""

import io
import os
import shutil
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.exports.choices import Choices
from annotator.exchange.files.safe_names import folded, safe_name
from annotator.records import Image
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import blocks
from annotator.store.locations.location import Source, open_source, read
from annotator.store.pictures.decoding import BadImage, open_rgb

QUALITY = 90  # of JPEG
READ_AT_ONCE = 10_000  # names


class Names:
    """The file name of every image of an export: its own, where that is allowed and unique.

    Stems are unique whatever the case, because formats write "<stem>.txt" and "<stem>.xml" beside the images, and some
    systems take a.jpg and A.jpg for one file. A name that is not gets the image's id after a tilde, which no other name
    has.
    """

    def __init__(self, db: Database, ids: np.ndarray, choices: Choices):
        self._ending = ".jpg" if choices.images == "resize" else None
        keys = [np.zeros(0, np.int64)]
        for start in range(0, len(ids), READ_AT_ONCE):
            rows = blocks.image_rows(db, ids[start : start + READ_AT_ONCE])
            keys.append(np.array([_key(stem_of(row[1])) for row in rows], np.int64))
        every = np.concatenate(keys)
        _, which, many = np.unique(every, return_inverse=True, return_counts=True)
        self._is_shared = many[which] > 1

    def of(self, block: Sequence[Image], start: int) -> list[str]:
        """The names of some images, the first of which is number `start` of the export."""
        names: list[str] = []
        for place, image in enumerate(block, start=start):
            stem = stem_of(image.name) + (f"~{image.id}" if self._is_shared[place] else "")
            names.append(stem + (self._ending or ending_of(image.name)))
        return names


def stem_of(name: str) -> str:
    """The stem of an image's name, as `safe_name` writes it."""
    return safe_name(PurePosixPath(name).stem)


def ending_of(name: str) -> str:
    """The ending in lower case, as readers look for it."""
    return PurePosixPath(name).suffix.lower()


def _key(stem: str) -> int:
    # A hash, so that a million names take eight bytes each; two that happen to be equal only get a longer name.
    return hash(folded(stem))


class Linked:
    """Files that got a hard link, which changes their ctime: without a note of it, each would be read whole to make
    sure that it still holds its image."""

    def __init__(self) -> None:
        self._rows = array("q")

    def add(self, image_id: int, before: os.stat_result, after: os.stat_result) -> None:
        """Note a file that was just checked to hold its image."""
        if (before.st_size, before.st_mtime_ns, before.st_ino) == (after.st_size, after.st_mtime_ns, after.st_ino):
            self._rows.extend((image_id, after.st_ino, before.st_ctime_ns, after.st_ctime_ns))

    def record(self, db: Database) -> None:
        """Store the new states; outside of any transaction."""
        if not db.read_only:
            images.record_links(db, np.array(self._rows, np.int64).reshape(-1, 4))
        self._rows = array("q")


class Placer:
    """Writes image files into an export.

    Args:
        packed: What is written is packed at once and then deleted: instead of copies and links there are symbolic
            links.
        check: Called before each image: what it raises ends the export.
        counts: How many were hard links, symbolic links, copies, resized, and unreadable.
    """

    def __init__(
        self,
        db: Database,
        how: str,
        pixels: int,
        linked: Linked,
        *,
        packed: bool = False,
        check: Callable[[], None] | None = None,
    ):
        self._db, self._how, self._pixels, self._linked, self._packed = db, how, pixels, linked, packed
        self._check = check or (lambda: None)
        self.counts: Counter[str] = Counter()

    def place(self, image: Image, target: Path) -> bool:
        """Write one image's file to a path that does not exist; False when its own file cannot be read."""
        self._check()
        if self._how == "none":
            return False
        try:
            source = images.image_source(self._db, image.id)
            if self._how == "resize":
                target.write_bytes(self._resized(source))
                self.counts["resized"] += 1
            elif not isinstance(source, Path):  # at an address: there is no file that a link could lead to
                target.write_bytes(read(source, patient=True))
                self.counts["copied"] += 1
            elif self._packed:
                target.symlink_to(source)
                self.counts["copied"] += 1
            elif self._how == "copy":
                shutil.copyfile(source, target)
                self.counts["copied"] += 1
            else:
                self._link(image.id, source, target)
        except (AnnotatorError, BadImage):
            self.counts["unreadable"] += 1
            return False
        return True

    def content(self, image: Image) -> bytes | None:
        """The bytes that `place` would write."""
        self._check()
        if self._how == "none":
            return None
        try:
            source = images.image_source(self._db, image.id)
            if self._how == "resize":
                content = self._resized(source)
            else:
                content = source.read_bytes() if isinstance(source, Path) else read(source, patient=True)
        except (AnnotatorError, BadImage, OSError):
            self.counts["unreadable"] += 1
            return None
        self.counts["resized" if self._how == "resize" else "copied"] += 1
        return content

    def said(self) -> list[str]:
        """What became of the images, in a sentence; one more for those that could not be read."""
        words = [f"{count:,} {what}" for what, count in sorted(self.counts.items()) if what != "unreadable"]
        sentences = [f"Images: {', '.join(words)}."] if words else []
        if missing := self.counts["unreadable"]:
            sentences.append(f"{missing:,} {'image' if missing == 1 else 'images'} could not be read and left out.")
        return sentences

    def _link(self, image_id: int, source: Path, target: Path) -> None:
        with suppress(OSError):
            before = source.stat()
            os.link(source, target)
            self._linked.add(image_id, before, target.stat())
            self.counts["hard links"] += 1
            return
        with suppress(OSError):
            target.symlink_to(source)
            self.counts["symbolic links"] += 1
            return
        shutil.copyfile(source, target)
        self.counts["copied"] += 1

    def _resized(self, source: Source) -> bytes:
        width, height = self._pixels, self._pixels
        picture = open_rgb(open_source(source, patient=True), (width, height))
        picture.thumbnail((width, height))
        content = io.BytesIO()
        picture.save(content, "JPEG", quality=QUALITY)
        return content.getvalue()
