"""WebDataset: tar shards in which a sample's files share a name up to the first dot.

Format: https://github.com/webdataset/webdataset. Samples are written as picture and .json. Their names are numbers,
because a dot would end a sample's name. The reader supports .json with lists of states or present classes, and .cls. It
unpacks nothing.
"""

import io
import re
import struct
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

import msgspec

from annotator.errors import AnnotatorError
from annotator.exchange.files.image_addresses import IMAGE_ENDINGS
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import read_lines
from annotator.exchange.formats.contents import Contents, Item
from annotator.exchange.formats.export_view import Output, View
from annotator.exchange.formats.format import Format, FormatLosses
from annotator.exchange.formats.shared.embedded_extras import (
    EXTRAS_KEY,
    Extras,
    Origins,
    build_extras,
    iter_image_labels,
    to_imported_labels,
)
from annotator.exchange.formats.shared.split_names import make_split_names
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.disk.open_files import open_file

SINGLE_SPLIT, UNASSIGNED_SPLIT = "data", "unsplit"  # the shards of a set without splits, and of images that are in none
CLASSES_FILE = "classes.txt"
MEMBER_TIME = 315_532_800  # time of all members, unix seconds (1980): equal labels then make equal shards
MAX_SHARD_BYTES = 500_000_000
MAX_SHARD_IMAGES = 10_000
MAX_LABEL_BYTES = 16 << 20  # bytes of a .json or .cls
MAX_HEADER_BYTES = 1 << 20  # bytes of a long name or of other facts about a member
_LABEL_FIELDS = ("label", "labels", "class", "classes", "tag", "tags", "category", "categories")
_SHARD_NAME = re.compile(r"^(.+?)[-_]\d+$")
_HEADER_TYPES = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


class Sample(msgspec.Struct, rename={"extras": EXTRAS_KEY}):
    """The content of a sample's .json file."""

    image: Any = None
    present: Any = None
    absent: Any = None
    unsure: Any = None
    extras: Extras | None = None


class UnreadMemberError(tarfile.ReadError):
    """The error of a tar member that is not supported, with advice."""


class Member(tarfile.TarInfo):
    """A member of a tar file that rejects invalid or oversized headers and sparse files."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Any:
        """Return the next member. Raises tarfile.ReadError for invalid headers."""
        try:
            return super().fromtarfile(archive)
        except (ValueError, LookupError, TypeError, OverflowError, struct.error) as error:
            raise tarfile.ReadError(f"a header that cannot be read ({error})") from error

    def _proc_member(self, archive: tarfile.TarFile) -> Any:
        if self.type in _HEADER_TYPES and self.size > MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        if self.type == tarfile.GNUTYPE_SPARSE:
            self._refuse_sparse()
        return super()._proc_member(archive)  # type: ignore[misc]  # private, but what tarfile calls for each

    def _refuse_sparse(self, *_: Any) -> None:
        raise UnreadMemberError(
            f"{self.name!a} is a sparse file, which states zeros instead of holding them. Pack the archive again "
            "without --sparse"
        )

    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse_sparse


def recognize_shards(path: Path) -> str | None:
    try:
        for shard in _list_shards(path)[:1]:
            with tarfile.open(shard, "r:", tarinfo=Member) as archive:
                found = [member.name for _ in range(4) if (member := archive.next())]
            if (keys := [_split_member_name(name) for name in found]) and any(
                ending in ("json", "cls") and key == keys[0][0] for key, ending in keys
            ):
                return f"WebDataset: the samples of {shard.name} have .json or .cls"
    except (OSError, tarfile.TarError, ValueError, OverflowError):
        pass
    return None


def _list_shards(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.glob("*.tar") if file.is_file())
    return [path] if path.suffix == ".tar" and path.is_file() else []


def _split_member_name(name: str) -> tuple[str, str]:
    folder, _, file = name.rpartition("/")
    stem, _, ending = file.partition(".")
    return (f"{folder}/{stem}" if folder else stem), ending.lower()


class _SampleFiles(NamedTuple):
    """The picture name of a sample, and the bytes of its labels."""

    picture: str = ""
    json: bytes | None = None
    cls: bytes | None = None


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the samples of all shards as items. Raises AnnotatorError for invalid or truncated tars."""
    shards = _list_shards(path)
    if not shards:
        raise AnnotatorError(f"{path} holds no .tar, which the shards of WebDataset are.")
    beside = shards[0].parent / CLASSES_FILE
    names = [line.rstrip("\r\n") for line in read_lines(beside)] if beside.is_file() else []
    said = ["Classes in a sample's .json or .cls are present, those of its lists absent and unsure are what they say."]
    if not names:
        said.append(f"There is no {CLASSES_FILE}: a number in a .cls is the name of its class.")
    items = (item for shard in shards for item in _read_items(shard, names, problems))
    return Contents([(name, "") for name in names if name], items, place="sample", sentences=said)


