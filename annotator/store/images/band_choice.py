"""Storing which bands of multi-band images are displayed, and deleting data that this invalidates."""

import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from annotator.errors import AnnotatorError, combine_problems
from annotator.humanize import format_count
from annotator.store.database.database import Database
from annotator.store.features.project_contents import CHANGES_SETTING
from annotator.store.images import appearances
from annotator.store.images.band_setting import BANDS_SETTING, get_shown_bands
from annotator.store.images.registration import increment_registrations
from annotator.store.pictures.bands import (
    CHANNELS_BY_ORDER,
    CHANNELS_NAMED,
    MISSING_BAND_REASON,
    UNCHOSEN_REASON,
    BandTriple,
    format_bands,
)

COPY_KINDS = ("display", "thumb", "full")


def save_bands(db: Database, three: BandTriple, count: int | None) -> list[int]:
    """Store a band choice, and return the affected image ids.

    Args:
        three: Bands for red, green and blue, from 1.
        count: Number of bands of affected images, or None for undeclared colors.
    """
    bands = get_shown_bands(db)
    rows = [(image_id, kind, int(kind.partition(":")[0])) for image_id, kind in _load_multiband_images(db)]
    if count is not None:
        concerned = [row for row in rows if row[2] == count]
    else:
        said = (f":{CHANNELS_NAMED}", f":{CHANNELS_BY_ORDER}")
        concerned = [row for row in rows if not row[1].endswith(said) and row[2] not in bands.by_count]
    fewer = Counter(of for _, _, of in concerned if of < max(three))
    if count is not None and count < max(three):
        raise AnnotatorError(f"Band {max(three)} does not exist in images of {count} bands. They are numbered from 1.")
    if fewer:
        raise combine_problems(
            f"{format_bands(three)} cannot be shown of all images. Say for how many bands it is meant (--of):",
            [f"{format_count(images, 'image')} of {of} bands" for of, images in sorted(fewer.items())],
        )
    by_count = {str(of): list(chosen) for of, chosen in bands.by_count.items()}
    unknown = {"": list(bands.unknown)} if bands.unknown else {}
    changed = [
        (f"{of}:{format_bands(three)}", row) for row, kind, of in concerned if kind != f"{of}:{format_bands(three)}"
    ]
    with db.writing() as sql:
        db.set_setting(BANDS_SETTING, unknown | by_count | {"" if count is None else str(count): list(three)})
        if changed:
            sql.conn.executemany("UPDATE image SET bands = ?, problem = '' WHERE id = ?", changed)
            appearances.delete(sql, [row for _, row in changed])
            db.set_setting(CHANGES_SETTING, db.get_setting(CHANGES_SETTING, 0) + 1)
            increment_registrations(db)  # the worker looks for images without features
    return [row for _, row in changed]


def _load_multiband_images(db: Database) -> list[tuple[int, str]]:
    return db.tuples("SELECT id, bands FROM image WHERE bands != '' ORDER BY id")


def has_multiband_images(db: Database) -> bool:
    return bool(db.value("SELECT 1 FROM image WHERE bands != '' LIMIT 1"))


def delete_derived_pictures(db: Database, image_ids: Sequence[int]) -> None:
    """Delete browser copies, heat maps and feature maps of images."""
    for image_id in image_ids:
        for kind in COPY_KINDS:
            _delete_file(db.paths.image_copy(image_id, kind))
    ids = set(map(str, image_ids))
    for made in (*db.paths.heatmaps.glob("*/*.png"), *db.paths.features("").glob("*/maps/*/*.npy")):
        if made.stem.partition("-")[0] in ids:
            _delete_file(made)


def _delete_file(path: Any) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def find_waiting_folders(db: Database) -> list[str]:
    """Return the folders or URLs, escaped, with files rejected until bands are chosen."""
    rows = db.tuples(
        """SELECT DISTINCT d.path FROM file f JOIN folder d ON d.id = f.folder_id
        WHERE f.image_id IS NULL AND (f.reason LIKE ? OR f.reason LIKE ?) ORDER BY d.path""",
        [f"%{UNCHOSEN_REASON}%", f"%{MISSING_BAND_REASON}%"],
    )
    return [row[0] for row in rows]
