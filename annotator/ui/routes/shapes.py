"""What goes over the wire, in both directions: what pages are told as JSON, and how what they say is read."""

import base64
from collections.abc import Callable

from annotator.engine.grid import Grid
from annotator.engine.worklist import Work, WorkItem
from annotator.records import Image

MOST_NAMED = 5000  # images or cells that a page names as in hand or done with


def told(found: Work, as_json: Callable[[object], dict]) -> dict:
    """What was found, each item as `as_json` gives it, with what every page shows around it."""
    return {
        "items": [as_json(one) for one in found.items],
        "left": found.left,
        "mine": found.mine,
        "empty": found.empty,
        "worker": found.worker,
        "run": found.run,
        "fresh": found.fresh,
        "of": found.of,
    }


def item(one: WorkItem) -> dict:
    """One image in hand; `likely` is base64 of a byte a class."""
    return image(one.image) | {
        "labels": [
            {"class": label.class_id, "state": label.state, "source": label.source, "by": label.annotator}
            for label in one.labels
        ],
        "flag": one.note or None,
        "likely": base64.b64encode(one.likely).decode(),
        "suggestions": [vars(chip) for chip in one.suggestions],
    }


def grid(one: Grid) -> dict:
    """One grid with its tiles."""
    return {
        "id": one.id,
        "class": one.class_id,
        "run": one.run_id,
        "share": one.share,
        "start": one.start,
        "waiting": one.waiting,
        "tiles": [image(tile.image) | {"probability": tile.probability, "state": tile.state} for tile in one.tiles],
    }


def image(one: Image) -> dict:
    """What a page needs to draw an image."""
    return {"id": one.id, "name": one.name, "width": one.width, "height": one.height}


def holder(value: object) -> str:
    """The name of an open page, cut to what the store keeps."""
    return str(value)[:100]


def ids(values: list | None) -> list[int]:
    """Ids of images; none of what comes after MOST_NAMED. Raises ValueError or TypeError for anything else."""
    return [int(value) for value in (values or [])[:MOST_NAMED]]


def pairs(values: list | None) -> list[tuple[int, int]]:
    """Cells as (image id, class id), likewise."""
    return [(int(image_id), int(class_id)) for image_id, class_id in (values or [])[:MOST_NAMED]]


def number(value: object) -> int | None:
    """A whole number, or None where nothing was said."""
    return None if value is None else int(value)


def at_most(value: object, most: int) -> int:
    """A number of things asked for, from 0 to `most`."""
    return min(max(int(value), 0), most)
