"""What a disk holds after a power cut, worked out from a recording of everything that processes wrote.

The disk of this model promises as little as a real one may: what was written and not synced is lost or there, piece by
piece (512 bytes) and in any order; a file's name is there once its folder was synced, and names of one folder change in
their order. strace records; nothing is mocked. Not modelled: a disk that lies about fsync, writes through mmap (of
SQLite only the -shm file, which need not survive), and links.
"""

import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CALLS = (
    "openat,creat,write,pwrite64,writev,pwritev,lseek,ftruncate,truncate,fallocate,fsync,fdatasync,rename,renameat,"
    "renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,copy_file_range,sendfile"
)
SECTOR = 512
LONGEST = 1 << 22  # bytes of one write
IGNORED = (".log", ".lock", "-shm")
STARTED = re.compile(r"(\d+) +(?:(\w+)\((.*?)|<\.\.\. (\w+) resumed>(.*?))( <unfinished \.\.\.>)?$")
END = re.compile(r"\)\s+= ")
PART = re.compile(r'(\d+|AT_FDCWD)<((?:\\x..)*)>(\(deleted\))?|"((?:\\x..)*)"(\.\.\.)?|([A-Z0-9_|]+|-?\d+)')


@dataclass
class File:
    """kept: what is on the disk for certain; pending: (offset, bytes), or (length, None) for a cut, not yet synced."""

    kept: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def after(self, pending: list[tuple[int, bytes | None]]) -> bytearray:
        content = bytearray(self.kept)
        for offset, data in pending:
            if data is None:
                del content[offset:]
                content.extend(bytes(max(0, offset - len(content))))
            else:
                content.extend(bytes(max(0, offset + len(data) - len(content))))
                content[offset : offset + len(data)] = data
        return content


@dataclass
class Folder:
    """The same of names: pending holds steps, each of them {name: File or Folder, or None where it goes}."""

    kept: dict[str, "File | Folder"] = field(default_factory=dict)
    pending: list[dict[str, "File | Folder | None"]] = field(default_factory=list)

    def after(self, pending: list[dict[str, "File | Folder | None"]]) -> dict[str, "File | Folder"]:
        names = dict(self.kept)
        for step in pending:
            names |= step
        return {name: file for name, file in names.items() if file is not None}


class Disk:
    """A folder as it was when recording began, and what has happened to it since."""

    def __init__(self, root: Path):
        self.root, self._open = root, {}
        self.folders = {str(place): Folder() for place in [root, *root.rglob("*")] if place.is_dir()}
        self._top = self.folders[str(root)]
        for place in root.rglob("*"):
            known = self.folders.get(str(place)) or File(bytearray(place.read_bytes()))
            self.folders[str(place.parent)].kept[place.name] = known

    def file(self, path: str) -> File | Folder | None:
        folder, _, name = path.rpartition("/")
        return self.folders[folder].after(self.folders[folder].pending).get(name) if folder in self.folders else None

    def set(self, *changes: tuple[str, File | Folder | None]) -> None:
        """Names that appear or go in one step."""
        folders = {path.rpartition("/")[0] for path, _ in changes}
        assert len(folders) == 1, f"not modelled: one step in several folders {changes}"
        self.folders[folders.pop()].pending.append({path.rpartition("/")[2]: file for path, file in changes})

    def move(self, one: str, other: str, exchange: bool) -> None:
        """A file or folder gets another name; of two folders each change is on the disk once its folder was synced."""
        mine, theirs = self.file(one), self.file(other)
        changes = [(other, mine), (one, theirs if exchange else None)]
        if one.rpartition("/")[0] == other.rpartition("/")[0]:
            self.set(*changes)
        else:
            for change in changes:
                self.set(change)
        moved = {
            path: folder for path, folder in self.folders.items() if f"{path}/".startswith((f"{one}/", f"{other}/"))
        }
        for path in moved:
            del self.folders[path]
        for path, folder in moved.items():
            if f"{path}/".startswith(f"{one}/"):
                self.folders[other + path[len(one) :]] = folder
            elif exchange:
                self.folders[one + path[len(other) :]] = folder

    def sync(self, path: str, seen: int) -> None:
        """The first `seen` pending changes of a file or folder are on the disk from now on."""
        found = self.folders.get(path) or self.file(path)
        if found is not None:
            seen = min(seen, len(found.pending))
            found.kept, found.pending = found.after(found.pending[:seen]), found.pending[seen:]

    def pending(self, path: str) -> int:
        found = self.folders.get(path) or self.file(path)
        return len(found.pending) if found is not None else 0

    def write(self, target: Path, chance: random.Random | None) -> None:
        """What is there after a power cut now. chance: draws what of the rest arrived; None: nothing of it."""
        self._write(self._top, target, chance)

    def _write(self, folder: Folder, target: Path, chance: random.Random | None) -> None:
        target.mkdir()
        steps = folder.pending[: chance.randint(0, len(folder.pending))] if chance else []
        for name, file in folder.after(steps).items():
            if isinstance(file, Folder):
                self._write(file, target / name, chance)
            else:
                (target / name).write_bytes(file.after(list(_arrived(file.pending, chance)) if chance else []))


