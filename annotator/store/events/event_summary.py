"""Event statistics, doubtful neighbors and event lists for the pages."""

from dataclasses import dataclass

import numpy as np

from annotator.store.events.project_events import Events

HISTOGRAM_EDGES_SECONDS = (0, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 6 * 3600, 86400, 7 * 86400, np.inf)
"""Upper ends of the bars of the histogram, in seconds, beside the gap of events; an end belongs to its bar."""
MAX_DOUBTFUL_RATIO = 4.0


@dataclass(frozen=True)
class GapBar:
    """A bar of the histogram of gaps between images. Limits are in seconds, and `up_to` of the last bar is None."""

    above: float
    up_to: float | None
    pairs: int


@dataclass(frozen=True)
class EventSummary:
    """Statistics of all events."""

    gap: float
    images: int
    events: int
    without_time: int
    # (images per event, number of events), ascending
    sizes: tuple[tuple[int, int], ...]
    # histogram, without imported sequences
    gaps: tuple[GapBar, ...]
    edits: int


def summarize_events(events: Events) -> EventSummary:
    begins = np.flatnonzero(events.starts)
    sizes, counts = np.unique(np.diff(begins, append=len(events.starts)), return_counts=True)
    gaps = events.arrangement.gaps
    edges = np.unique([*HISTOGRAM_EDGES_SECONDS, events.gap])
    bars = np.bincount(np.searchsorted(edges, gaps[np.isfinite(gaps)]), minlength=len(edges)).tolist()
    return EventSummary(
        gap=events.gap,
        images=len(events.starts),
        events=len(begins),
        without_time=int(np.isnan(events.captures.times).sum()),
        sizes=tuple(zip(sizes.tolist(), counts.tolist(), strict=True)),
        gaps=tuple(
            GapBar(above, None if np.isinf(up_to) else up_to, pairs)
            for above, up_to, pairs in zip((0.0, *edges.tolist()), edges.tolist(), bars, strict=False)
        ),
        edits=len(events.edits),
    )


@dataclass(frozen=True)
class NeighborPair:
    """Two neighboring images, `gap` seconds apart, and whether they are in one event."""

    before: int
    after: int
    gap: float
    is_together: bool


def find_doubtful_pairs(events: Events, limit: int) -> list[NeighborPair]:
    """Return unedited neighboring images that may be grouped wrongly, most doubtful first.

    Only gaps within a factor MAX_DOUBTFUL_RATIO of the event gap are doubtful.
    """
    gaps = events.arrangement.gaps
    finite = np.flatnonzero(np.isfinite(gaps))
    doubt = np.abs(np.log((gaps[finite] + 1) / (events.gap + 1)))
    finite, doubt = finite[doubt <= np.log(MAX_DOUBTFUL_RATIO)], doubt[doubt <= np.log(MAX_DOUBTFUL_RATIO)]
    nearest = finite[np.argsort(doubt, kind="stable")[: limit + len(events.edits)]]
    decided = {edit.change.image_id for edit in events.edits}
    pairs = [
        NeighborPair(
            events.get_image_at(position - 1),
            events.get_image_at(position),
            float(gaps[position]),
            not events.starts[position],
        )
        for position in nearest.tolist()
    ]
    return [pair for pair in pairs if pair.after not in decided][:limit]


@dataclass(frozen=True)
class Event:
    """An event with its ordered images."""

    # its smallest image id
    id: int
    image_ids: tuple[int, ...]
    # began_at, ended_at: unix seconds by corrected clocks, or None
    began_at: float | None
    ended_at: float | None
    has_before: bool


def list_events(events: Events, start: int, limit: int, *, largest_first: bool = False) -> list[Event]:
    """Return `limit` events from number `start` on."""
    begins = np.flatnonzero(events.starts)
    ends = np.append(begins[1:], len(events.starts))
    order = np.argsort(begins - ends, kind="stable") if largest_first else np.arange(len(begins))
    return [_build_event(events, int(begins[one]), int(ends[one])) for one in order[start : start + limit]]


def _build_event(events: Events, begin: int, end: int) -> Event:
    image_ids = events.captures.image_ids[events.arrangement.order[begin:end]]
    places = events.arrangement.places
    return Event(
        id=int(image_ids.min()),
        image_ids=tuple(image_ids.tolist()),
        began_at=events.get_time_at(begin),
        ended_at=events.get_time_at(end - 1),
        has_before=begin > 0 and bool(places[begin - 1] == places[begin]),
    )
