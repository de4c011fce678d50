"""LabelMe: one JSON file per image, with image flags and shape labels.

Format: https://github.com/wkentaro/labelme (`labelme --flags`). Every file lists all flags, so false is
absent. Shape labels are present, but those with a `score` are predictions until the file is `checked`.
`__ignore__` excludes images.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from annotator.exchange.files.json_stream import read_start
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents, ImportedLabel, Item
from annotator.exchange.formats.format import Format
from annotator.exchange.formats.shared.label_file_pairs import ImageFiles, find_first_files, find_split, strip_suffix
from annotator.exchange.reading.reading_options import Interpretation, ReadingOptions
from annotator.humanize import format_count
from annotator.records import ABSENT, PRESENT
from annotator.store.disk.open_files import open_file
from annotator.store.pictures.files import list_files

FILE_SUFFIX = ".json"
MAX_FILE_BYTES = 256 << 20  # bytes; a file may hold its image
IGNORE_FLAG = "__ignore__"
NON_CLASS_NAMES = (IGNORE_FLAG, "_background_")


class _Shape(msgspec.Struct):
    label: str | None = None
    score: float | None = None


class _File(msgspec.Struct):
    flags: dict[str, Any] | None = None
    shapes: list[_Shape] | None = None
    imagePath: str | None = None  # noqa: N815 - as the file has it
    checked: bool | None = None


_DECODER = msgspec.json.Decoder(_File)


def recognize(path: Path) -> str | None:
    if path.is_file():
        return "a file of LabelMe: it has flags and shapes of one image" if _is_labelme(path) else None
    files = find_first_files(path, (FILE_SUFFIX,), max_files=50) if path.is_dir() else []
    found = next((file for file in files if _is_labelme(file)), None)
    return f"files of LabelMe: {found.relative_to(path)} has flags and shapes of one image" if found else None


def _is_labelme(path: Path) -> bool:
    start = read_start(path)
    has = {name: f'"{name}"'.encode() in start for name in ("shapes", "flags", "imagePath", "imageData")}
    return start[:1] == b"{" and (
        (has["flags"] and has["imageData"]) or (has["shapes"] and (has["flags"] or has["imagePath"]))
    )


def read(path: Path, problems: Problems, options: ReadingOptions) -> Contents:
    """Return the images. The options decide whether the flag value false is absent or unanswered."""
    root = path if path.is_dir() else path.parent
    listing = list_files(path, leave_out=path) if path.is_dir() else None
    names = [name for name in listing.paths if name.lower().endswith(FILE_SUFFIX)] if listing else [path.name]
    images = ImageFiles(listing.list_images() if listing else ())
    others = [name for name in names if not _is_labelme(root / name)]
    reader = _Reader(root, images, problems, options)
    reader.sentences = ["A flag that is true, and the label of a shape, are present. Shapes are not kept."]
    if others:
        reader.sentences.append(
            f"{format_count(len(others), 'JSON file is', 'JSON files are')} of another kind, and not read: {others[0]}."
        )
    items = reader.read_items(sorted(set(names) - set(others)))
    folder = path if images.paths else None
    return Contents(
        (), items, folder=folder, place="file", sentences=reader.sentences, interpretations=reader.interpretations
    )


class _Reader:
    """A reader of all files of a source. Its remarks are complete after the last item."""

    def __init__(self, root: Path, images: ImageFiles, problems: Problems, options: ReadingOptions):
        self._root, self._images, self._problems = root, images, problems
        self._ticked = self._not_ticked = self._scored = 0
        self._is_unknown = _includes_false(options.unknown)
        self._is_settled = self._is_unknown or _includes_false(options.absent)
        self.sentences: list[str] = []
        self.interpretations: list[Interpretation] = []

    def read_items(self, names: list[str]) -> Iterator[Item]:
        for name in names:
            if (found := self._parse_file(name)) and (item := self._build_item(name, found)):
                yield item
        if self._not_ticked:
            self.interpretations.append(self._interpret_false())
        if self._scored:
            self.sentences.append(
                f"{format_count(self._scored, 'shape has', 'shapes have')} a score in files that are not checked: they "
                "are a model's, and are scores, not answers."
            )

    def _interpret_false(self) -> Interpretation:
        flags = format_count(self._not_ticked, "flag is", "flags are")
        if self._is_unknown:
            return Interpretation("unknown", "false", f"{flags} false, which is unknown, as you say")
        if self._ticked or self._is_settled:
            why = f"{flags} false: LabelMe writes all flags of an image, those that are not ticked are absent"
            return Interpretation("absent", "false", why)
        why = f"{flags} false and none is true: are they absent, or were flags not used"
        return Interpretation("absent", "false", why, is_sure=False)

    def _parse_file(self, name: str) -> _File | None:
        try:
            with open_file(self._root / name) as file:
                text = file.read(MAX_FILE_BYTES + 1)
            if len(text) > MAX_FILE_BYTES:
                self._problems.add(f"{name} has more than {MAX_FILE_BYTES >> 20} MB")
                return None
            return _DECODER.decode(text.removeprefix(b"\xef\xbb\xbf"))
        except OSError as error:
            self._problems.add(f"{name} cannot be read: {error.strerror or error}")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._problems.add(f"{name} is no file of LabelMe: {error}")
        return None

    def _build_item(self, name: str, found: _File) -> Item | None:
        try:
            file = self._images.find_image(name, found.imagePath or "")
        except ValueError as error:
            self._problems.add(f"{name}: {error}")
            return None
        image = file or (found.imagePath or "").replace("\\", "/") or strip_suffix(name)
        flags = found.flags or {}
        if flags.get(IGNORE_FLAG) is True:
            return Item(image, name, file=file, answered=False)
        states: dict[tuple[str, int], ImportedLabel] = {}
        scores: dict[str, float] = {}
        for flag, value in flags.items():
            if value is not None and not isinstance(value, bool):
                self._problems.add(f"{name}: the flag {flag!r:.100} is {value!r:.100}; it must be true or false")
            elif value is not None and flag not in NON_CLASS_NAMES:
                self._ticked, self._not_ticked = self._ticked + value, self._not_ticked + (not value)
                if value or not self._is_unknown:
                    state = PRESENT if value else ABSENT
                    states[flag, state] = ImportedLabel(flag, state)
        for shape in found.shapes or ():
            if not shape.label or shape.label in NON_CLASS_NAMES:
                continue
            if shape.score is not None and not found.checked:
                self._scored += 1
                scores[shape.label] = max(scores.get(shape.label, 0.0), shape.score)
            else:
                states[shape.label, PRESENT] = ImportedLabel(shape.label, PRESENT)
        split = find_split(name)
        return Item(
            image,
            name,
            list(states.values()),
            scores=scores,
            file=file,
            attributes={"split": split} if split else {},
            answered=bool(states) or not scores,
        )


def _includes_false(words: tuple[str, ...] | None) -> bool:
    return any(word.strip().lower() == "false" for word in words or ())


LABELME = Format(
    name="labelme",
    about="LabelMe and X-AnyLabeling: a JSON file beside each image, with flags and shapes",
    ending="",
    recognize=recognize,
    read=read,
)
