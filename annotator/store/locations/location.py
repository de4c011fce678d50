"""Registered image files with checked content."""

import hashlib
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from annotator.errors import AnnotatorError
from annotator.store.locations.addresses import Address
from annotator.store.locations.remote_files import get_remote_files, is_remote
from annotator.store.pictures.files import FileState, open_checked, unescape_path

READ_AHEAD_FILES = 32  # files read ahead


class Location(NamedTuple):
    """A registered file, readable without the project."""

    # folder or URL, escaped
    folder: str
    # path below the folder, escaped
    path: str
    # file state at registration
    state: FileState
    # SHA-256 of the content
    sha256: str

    @property
    def is_remote(self) -> bool:
        return is_remote(self.folder)

    @property
    def address(self) -> Address:
        """Return the folder's URL. Raises AnnotatorError unless allowed."""
        return Address.parse(self.folder)


ImageSource = Path | Location
"""A file that was checked, or one that is checked when it is read."""
PendingRead = Callable[[], Path | io.BytesIO]
"""Gives what the decoder reads, and waits for it."""


def open_source(source: ImageSource, *, patient: bool = False) -> Path | io.BytesIO:
    """Return a path, or a remote file's content.

    Args:
        patient: Use a longer timeout and retries.

    Raises:
        AnnotatorError: The file is missing or changed. StorageTimeout if temporarily unreadable.
    """
    if isinstance(source, Path):
        return source
    if source.is_remote:
        return io.BytesIO(read_remote_file(source, patient=patient))
    return open_checked(Path(unescape_path(source.folder)), source.path, source.state, source.sha256)[0]


def start_reading(source: ImageSource) -> PendingRead:
    """Start reading an image source in a thread and return a call that waits for its content."""
    if isinstance(source, Path):
        return lambda: source
    return submit_read(partial(open_source, source, patient=True))


def submit_read(read: PendingRead) -> PendingRead:
    """Run `read` in a thread and return a call that waits for its result."""
    return _get_reader_pool().submit(read).result


@cache
def _get_reader_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(READ_AHEAD_FILES, "address")


def read_remote_file(location: Location, *, patient: bool = False) -> bytes:
    """Return a remote file's content after checking its SHA-256. `patient` retries longer. Raises as `open_source`."""
    content = get_remote_files(location.address).read(location.path, location.state.bytes, patient=patient)
    if hashlib.sha256(content).hexdigest() != location.sha256:
        raise AnnotatorError(
            f"its file holds another picture now: {location.folder}/{location.path} has changed since it was "
            "registered. Its decisions belong to the old content; run annotator init again to add the new content as "
            "a new image."
        )
    return content