def _arrived(pending: list[tuple[int, bytes | None]], chance: random.Random) -> Iterator[tuple[int, bytes | None]]:
    share = chance.choice([0.1, 0.5, 0.9, 1.0])
    for offset, data in pending:
        if data is None:
            if chance.random() < share:
                yield offset, None
            continue
        for start in range(0, len(data), SECTOR):
            if chance.random() < share:
                yield offset + start, data[start : start + SECTOR]


@dataclass
class Call:
    """One call. number: the descriptor, path: what is behind it; texts, words: the other arguments, as they stand."""

    name: str
    number: int
    path: str
    texts: list[bytes]
    words: list[str]
    result: int


def record(words: list[str], trace: Path, **options) -> None:
    """Run a command, and all that it starts, and write down what they write."""
    command = [
        "strace",
        "-f",
        "--seccomp-bpf",
        "-y",
        "-xx",
        "-s",
        str(LONGEST),
        "-e",
        f"trace={CALLS}",
        "-o",
        str(trace),
    ]
    subprocess.run([*command, *words], check=True, **options)


def replay(trace: Path, root: Path, disk: Disk) -> Iterator[tuple[str, str, bytes]]:
    """Do to the disk what was recorded. After every step that touched it: (name of the call, path, text); also for a
    write to a file beside the root, which is how a recording says what it knows."""
    under = f"{root}/"
    half: dict[str, tuple[str, str, int]] = {}  # of a thread: call, its beginning, what was pending when it began
    with trace.open() as lines:
        for line in lines:
            found = STARTED.match(line.rstrip("\n"))
            if not found:
                continue
            thread, name, rest, resumed, end, unfinished = found.groups()
            if unfinished:
                call = _parsed(name, rest)
                half[thread] = (name, rest, disk.pending(call.path) if call.name in ("fsync", "fdatasync") else 0)
                continue
            seen = None
            if resumed:
                name, begun, seen = half.pop(thread)
                rest = begun + end
            call = _parsed(name, rest)
            if call.result < 0:
                continue
            if not any(path.startswith(under) or path == str(root) for path in _paths(call)):
                if name == "write" and call.path.startswith(str(root.parent)):
                    yield name, call.path, call.texts[0]
                continue
            if not any(path.endswith(IGNORED) for path in _paths(call)):
                _apply(disk, call, disk.pending(call.path) if seen is None else seen)
                yield name, _paths(call)[0], b""


