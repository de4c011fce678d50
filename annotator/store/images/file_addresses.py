"""Locations of image files, with which other processes read images without the project."""

import io
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from annotator.errors import AnnotatorError, StorageTimeout
from annotator.store.database.database import Database
from annotator.store.locations.location import Location, PendingRead, open_source, submit_read
from annotator.store.locations.remote_files import is_remote
from annotator.store.pictures.files import GONE_PROBLEM, UNREAD_STATE, FileState


class ImageFiles(NamedTuple):
    """The locations of one image's files, local ones first."""

    image_id: int
    places: tuple[Location, ...]


def load_image_files(db: Database, ids: Iterable[int]) -> list[ImageFiles]:
    """Return the unchecked files of these images, in order of the ids."""
    ids = list(ids)
    rows = db.tuples(
        """SELECT i.id, i.sha256, d.path, f.path, f.bytes FROM image i JOIN file f ON f.image_id = i.id
        JOIN folder d ON d.id = f.folder_id WHERE i.id IN (SELECT value FROM json_each(?)) ORDER BY f.id""",
        [json.dumps(ids)],
    )
    places: dict[int, list[Location]] = {}
    for image_id, sha256, folder, path, size in rows:
        # A file's state differs on another machine: on a disk its content is compared instead.
        state = FileState(size) if is_remote(folder) else UNREAD_STATE
        places.setdefault(image_id, []).append(Location(folder, path, state, sha256))
    return [ImageFiles(image_id, tuple(sorted(places.get(image_id, ()), key=_is_remote))) for image_id in ids]


def open_image_file(files: ImageFiles, *, patient: bool = False) -> Path | io.BytesIO:
    """Return an image's checked file or content for the decoder.

    Raises:
        AnnotatorError: No file is readable or has this content.
        StorageTimeout: A file may be readable later.
    """
    problem = AnnotatorError(
        f"{GONE_PROBLEM}: image {files.image_id} has no file in any of the project's image folders."
    )
    for place in files.places:
        try:
            return open_source(place, patient=patient)
        except AnnotatorError as error:
            problem = problem if isinstance(problem, StorageTimeout) else error
    raise problem


def start_reading_image(files: ImageFiles, *, patient: bool = False) -> PendingRead:
    """Return a function that returns `open_image_file`. Remote images are read ahead in a thread."""
    read = partial(open_image_file, files, patient=patient)
    return submit_read(read) if files.places and files.places[0].is_remote else read


def _is_remote(place: Location) -> bool:
    return place.is_remote
