"""The folder that receives unpacked or downloaded files, one by one: <project>/imported/<name>/. Work can be resumed.

A file gets its name only when it is complete. Only images and files that may hold labels are brought in. The folder
belongs to one archive or address, which its manifest names; another archive of the same name gets ~2. A changed image
waits in .changed/ until the import is carried out (`settle`), because its old file may belong to the project.
"""

import os
import re
import shutil
import zlib
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from annotator.errors import AnnotatorError, DiskFull, several
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.safe_names import is_device, safe_name
from annotator.exchange.sources.source import Fetched, Progress
from annotator.settings import IMPORTED
from annotator.shares import counted
from annotator.store.disk.fetched_manifest import AGAIN, ASIDE, MANIFEST, OWN, THERE, WANTED, Entry, Manifest, opened
from annotator.store.pictures.kinds import looks_like_image
from annotator.store.pictures.left_out import LeftOut
from annotator.store.pictures.leftovers import leftover_of

LABEL_SUFFIXES = frozenset(
    {".json", ".jsonl", ".csv", ".tsv", ".txt", ".xml", ".yaml", ".yml", ".parquet", ".npy", ".cls", ".md", ".ddb"}
)
LONGEST_PATH = 1000  # bytes
LONGEST_PART = 200  # bytes of one folder or file
RESERVE = 1 << 30  # bytes that stay free on the disk
SHOWN = 3
SETTLED_AT_ONCE = 1000
PART = ".part"
CHANGED = ".changed"  # images that take the place of others when the import is carried out
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_DRIVE = re.compile(r"^[A-Za-z]:")


class UnsafeNameError(Exception):
    """Raised for a name that leads out of its folder; the message says how."""


