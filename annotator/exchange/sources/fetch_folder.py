"""Resumable unpacking or download of images and label files into <project>/imported/<name>/.

Files get their names only when complete. A manifest records the source. Another source of equal name gets a folder with
~2. Changed images wait in .changed/ until the import, because the project may use the old files.
"""

import os
import re
import shutil
import zlib
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from annotator.errors import AnnotatorError, DiskFull, combine_problems
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.safe_names import is_device_name, safe_name
from annotator.exchange.sources.source import FetchedFiles
from annotator.humanize import format_count
from annotator.progress_callbacks import StepCallback
from annotator.settings import IMPORTED_FOLDER
from annotator.store.disk.fetched_manifest import (
    MANIFEST_FILE,
    MANIFEST_FILES,
    STATE_ASIDE,
    STATE_PRESENT,
    STATE_WANTED,
    STATE_WANTED_AGAIN,
    Entry,
    Manifest,
    open_manifest,
)
from annotator.store.pictures.leftovers import find_leftover_part
from annotator.store.pictures.picture_kinds import looks_like_image
from annotator.store.pictures.skipped_files import SkippedFiles

LABEL_SUFFIXES = frozenset(
    (
        ".json .jsonl .ndjson .manifest .csv .tsv .txt .xml .yaml .yml .parquet .xlsx .xlsm .ods .npy .cls .md .ddb "
        ".xmp"
    ).split()
)
"""Endings of files with labels, and of text files that belong to them."""
MAX_PATH_BYTES = 1000
MAX_PART_BYTES = 200  # bytes of one folder or file
RESERVED_DISK_BYTES = 1 << 30  # bytes that stay free on the disk
MAX_NAMES_SHOWN = 3
ENTRIES_PER_BATCH = 1000
PART_FILE = ".part"
CHANGED_FOLDER = ".changed"  # images that take the place of others when the import is carried out
_CONTROL_CHARS = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_DRIVE_PREFIX = re.compile(r"^[A-Za-z]:")


class UnsafeNameError(Exception):
    """The error of a name that leads out of its folder."""