def cut_power(recording: Path, folder: Path, share: float) -> Iterator[tuple[Path, list[str], str]]:
    """Cut the power after each line of marks and after this share of the syncs of a recording.

    recording    has `before`, the disk at first; `disk`, where it was; `trace`; and `marks`, written meanwhile

    Yields what the disk then holds, which is deleted afterwards, the marks until then, and how much else arrived.
    """
    disk = Disk(recording / "before")
    disk.root = recording / "disk"
    disk.folders = {str(disk.root) + path[len(str(recording / "before")) :]: one for path, one in disk.folders.items()}
    chance, marks, cuts = random.Random(0), [], 0
    for name, path, text in replay(recording / "trace", disk.root, disk):
        if path == str(recording / "marks"):
            marks += text.decode().splitlines()
        elif name not in ("fsync", "fdatasync") or chance.random() > share:
            continue
        for drawn in (None, chance):
            cuts += 1
            place = folder / str(cuts)
            disk.write(place, drawn)
            yield place, marks, "a part arrived" if drawn else "nothing arrived"
            shutil.rmtree(place)


def _paths(call: Call) -> list[str]:
    if call.name in ("rename", "renameat", "renameat2", "unlink", "mkdir", "rmdir", "openat", "unlinkat", "mkdirat"):
        texts = [text.decode() for text in call.texts]
        return [text if text.startswith("/") else f"{call.path}/{text}" for text in texts]
    return [call.path]


def _apply(disk: Disk, call: Call, seen: int) -> None:
    name, paths = call.name, _paths(call)
    file = disk.file(paths[0])
    if name == "openat":
        flags = call.words
        if file is None and "O_CREAT" in flags:
            file = File()
            disk.set((paths[0], file))
        elif isinstance(file, File) and "O_TRUNC" in flags:
            file.pending.append((0, None))
        if isinstance(file, File):
            disk._open[id(file), call.result] = len(file.after(file.pending)) if "O_APPEND" in flags else 0
    elif name in ("write", "pwrite64"):
        data = call.texts[0]
        assert len(data) >= call.result, f"{paths[0]}: a write of {call.result} bytes was cut off in the recording"
        place = int(call.words[-1]) if name == "pwrite64" else disk._open.get((id(file), call.number), 0)
        if file is not None:
            file.pending.append((place, data[: call.result]))
            if name == "write":
                disk._open[id(file), call.number] = place + call.result
    elif name == "lseek":
        disk._open[id(file), call.number] = call.result
    elif name == "ftruncate" and file is not None:
        file.pending.append((int(call.words[-1]), None))
    elif name in ("fsync", "fdatasync"):
        disk.sync(paths[0], seen)
    elif name in ("rename", "renameat", "renameat2"):
        assert file is not None, paths
        disk.move(paths[0], paths[1], "RENAME_EXCHANGE" in call.words)
    elif name in ("unlink", "unlinkat", "rmdir"):
        disk.set((paths[0], None))
        disk.folders.pop(paths[0], None)
    elif name in ("mkdir", "mkdirat"):
        disk.folders[paths[0]] = Folder()
        disk.set((paths[0], disk.folders[paths[0]]))
    elif file is not None:
        raise AssertionError(f"not modelled: {name} of {paths[0]}")


def _parsed(name: str, rest: str) -> Call:
    inner, *ended = END.split(rest)
    result = ended[0] if ended else "0"
    number, path, texts, words = -1, "", [], []
    for place in PART.finditer(inner):
        descriptor, behind, deleted, text, cut, word = place.groups()
        if behind is not None and not path and not texts:
            number = -1 if descriptor == "AT_FDCWD" else int(descriptor)
            path = "" if deleted else _bytes(behind).decode(errors="replace")
        elif text is not None:
            assert not cut, f"{name}: longer than was recorded"
            texts.append(_bytes(text))
        elif word is not None:
            words += word.split("|")
    value = result.split()[0].split("<")[0] if result.split() else "0"
    return Call(name, number, path, texts, words, int(value, 0) if value not in ("?",) else -1)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))
