"""The original or copied file that a browser receives for an image."""

import contextlib
import io
import tempfile
from dataclasses import dataclass
from pathlib import Path

from annotator.errors import AnnotatorError, DiskFull, RequestSkipped
from annotator.records import Image
from annotator.settings import DISPLAY_PIXELS, THUMB_PIXELS
from annotator.store.database.database import Database
from annotator.store.database.project_identity import make_folder_in_project
from annotator.store.images import address_cache, images
from annotator.store.images.band_setting import get_image_bands, get_shown_bands
from annotator.store.images.stages import EXCLUDED
from annotator.store.locations.location import Location
from annotator.store.pictures import browser_formats
from annotator.store.pictures.decoding import BadImage, write_display

MAX_SIDE_PIXELS = 65_000  # a JPEG has at most 65,535 pixels a side


@dataclass(frozen=True)
class CopyKind:
    """One size in which images are sent to browsers."""

    name: str
    # longest side, or None for the original
    pixels: int | None
    # largest original file that is sent as is, or None for no limit
    bytes: int | None


DISPLAY = CopyKind("display", DISPLAY_PIXELS, 1_500_000)
THUMB = CopyKind("thumb", THUMB_PIXELS, 60_000)
FULL = CopyKind("full", None, None)


def find_ready_file(db: Database, image_id: int, kind: CopyKind) -> tuple[Path, str] | None:
    """Return (file to send, media type), or None before the copy exists. Raises AnnotatorError for a missing file."""
    try:
        if remote := images.find_remote_location(db, image_id):
            return _find_cached_file(db, image_id, remote, kind)
        source = images.find_image_path(db, image_id)
        copy = db.paths.image_copy(image_id, kind.name)
        if copy.exists():
            return copy, "image/jpeg"
        fits = _fits_kind(images.load_images(db, [image_id])[image_id], source, kind)
        if fits and (media_type := browser_formats.find_media_type(source)):
            return source, media_type
        if old := _find_old_copy(db, image_id, kind, source):
            return old, "image/jpeg"
        return None
    except AnnotatorError as error:
        images.mark_problem(db, image_id, str(error))
        raise


def fetch_original(db: Database, image_id: int) -> None:
    """Fetch a remote image into the cache.

    Raises:
        AnnotatorError: The file is unreadable, which is stored.
        RequestSkipped: The server is not responding, which is not stored.
    """
    try:
        if remote := images.find_remote_location(db, image_id):
            address_cache.fetch_file(db, image_id, remote)
    except (DiskFull, RequestSkipped):
        raise
    except AnnotatorError as error:
        images.mark_problem(db, image_id, str(error))
        raise


def find_cover_image(db: Database) -> int | None:
    """Return the last completed image, else the last labeled, else any that is not excluded, or None."""
    rows = db.tuples(
        f"""SELECT id FROM image WHERE problem = '' AND stage < {EXCLUDED}
        ORDER BY stage DESC, stage_decision DESC LIMIT 1"""
    )
    return rows[0][0] if rows else None


def make(db: Database, image_id: int, kind: CopyKind) -> tuple[Path, str]:
    """Create an image's copy for browsers if missing, and return its file and media type. Safe to call concurrently."""
    if existing := find_ready_file(db, image_id, kind):
        return existing
    if remote := images.find_remote_location(db, image_id):
        return _make_remote_copy(db, image_id, remote, kind)
    target = db.paths.image_copy(image_id, kind.name)
    try:
        make_folder_in_project(target.parent)
        write_display(
            images.find_image_path(db, image_id), target, _get_longest_side(db, image_id, kind), get_shown_bands(db)
        )
    except BadImage as error:
        images.mark_problem(db, image_id, str(error))
        raise AnnotatorError(str(error)) from error
    except OSError as error:
        raise DiskFull(
            f"{target} could not be written: {error.strerror or error}.\n"
            "    Is the disk full, or the project folder write-protected? Free some space and try again."
        ) from error
    for old in db.paths.old_image_copies(image_id, kind.name):
        with contextlib.suppress(OSError):
            old.unlink(missing_ok=True)
    return target, "image/jpeg"


def _get_longest_side(db: Database, image_id: int, kind: CopyKind) -> int:
    image = images.load_images(db, [image_id])[image_id]
    return min(kind.pixels or max(image.width, image.height) or MAX_SIDE_PIXELS, MAX_SIDE_PIXELS)


def _find_cached_file(db: Database, image_id: int, location: Location, kind: CopyKind) -> tuple[Path, str] | None:
    kept = address_cache.get_cache(db)
    if copy := kept.find(address_cache.build_copy_name(location, kind.name, get_image_bands(db, image_id))):
        return copy, "image/jpeg"
    source = kept.find(location.sha256)
    with contextlib.suppress(FileNotFoundError):  # others came meanwhile, and it had to go
        if source and _fits_kind(images.load_images(db, [image_id])[image_id], source, kind):
            media_type = browser_formats.find_media_type(source)
            return (source, media_type) if media_type else None
    return None


def _make_remote_copy(db: Database, image_id: int, location: Location, kind: CopyKind) -> tuple[Path, str]:
    kept = address_cache.get_cache(db)
    try:
        content = io.BytesIO(address_cache.fetch_content(db, image_id, location))
        with tempfile.TemporaryDirectory(prefix="annotator-") as folder:
            target = Path(folder) / "copy.jpg"
            write_display(content, target, _get_longest_side(db, image_id, kind), get_shown_bands(db))
            name = address_cache.build_copy_name(location, kind.name, get_image_bands(db, image_id))
            return kept.add(name, target.read_bytes()), "image/jpeg"
    except (DiskFull, RequestSkipped):
        raise
    except (AnnotatorError, BadImage) as error:
        images.mark_problem(db, image_id, str(error))
        raise error if isinstance(error, AnnotatorError) else AnnotatorError(str(error)) from error
    except OSError as error:
        raise AnnotatorError(f"The image could not be brought here: {error.strerror or error}. Try again.") from error


def _find_old_copy(db: Database, image_id: int, kind: CopyKind, source: Path) -> Path | None:
    """Return an older decoder version's copy if the browser can show the original, or None."""
    copy = next((old for old in db.paths.old_image_copies(image_id, kind.name) if old.exists()), None)
    return copy if copy and browser_formats.find_media_type(source) else None


def _fits_kind(image: Image, source: Path, kind: CopyKind) -> bool:
    small = kind.pixels is None or max(image.width, image.height) <= kind.pixels
    return small and image.width > 0 and (kind.bytes is None or source.stat().st_size <= kind.bytes)
