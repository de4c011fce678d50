"""A ranking of cells (image and class) from several blocks, equal to sorting all at once.

Blocks, possibly on other machines, count each of the 15,361 float16 values in [0, 1]. The summed counts give
every position (counting sort: Knuth, The Art of Computer Programming, vol. 3, sec. 5.2).
"""

import numpy as np

ONE_BITS = 0x3C00  # the bits of 1.0 as float16
INFINITY_BITS, SIGNLESS_MASK = 0x7C00, 0x7FFF  # the bits of infinity, nan beyond; all bits but the sign
KEY_COUNT = ONE_BITS + 1
CLOSED_KEY = np.uint16(0xFFFF)  # of a cell that is not ranked
SAMPLED_ONE_IN = 5  # one in five ranked cells samples the rest evenly, so that every probability occurs


def to_keys(chances: np.ndarray) -> np.ndarray:
    """Encode float16 probabilities as uint16 keys that fall as probability rises, CLOSED_KEY for nan."""
    # The bits of positive floats, read as integers, have the order of the floats. numpy's abs and isnan of float16 go
    # through float32, and take seven times as long as all of this.
    bits = chances.view(np.uint16) & np.uint16(SIGNLESS_MASK)
    keys, is_nan = np.uint16(ONE_BITS) - bits, bits > INFINITY_BITS
    if is_nan.any():
        keys[is_nan] = CLOSED_KEY
    return keys


def to_probabilities(keys: np.ndarray) -> np.ndarray:
    """Return the float16 probabilities of keys (see `to_keys`), 0 for CLOSED_KEY."""
    return np.where(keys == CLOSED_KEY, 0, np.uint16(ONE_BITS) - keys).astype(np.uint16).view(np.float16)


def count_keys(keys: np.ndarray) -> np.ndarray:
    """Return how often each key except CLOSED_KEY occurs, (KEY_COUNT,) int64."""
    return np.bincount(keys, minlength=KEY_COUNT)[:KEY_COUNT]


class MergedRanking:
    """An accumulator that ranks one class's cells from blocks, by falling probability, then row.

    It keeps `depth` cells. If there are more, its last fifth is an even sample of the lower ones.

    Attributes:
        rows: (depth,) int32, -1 after the last.
        scores: (depth,) float16, 0 after the last.
        expected: Sum of all probabilities.
    """

    def __init__(self, counts: np.ndarray, depth: int):
        """Prepare the ranking from the sum of `count_keys` over all blocks."""
        cells = int(counts.sum())
        self._starts = np.cumsum(counts) - counts  # the position of the first cell with each key
        self._seen = np.zeros(KEY_COUNT, np.int64)  # cells with each key in the blocks before
        self._kept = compute_kept_positions(cells, depth)
        self._whole = _count_gapless(cells, depth)
        self.rows, self.scores = np.full(depth, -1, np.int32), np.zeros(depth, np.float16)
        self.expected = float(counts @ to_probabilities(np.arange(KEY_COUNT, dtype=np.uint16)).astype(np.float64))

    def add_block(self, keys: np.ndarray, first: int) -> None:
        """Add the next block in row order: the keys (n,) of rows from `first` on."""
        places, rows = self.find_head(keys, self._seen)
        self.rows[places], self.scores[places] = first + rows, to_probabilities(keys[rows])
        self._seen += count_keys(keys)

    def find_head(self, keys: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the ranking positions (m,) of those cells of a block that are kept, and their rows in the block (m,).

        `seen` (KEY_COUNT,) is the sum of `count_keys` over the earlier blocks.
        """
        counts = count_keys(keys)
        cells = int(counts.sum())
        order = np.argsort(keys, kind="stable")[:cells]  # numpy sorts 16-bit keys by counting, too
        in_block = np.cumsum(counts) - counts  # where each key begins
        positions = np.arange(cells) + (self._starts + seen - in_block)[keys[order]]  # they rise, as the keys do
        likeliest = int(np.searchsorted(positions, self._whole))
        sampled = self._kept[self._whole :]
        places = np.searchsorted(positions[likeliest:], sampled) + likeliest
        found = places < cells
        found[found] = positions[places[found]] == sampled[found]
        at = np.concatenate([positions[:likeliest], self._whole + np.flatnonzero(found)])
        return at, order[np.concatenate([np.arange(likeliest), places[found]])]


def compute_kept_positions(cells: int, depth: int) -> np.ndarray:
    """Return which ranking positions of `cells` are kept: (at most depth,) int64, ascending."""
    first = _count_gapless(cells, depth)
    if cells <= depth:
        return np.arange(cells)
    return np.concatenate([np.arange(first), np.linspace(first, cells - 1, depth - first).astype(np.int64)])


def _count_gapless(cells: int, depth: int) -> int:
    return cells if cells <= depth else depth - depth // SAMPLED_ONE_IN
