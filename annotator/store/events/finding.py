"""Finding events from arrays of times and places, without a database.

`arrange_images` orders the images, and `find_event_starts` cuts that order at long gaps and user edits. Where file
names follow time, a step back is a reset clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

UNRELATED_GAP, SAME_EVENT_GAP = np.inf, -np.inf
"""Gaps between images that never belong together by time, and between images that a source put into one event."""
CLOCK_JUMP_SECONDS = 60.0  # back in time; shorter steps are photos whose names and times disagree a little
MIN_STEPS_PER_JUMP = 20  # a place of fewer steps for each jump back has names that do not follow its times
GAP_TOLERANCE_SECONDS = 1e-3  # seconds of rounding by which merged images may be further apart than they were


@dataclass(frozen=True, eq=False)
class Arrangement:
    """The images ordered by place and time."""

    # (N,) int64 image rows
    order: np.ndarray
    # (N,) int64, the inverse of `order`
    positions: np.ndarray
    # (N,) float64 seconds since the previous image, UNRELATED_GAP or SAME_EVENT_GAP
    gaps: np.ndarray
    # places, times: (N,) int64 and float64, in this order, nan if unknown
    places: np.ndarray
    times: np.ndarray


@dataclass(frozen=True)
class Boundary:
    """A user's split or merge between two neighboring images."""

    before: int
    after: int
    # false for a merge
    is_split: bool
    # time between the images at the edit, or None. A merge is void if a clock correction increased it
    seconds: float | None = None


def arrange_images(times: np.ndarray, places: np.ndarray, sequences: np.ndarray) -> Arrangement:
    """Return the images in event order, with the gap before each.

    Args:
        times: (N,) float64, Unix seconds, nan if unknown, in file name order.
        places: (N,) int64 >= 0, camera or folder.
        sequences: (N,) int64 event from the source, or -1.
    """
    rows = np.arange(len(times))
    if not len(rows):
        return Arrangement(rows, rows, np.zeros(0), np.zeros(0, np.int64), np.zeros(0))
    named = sequences >= 0
    _, firsts, codes = np.unique(sequences, return_index=True, return_inverse=True)
    first = np.where(named, firsts[codes], rows)  # of its sequence; images of a sequence stay together
    sortable = np.where(np.isnan(times), np.inf, times)
    began, clock = np.full(len(rows), np.inf), np.full(len(rows), len(rows))
    np.minimum.at(began, first, sortable)
    np.minimum.at(clock, first, _number_clocks(times, places))
    place, clock = places[first], clock[first]
    order = np.lexsort((rows, sortable, first, began[first], clock, place))

    in_order = times[order]
    gaps = np.full(len(rows), UNRELATED_GAP)
    gaps[1:] = np.diff(in_order)
    apart = (np.diff(place[order]) != 0) | (np.diff(clock[order]) != 0) | np.isnan(gaps[1:])
    gaps[1:][apart | named[order][1:] | named[order][:-1]] = UNRELATED_GAP
    gaps[1:][np.diff(first[order]) == 0] = SAME_EVENT_GAP
    positions = np.empty_like(rows)
    positions[order] = rows
    return Arrangement(order, positions, gaps, place[order], in_order)


def _number_clocks(times: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Number the clocks of each place, (N,) int64: it grows when a clock was reset. N if the time is unknown."""
    clocks = np.full(len(times), len(times))
    known = np.flatnonzero(~np.isnan(times))
    by_place = known[np.argsort(places[known], kind="stable")]
    place = places[by_place]
    back = (np.diff(times[by_place]) < -CLOCK_JUMP_SECONDS) & (np.diff(place) == 0)
    images = np.bincount(place)
    follows = np.bincount(place[1:], back, minlength=len(images)) * MIN_STEPS_PER_JUMP <= images
    clocks[by_place] = np.cumsum(np.concatenate([[0], back & follows[place[1:]]]))
    return clocks


def find_event_starts(arrangement: Arrangement, gap: float, boundaries: Sequence[Boundary] = ()) -> np.ndarray:
    """Return which images start an event, (N,) bool in arrangement order.

    Args:
        gap: Minimum seconds between events.
        boundaries: User edits, applied in order.
    """
    starts = arrangement.gaps > gap
    for boundary in boundaries:
        low, high = sorted(arrangement.positions[[boundary.before, boundary.after]].tolist())
        if boundary.is_split:
            starts[high] = True
        elif _is_merge_valid(arrangement, low, high, boundary.seconds):
            starts[low + 1 : high + 1] = False
    return starts


def _is_merge_valid(arrangement: Arrangement, low: int, high: int, seconds: float | None) -> bool:
    if arrangement.places[low] != arrangement.places[high]:
        return False
    apart = abs(arrangement.times[high] - arrangement.times[low])
    return seconds is None or bool(np.isnan(apart)) or bool(apart <= abs(seconds) + GAP_TOLERANCE_SECONDS)


def number_events_and_frames(
    arrangement: Arrangement, starts: np.ndarray, image_ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's event (smallest image id) and index in it from 0, (N,) int64 each (`starts`: (N,) bool)."""
    begins = np.flatnonzero(starts)
    events, frames = np.zeros(len(image_ids), np.int64), np.zeros(len(image_ids), np.int64)
    if len(begins):
        number = np.cumsum(starts) - 1
        events[arrangement.order] = np.minimum.reduceat(image_ids[arrangement.order], begins)[number]
        frames[arrangement.order] = np.arange(len(image_ids)) - begins[number]
    return events, frames
