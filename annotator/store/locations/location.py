"""One file of a registered folder or address, checked to hold its image still.

A `Location` has all facts that are needed to read an image; it can be pickled, and read on another machine without the
project.
"""

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
    """A registered file.

    Attributes:
        folder: The folder or address, escaped.
        path: Below it, escaped.
        state: The state of the file at registration.
        sha256: Of the image's content.
    """

    folder: str
    path: str
    state: FileState
    sha256: str

    @property
    def is_remote(self) -> bool:
        """Return whether the file lies at an address."""
        return is_remote(self.folder)

    @property
    def address(self) -> Address:
        """Return the address of its folder. Raises AnnotatorError where that is no address that is allowed."""
        return Address.parse(self.folder)


ImageSource = Path | Location
"""A file that was checked, or one that is checked when it is read."""
PendingRead = Callable[[], Path | io.BytesIO]
"""Gives what the decoder reads, and waits for it."""


def open_source(source: ImageSource, *, patient: bool = False) -> Path | io.BytesIO:
    """Return what the decoder reads: a path, or the content that was read at an address, which is not stored.

    Args:
        source: A path, or the location of a registered file.
        patient: Nobody waits for it: longer without an answer, and several tries.

    Raises:
        AnnotatorError: The file is gone or holds something else; StorageTimeout where it cannot be read now.
    """
    if isinstance(source, Path):
        return source
    if source.is_remote:
        return io.BytesIO(read_remote_file(source, patient=patient))
    return open_checked(Path(unescape_path(source.folder)), source.path, source.state, source.sha256)[0]


def start_reading(source: ImageSource) -> PendingRead:
    """Begin to read a source at an address in a thread, for callers that read several; return a call that waits for it.

    For a path nothing is begun. The returned call raises as `open_source` does.
    """
    if isinstance(source, Path):
        return lambda: source
    return submit_read(partial(open_source, source, patient=True))


def submit_read(read: PendingRead) -> PendingRead:
    """Begin `read` in one of the threads for addresses; return a call that waits for its result or error."""
    return _get_reader_pool().submit(read).result


@cache
def _get_reader_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(READ_AHEAD_FILES, "address")


def read_remote_file(location: Location, *, patient: bool = False) -> bytes:
    """Return the content of a file at an address, checked by its sha256. Raises as `open_source` does."""
    content = get_remote_files(location.address).read(location.path, location.state.bytes, patient=patient)
    if hashlib.sha256(content).hexdigest() != location.sha256:
        raise AnnotatorError(
            f"its file holds another picture now: {location.folder}/{location.path} has changed since it was "
            "registered. Its decisions belong to the old content; run annotator init again to add the new content as "
            "a new image."
        )
    return content
