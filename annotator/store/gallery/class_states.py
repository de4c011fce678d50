"""The labels of one class on all images, two bits each."""

import numpy as np

from annotator.records import ABSENT, PRESENT, UNSURE

OPEN = 2  # no label
_STATE_CODES = {OPEN: 0, PRESENT: 1, ABSENT: 2, UNSURE: 3}


class ClassStates:
    """The labels of one class on all images, stored as two bits per image."""

    def __init__(self, count: int):
        self._count = 0
        self._planes = np.zeros((2, 0), np.uint8)
        self.grow(count)

    def grow(self, count: int) -> None:
        self._count = count
        missing = -(-count // 8) - self._planes.shape[1]
        self._planes = np.pad(self._planes, [(0, 0), (0, max(0, missing))])

    def get_mask(self, state: int) -> np.ndarray:
        """Return the images whose label has this state (OPEN: without a label), (N,) bool."""
        code = _STATE_CODES[state]
        low, high = (plane if code >> bit & 1 else ~plane for bit, plane in enumerate(self._planes))
        return np.unpackbits(low & high, count=self._count).view(bool)

    def set_state(self, rows: np.ndarray, state: int) -> None:
        """Set one state for rows that have no label yet."""
        is_row = np.zeros(self._count, bool)
        is_row[rows] = True
        bits = np.packbits(is_row)
        for bit, plane in enumerate(self._planes):
            if _STATE_CODES[state] >> bit & 1:
                plane |= bits

    def set_states(self, rows: np.ndarray, states: np.ndarray) -> None:
        """Set the states (n,) of a few rows that have no label yet."""
        for row, state in zip(rows.tolist(), states.tolist(), strict=True):
            for bit, plane in enumerate(self._planes):
                if _STATE_CODES[state] >> bit & 1:
                    plane[row >> 3] |= 128 >> (row & 7)

    def clear(self, where: tuple[np.ndarray, np.ndarray]) -> None:
        """Remove the labels of images, given by `locate_bits`."""
        places, others = where
        self._planes[:, places] &= others


def locate_bits(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (indices (n,) of the bytes that hold these rows, (n,) uint8 masks that keep all other bits)."""
    places, number = np.unique(rows >> 3, return_inverse=True)
    bits = np.zeros(len(places), np.uint8)
    np.bitwise_or.at(bits, number, (128 >> (rows & 7)).astype(np.uint8))
    return places, ~bits
