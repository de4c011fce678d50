"""Which file a browser is sent for an image: the original where it can show it, else a copy that is made once."""

from dataclasses import dataclass
from pathlib import Path

from annotator.errors import AnnotatorError, DiskFull
from annotator.records import Image
from annotator.settings import DISPLAY_PIXELS, THUMB_PIXELS
from annotator.store import images
from annotator.store.database import Database
from annotator.store.pixels import BadImage, write_display

FIRST_BYTES = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


@dataclass(frozen=True)
class Kind:
    """One size in which pictures are sent.

    pixels    the longer side at most; None: as it is
    bytes     originals up to this size are sent themselves, if they are small enough and a browser shows them
    """

    name: str
    pixels: int | None
    bytes: int | None


DISPLAY = Kind("display", DISPLAY_PIXELS, 1_500_000)
THUMB = Kind("thumb", THUMB_PIXELS, 60_000)
FULL = Kind("full", None, None)


def ready(db: Database, image_id: int, kind: Kind) -> tuple[Path, str] | None:
    """The file to send and its media type; None while the copy has yet to be made.

    Raises AnnotatorError when the image's file has gone or changed (its problem is noted).
    """
    try:
        source = images.image_path(db, image_id)
        for kept in _places(db, image_id, kind):
            if kept.exists():
                return kept, "image/jpeg"
        if _fits(images.images(db, [image_id])[image_id], source, kind) and (media_type := _media_type(source)):
            return source, media_type
        return None
    except AnnotatorError as error:
        images.mark_problem(db, image_id, str(error))
        raise


def make(db: Database, image_id: int, kind: Kind) -> tuple[Path, str]:
    """Make the copy, unless somebody else just has. Two at once are harmless: each renames a whole file of its own.

    Raises AnnotatorError when the image cannot be read (its problem is noted), DiskFull.
    """
    found = ready(db, image_id, kind)
    if found:
        return found
    target = _places(db, image_id, kind)[0]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        known = images.images(db, [image_id])[image_id]
        write_display(images.image_path(db, image_id), target, kind.pixels or max(known.width, known.height))
    except BadImage as error:
        images.mark_problem(db, image_id, str(error))
        raise AnnotatorError(str(error)) from error
    except OSError as error:
        raise DiskFull(
            f"{target} could not be written: {error.strerror or error}.\n"
            "    Is the disk full, or the project folder write-protected? Free some space and try again."
        ) from error
    return target, "image/jpeg"


def _places(db: Database, image_id: int, kind: Kind) -> list[Path]:
    """Where the copy is or will be; display copies lay in one folder once."""
    old = [db.paths.thumbs / f"{image_id}.jpg"] if kind == DISPLAY else []
    return [db.paths.copy(image_id, kind.name), *old]


def _fits(known: Image, source: Path, kind: Kind) -> bool:
    small = kind.pixels is None or max(known.width, known.height) <= kind.pixels
    return small and (kind.bytes is None or source.stat().st_size <= kind.bytes)


def _media_type(source: Path) -> str | None:
    """What the file really is, by its first bytes, since its name may lie; None for what browsers do not show."""
    try:
        with source.open("rb") as file:
            start = file.read(12)
    except OSError:
        return None  # the decoder will say why
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for first, media_type in FIRST_BYTES.items() if start.startswith(first)), None)
