"""The image files of an export: their portable names and their content."""

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
from annotator.exchange.files.photo_keywords import embed_packet
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
    """Portable, unique image file names for an export.

    Stems are unique regardless of case, because some systems ignore it and formats write "<stem>.txt" next to images. A
    shared stem gets "~" and the image id.
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
        """Return the file names of consecutive images from number `start` on."""
        names: list[str] = []
        for place, image in enumerate(block, start=start):
            stem = safe_stem(image.name) + (f"~{image.id}" if self._is_shared[place] else "")
            names.append(stem + (self._ending or lower_suffix(image.name)))
        return names


def safe_stem(name: str) -> str:
    return safe_name(PurePosixPath(name).stem)


def lower_suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _hash_stem(stem: str) -> int:
    # A hash, so that each of a million names takes eight bytes; a collision only makes both names longer.
    return hash(fold_name(stem))


class LinkRecorder:
    """A recorder of the states of hard-linked files, which saves reading them in full at the next check."""

    def __init__(self) -> None:
        self._rows = array("q")

    def add(self, image_id: int, before: os.stat_result, after: os.stat_result) -> None:
        """Add a verified file with its status before and after linking."""
        if (before.st_size, before.st_mtime_ns, before.st_ino) == (after.st_size, after.st_mtime_ns, after.st_ino):
            self._rows.extend((image_id, after.st_ino, before.st_ctime_ns, after.st_ctime_ns))

    def record(self, db: Database) -> None:
        """Store all added states in the project, outside of any transaction."""
        if not db.read_only:
            images.record_hard_links(db, np.array(self._rows, np.int64).reshape(-1, 4))
        self._rows = array("q")


class Placer:
    """A writer of image files into an export.

    Args:
        packed: Use symbolic links, for an export that is zipped at once.
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

    def place(self, image: Image, target: Path, xmp: str = "") -> bool:
        """Write an image to a new path, and return whether it could be written.

        A resized image gets `xmp` as its XMP block. Links and copies stay equal to the original, byte for byte.
        """
        self._check()
        if self._how == "none":
            return False
        if xmp and self._how == "resize":
            return self._place_with_packet(image, target, xmp)
        try:
            source = images.find_image_source(self._db, image.id)
            if self._how == "resize":
                target.write_bytes(self._resize_image(source))
                self.counts["resized"] += 1
            elif not isinstance(source, Path):  # at an address: no file to link to
                target.write_bytes(read_remote_file(source, patient=True))
                self.counts["copied"] += 1
            elif self._packed:
                _link_or_copy(source, target)
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

    def _place_with_packet(self, image: Image, target: Path, xmp: str) -> bool:
        content = self.read_content(image)
        if content is None:
            return False
        embedded = embed_packet(content, xmp)
        target.write_bytes(embedded or content)
        self.counts["with keywords inside"] += embedded is not None
        return True

    def read_content(self, image: Image) -> bytes | None:
        """Return the bytes that `place` would write, or None."""
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
        words = [f"{count:,} {what}" for what, count in sorted(self.counts.items()) if what != "unreadable"]
        sentences = [f"Images: {', '.join(words)}."] if words else []
        if missing := self.counts["unreadable"]:
            sentences.append(f"{missing:,} {'image' if missing == 1 else 'images'} could not be read and left out.")
        return sentences

    def _link_file(self, image_id: int, path: Path, target: Path) -> None:
        with suppress(OSError):
            before = path.stat()
            os.link(path, target)
            self._linked.add(image_id, before, target.stat())
            self.counts["hard links"] += 1
            return
        with suppress(OSError):
            target.symlink_to(path)
            self.counts["symbolic links"] += 1
            return
        shutil.copyfile(path, target)
        self.counts["copied"] += 1

    def _resize_image(self, source: ImageSource) -> bytes:
        width, height = self._pixels, self._pixels
        picture = open_rgb(open_source(source, patient=True), (width, height), get_shown_bands(self._db))
        picture.thumbnail((width, height))
        content = io.BytesIO()
        picture.save(content, "JPEG", quality=JPEG_QUALITY)
        return content.getvalue()


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        target.symlink_to(source)
    except OSError:  # Windows, without the right to make links
        shutil.copyfile(source, target)
