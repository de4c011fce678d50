"""Images uploaded for a new project, in batches that become a folder all or nothing.

    <first root>/annotator-photos/.incoming.<process>-<random>.part/    while files arrive
                                 /<day>/                                when complete

Unfinished batches are removed when the start page ends or starts.
"""

import secrets
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from annotator.errors import AnnotatorError, DiskFull
from annotator.exchange.files.safe_names import fold_name
from annotator.exchange.sources.fetch_folder import format_size
from annotator.humanize import format_count
from annotator.store.database.new_folders import remove_unfinished_folders
from annotator.store.disk.processes import build_temporary_path
from annotator.store.pictures.picture_kinds import looks_like_image
from annotator.ui.pages.imports.uploaded_files import IncomingFile, make_safe_name

PHOTOS_FOLDER_NAME, INCOMING_NAME = "annotator-photos", "incoming"
MAX_FILES_PER_BATCH = 20_000  # of a batch
MAX_IMAGE_BYTES = 1_000_000_000  # bytes of one image
MAX_BATCH_BYTES = 50_000_000_000  # of a batch
BATCH_LIFETIME_SECONDS = 24 * 3600.0
_TOO_LARGE_HINT = "Copy the folder to the machine that runs Annotator, and choose it there."


@dataclass
class _UploadBatch:
    folder: Path
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    began: float = field(default_factory=time.monotonic)
    names: set[str] = field(default_factory=set[str])
    bytes: int = 0


class ImageUploads:
    """The upload batches, one per visitor, below the folder `root` (None disables uploads)."""

    def __init__(self, root: Path | None):
        self._place = root / PHOTOS_FOLDER_NAME if root else None
        self._lock = threading.Lock()
        self._batches: dict[str, _UploadBatch] = {}
        if self._place:
            remove_unfinished_folders(self._place, INCOMING_NAME)
            self._remove_empty_folder()

    def begin_batch(self, visitor: str) -> str:
        """Start a batch, replacing the visitor's previous one, and return its name."""
        if self._place is None:
            raise AnnotatorError("No folder may be used here. Whoever started Annotator can allow some with --roots.")
        with self._lock:
            self._remove_batch(visitor)
            for other in [
                one for one, batch in self._batches.items() if time.monotonic() - batch.began > BATCH_LIFETIME_SECONDS
            ]:
                self._remove_batch(other)
            folder = build_temporary_path(self._place / INCOMING_NAME)
            try:
                folder.mkdir(mode=0o700, parents=True)
            except OSError as error:
                raise DiskFull(f"{self._place} cannot be written: {error.strerror or error}.") from error
            batch = self._batches[visitor] = _UploadBatch(folder)
            return batch.id

    def receive_image(self, visitor: str, batch_id: str, name: str, size: int) -> IncomingFile:
        """Start receiving an image under a safe, free name.

        Raises:
            AnnotatorError: Not an image, too large, or no batch.
            DiskFull: The disk is full.
        """
        safe = make_safe_name(name)
        if not looks_like_image(safe):
            raise AnnotatorError(f"{name} is no image that is read here.")
        if size > MAX_IMAGE_BYTES:
            raise AnnotatorError(f"{name} is larger than {format_size(MAX_IMAGE_BYTES)}. {_TOO_LARGE_HINT}")
        with self._lock:
            batch = self._find_batch(visitor, batch_id)
            if batch is None:
                raise AnnotatorError("These images were cancelled, or others were sent from another page. Begin again.")
            if len(batch.names) >= MAX_FILES_PER_BATCH or batch.bytes + size > MAX_BATCH_BYTES:
                most = f"{format_count(MAX_FILES_PER_BATCH, 'image')} with {format_size(MAX_BATCH_BYTES)}"
                raise AnnotatorError(f"A browser may send {most} at most. {_TOO_LARGE_HINT}")
            stored = _choose_free_name(safe, batch.names)
            try:
                incoming = IncomingFile(batch.folder / stored)
            except OSError as error:
                raise DiskFull(f"{stored} cannot be stored: {error.strerror or error}.") from error
            batch.names.add(fold_name(stored))
            batch.bytes += size
        return incoming

    def finish_batch(self, visitor: str, batch_id: str) -> Path:
        """Move a batch to its final folder and return that folder."""
        with self._lock:
            batch = self._find_batch(visitor, batch_id)
            if batch is None or not any(batch.folder.iterdir()):
                raise AnnotatorError("No image was sent. Begin again.")
            day = time.strftime("%Y-%m-%d")
            names = (day if number == 1 else f"{day}-{number}" for number in range(1, 10_000))
            place = next(path for name in names if not (path := batch.folder.parent / name).exists())
            batch.folder.rename(place)
            del self._batches[visitor]
        return place

    def cancel_batch(self, visitor: str, batch_id: str) -> None:
        with self._lock:
            if self._find_batch(visitor, batch_id):
                self._remove_batch(visitor)

    def remove_unfinished(self) -> None:
        with self._lock:
            for visitor in list(self._batches):
                self._remove_batch(visitor)

    def _find_batch(self, visitor: str, batch_id: str) -> _UploadBatch | None:
        batch = self._batches.get(visitor)
        return batch if batch and batch.id == batch_id else None

    def _remove_batch(self, visitor: str) -> None:
        if batch := self._batches.pop(visitor, None):
            shutil.rmtree(batch.folder, ignore_errors=True)
            self._remove_empty_folder()

    def _remove_empty_folder(self) -> None:
        if self._place:
            with suppress(OSError):
                self._place.rmdir()


def _choose_free_name(name: str, taken: set[str]) -> str:
    path = Path(name)
    names = (
        name if number == 1 else f"{path.stem}~{number}{path.suffix}" for number in range(1, MAX_FILES_PER_BATCH + 2)
    )
    return next(one for one in names if fold_name(one) not in taken)
