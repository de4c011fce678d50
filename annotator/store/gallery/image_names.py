"""The names of all images in memory, for order, folders and text search (without case, in Unicode NFC)."""

import unicodedata
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import sqlite_utils

from annotator.indexing import find_positions

NAMES_PER_CHUNK = 50_000  # names read at a time
MAX_NAMES_LOOKED_UP = 500  # changed names up to which each one's place is looked for; with more the order is read again
DENSE_RATIO = 8  # one occurrence in so many texts or more
MAX_CACHED_SEARCHES = 8  # the texts searched for last; a byte an image each
SEARCH_BLOCK_BYTES = 1 << 17  # bytes searched at a time, with those of the last text


def fold_text(text: str) -> str:
    """Return the form of a text used for comparison."""
    return unicodedata.normalize("NFC", text.casefold())


class TextBlock:
    """Immutable texts in one block of zero-terminated bytes (`starts`: (n + 1,) int64 starts, then the block end)."""

    def __init__(self, block: np.ndarray):
        self.block = block
        self.starts = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(block == 0) + 1])
        self._frequency = np.bincount(block[:: max(1, len(block) // 100_000)], minlength=256)

    @classmethod
    def build(cls, texts: Sequence[str]) -> "TextBlock":
        block = fold_text("".join(f"{text}\0" for text in texts)).encode()
        if block.count(0) != len(texts):  # a text that holds a zero
            block = fold_text("".join(f"{text.replace(chr(0), ' ')}\0" for text in texts)).encode()
        return cls(np.frombuffer(block, np.uint8))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def extend(self, further: Sequence["TextBlock"]) -> "TextBlock":
        return TextBlock(np.concatenate([self.block, *(texts.block for texts in further)])) if further else self

    def replace_rows(self, texts: Mapping[int, str]) -> "TextBlock":
        pieces, end = list[np.ndarray](), 0
        for row in sorted(texts):
            pieces += [self.block[end : self.starts[row]], TextBlock.build([texts[row]]).block]
            end = self.starts[row + 1]
        return TextBlock(np.concatenate([*pieces, self.block[end:]]))

    def find_containing(self, part: str) -> np.ndarray:
        """Return which texts contain `part`, (n,) bool."""
        pattern = _encode_pattern(part)
        if not len(pattern):
            return np.ones(len(self), bool)
        if 0 in pattern:  # which stands between texts
            return np.zeros(len(self), bool)
        result = np.zeros(len(self), bool)
        if len(pattern) > len(self.block):
            return result
        # Blocks of whole texts, which fit a processor cache, and in these the rarest bytes first.
        offsets = np.argsort(self._frequency[pattern], kind="stable").tolist()
        edges = np.searchsorted(self.starts, np.arange(0, len(self.block), SEARCH_BLOCK_BYTES)).tolist()
        for first, last in pairwise(dict.fromkeys([*edges, len(self)])):
            starts = self.starts[first:last] - self.starts[first]
            marks = self._find_occurrences(pattern, offsets, self.starts[first], self.starts[last])
            if np.count_nonzero(marks) * DENSE_RATIO > len(starts):
                result[first:last] = np.logical_or.reduceat(marks, starts)
            else:
                result[first + np.searchsorted(starts, np.flatnonzero(marks), "right") - 1] = True
        return result

    def _find_occurrences(self, pattern: np.ndarray, offsets: list[int], start: int, end: int) -> np.ndarray:
        marks = np.ones(end - start, bool)
        searched = min(len(marks), len(self.block) - len(pattern) + 1 - start)
        marks[max(0, searched) :] = False
        for offset in offsets:
            if not marks.any():
                break
            marks[:searched] &= self.block[start + offset : start + offset + searched] == pattern[offset]
        return marks

    def find_beginning_with(self, part: str, among: np.ndarray | None = None) -> np.ndarray:
        """Return the rows whose text starts with `part`, (k,) int64."""
        rows = np.arange(len(self)) if among is None else among
        return self._filter_matches(_encode_pattern(part), self.starts[:-1], rows)

    def find_ending_with(self, part: str) -> np.ndarray:
        """Return the rows whose text ends with `part`, (k,) int64, ascending."""
        pattern = _encode_pattern(part)
        places = self.starts[1:] - 1 - len(pattern)
        return self._filter_matches(pattern, places, np.flatnonzero(places >= self.starts[:-1]))

    def get_following_bytes(self, rows: np.ndarray, part: str) -> np.ndarray:
        """Return the byte that follows the prefix `part` in each of these rows, (k,) uint8, or 0."""
        return self.block[self.starts[rows] + len(_encode_pattern(part))]

    def _filter_matches(self, pattern: np.ndarray, places: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if 0 in pattern:
            return rows[:0]
        for offset, byte in enumerate(pattern):
            # Behind the end of a text is a zero, which is in no pattern: no row goes on into the next text.
            rows = rows[self.block[places[rows] + offset] == byte]
        return rows


def _encode_pattern(part: str) -> np.ndarray:
    return np.frombuffer(fold_text(part).encode(), np.uint8)


class ImageNames:
    """The image names by row.

    Attributes:
        folder: (N,) int32 index into `folders`.
        folders: Folder paths, "" for none.
        order: (N,) int32, rows by name.
    """

    def __init__(self):
        self.folder = np.zeros(0, np.int32)
        self.folders: list[str] = []
        self.order = np.zeros(0, np.int32)
        self._rank: np.ndarray | None = None
        self._files = self._folder_texts = TextBlock.build([])
        self._searched: OrderedDict[str, np.ndarray] = OrderedDict()
        self._folder_of: dict[str, int] = {}

    def update(
        self, sql: sqlite_utils.Database, image_ids: np.ndarray, new: Iterable[str], renamed: Mapping[int, str]
    ) -> None:
        """Add new images, and rename others.

        Args:
            image_ids: (N,) int64, ascending, including new images.
        """
        first, files, folders = len(self.folder), list[TextBlock](), [self.folder]
        for names in _split_names(new):
            split = [name.rpartition("/") for name in names]
            files.append(TextBlock.build([file for _, _, file in split]))
            folders.append(np.array([self._get_folder_number(folder) for folder, _, _ in split], np.int32))
        self._files, self.folder = self._files.extend(files), np.concatenate(folders)
        if renamed:
            self._files = self._files.replace_rows({row: name.rpartition("/")[2] for row, name in renamed.items()})
            for row, name in renamed.items():
                self.folder[row] = self._get_folder_number(name.rpartition("/")[0])
        if len(self._folder_texts) < len(self.folders):
            self._folder_texts = TextBlock.build(self.folders)
        changed = np.concatenate([np.fromiter(renamed, np.int64, len(renamed)), np.arange(first, len(image_ids))])
        self._searched.clear()
        if len(changed):
            self.order, self._rank = self._compute_order(sql, image_ids, changed), None

    def _get_folder_number(self, path: str) -> int:
        number = self._folder_of.setdefault(path, len(self.folders))
        if number == len(self.folders):
            self.folders.append(path)
        return number

    def _compute_order(self, sql: sqlite_utils.Database, image_ids: np.ndarray, changed: np.ndarray) -> np.ndarray:
        if len(changed) > MAX_NAMES_LOOKED_UP:
            cursor = sql.execute("SELECT id FROM image ORDER BY name_key, id")
            ids = np.fromiter((row[0] for row in cursor), np.int64, len(image_ids))
            return find_positions(ids, image_ids)[0].astype(np.int32)
        is_changed = np.zeros(len(image_ids), bool)
        is_changed[changed] = True
        kept = np.compress(~is_changed[self.order], self.order)
        ids = image_ids[kept]

        def key(image_id: int) -> tuple[str, int]:
            return sql.execute("SELECT name_key, id FROM image WHERE id = ?", [image_id]).fetchone()

        keys = sorted(key(image_id) for image_id in image_ids[changed].tolist())
        places = [bisect_left(ids, wanted, key=lambda image_id: key(int(image_id))) for wanted in keys]
        moved = find_positions([image_id for _, image_id in keys], image_ids)[0]
        return np.insert(kept, places, moved.astype(np.int32))

    def in_folder(self, folder: str) -> np.ndarray:
        """Return the images in or below a folder, (N,) bool."""
        inside = [path == folder or path.startswith(f"{folder}/") for path in self.folders]
        return np.array(inside, bool)[self.folder]

    def find_containing(self, part: str) -> np.ndarray:
        """Return which names contain a text, (N,) bool, read-only."""
        if part not in self._searched:
            self._searched[part] = self._search(part)
            if len(self._searched) > MAX_CACHED_SEARCHES:
                self._searched.popitem(last=False)
        return self._searched[part]

    def _search(self, part: str) -> np.ndarray:
        above, slash, file = part.rpartition("/")
        if not slash:
            return self._files.find_containing(part) | self._folder_texts.find_containing(part)[self.folder]
        in_folder = self._folder_texts.find_containing(part)
        ends = np.zeros(len(self.folders), bool)
        ends[self._folder_texts.find_ending_with(above)] = True
        if not above:
            ends &= np.array([path != "" for path in self.folders], bool)
        result = in_folder[self.folder]
        rows = self._files.find_beginning_with(file)
        result[rows] |= ends[self.folder[rows]]
        return result

    def find_best_matches(self, part: str, count: int) -> np.ndarray:
        """Return at most `count` rows (k,) int64 whose name contains a text: equal file names, prefixes, others."""
        containing = self.find_containing(part)
        file = part.rpartition("/")[2]
        begin = self._files.find_beginning_with(file, np.flatnonzero(containing))
        following = self._files.get_following_bytes(begin, file)
        is_whole = (following == 0) | (following == ord("."))
        others = containing.copy()
        others[begin] = False
        result = np.zeros(0, np.int64)
        for rows in (begin[is_whole], begin[~is_whole], np.flatnonzero(others)):
            result = np.concatenate([result, self._select_first(rows, count - len(result))])
        return result

    def _select_first(self, rows: np.ndarray, count: int) -> np.ndarray:
        if len(rows) * DENSE_RATIO < len(self.order):
            return rows[np.argsort(self.rank[rows])][:count]
        wanted = np.zeros(len(self.order), bool)
        wanted[rows] = True
        found = np.zeros(0, np.int64)
        for start in range(0, len(self.order), NAMES_PER_CHUNK):
            if len(found) >= count:
                break
            block = self.order[start : start + NAMES_PER_CHUNK]
            found = np.concatenate([found, block[wanted[block]]])
        return found[:count]

    @property
    def rank(self) -> np.ndarray:
        """Return each row's position in `order`, (N,) int32."""
        if self._rank is None:
            self._rank = np.empty(len(self.order), np.int32)
            self._rank[self.order] = np.arange(len(self.order), dtype=np.int32)
        return self._rank


def _split_names(names: Iterable[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    for name in names:
        chunk.append(name)
        if len(chunk) == NAMES_PER_CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
