"""What pages are told, as JSON; requests.py has what they ask."""

import base64
from collections.abc import Callable
from typing import Any

from annotator.queues.annotate import Work, WorkItem
from annotator.queues.grid import Grid
from annotator.records import Image


def told(found: Work, as_json: Callable[[Any], dict]) -> dict:
    """What was found, each item as `as_json` gives it, with what every page shows around it."""
    return {
        "items": [as_json(one) for one in found.items],
        "left": found.left,
        "mine": found.mine,
        "incomplete": found.incomplete,
        "empty": found.empty,
        "onward": found.onward,
        "lost": found.lost,
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
        "tiles": [
            image(tile.image) | {"probability": tile.probability, "state": tile.state, "by": tile.by}
            for tile in one.tiles
        ],
    }


def image(one: Image) -> dict:
    """What a page needs to draw an image."""
    return {"id": one.id, "name": one.name, "width": one.width, "height": one.height}
