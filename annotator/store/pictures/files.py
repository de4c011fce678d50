"""Search for image files in folders, and checked access to registered files.

Links are followed only inside the folder. Non-UTF-8 paths are stored escaped.
"""

import errno
import hashlib
import io
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from annotator.errors import AnnotatorError
from annotator.records import BadFile
from annotator.store.disk.open_files import open_file, read_file
from annotator.store.pictures.bands import NO_BAND_CHOICES, BandChoices
from annotator.store.pictures.decoding import MAX_BYTES_READ_WHOLE, BadImage, ImageFacts, check_image
from annotator.store.pictures.leftovers import find_leftover_part, is_leftover_folder
from annotator.store.pictures.picture_kinds import IMAGE_SUFFIXES, get_advice, looks_like_image
from annotator.store.pictures.skipped_files import SkippedFiles

GONE_PROBLEM = "no file with this picture is there any more"  # the kind of problem of an image whose files were deleted
FILES_PER_LOOKUP = 1000  # files looked up at a time
# files that a thread takes at a time; and how often that much may be read ahead, a thread
FILES_PER_TASK, TASKS_AHEAD_PER_THREAD = (16, 64)
MAX_SQLITE_INTEGER = 2**63 - 1  # that SQLite holds; some file systems allow times beyond the year 2262


class FileState(NamedTuple):
    """File metadata that detects changes without reading."""

    bytes: int = 0
    modified_ns: int = 0
    # inode and change time, as a replacement can keep the others. "" from older versions
    stamp: str = ""


UNREAD_STATE = FileState()


class KnownFile(NamedTuple):
    """The stored state of a registered path (sha256 "" for a rejected file)."""

    state: FileState
    sha256: str = ""


@dataclass(frozen=True)
class FoundFile:
    """The result of inspecting one file of a folder: a valid image, or the reason for its rejection."""

    # below the folder, escaped
    path: str
    state: FileState = UNREAD_STATE
    sha256: str = ""
    # image metadata. None if the file is already registered, or only hashed
    facts: ImageFacts | None = None
    # kind of problem, optionally ": " and details
    reason: str = ""


@dataclass(frozen=True)
class FolderListing:
    """The files below a folder."""

    # escaped and sorted, without hidden files and leftovers
    paths: list[str]
    # unreadable folders, and links that lead outside the folder
    kept_out: list[BadFile]
    # counts of files skipped by name
    left_out: SkippedFiles = field(default_factory=SkippedFiles)

    def list_images(self) -> list[str]:
        """Return the paths with image suffixes."""
        return [path for path in self.paths if looks_like_image(path)]


def escape_path(name: str) -> str:
    r"""Return a file name as stored, with non-UTF-8 bytes as \xe9.

    Ambiguous backslashes become \x5c for exact inversion.
    """
    plain = _ESCAPE_PATTERN.sub(lambda match: f"\\x5c{match[0][1:]}", name)
    return plain.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def unescape_path(path: str) -> str:
    """Return the file name behind an escaped path."""
    return _ESCAPE_PATTERN.sub(lambda match: os.fsdecode(bytes([int(match[1], 16)])), path)


_ESCAPE_PATTERN = re.compile(r"\\x(5c|[89a-f][0-9a-f])")


def list_files(folder: Path, leave_out: Path, known: Collection[str] = ()) -> FolderListing:
    """Return all files below a folder, without `leave_out`, projects, hidden files and leftovers.

    Args:
        known: Registered files, escaped, always listed.

    Raises:
        AnnotatorError: The folder is missing or unreadable.
    """
    _check_folder(folder)
    inside, left_out = os.path.realpath(folder), os.path.realpath(leave_out)
    paths: list[str] = []
    kept_out: list[BadFile] = []
    counts = SkippedFiles()
    kept = {path for path in known if find_leftover_part(path)}
    waiting = [""]
    while waiting:
        subfolder = waiting.pop()
        try:
            entries = _list_entries(folder / subfolder)
        except OSError as error:
            kept_out.append(BadFile(f"{escape_path(subfolder)}/", _explain_unlisted(folder / subfolder, error)))
            continue
        for entry in entries:
            path = f"{subfolder}/{entry.name}" if subfolder else entry.name
            if is_leftover_folder(entry.name) and _is_folder(entry):
                count = _count_files(entry)
                below = [name for name in kept if name.startswith(f"{escape_path(path)}/")]
                counts.add_leftovers(entry.name, count - sum(_exists(folder / unescape_path(name)) for name in below))
                continue
            if find_leftover_part(entry.name):
                counts.add_leftovers(find_leftover_part(entry.name), int(escape_path(path) not in kept))
                continue
            if entry.name.startswith("."):
                continue
            if not _is_folder(entry):
                counts.count_if_skipped(path)
                paths.append(escape_path(path))
            elif not entry.is_symlink():
                if os.path.realpath(entry.path) != left_out and not _exists(Path(entry.path, "project.db")):
                    waiting.append(path)
            # A link to a folder inside is passed over: its files are found where they lie.
            elif not _is_below(target := os.path.realpath(entry.path), inside):
                reason = f"a link to a folder outside of the image folder: to {escape_path(target)}"
                kept_out.append(BadFile(f"{escape_path(path)}/", reason))
    paths += [path for path in kept if _exists(folder / unescape_path(path))]
    return FolderListing(sorted(paths), sorted(kept_out, key=lambda file: file.path), counts)


