"""Blind answers of several people to the same image, and the images that wait for them."""

import uuid

from annotator.queues import grid_queue, image_queue
from annotator.records import Batch, SuggestionFilter, WantedGrids, WantedImages
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.images import images
from annotator.store.labels import decisions, disagreed_cells, image_overlap

CLASSES = (1, 2, 3)


def say(db: Database, image_id: int, who: str, present: tuple[int, ...], source: str = "reading") -> str:
    name = str(uuid.uuid4())
    cells = [(image_id, class_id, 1 if class_id in present else -1, None) for class_id in CLASSES]
    assert not decisions.save(db, [Batch(name, who, source, cells, None, 4000)]).refused
    return name


def states(db: Database, image_id: int) -> dict[int, tuple[int, str]]:
    rows = disagreed_cells.load_current_labels(db, image_id)
    return {class_id: (state, person) for class_id, (state, person, _) in rows.items()}


def asked(db: Database, who: str) -> list[int]:
    return image_overlap.find_next_images(db, who, (), 100)


def waiting(db: Database) -> set[int]:
    return set(image_overlap.load_waiting_image_ids(db).tolist())


def given(db: Database, who: str) -> set[int]:
    """Every image that the pages give to a person, but for blind answers."""
    shown = {
        item.image.id
        for item in image_queue.lease_next_work(db, WantedImages("annotate", f"a {who}", who, (), 100)).items
    }
    image_queue.lease_next_work(db, WantedImages("annotate", f"a {who}", who, (), 0))
    for class_id in [one.id for one in classes.load_active_classes(db)]:
        for one in grid_queue.lease_next_grids(db, WantedGrids(f"g {who}", who, class_id, 96, (), 1)).items:
            shown |= {tile.image.id for tile in one.tiles}
    grid_queue.lease_next_grids(db, WantedGrids(f"g {who}", who, 1, 96, (), 0))
    only = SuggestionFilter(low=0.0)
    shown |= {
        item.image.id
        for item in image_queue.lease_next_work(db, WantedImages("review", f"r {who}", who, (), 100, only)).items
    }
    image_queue.lease_next_work(db, WantedImages("review", f"r {who}", who, (), 0))
    return shown


def name_of(db: Database, image_id: int) -> str:
    return images.load_images(db, [image_id])[image_id].name
