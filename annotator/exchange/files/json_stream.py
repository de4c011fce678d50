"""Entries of large JSON arrays, read in chunks of about 1 MB with constant memory.

The document is cut at commas, looking only at strings and nesting. msgspec then checks the entries, `json`
the text around arrays. Deep nesting and endless entries are rejected first (in ijson, 30 KB of "[" take 2
GB). NaN and Infinity are errors (RFC 8259).
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.store.disk.open_files import open_file

CHUNK_BYTES = 1 << 20
MAX_ENTRY_BYTES = 64 << 20  # bytes of one entry of an array
MAX_FRAME_BYTES = 1 << 20  # bytes around the arrays
MAX_DEPTH = 200
MAX_NUMBER_DIGITS = 1_000  # digits

_OPEN, _CLOSE, _COMMA, _QUOTE = 1, 2, 3, 4
_KIND_BY_BYTE = np.zeros(256, np.uint8)
for _letters, _kind in ((b"[{", _OPEN), (b"]}", _CLOSE), (b",", _COMMA), (b'"', _QUOTE)):
    _KIND_BY_BYTE[list(_letters)] = _kind
_ESCAPES = re.compile(rb"\\.", re.DOTALL)
_LAST_KEY = re.compile(rb'("(?:[^"\\]|\\.)*")\s*:\s*$', re.DOTALL)
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (MAX_NUMBER_DIGITS + 1))
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")

T = TypeVar("T")


@dataclass(frozen=True)
class Piece:
    """Consecutive entries of one JSON array, as text that is not parsed yet."""

    # key of the array, "" if the document is the array
    key: str
    first: int
    line: int
    text: bytes
    # offsets of commas between entries
    cuts: np.ndarray

    def decode(self, decoder: "msgspec.json.Decoder[list[T]]", problems: Problems) -> list[tuple[int, T]]:
        """Return (index, entry) of the entries that `decoder` can read, and report the others."""
        try:
            return list(enumerate(decoder.decode(b"[" + self.text + b"]"), start=self.first))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return list(self._one_by_one(decoder, problems))

    def _one_by_one(self, decoder: "msgspec.json.Decoder[list[T]]", problems: Problems) -> Iterator[tuple[int, T]]:
        start = 0
        for index, end in enumerate([*self.cuts.tolist(), len(self.text)], start=self.first):
            entry = self.text[start:end]
            try:
                for record in decoder.decode(b"[" + (entry if entry.strip() else b",") + b"]"):
                    yield index, record
            except (ValueError, msgspec.DecodeError, RecursionError) as error:
                line = self.line + self.text.count(b"\n", 0, start + len(entry) - len(entry.lstrip()))
                problems.add(f"{self.place(index)} (line {line}): {_format_reason(error)}")
            start = end + 1

    def place(self, index: int) -> str:
        """Return the name of an entry for messages, such as annotations[12]."""
        return f"{self.key or 'entry '}[{index}]"


def _format_reason(error: Exception) -> str:
    # `decode` puts an entry into an array, so the path in msgspec's message begins with this array.
    return str(error).replace("$[0].", "").replace(" - at `$[0]`", "")


def read_pieces(
    path: Path, wanted: Callable[[str], bool] = lambda key: True, chunk: int = CHUNK_BYTES
) -> Iterator[Piece]:
    """Yield the entries of arrays with a `wanted` key, in file order, and an empty piece per empty array.

    Raises AnnotatorError when it reaches invalid JSON, more than 200 levels or an entry over 64 MB.
    """
    try:
        with open_file(path) as file:
            yield from _ArrayCutter(path, wanted).cut(lambda: file.read(chunk))
    except OSError as error:
        raise AnnotatorError(f"{path} cannot be read: {error.strerror or error}.") from error


def read_objects(path: Path, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """Return the JSON text of objects with a `wanted` key, by key. Raises as `read_pieces`."""
    cutter = _ArrayCutter(path, lambda key: False, wanted)
    try:
        with open_file(path) as file:
            for _ in cutter.cut(lambda: file.read(CHUNK_BYTES)):
                pass
    except OSError as error:
        raise AnnotatorError(f"{path} cannot be read: {error.strerror or error}.") from error
    return {key: bytes(text) for key, text in cutter.objects.items()}


def check_json(path: Path) -> None:
    """Check that ijson can parse a whole file. Raises AnnotatorError.

    Numbers over 1,000 digits are rejected, because they crash ijson's C code.
    """
    for _ in read_pieces(path, wanted=lambda key: False):
        pass
    end = b""
    with open_file(path) as file:
        while chunk := file.read(CHUNK_BYTES):
            if _LONG_NUMBER.search(end + chunk):
                raise AnnotatorError(
                    f"{path} has a number of more than {MAX_NUMBER_DIGITS:,} digits. Is it the right file?"
                )
            end = chunk[-MAX_NUMBER_DIGITS:]


def read_start(path: Path, max_bytes: int = 1 << 16) -> bytes:
    """Return at most `max_bytes` of a file's start without byte order mark and spaces, or b""."""
    try:
        with open_file(path) as file:
            return file.read(max_bytes).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError:
        return b""


