"""Data of the Gallery tiles on screen."""

from collections.abc import Sequence
from dataclasses import dataclass

from annotator.records import Image
from annotator.store.database.database import Database
from annotator.store.images.stages import COMPLETE, EXCLUDED
from annotator.store.labels import project_counts
from annotator.store.labels.comments import count_comments_by_image


@dataclass(frozen=True)
class Tile:
    """The data of one Gallery tile."""

    image: Image
    # (class id, state), by class
    labels: list[tuple[int, int]]
    flag: str
    comments: int
    complete: bool
    # the image is excluded
    aside: bool


def read(db: Database, image_ids: Sequence[int]) -> list[Tile]:
    """Return the data of Gallery tiles for known images, in this order."""
    ids = list(image_ids)
    if not ids:
        return []
    marks = ",".join("?" * len(ids))
    with db.reading() as sql:
        images = {
            row[0]: row
            for row in sql.execute(
                f"SELECT id, name, sha256, width, height, stage FROM image WHERE id IN ({marks})", ids
            ).fetchall()
        }
        labels: dict[int, list[tuple[int, int]]] = {}
        for image_id, class_id, state in sql.execute(
            f"""SELECT image_id, class_id, state FROM label WHERE image_id IN ({marks})
            AND class_id IN (SELECT id FROM class WHERE archived = 0) ORDER BY image_id, class_id""",
            ids,
        ).fetchall():
            labels.setdefault(image_id, []).append((class_id, state))
        notes, comments = project_counts.load_flag_notes(db, ids), count_comments_by_image(db, ids)
    return [
        Tile(
            Image(*images[image_id][:5]),
            labels.get(image_id, []),
            notes.get(image_id, ""),
            comments.get(image_id, 0),
            images[image_id][5] == COMPLETE,
            images[image_id][5] == EXCLUDED,
        )
        for image_id in ids
        if image_id in images
    ]