def _read_items(shard: Path, names: list[str], problems: Problems) -> Iterator[Item]:
    split = match[1] if (match := _SHARD_NAME.match(shard.stem)) else ""
    decoder = msgspec.json.Decoder(Sample)
    for key, files in _read_samples(shard, problems):
        place = f"{shard.name}/{files.picture or key}"
        try:
            sample = decoder.decode(files.json) if files.json is not None else Sample()
            origins = _collect_origins(sample, files, names)
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:
            problems.add(f"{place}: {error}")
            continue
        kept = sample.extras
        named = sample.image if isinstance(sample.image, str) else ""
        yield Item(
            (kept.image if kept else "") or named or files.picture or key,
            place,
            to_imported_labels(origins),
            scores=kept.probabilities if kept else {},
            sha256=kept.sha256 if kept else "",
            attributes=kept.list_attributes() if kept else {"split": split} if split else {},
            remarks=kept.list_remarks() if kept else (),
            answered=bool(origins) if kept else files.json is not None or files.cls is not None,
        )


def _collect_origins(sample: Sample, files: _SampleFiles, names: list[str]) -> Origins:
    lists: list[tuple[str, Any, int]] = [
        ("present", sample.present, PRESENT),
        ("absent", sample.absent, ABSENT),
        ("unsure", sample.unsure, UNSURE),
    ]
    if files.json is not None and sample.present is None:
        fields = msgspec.json.decode(files.json, type=dict[str, Any])
        lists += [(field, fields[field], PRESENT) for field in _LABEL_FIELDS if field in fields]
    if files.cls is not None:
        text = files.cls.decode().strip()
        lists.append(("cls", int(text) if text.isdecimal() and len(text) < 10 else text, PRESENT))
    written = sample.extras.list_origins() if sample.extras else {}
    origins: Origins = {}
    for field, value, state in lists:
        for name in value if isinstance(value, list) else [] if value is None else [value]:
            cell = _find_class_name(name, names, field), state
            origins[cell] = written.get(cell, ("", None, ""))
    return origins


def _find_class_name(name: Any, names: list[str], field: str) -> str:
    if isinstance(name, int) and not isinstance(name, bool) and name >= 0:
        if names and name >= len(names):
            raise ValueError(f"{field} has the class {name}, but {CLASSES_FILE} has only {len(names)}")
        return names[name] if names else str(name)
    if isinstance(name, str) and name:
        return name
    raise ValueError(f"{field} has {name!r}, which is neither the name nor the number of a class")


