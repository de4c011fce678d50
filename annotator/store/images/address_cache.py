"""Cache of remote images, filled when an annotator views them. Embedding, training and exports bypass it."""

import atexit
import io
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from annotator.errors import AnnotatorError
from annotator.roles import Right
from annotator.settings import DECODER_VERSION
from annotator.store.database.database import Database
from annotator.store.images.band_setting import get_shown_bands
from annotator.store.images.fact_columns import FACT_COLUMNS, to_fact_values
from annotator.store.locations.file_cache import FileCache
from annotator.store.locations.location import Location, read_remote_file
from annotator.store.pictures.decoding import BadImage, ImageFacts, check_image

CACHE_GB_SETTING = "cache_gb"  # setting
DEFAULT_CACHE_GB, MIN_CACHE_GB = 10.0, 0.1
BYTES_PER_GB = 1_000_000_000


def get_cache_gb(db: Database) -> float:
    value = db.get_setting(CACHE_GB_SETTING, DEFAULT_CACHE_GB)
    return value if isinstance(value, int | float) and value >= MIN_CACHE_GB else DEFAULT_CACHE_GB


def check_cache_gb(value: float) -> None:
    """Raise AnnotatorError below MIN_CACHE_GB."""
    if not MIN_CACHE_GB <= value < 1e9:
        raise AnnotatorError(
            f"--cache-gb {value:g} must be at least {MIN_CACHE_GB:g}: the images on one page fit in that."
        )


def set_cache_gb(db: Database, value: float) -> None:
    """Set the cache limit and delete the excess."""
    check_cache_gb(value)
    db.set_setting(CACHE_GB_SETTING, float(value))
    get_cache(db).shrink()


def get_cache(db: Database) -> FileCache:
    return db.caches.get(
        "fetched", "", lambda: FileCache(_get_cache_folder(db), lambda: int(get_cache_gb(db) * BYTES_PER_GB)), 1
    )


def _get_cache_folder(db: Database) -> Path:
    """Return the cache folder, which is temporary for read-only projects."""
    if not db.read_only:
        return db.paths.fetched_images
    folder = tempfile.mkdtemp(prefix="annotator-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def fetch_file(db: Database, image_id: int, location: Location) -> Path:
    """Return an image's cached or fetched file, or raise AnnotatorError, StorageTimeout or DiskFull."""
    return get_cache(db).find(location.sha256) or _fetch_image(db, image_id, location)[0]


def fetch_content(db: Database, image_id: int, location: Location) -> bytes:
    if found := get_cache(db).find(location.sha256):
        with suppress(FileNotFoundError):  # others came, and it had to go
            return found.read_bytes()
    return _fetch_image(db, image_id, location)[1]


def _fetch_image(db: Database, image_id: int, location: Location) -> tuple[Path, bytes]:
    found = read_remote_file(location)
    path = get_cache(db).add(location.sha256, found)
    if db.value("SELECT 1 FROM image WHERE id = ? AND width = 0", [image_id]):
        try:
            save_missing_facts(db, [(image_id, check_image(io.BytesIO(found), get_shown_bands(db)))])
        except BadImage as error:
            raise AnnotatorError(str(error)) from error
    return path, found


def build_copy_name(location: Location, kind: str, bands: str) -> str:
    """Return the cache name of an image's browser copy."""
    shown = f"-{bands.replace(':', '.').replace(',', '.')}" if bands else ""
    return f"{location.sha256}-{kind}{shown}-{DECODER_VERSION}.jpg"


def save_missing_facts(db: Database, facts: Iterable[tuple[int, ImageFacts]]) -> None:
    """Store size, bands and capture data of images that were registered by checksum alone."""
    rows = [(*to_fact_values(fact), image_id) for image_id, fact in facts]
    if not rows or db.read_only:
        return
    with db.writing(durable=False, right=Right.LOOK) as sql:
        columns = ", ".join(f"{name} = ?" for name in FACT_COLUMNS)
        sql.conn.executemany(f"UPDATE image SET {columns} WHERE id = ? AND width = 0", rows)