def inspect_files(
    folder: Path,
    paths: Sequence[str],
    known: Callable[[Sequence[str]], Mapping[str, KnownFile]],
    threads: int | None = None,
    bands: BandChoices = NO_BAND_CHOICES,
) -> Iterator[tuple[str, FoundFile | None]]:
    """Read files in parallel and yield (path, FoundFile) in order, with None for unchanged files.

    Args:
        paths: Escaped.
        known: Returns the stored state of registered paths, called with FILES_PER_LOOKUP paths at a time.
        threads: None selects the number of processors.
    """
    inside, count = os.path.realpath(folder), threads or os.cpu_count() or 2

    def inspect_some(some: Sequence[str], known_of: Mapping[str, KnownFile]) -> list[tuple[str, FoundFile | None]]:
        below: dict[str, str] = {}
        return [(path, _inspect_file(str(folder), inside, path, known_of.get(path), below, bands)) for path in some]

    pool = ThreadPoolExecutor(count)
    ahead: deque[Future[list[tuple[str, FoundFile | None]]]] = deque()
    try:
        for start in range(0, len(paths), FILES_PER_LOOKUP):
            some = paths[start : start + FILES_PER_LOOKUP]
            known_of = known(some)
            for first in range(0, len(some), FILES_PER_TASK):
                ahead.append(pool.submit(inspect_some, some[first : first + FILES_PER_TASK], known_of))
                if (
                    len(ahead) > TASKS_AHEAD_PER_THREAD * count
                ):  # futures of ten million files would not fit into memory
                    yield from ahead.popleft().result()
        while ahead:
            yield from ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)  # a caller that stops early does not wait for the other files