def _read_samples(shard: Path, problems: Problems) -> Iterator[tuple[str, _SampleFiles]]:
    key, found = "", _SampleFiles()
    try:
        with open_file(shard) as file, tarfile.open(fileobj=file, mode="r:", tarinfo=Member) as archive:
            while (member := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # tarfile keeps all that it has seen
                if member.isdir():
                    continue
                if not member.isreg() or _leads_out(member.name):
                    what = "leads out of the shard" if member.isreg() else "is a link or device, not a file"
                    problems.add(f"{shard.name}/{member.name}: it {what}")
                    continue
                name, ending = _split_member_name(member.name)
                if name != key:
                    if found != _SampleFiles():
                        yield key, found
                    key, found = name, _SampleFiles()
                if ending in ("json", "cls"):
                    found = found._replace(**{ending: _read_content(archive, member)})
                elif f".{ending}".endswith(IMAGE_ENDINGS):
                    found = found._replace(picture=member.name)
            if found != _SampleFiles():
                yield key, found
    except UnreadMemberError as error:
        raise AnnotatorError(f"{shard}: {error}.") from error
    except (tarfile.TarError, OSError, EOFError, ValueError, OverflowError) as error:
        raise AnnotatorError(f"{shard} is no whole tar, after sample {key or '0'!r}: {error}.") from error


def _leads_out(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts


def _read_content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if member.size > MAX_LABEL_BYTES:
        raise tarfile.ReadError(f"{member.name} has {member.size:,} bytes, more than the labels of an image can have")
    opened = archive.extractfile(member)
    content = opened.read() if opened else b""
    if len(content) < member.size:
        raise tarfile.ReadError(f"{member.name} ends too early")
    return content


def write(view: View, output: Output) -> None:
    names = [class_.name for class_ in view.classes]
    with output.open_text(CLASSES_FILE) as file:
        file.write("".join(f"{name}\n" for name in names))
    encode = msgspec.json.Encoder().encode
    splits = make_split_names(view, UNASSIGNED_SPLIT if view.splits else SINGLE_SPLIT)
    number = 0
    with ExitStack() as stack:
        shards: dict[str, _ShardWriter] = {}
        for block in view.blocks():
            for row, given in enumerate(iter_image_labels(block)):
                image, split = block.images[row], splits[block.splits[row]]
                if split not in shards:
                    shards[split] = stack.enter_context(_ShardWriter(output, split))
                sample = Sample(image.name, *given.by_state(names), build_extras(view, names, block, row, given))
                members = [(f"{number:09}.json", encode(sample))]
                picture = output.read_image(image)
                if picture is not None:
                    members.insert(0, (f"{number:09}{PurePosixPath(block.files[row]).suffix.lower()}", picture))
                shards[split].add_sample(members)
                number += 1
        if not shards:
            stack.enter_context(_ShardWriter(output, splits[""])).add_sample([])


class _ShardWriter:
    """A writer of the shards of one split."""

    def __init__(self, output: Output, split: str):
        self._output, self._split = output, split
        self._number = self._bytes = self._images = 0
        self._stack: ExitStack | None = None
        self._archive: tarfile.TarFile | None = None

    def __enter__(self) -> "_ShardWriter":
        return self

    def __exit__(self, *error: object) -> None:
        if self._stack:
            self._stack.close()

    def add_sample(self, members: list[tuple[str, bytes]]) -> None:
        if self._archive is None or self._bytes >= MAX_SHARD_BYTES or self._images >= MAX_SHARD_IMAGES:
            self._archive = self._open_next_shard()
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(content), MEMBER_TIME, 0o644
            self._archive.addfile(member, io.BytesIO(content))
            self._bytes += len(content)
        self._images += 1

    def _open_next_shard(self) -> tarfile.TarFile:
        if self._stack:
            self._stack.close()
        self._stack = ExitStack()
        file: BinaryIO = self._stack.enter_context(self._output.open_binary(f"{self._split}-{self._number:06}.tar"))
        self._number, self._bytes, self._images = self._number + 1, 0, 0
        return self._stack.enter_context(tarfile.open(fileobj=file, mode="w|", format=tarfile.USTAR_FORMAT))


WEBDATASET = Format(
    "webdataset",
    "WebDataset: shards of tar with pictures and labels, for training from streams",
    "",
    recognize_shards,
    read,
    write,
    FormatLosses(unsure=False, provenance=False),
    "link",
)