def is_wanted(name: str) -> bool:
    """Return whether a file is brought in: an image or, by its ending, possibly labels; nothing hidden, no leftover."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or leftover_of(name) or any(part.startswith(".") and part not in (".", "..") for part in parts):
        return False
    return looks_like_image(name) or Path(parts[-1]).suffix.lower() in LABEL_SUFFIXES


def safe_path(name: str) -> str:
    """Return the name of an entry as a path below a folder.

    Characters and lengths that file names cannot have, and names that Windows treats as a drive or a device, are
    replaced.

    Raises:
        UnsafeNameError: The name leads out of the folder.
    """
    slashed = name.replace("\\", "/")
    if slashed.startswith("/") or (_DRIVE.match(slashed) and slashed[2:3] == "/"):
        raise UnsafeNameError("its name is an absolute path")
    parts = [part for part in slashed.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise UnsafeNameError("its name leads out of the folder ('..')")
    path = "/".join(_safe_part(part) for part in parts)
    if not path or len(os.fsencode(path)) > LONGEST_PATH:
        raise UnsafeNameError(f"its name has {len(name):,} letters, which no path may have")
    return path


def _safe_part(part: str) -> str:
    part = _CONTROL.sub("_", part)
    if _DRIVE.match(part) or is_device(part):
        part = f"_{part.replace(':', '_')}"
    if len(part.encode()) <= LONGEST_PART:
        return part
    stem, dot, ending = part.rpartition(".")
    if not dot or len(ending) > 10:
        stem, ending = part, ""
    short = stem.encode()[: LONGEST_PART - 30].decode(errors="ignore")
    return f"{short}~{zlib.crc32(part.encode()):08x}{dot if ending else ''}{ending}"


class Landing:
    """The folder of one source while it is filled.

    Attributes:
        problems: Problems of the source; if there are any at the end, nothing of the source is registered.
    """

    def __init__(self, folder: Path, manifest: Manifest, address: str, progress: Progress | None):
        self.folder, self.manifest, self.address, self._progress = folder, manifest, address, progress
        self.problems = Problems()
        self.new = self.changed = self.known = self.fetched = self.bytes = self.passed_over = 0
        self.left_out = LeftOut()
        self.example = ""  # name of a skipped entry
        self.coming: dict[Path, int] = {}  # file that is being downloaded -> bytes downloaded so far
        self.renamed: dict[str, str] = {}  # name in the source -> path here, where the two differ
        self.new_names: list[str] = []
        self.new_names_count = 0
        self._free = shutil.disk_usage(folder).free - RESERVE

    def key_of(self, name: str) -> str:
        """Return the key of an entry: its name; a number is added if an entry of this pass already has that key."""
        key, number = name.encode("utf-8", "backslashreplace").decode(), 1
        first = key
        while self.manifest.is_met(key):
            number += 1
            key = f"{first}\0{number}"
        return key

    def register_entry(self, key: str, name: str, size: int, stamp: str) -> Entry | None:
        """Record that the source has this entry; return it if its file has to be fetched, else None.

        Raises UnsafeNameError. A size of -1: not known.
        """
        known = self.manifest.entry(key)
        named = PurePosixPath(name.replace("\\", "/")).as_posix()
        if known and known.path != named:
            self.renamed[named] = known.path
        if known and stamp == known.stamp != "" and size in (-1, known.bytes) and self._is_whole(known):
            self.known, self.changed = self.known + (known.state == THERE), self.changed + (known.state == ASIDE)
            self.manifest.keep(known)
            return None
        wanted = safe_path(name)
        path = known.path if known else self.manifest.free_path(key, wanted)
        (self.folder / CHANGED / path).unlink(missing_ok=True)
        if path != named:
            self.renamed[named] = path
            self.new_names_count += 1
            if len(self.new_names) < SHOWN:
                self.new_names.append(f"{name!a} is {path!a}")
        # A file without an entry, or with one that is still WANTED, was left by a kill and is no image of the project.
        replaces = known is not None and known.state != WANTED and os.path.lexists(self.folder / path)
        self.new, self.changed, self.fetched = self.new + (not replaces), self.changed + replaces, self.fetched + 1
        entry = Entry(key, path, size, stamp, AGAIN if replaces else WANTED)
        self.manifest.keep(entry)
        return entry

    def pass_over(self, name: str) -> None:
        """Count an entry that is skipped: a leftover, a picture that is not read, or neither an image nor labels."""
        if self.left_out.meet(name):
            return
        self.passed_over, self.example = self.passed_over + 1, self.example or name

    def write(self, entry: Entry, chunks: Iterable[bytes]) -> None:
        """Write the complete file of an entry. Raises DiskFull, and any error raised by `chunks`."""
        part, size = self.folder / PART, 0
        try:
            part.unlink(missing_ok=True)
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                for chunk in chunks:
                    size += len(chunk)
                    self.check_room(self.bytes + size)
                    file.write(chunk)
            self.landed(entry, part, size)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def landed(self, entry: Entry, part: Path, size: int) -> None:
        """Give a complete file the name of its entry, or a place in .changed/ if it would replace an image."""
        target, state = self.folder / entry.path, THERE
        if looks_like_image(entry.path) and entry.state == AGAIN:
            target, state = self.folder / CHANGED / entry.path, ASIDE
        target.parent.mkdir(parents=True, exist_ok=True)
        part.replace(target)
        self.bytes += size
        self.manifest.keep(entry._replace(bytes=size, state=state))

    def check_room(self, size: int) -> None:
        """Raise DiskFull if this number of bytes of the source does not fit on the disk."""
        if size > self._free:
            raise DiskFull(
                f"{self.address} needs more room than there is in {self.folder}: {max(self._free, 0):,} bytes are free "
                f"besides the {RESERVE:,} that are kept. Make room and give the same command again: it goes on."
            )

    def show(self, what: str, done: int, of: int = 0) -> None:
        """Report the progress. An exception raised by the callback ends the work."""
        if self._progress:
            self._progress(f"{what} ({size_in_words(self.bytes + sum(list(self.coming.values())))})", done, of)

    def sentences(self) -> list[str]:
        """Return sentences about the files of this pass: new, changed, unchanged, gone, renamed and skipped."""
        parts = [(self.new, "new"), (self.changed, "changed"), (self.known, "as before")]
        listed = ", ".join(f"{count:,} {word}" for count, word in parts if count) or "no file"
        where = f", {size_in_words(self.bytes)} written to" if self.bytes else " in"
        said = [f"{self.address}: {listed}{where} {self.folder}."]
        gone, paths = self.manifest.unseen_entries(SHOWN)
        if gone:
            examples = ", ".join(f"{path!a}" for path in paths)
            verb = "is" if gone == 1 else "are"
            said.append(f"{counted(gone, 'file')} {verb} gone from the source, and kept here: {examples}.")
        if self.new_names_count:
            said.append(f"{counted(self.new_names_count, 'file')} got another name: {', '.join(self.new_names)}.")
        if self.passed_over:
            said.append(f"{counted(self.passed_over, 'file')} passed over, neither images nor labels.")
        return [*said, *self.left_out.said()]

    def finish(self) -> None:
        """Commit the manifest. Raises AnnotatorError with all problems of the source."""
        self.manifest.commit()
        if self.problems.count:
            raise self.problems.error(f"{self.address} cannot be imported, and nothing of it was registered:")

    def _is_whole(self, entry: Entry) -> bool:
        if entry.is_wanted:
            return False
        try:
            return (self.folder / (CHANGED if entry.state == ASIDE else "") / entry.path).lstat().st_size == entry.bytes
        except OSError:
            return False


def size_in_words(size: int) -> str:
    """Return a number of bytes with the unit that fits, such as "1.5 MB"."""
    number, units = float(size), ["bytes", "kB", "MB", "GB"]
    while number >= 1000 and len(units) > 1:
        number, units = number / 1000, units[1:]
    return f"{number:,.0f} {units[0]}" if units[0] == "bytes" else f"{number:,.1f} {units[0]}"


def room(project: Path, address: str, name: str) -> Path:
    """Return the folder for this archive or address; it is made if it does not exist."""
    base = project.resolve() / IMPORTED
    address = _kept_address(project, address)
    name = safe_name(name).lstrip(".~") or "images"
    number = 1
    while True:
        folder = base / (name if number == 1 else f"{name}~{number}")
        if not folder.exists():
            _make(project, folder)
            break
        if (folder / MANIFEST).exists():
            with opened(folder) as manifest:
                if manifest.fact("address") in ("", address):
                    break
        elif not any(folder.iterdir()):
            break
        number += 1
    return folder


def _kept_address(project: Path, address: str) -> str:
    """Return the address as the manifest stores it: relative for a path in imported/, as the project may be moved."""
    inside = project.resolve() / IMPORTED
    return Path(address).relative_to(project.resolve()).as_posix() if Path(address).is_relative_to(inside) else address


def _make(project: Path, folder: Path) -> None:
    try:
        project.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise AnnotatorError(f"The folder {folder} cannot be made: {error.strerror or error}.") from error


@contextmanager
def landing(project: Path, address: str, name: str, progress: Progress | None) -> Generator[Landing]:
    """Yield the folder of a source for one pass over the source. The error for an interruption says how to resume.

    Raises:
        AnnotatorError: The source has problems (lists all); AlreadyRunning, if another pass uses the folder.
    """
    folder = room(project, address, name)
    try:
        with opened(folder) as manifest:
            manifest.keep_fact("address", _kept_address(project, address))
            manifest.begin_pass()
            place = Landing(folder, manifest, address, progress)
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
        _remove_empty(project, folder)


def forget(project: Path, address: str, known: Collection[Path]) -> None:
    """Remove the unpacked files of an archive that does not exist any more, unless images of it are registered.

    Args:
        project: The project folder.
        address: The address of the archive.
        known: The folders of registered images.
    """
    for manifest_path in (project.resolve() / IMPORTED).glob(f"*/{MANIFEST}"):
        folder = manifest_path.parent
        with opened(folder) as manifest:
            is_of_it = manifest.fact("address") == address
        if is_of_it and not any(path == folder or path.is_relative_to(folder) for path in known):
            shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        (project / IMPORTED).rmdir()


def _remove_empty(project: Path, folder: Path) -> None:
    """Remove a folder that received no file, and the parent folders that are then empty."""
    if not any(entry.name not in OWN for entry in folder.iterdir()):
        for name in OWN:
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # raised if a folder holds other things
            for place in (folder, folder.parent, project):
                place.rmdir()


def fetched(place: Landing, labels: Iterable[Path] = (), said: Iterable[str] = ()) -> Fetched:
    """Return the fetched files; labels are looked for in the paths `labels`, then in the folder itself.

    Raises AnnotatorError if the source has neither an image nor a file of labels.
    """
    if not place.manifest.counts()[0]:
        others = f" ({counted(place.passed_over, 'other')}, such as {place.example!a})" if place.passed_over else ""
        raise several(f"There is no image and no file of labels in {place.address}{others}.", place.left_out.said())
    root = _root(place)
    place.manifest.commit()
    changed = place.manifest.aside_count()
    inside = root.relative_to(place.folder).as_posix()
    within = "" if inside == "." else f"{inside}/"
    renamed = {name.removeprefix(within): path[len(within) :] for name, path in place.renamed.items()
               if path.startswith(within)}  # fmt: skip
    return Fetched([(root, None)], [*labels, root], [*said, *place.sentences()], None, [place.folder], changed, renamed)


def settle(folder: Path) -> None:
    """Move changed images from .changed/ to their places. Safe to repeat or kill. Raises AlreadyRunning, OSError."""
    with opened(folder) as manifest:
        while entries := manifest.aside(SETTLED_AT_ONCE):
            for entry in entries:
                with suppress(FileNotFoundError):  # moved already, before a kill
                    (folder / CHANGED / entry.path).replace(folder / entry.path)
            manifest.put_in_place(entries)
    shutil.rmtree(folder / CHANGED, ignore_errors=True)


def _root(place: Landing) -> Path:
    """Return the innermost folder that holds everything. It is recorded, so that a later pass uses the same folder."""
    kept = place.manifest.fact("root")
    if kept:
        return place.folder / kept
    root = place.folder
    while True:
        visible = [entry for entry in root.iterdir() if not entry.name.startswith(".")]
        if len(visible) != 1 or not visible[0].is_dir() or visible[0].is_symlink():
            break
        root = visible[0]
    place.manifest.keep_fact("root", root.relative_to(place.folder).as_posix())
    return root


def path_of(folder: Path, root: Path) -> Callable[[str], str]:
    """Return a function from an entry's key to its file's path below `root`, or ""; for use after the landing."""
    manifest: list[Manifest] = []

    def path(key: str) -> str:
        if not manifest:
            manifest.append(Manifest(folder))
        entry = manifest[0].entry(key)
        inside = entry and not entry.is_wanted and (folder / entry.path).is_relative_to(root)
        return (folder / entry.path).relative_to(root).as_posix() if entry and inside else ""

    return path