def is_wanted_file(name: str) -> bool:
    """Return whether a file is a visible image or possible label file."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or find_leftover_part(name) or any(part.startswith(".") and part not in (".", "..") for part in parts):
        return False
    return looks_like_image(name) or Path(parts[-1]).suffix.lower() in LABEL_SUFFIXES


def safe_path(name: str) -> str:
    """Return the name of an entry as a portable path below a folder. Raises UnsafeNameError."""
    slashed = name.replace("\\", "/")
    if slashed.startswith("/") or (_DRIVE_PREFIX.match(slashed) and slashed[2:3] == "/"):
        raise UnsafeNameError("its name is an absolute path")
    parts = [part for part in slashed.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise UnsafeNameError("its name leads out of the folder ('..')")
    path = "/".join(_safe_part(part) for part in parts)
    if not path or len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise UnsafeNameError(f"its name has {len(name):,} letters, which no path may have")
    return path


def _safe_part(part: str) -> str:
    part = _CONTROL_CHARS.sub("_", part)
    if _DRIVE_PREFIX.match(part) or is_device_name(part):
        part = f"_{part.replace(':', '_')}"
    if len(part.encode()) <= MAX_PART_BYTES:
        return part
    stem, dot, ending = part.rpartition(".")
    if not dot or len(ending) > 10:
        stem, ending = part, ""
    short = stem.encode()[: MAX_PART_BYTES - 30].decode(errors="ignore")
    return f"{short}~{zlib.crc32(part.encode()):08x}{dot if ending else ''}{ending}"


class FetchFolder:
    """A folder into which one source is fetched. If `problems` has entries, nothing is registered."""

    def __init__(self, folder: Path, manifest: Manifest, address: str, progress: StepCallback | None):
        self.folder, self.manifest, self.address, self._progress = folder, manifest, address, progress
        self.problems = Problems()
        self.new = self.changed = self.known = self.fetched = self.bytes = self.skipped = 0
        self.left_out = SkippedFiles()
        self.example = ""  # name of a skipped entry
        self.bytes_in_flight: dict[Path, int] = {}  # file that is being downloaded -> bytes downloaded so far
        self.renamed: dict[str, str] = {}  # name in the source -> path here, where the two differ
        self.new_names: list[str] = []
        self.new_names_count = 0
        self._free = shutil.disk_usage(folder).free - RESERVED_DISK_BYTES

    def make_key(self, name: str) -> str:
        """Return the key of an entry: its name, numbered if repeated in this pass."""
        key, number = name.encode("utf-8", "backslashreplace").decode(), 1
        first = key
        while self.manifest.is_seen(key):
            number += 1
            key = f"{first}\0{number}"
        return key

    def register_entry(self, key: str, name: str, size: int, stamp: str) -> Entry | None:
        """Record an entry of the source. Returns it if it must be fetched, else None.

        A `size` of -1 is unknown. `stamp` changes with the content. Raises UnsafeNameError.
        """
        known = self.manifest.get_entry(key)
        named = PurePosixPath(name.replace("\\", "/")).as_posix()
        if known and known.path != named:
            self.renamed[named] = known.path
        if known and stamp == known.stamp != "" and size in (-1, known.bytes) and self._is_complete(known):
            self.known, self.changed = (
                self.known + (known.state == STATE_PRESENT),
                self.changed + (known.state == STATE_ASIDE),
            )
            self.manifest.save_entry(known)
            return None
        wanted = safe_path(name)
        path = known.path if known else self.manifest.find_free_path(key, wanted)
        (self.folder / CHANGED_FOLDER / path).unlink(missing_ok=True)
        if path != named:
            self.renamed[named] = path
            self.new_names_count += 1
            if len(self.new_names) < MAX_NAMES_SHOWN:
                self.new_names.append(f"{name!a} is {path!a}")
        # A file without an entry, or with one that is still WANTED, was left by a kill and is no image of the project.
        replaces = known is not None and known.state != STATE_WANTED and os.path.lexists(self.folder / path)
        self.new, self.changed, self.fetched = self.new + (not replaces), self.changed + replaces, self.fetched + 1
        entry = Entry(key, path, size, stamp, STATE_WANTED_AGAIN if replaces else STATE_WANTED)
        self.manifest.save_entry(entry)
        return entry

    def skip_entry(self, name: str) -> None:
        """Count an entry of the source that is not fetched."""
        if self.left_out.count_if_skipped(name):
            return
        self.skipped, self.example = self.skipped + 1, self.example or name

    def write_entry(self, entry: Entry, chunks: Iterable[bytes]) -> None:
        """Write the complete file of an entry. Raises DiskFull."""
        part, size = self.folder / PART_FILE, 0
        try:
            part.unlink(missing_ok=True)
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                for chunk in chunks:
                    size += len(chunk)
                    self.check_disk_space(self.bytes + size)
                    file.write(chunk)
            self.finish_entry(entry, part, size)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def finish_entry(self, entry: Entry, part: Path, size: int) -> None:
        """Move a complete file to its name, or to .changed/ instead of replacing an image."""
        target, state = self.folder / entry.path, STATE_PRESENT
        if looks_like_image(entry.path) and entry.state == STATE_WANTED_AGAIN:
            target, state = self.folder / CHANGED_FOLDER / entry.path, STATE_ASIDE
        target.parent.mkdir(parents=True, exist_ok=True)
        part.replace(target)
        self.bytes += size
        self.manifest.save_entry(entry._replace(bytes=size, state=state))

    def check_disk_space(self, size: int) -> None:
        if size > self._free:
            raise DiskFull(
                f"{self.address} needs more room than there is in {self.folder}: {max(self._free, 0):,} bytes are free "
                f"besides the {RESERVED_DISK_BYTES:,} that are kept. Make room and give the same command again: it "
                "goes on."
            )

    def report_progress(self, step: str, done: int, total: int = 0) -> None:
        if self._progress:
            self._progress(
                f"{step} ({format_size(self.bytes + sum(list(self.bytes_in_flight.values())))})", done, total
            )

    def sentences(self) -> list[str]:
        parts = [(self.new, "new"), (self.changed, "changed"), (self.known, "as before")]
        listed = ", ".join(f"{count:,} {word}" for count, word in parts if count) or "no file"
        where = f", {format_size(self.bytes)} written to" if self.bytes else " in"
        said = [f"{self.address}: {listed}{where} {self.folder}."]
        gone, paths = self.manifest.find_unseen(MAX_NAMES_SHOWN)
        if gone:
            examples = ", ".join(f"{path!a}" for path in paths)
            verb = "is" if gone == 1 else "are"
            said.append(f"{format_count(gone, 'file')} {verb} gone from the source, and kept here: {examples}.")
        if self.new_names_count:
            said.append(f"{format_count(self.new_names_count, 'file')} got another name: {', '.join(self.new_names)}.")
        if self.skipped:
            counted = format_count(self.skipped, "file")
            said.append(f"{counted} passed over, neither images nor labels that are read, such as {self.example!a}.")
        return [*said, *self.left_out.format_sentences()]

    def finish(self) -> None:
        """Commit the manifest, and raise AnnotatorError if there are problems."""
        self.manifest.commit()
        if self.problems.count:
            raise self.problems.error(f"{self.address} cannot be imported, and nothing of it was registered:")

    def _is_complete(self, entry: Entry) -> bool:
        if entry.is_wanted:
            return False
        try:
            return (
                self.folder / (CHANGED_FOLDER if entry.state == STATE_ASIDE else "") / entry.path
            ).lstat().st_size == entry.bytes
        except OSError:
            return False


def format_size(size: int) -> str:
    """Format bytes with a suitable unit, such as "1.5 MB"."""
    number, units = float(size), ["bytes", "kB", "MB", "GB"]
    while number >= 1000 and len(units) > 1:
        number, units = number / 1000, units[1:]
    return f"{number:,.0f} {units[0]}" if units[0] == "bytes" else f"{number:,.1f} {units[0]}"


def find_fetch_folder(project: Path, address: str, name: str) -> Path:
    base = project.resolve() / IMPORTED_FOLDER
    address = _stored_address(project, address)
    name = safe_name(name).lstrip(".~") or "images"
    number = 1
    while True:
        folder = base / (name if number == 1 else f"{name}~{number}")
        if not folder.exists():
            _make_folder(project, folder)
            break
        if (folder / MANIFEST_FILE).exists():
            with open_manifest(folder) as manifest:
                if manifest.get_fact("address") in ("", address):
                    break
        elif not any(folder.iterdir()):
            break
        number += 1
    return folder


def _stored_address(project: Path, address: str) -> str:
    """Return the path or URL to store in the manifest, relative inside the project, because projects may move."""
    inside = project.resolve() / IMPORTED_FOLDER
    return Path(address).relative_to(project.resolve()).as_posix() if Path(address).is_relative_to(inside) else address


def _make_folder(project: Path, folder: Path) -> None:
    try:
        project.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise AnnotatorError(f"The folder {folder} cannot be made: {error.strerror or error}.") from error


@contextmanager
def open_fetch_folder(project: Path, address: str, name: str, progress: StepCallback | None) -> Generator[FetchFolder]:
    """Yield the folder of a source for one pass. Interruptions explain how to resume.

    Raises AnnotatorError that lists all problems, or AlreadyRunning.
    """
    folder = find_fetch_folder(project, address, name)
    try:
        with open_manifest(folder) as manifest:
            manifest.set_fact("address", _stored_address(project, address))
            manifest.begin_pass()
            place = FetchFolder(folder, manifest, address, progress)
            yield place
            place.finish()
    except KeyboardInterrupt:
        raise AnnotatorError(
            f"Interrupted. What has come of {address} stays in {folder}. Give the same command again to go on."
        ) from None
    except OSError as error:
        raise AnnotatorError(
            f"{address} cannot be brought into {folder}: {error.strerror or error}. What is there stays; give the "
            "same command again to go on."
        ) from error
    finally:
        _remove_empty_folders(project, folder)


def remove_fetched_files(project: Path, address: str, known: Collection[Path]) -> None:
    """Remove the unpacked files of an archive that was deleted, unless they are registered."""
    for manifest_path in (project.resolve() / IMPORTED_FOLDER).glob(f"*/{MANIFEST_FILE}"):
        folder = manifest_path.parent
        with open_manifest(folder) as manifest:
            is_of_it = manifest.get_fact("address") == address
        if is_of_it and not any(path == folder or path.is_relative_to(folder) for path in known):
            shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        (project / IMPORTED_FOLDER).rmdir()


def _remove_empty_folders(project: Path, folder: Path) -> None:
    if not any(entry.name not in MANIFEST_FILES for entry in folder.iterdir()):
        for name in MANIFEST_FILES:
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # raised if a folder holds other things
            for place in (folder, folder.parent, project):
                place.rmdir()


def build_fetched(place: FetchFolder, labels: Iterable[Path] = (), said: Iterable[str] = ()) -> FetchedFiles:
    """Return the result of a fetch. Raises AnnotatorError without any file.

    `labels` are likely label files, `said` are remarks to list first.
    """
    if not place.manifest.count_seen()[0]:
        others = f" ({format_count(place.skipped, 'other')}, such as {place.example!a})" if place.skipped else ""
        raise combine_problems(
            f"There is no image and no file of labels in {place.address}{others}.", place.left_out.format_sentences()
        )
    root = _find_root(place)
    place.manifest.commit()
    changed = place.manifest.count_aside()
    inside = root.relative_to(place.folder).as_posix()
    within = "" if inside == "." else f"{inside}/"
    renamed = {name.removeprefix(within): path[len(within) :] for name, path in place.renamed.items()
               if path.startswith(within)}  # fmt: skip
    return FetchedFiles(
        [(root, None)], [*labels, root], [*said, *place.sentences()], None, [place.folder], changed, renamed
    )


def apply_changed_images(folder: Path) -> None:
    """Replace images by their newly fetched versions in .changed/. Safe to repeat, also after a kill."""
    with open_manifest(folder) as manifest:
        while entries := manifest.list_aside(ENTRIES_PER_BATCH):
            for entry in entries:
                with suppress(FileNotFoundError):  # moved already, before a kill
                    (folder / CHANGED_FOLDER / entry.path).replace(folder / entry.path)
            manifest.mark_present(entries)
    shutil.rmtree(folder / CHANGED_FOLDER, ignore_errors=True)


def _find_root(place: FetchFolder) -> Path:
    """Return the innermost folder that holds all files, and record it for later passes."""
    kept = place.manifest.get_fact("root")
    if kept:
        return place.folder / kept
    root = place.folder
    while True:
        visible = [entry for entry in root.iterdir() if not entry.name.startswith(".")]
        if len(visible) != 1 or not visible[0].is_dir() or visible[0].is_symlink():
            break
        root = visible[0]
    place.manifest.set_fact("root", root.relative_to(place.folder).as_posix())
    return root


def make_path_finder(folder: Path, root: Path) -> Callable[[str], str]:
    """Return a function from the key of an entry to its path below `root`, "" if not fetched there."""
    manifest: list[Manifest] = []

    def path(key: str) -> str:
        if not manifest:
            manifest.append(Manifest(folder))
        entry = manifest[0].get_entry(key)
        inside = entry and not entry.is_wanted and (folder / entry.path).is_relative_to(root)
        return (folder / entry.path).relative_to(root).as_posix() if entry and inside else ""

    return path
