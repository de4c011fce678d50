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
from annotator.exchange.files.safe_names import fold_name, safe_name
from annotator.records import Image
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.labels import export_reads
from annotator.store.locations.location import ImageSource, open_source, read_remote_file
from annotator.store.pictures.decoding import BadImage, open_rgb

JPEG_QUALITY = 90  # JPEG quality
NAMES_PER_BATCH = 10_000  # names


class ExportFileNames:
    """The file name of every image of an export: the image's own name, made safe, if its stem is unique.

    Stems are unique even if case is ignored, because formats write "<stem>.txt" and "<stem>.xml" beside the images, and
    some systems treat a.jpg and A.jpg as one file. A stem that several images share gets the image's id after a tilde,
    which no safe name contains.
    """

    def __init__(self, db: Database, ids: np.ndarray, choices: Choices):
        self._ending = ".jpg" if choices.images == "resize" else None
        keys = [np.zeros(0, np.int64)]
        for start in range(0, len(ids), NAMES_PER_BATCH):
            rows = export_reads.load_image_rows(db, ids[start : start + NAMES_PER_BATCH])
            keys.append(np.array([_hash_stem(safe_stem(row[1])) for row in rows], np.int64))
        every = np.concatenate(keys)
        _, which, many = np.unique(every, return_inverse=True, return_counts=True)
        self._is_shared = many[which] > 1

    def list_file_names(self, block: Sequence[Image], start: int) -> list[str]:
        """Return the file names of consecutive images, the first of which is number `start` of the export."""
        names: list[str] = []
        for place, image in enumerate(block, start=start):
            stem = safe_stem(image.name) + (f"~{image.id}" if self._is_shared[place] else "")
            names.append(stem + (self._ending or lower_suffix(image.name)))
        return names


def safe_stem(name: str) -> str:
    """Return the stem of an image's name, as `safe_name` writes it."""
    return safe_name(PurePosixPath(name).stem)


def lower_suffix(name: str) -> str:
    """Return the ending of an image's name in lower case, as readers look for it."""
    return PurePosixPath(name).suffix.lower()


def _hash_stem(stem: str) -> int:
    # A hash, so that each of a million names takes eight bytes; a collision only makes both names longer.
    return hash(fold_name(stem))


class LinkRecorder:
    """A record of the files that got a hard link and so a new ctime.

    Without it, each of these files would be read in full at the next check of whether it still holds its image.
    """

    def __init__(self) -> None:
        self._rows = array("q")

    def add(self, image_id: int, before: os.stat_result, after: os.stat_result) -> None:
        """Note the state before and after linking of a file that was just checked to hold its image."""
        if (before.st_size, before.st_mtime_ns, before.st_ino) == (after.st_size, after.st_mtime_ns, after.st_ino):
            self._rows.extend((image_id, after.st_ino, before.st_ctime_ns, after.st_ctime_ns))

    def record(self, db: Database) -> None:
        """Store the noted states in the project; call it outside of any transaction."""
        if not db.read_only:
            images.record_hard_links(db, np.array(self._rows, np.int64).reshape(-1, 4))
        self._rows = array("q")


class Placer:
    """A writer of image files into an export.

    Args:
        packed: The export will be packed at once and then deleted: images become symbolic links, not copies or hard
            links.
        check: Called before each image; an exception raised by it ends the export.

    Attributes:
        counts: Number of hard links, symbolic links, copies, resized images, and unreadable images.
    """

    def __init__(
        self,
        db: Database,
        how: str,
        pixels: int,
        linked: LinkRecorder,
        *,
        packed: bool = False,
        check: Callable[[], None] | None = None,
    ):
        self._db, self._how, self._pixels, self._linked, self._packed = db, how, pixels, linked, packed
        self._check = check or (lambda: None)
        self.counts: Counter[str] = Counter()

    def place(self, image: Image, target: Path) -> bool:
        """Write one image's file to a path that does not exist.

        Return False if the export has no images or the image's own file cannot be read.
        """
        self._check()
        if self._how == "none":
            return False
        try:
            source = images.find_image_source(self._db, image.id)
            if self._how == "resize":
                target.write_bytes(self._resize_image(source))
                self.counts["resized"] += 1
            elif not isinstance(source, Path):  # at an address: no file to link to
                target.write_bytes(read_remote_file(source, patient=True))
                self.counts["copied"] += 1
            elif self._packed:
                target.symlink_to(source)
                self.counts["copied"] += 1
            elif self._how == "copy":
                shutil.copyfile(source, target)
                self.counts["copied"] += 1
            else:
                self._link_file(image.id, source, target)
        except (AnnotatorError, BadImage):
            self.counts["unreadable"] += 1
            return False
        return True

    def read_content(self, image: Image) -> bytes | None:
        """Return the bytes that `place` would write; None if the export has no images or the file cannot be read."""
        self._check()
        if self._how == "none":
            return None
        try:
            source = images.find_image_source(self._db, image.id)
            if self._how == "resize":
                content = self._resize_image(source)
            else:
                content = source.read_bytes() if isinstance(source, Path) else read_remote_file(source, patient=True)
        except (AnnotatorError, BadImage, OSError):
            self.counts["unreadable"] += 1
            return None
        self.counts["resized" if self._how == "resize" else "copied"] += 1
        return content

    def format_sentences(self) -> list[str]:
        """Return a sentence with the number of images placed in each way, and one about unreadable images if any."""
        words = [f"{count:,} {what}" for what, count in sorted(self.counts.items()) if what != "unreadable"]
        sentences = [f"Images: {', '.join(words)}."] if words else []
        if missing := self.counts["unreadable"]:
            sentences.append(f"{missing:,} {'image' if missing == 1 else 'images'} could not be read and left out.")
        return sentences

    def _link_file(self, image_id: int, source: Path, target: Path) -> None:
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

    def _resize_image(self, source: ImageSource) -> bytes:
        width, height = self._pixels, self._pixels
        picture = open_rgb(open_source(source, patient=True), (width, height), get_shown_bands(self._db))
        picture.thumbnail((width, height))
        content = io.BytesIO()
        picture.save(content, "JPEG", quality=JPEG_QUALITY)
        return content.getvalue()
