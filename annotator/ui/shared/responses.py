"""The JSON responses of the routes."""

import base64
from collections.abc import Callable
from typing import Any

from annotator.queues.grid_queue import Grid
from annotator.queues.image_queue import LeasedWork, WorkItem
from annotator.records import Image
from annotator.snapshot.project_progress import Progress


def build_work(work_: LeasedWork, as_json: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    return {
        "items": [as_json(item_) for item_ in work_.items],
        "progress": build_progress(work_.progress),
        "empty": work_.empty_reason,
        "onward": work_.next_pages,
        "lost": work_.lost_items,
        "sequence": work_.sequence,
        "after": work_.after,
        "worker": work_.worker_line,
        "run": work_.run_id,
        "fresh": work_.model_version,
        "class_version": work_.class_version,
    }


def build_progress(progress_: Progress) -> dict[str, Any]:
    """Return the project's progress as JSON counts and sentence."""
    names = ("pairs_answered", "pairs", "images_complete", "images")
    return {name: getattr(progress_, name) for name in names} | {"template": progress_.template()}


def build_item(work_item: WorkItem) -> dict[str, Any]:
    """Return one image as JSON (`likely`: base64, one byte per class)."""
    return build_image(work_item.image) | {
        "labels": [
            {"class": label.class_id, "state": label.state, "source": label.source, "by": label.annotator}
            for label in work_item.labels
        ],
        "flag": work_item.note or None,
        "comments": work_item.comments,
        "events": list(work_item.events),
        "likely": base64.b64encode(work_item.likely).decode(),
        "class_version": work_item.class_version,
        "suggestions": [vars(chip) for chip in work_item.suggestions],
        "hidden": work_item.hidden,
    }


def build_grid(grid_: Grid) -> dict[str, Any]:
    return {
        "id": grid_.id,
        "class": grid_.class_id,
        "run": grid_.run_id,
        "share": grid_.expected_share,
        "start": grid_.start,
        "waiting": grid_.waiting,
        "tiles": [
            build_image(tile.image)
            | {"probability": tile.probability, "state": tile.state, "by": tile.annotator}
            | {"models": tile.models, "boxes": tile.boxes, "others": tile.others}
            for tile in grid_.tiles
        ],
    }


def build_image(image_: Image) -> dict[str, Any]:
    return {"id": image_.id, "name": image_.name, "width": image_.width, "height": image_.height}
