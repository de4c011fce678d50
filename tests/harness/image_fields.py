"""Fields of images, of EXIF data and of imports, and the images that a filter of the Gallery finds."""

from pathlib import Path

from PIL import Image

from annotator.snapshot import gallery_listing
from annotator.snapshot.filters import GalleryFilter
from annotator.snapshot.gallery_listing import Sorting
from annotator.store.database.database import Database

DATE_TIME_ORIGINAL, MODEL, EXPOSURE = 0x9003, 0x0110, 0x8769


def photo(path: Path, number: int, camera: str = "", taken: str = "") -> None:
    exif = Image.Exif()
    if camera:
        exif[MODEL] = camera
    if taken:
        exif.get_ifd(EXPOSURE)[DATE_TIME_ORIGINAL] = taken
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (9, 9), (number, 0, 0)).save(path, exif=exif)


def give(db: Database, name: str, values: dict[int, object]) -> None:
    """Values of an imported column, by image."""
    with db.writing() as sql:
        rows = [(image_id, name, str(value)) for image_id, value in values.items()]
        sql.conn.executemany("INSERT INTO attribute VALUES (?, ?, ?, NULL)", rows)


def ids(db: Database, sort: Sorting | None = None, **given: object) -> list[int]:
    return gallery_listing.get_listing(db, GalleryFilter.build(**given), sort or Sorting()).get_ids(0, 100)
