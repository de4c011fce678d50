"""Event tiles: one grid tile per event whose unanswered images all get the same prediction.

A label against the prediction goes to the shown image only.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from annotator.snapshot.run_predictions import Predictions
from annotator.store.database.database import Database
from annotator.store.events import stored_events
from annotator.store.people.assignment import UnavailableImages

# the probability that parts "yes" from "no"; the share of "yes" from which on a grid starts with it
EVEN_PROBABILITY = 0.5
MAX_IMAGES_PER_TILE = 48  # images of an event that one tile stands for; images of a longer event are tiles of their own
IMAGES_PER_LOOKUP = 64, 256  # images whose events are looked up in one query: at first, and later on


EventTilesFactory = Callable[[int, UnavailableImages], "EventTiles"]
"""Returns the tiles of a class, from its id and the images that the page is not given."""


def applies_to_event(tile: float, is_present: bool) -> bool:
    """Return whether a label for a tile of this probability goes to its whole event, because the prediction agrees."""
    return is_present == (tile >= EVEN_PROBABILITY)


def _is_unanimous(ranked: list[tuple[int, float]]) -> bool:
    return all(chance >= EVEN_PROBABILITY for _, chance in ranked) or all(
        chance < EVEN_PROBABILITY for _, chance in ranked
    )


@dataclass
class EventTiles:
    """A grouping of one class's grid images by event."""

    db: Database
    predictions: Predictions
    class_id: int
    unavailable: UnavailableImages
    # images the page may still lease
    room: int
    # tile image id -> (image id, probability) of the images it stands for, likeliest first
    others: dict[int, list[tuple[int, float]]] = field(default_factory=dict[int, list[tuple[int, float]]])
    is_full: bool = False

    def group_by_event(self, source: Iterable[tuple[int, float]]) -> Iterator[tuple[int, float]]:
        """Yield the images of `source`, but only the first image of each event with one prediction."""
        source, taken, (at_once, later) = iter(source), set[int](), IMAGES_PER_LOOKUP
        while block := list(islice(source, at_once)):
            at_once = later
            of_image = self._find_unanimous_events([image_id for image_id, _ in block if image_id not in taken])
            for image_id, probability in block:
                if image_id in taken:
                    continue
                others = [one for one in of_image.get(image_id, []) if one[0] != image_id and one[0] not in taken]
                self.room -= 1 + len(others)
                if self.room < 0:
                    self.is_full = True
                    return
                taken |= {image_id, *(other for other, _ in others)}
                if others:
                    self.others[image_id] = others
                yield image_id, probability

    def _find_unanimous_events(self, image_ids: list[int]) -> dict[int, list[tuple[int, float]]]:
        """Return image id -> free images of its event, likeliest first, if all get the same prediction."""
        events = stored_events.find_open_images(self.db, image_ids, self.class_id, MAX_IMAGES_PER_TILE)
        ids = np.array([image_id for event in events.values() for image_id in event], np.int64)
        # Left out first: what others have answered of images that wait for blind answers must not be told by a tile.
        ids = ids[~self.unavailable.get_mask(ids)]
        chances = self.predictions.align(self.predictions.probabilities, ids, [self.class_id])[:, 0]
        chance_of = dict(zip(ids.tolist(), chances.astype(float).tolist(), strict=True))
        found: dict[int, list[tuple[int, float]]] = {}
        for event in events.values():
            ranked = [(image_id, chance_of[image_id]) for image_id in event if image_id in chance_of]
            if len(ranked) > 1 and _is_unanimous(ranked):
                ranked.sort(key=lambda pair: -pair[1])
                found |= dict.fromkeys((image_id for image_id, _ in ranked), ranked)
        return found