class _ArrayCutter:
    """A parser that cuts the arrays of one document into pieces, and keeps its state between chunks."""

    def __init__(
        self, path: Path, wanted: Callable[[str], bool], wanted_objects: Callable[[str], bool] = lambda key: False
    ):
        self._path, self._wanted, self._wanted_objects = path, wanted, wanted_objects
        self.objects: dict[str, bytearray] = {}
        self._object: bytearray | None = None  # the text of the object that is being read, if it is wanted
        self._line, self._depth, self._in_string = 1, 0, False
        self._base = 0  # depth inside the arrays that are cut; 0: nothing was read yet
        self._frame = bytearray()  # the document with each inner value replaced by a zero
        self._inside = b""  # the bracket of the inner value that is being read
        self._key: str | None = None  # key of the array that is being read, None outside the wanted arrays
        self._index, self._held, self._held_line = 0, bytearray(), 1

    def cut(self, read: Callable[[], bytes]) -> Iterator[Piece]:
        rest = b""
        while chunk := read():
            chunk = rest + chunk
            if not self._base:
                chunk = self._start_document(chunk)
            # A backslash at the end escapes the first letter of the next chunk.
            odd = (len(chunk) - len(chunk.rstrip(b"\\"))) % 2
            rest = chunk[len(chunk) - odd :]
            yield from self._cut_chunk(chunk[: len(chunk) - odd])
        self._finish_document(rest)

    def _start_document(self, chunk: bytes) -> bytes:
        if chunk[:2] in _UTF16_MARKS or b"\0" in chunk[:4]:
            raise AnnotatorError(f"{self._path} is not UTF-8 text. Save it as UTF-8 and try again.")
        chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        start = chunk.lstrip()[:1]
        if start not in (b"{", b"["):
            raise AnnotatorError(f"{self._path} is no JSON document of records: it begins with {chunk[:20]!r}.")
        self._base = 2 if start == b"{" else 1
        return chunk

    def _cut_chunk(self, chunk: bytes) -> Iterator[Piece]:
        if (zero := chunk.find(b"\0")) >= 0:
            raise AnnotatorError(f"{self._path} is not JSON: a zero byte in line {self._find_line(chunk, zero)}.")
        places, kinds, depths = self._find_brackets(chunk)
        opened = (kinds == _OPEN) & (depths == self._base)
        borders = np.flatnonzero(opened | ((kinds == _CLOSE) & (depths == self._base - 1)))
        commas = places[(kinds == _COMMA) & (depths == self._base)]
        at = 0
        for place, opens in zip(places[borders].tolist(), opened[borders].tolist(), strict=True):
            bracket = chunk[place : place + 1]
            if opens:
                self._append_to_frame(chunk[at:place])
                self._open_value(bracket)
            else:
                if self._key is not None:
                    yield from self._cut_entries(chunk, at, place, commas, last=True)
                self._append_to_object(chunk[at : place + 1])
                self._object = None
                if self._inside + bracket not in (b"[]", b"{}"):
                    raise AnnotatorError(
                        f"{self._path} is not JSON: {bracket!r} in line {self._find_line(chunk, place)}."
                    )
                self._inside, self._key = b"", None
            at = place + 1
        if self._key is not None:
            yield from self._cut_entries(chunk, at, len(chunk), commas, last=False)
        elif self._inside:
            self._append_to_object(chunk[at:])
        else:
            self._append_to_frame(chunk[at:])
        self._line += chunk.count(b"\n")

    def _find_brackets(self, chunk: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (offsets, kinds, depths) of brackets and commas outside strings."""
        text = _ESCAPES.sub(b"..", chunk) if b"\\" in chunk else chunk
        kinds = _KIND_BY_BYTE[np.frombuffer(text, np.uint8)]
        places = np.flatnonzero(kinds)
        kinds = kinds[places]
        in_string = ((np.cumsum(kinds == _QUOTE) + self._in_string) & 1).astype(bool)
        if len(in_string):
            self._in_string = bool(in_string[-1])
        outside = ~in_string & (kinds != _QUOTE)
        places, kinds = places[outside], kinds[outside]
        depths = self._depth + np.cumsum((kinds == _OPEN).astype(np.int32) - (kinds == _CLOSE))
        if len(depths):
            self._depth = int(depths[-1])
            if depths.max() > MAX_DEPTH or depths.min() < 0:
                line = self._find_line(chunk, int(places[np.flatnonzero((depths > MAX_DEPTH) | (depths < 0))[0]]))
                what = "is nested too deep" if depths.max() > MAX_DEPTH else "has a closing bracket too many"
                raise AnnotatorError(f"{self._path} {what} in line {line}.")
        return places, kinds, depths

    def _open_value(self, bracket: bytes) -> None:
        self._inside = bracket
        key = ""
        if self._base == 2:
            match = _LAST_KEY.search(self._frame)
            with suppress(ValueError):  # the frame is checked at the end
                key = str(json.loads(match[1])) if match else ""
        self._frame += b"0"
        if bracket == b"[" and self._wanted(key):
            self._key, self._index, self._held = key, 0, bytearray()
        if bracket == b"{" and self._base == 2 and self._wanted_objects(key):
            self._object = self.objects[key] = bytearray(b"{")

    def _cut_entries(self, chunk: bytes, start: int, stop: int, commas: np.ndarray, last: bool) -> Iterator[Piece]:
        """Yield the complete entries of chunk[start:stop], and keep the rest for the next chunk."""
        assert self._key is not None
        cuts = commas[np.searchsorted(commas, start) : np.searchsorted(commas, stop)]
        if not self._held:
            self._held_line = self._find_line(chunk, start)
        before, first_line = len(self._held) - start, self._held_line
        if not last and not len(cuts):
            self._hold_text(chunk[start:stop])
            return
        end = stop if last else int(cuts[-1])
        text = bytes(self._held) + chunk[start:end]
        self._held = bytearray()
        if last and not text.strip() and not len(cuts):
            if self._index:
                raise AnnotatorError(f"{self._path} is not JSON: nothing follows the comma in line {first_line}.")
            text = b""
        inner = cuts if last else cuts[:-1]
        yield Piece(self._key, self._index, first_line, text, inner + before)
        self._index += len(inner) + 1
        if not last:
            self._held_line = self._find_line(chunk, end)
            self._hold_text(chunk[end + 1 : stop])

    def _hold_text(self, text: bytes) -> None:
        self._held += text
        if len(self._held) > MAX_ENTRY_BYTES:
            raise AnnotatorError(
                f"{self._path} has an entry of more than {MAX_ENTRY_BYTES >> 20} MB, which begins in line "
                f"{self._held_line}. Is it the right file?"
            )

    def _append_to_object(self, text: bytes) -> None:
        if self._object is None:
            return
        self._object += text
        if len(self._object) > MAX_ENTRY_BYTES:
            raise AnnotatorError(f"{self._path} has an object of more than {MAX_ENTRY_BYTES >> 20} MB: no data set.")

    def _append_to_frame(self, text: bytes) -> None:
        self._frame += text.strip() if text.isspace() else text
        if len(self._frame) > MAX_FRAME_BYTES:
            raise AnnotatorError(
                f"{self._path} has more than {MAX_FRAME_BYTES >> 20} MB outside of arrays: no data set."
            )

    def _find_line(self, chunk: bytes, place: int) -> int:
        return self._line + chunk.count(b"\n", 0, place)

    def _finish_document(self, rest: bytes) -> None:
        if not self._base:
            raise AnnotatorError(f"{self._path} is empty.")
        if self._depth or self._in_string:
            raise AnnotatorError(f"{self._path} ends too early, in line {self._line}. Was it copied as a whole?")
        try:
            json.loads(bytes(self._frame + rest))
        except ValueError as error:
            raise AnnotatorError(f"{self._path} is not JSON: {error} (with each array taken for 0).") from error