def open_checked(folder: Path, path: str, recorded: FileState, sha256: str) -> tuple[Path, FileState]:
    """Return the real path and state of a registered file, checking its content if changed.

    Args:
        path: Relative, escaped.

    Raises:
        AnnotatorError: The file is missing, outside its folder, or changed.
    """
    place = folder / unescape_path(path)
    shown = escape_path(str(place))
    try:
        real = Path(os.path.realpath(place, strict=True))
        facts = real.stat()
        if not _is_below(real, os.path.realpath(folder)):
            raise AnnotatorError(
                f"its file is a link out of the image folder now: {shown} leads to {escape_path(str(real))} and is not "
                "opened."
            )
        # Before it is opened: reading a named pipe would block for ever.
        if not stat.S_ISREG(facts.st_mode):
            raise AnnotatorError(f"its file is not a file any more: {shown} is {_describe_file_type(facts.st_mode)}.")
        state = _to_file_state(facts)
        if state != recorded and compute_sha256(real) != sha256:
            raise AnnotatorError(
                f"its file holds another picture now: {shown} has changed since it was registered. Its decisions "
                "belong to the old content; run annotator init again to add the new content as a new image."
            )
    except (FileNotFoundError, NotADirectoryError) as error:
        raise AnnotatorError(
            f"{GONE_PROBLEM}: {shown} cannot be opened ({error.strerror}). If it was moved, run annotator init again "
            "with the folder where it is now: images are known by their content."
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AnnotatorError(
            f"its file cannot be opened ({reason}): {shown}. Check its rights and its disk."
        ) from error
    return real, state


def path_exists(folder: str, path: str) -> bool:
    """Return whether an escaped path or its link target exists."""
    return _has_access(Path(unescape_path(folder), unescape_path(path)), os.F_OK)


def read_file_state(folder: Path, path: str) -> FileState | None:
    try:
        return _to_file_state((folder / unescape_path(path)).stat())
    except (OSError, ValueError):
        return None


def compute_sha256(path: str | Path) -> str:
    """Return a file's hex sha256. Raises OSError."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _inspect_file(
    folder: str, inside: str, path: str, known: KnownFile | None, below: dict[str, str], bands: BandChoices
) -> FoundFile | None:
    state = UNREAD_STATE
    try:
        real, facts = _resolve_file(folder, unescape_path(path), below)
        state = _to_file_state(facts)
        if known and known.state == state:
            return None
        if not _is_below(real, inside):
            reason = f"a link that leads out of the image folder: to {escape_path(real)}"
            return FoundFile(path, state, reason=reason)
        if not stat.S_ISREG(facts.st_mode):
            return FoundFile(path, state, reason=f"not a file: {_describe_file_type(facts.st_mode)}")
        if advice := get_advice(path):
            return FoundFile(path, state, reason=f"not an image file: {advice}")
        if not looks_like_image(path):
            ending = Path(path).suffix or "no ending"
            suffixes = ", ".join(sorted(IMAGE_SUFFIXES))
            return FoundFile(path, state, reason=f"not an image file: {ending} is none of {suffixes}")
        sha256, source = _read_content(real)
        if known and known.sha256 == sha256:
            return FoundFile(path, state, sha256)
        return FoundFile(path, state, sha256, check_image(source, bands))
    except BadImage as error:
        return FoundFile(path, state, reason=str(error))
    except OSError as error:
        return FoundFile(path, state, reason=f"cannot be read ({error.strerror or error})")


def _resolve_file(folder: str, path: str, below: dict[str, str]) -> tuple[str, os.stat_result]:
    subfolder, _, name = path.rpartition("/")
    if subfolder not in below:
        below[subfolder] = os.path.realpath(f"{folder}/{subfolder}", strict=True)
    real = f"{below[subfolder]}{os.sep}{name}"
    facts = os.lstat(real)
    if not stat.S_ISLNK(facts.st_mode):
        return real, facts
    real = os.path.realpath(real, strict=True)
    return real, os.stat(real)  # noqa: PTH116 - as above, quicker than a Path


def _read_content(path: str) -> tuple[str, Path | io.BytesIO]:
    """Return a file's sha256 and its bytes (the path instead of bytes for empty and large files)."""
    content = read_file(path, MAX_BYTES_READ_WHOLE)
    return (hashlib.sha256(content).hexdigest(), io.BytesIO(content)) if content else (compute_sha256(path), Path(path))


def _to_file_state(facts: os.stat_result) -> FileState:
    modified = max(-MAX_SQLITE_INTEGER, min(facts.st_mtime_ns, MAX_SQLITE_INTEGER))
    return FileState(facts.st_size, modified, f"{facts.st_ino}:{facts.st_ctime_ns}")


def _describe_file_type(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _check_folder(folder: Path) -> None:
    try:
        mode = folder.stat().st_mode
    except FileNotFoundError:
        raise AnnotatorError(f"There is no folder {folder}. Is the path spelled right, and the disk mounted?") from None
    except (OSError, ValueError) as error:
        raise AnnotatorError(f"The folder {folder} cannot be read: {error}. Check its rights.") from error
    if not stat.S_ISDIR(mode):
        raise AnnotatorError(f"{folder} is a file; a folder of images is wanted. Try: {folder.parent}")
    if not _has_access(folder, os.R_OK | os.X_OK):
        raise AnnotatorError(f"The folder {folder} may not be read. Check its rights.")


def _list_entries(place: Path) -> list[os.DirEntry[str]]:
    if not _has_access(place, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    with os.scandir(place) as entries:
        return list(entries)


def _count_files(folder: os.DirEntry[str]) -> int:
    return 0 if folder.is_symlink() else sum(len(names) for _, _, names in os.walk(folder.path))


def _explain_unlisted(place: Path, error: OSError) -> str:
    enter, read = _has_access(place, os.X_OK), _has_access(place, os.R_OK)
    if enter and not read:
        return "a folder that may be entered but not listed"
    if read and not enter:
        return "a folder that may be listed but not entered"
    return f"a folder that cannot be read ({error.strerror or error})"


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # such as a loop of links: reading it as a file reports the reason
        return False


def _has_access(place: Path, mode: int) -> bool:
    return os.access(place, mode, effective_ids=os.access in os.supports_effective_ids)


def _exists(place: Path) -> bool:
    return os.path.lexists(place)


def _is_below(real: str | Path, folder: str) -> bool:
    return str(real).startswith(os.path.join(folder, ""))  # noqa: PTH118 - of every file of a folder
