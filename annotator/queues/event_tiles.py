"""One tile an event in a grid: where the model agrees with itself about the event's unanswered images.

These are the images that this page may be given. The model agrees with itself where it has a probability for the class
on each of them, and all are at least EVEN or all are below. All are leased with the tile. Where a person contradicts
the model about the tile, only those get the answer that look like it to the model (`spoken_for`): one frame may show
what the others do not.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from scipy.special import logit

from annotator.snapshot.predictions import Predictions
from annotator.store.database.database import Database
from annotator.store.events import stored
from annotator.store.people.assignment import Taken

EVEN = 0.5  # the probability that parts "yes" from "no"; the share of "yes" from which on a grid starts with it
MOST = 48  # images of an event that one tile stands for; images of a longer event are tiles of their own
AT_ONCE = 160  # images whose events are looked up in one query

NEAR = 1.0  # log odds between the tile and an image that looks like it to the model
SUREST = 1e-4  # probabilities are moved so far inside (0, 1) first

EventTilesOf = Callable[[int, Taken], "EventTiles"]
"""Returns the tiles of a class, from its id and the images that the page is not given."""


def spoken_for(tile: float, others: np.ndarray, is_present: np.ndarray | bool) -> np.ndarray:
    """Return which of the other images of an event, (n,) bool, get the answer that a person gives to its tile.

    Args:
        tile: The probability of the tile.
        others: (n,) those of the other images.
        is_present: The answer; (n,) for several.
    """
    odds = logit(np.clip(np.append(others, tile), SUREST, 1 - SUREST))
    return (is_present == (tile >= EVEN)) | (np.abs(odds[:-1] - odds[-1]) <= NEAR)


@dataclass
class EventTiles:
    """The events that tiles stand for, for one class.

    Attributes:
        predictions: Of the current run.
        out: Images that the page is not given.
        room: Images that the page may still lease; of what comes after them, nothing is given.
        others: Image of a tile -> the other images that it stands for, likeliest first, with their probabilities.
        is_full: There was more than there is room for.
    """

    db: Database
    predictions: Predictions
    class_id: int
    out: Taken
    room: int
    others: dict[int, list[tuple[int, float]]] = field(default_factory=dict[int, list[tuple[int, float]]])
    is_full: bool = False

    def first_of_events(self, source: Iterable[tuple[int, float]]) -> Iterator[tuple[int, float]]:
        """Yield the images of `source`, but of an event that one tile stands for the first image only."""
        source, taken = iter(source), set[int]()
        while block := list(islice(source, AT_ONCE)):
            of_image = self._others_of([image_id for image_id, _ in block if image_id not in taken])
            for image_id, probability in block:
                if image_id in taken:
                    continue
                others = [other for other in of_image.get(image_id, []) if other[0] not in taken]
                self.room -= 1 + len(others)
                if self.room < 0:
                    self.is_full = True
                    return
                taken |= {image_id, *(other for other, _ in others)}
                if others:
                    self.others[image_id] = others
                yield image_id, probability

    def _others_of(self, image_ids: list[int]) -> dict[int, list[tuple[int, float]]]:
        """Return for each image the others of its event that one tile stands for; images without any are left out."""
        events = stored.unanswered(self.db, image_ids, self.class_id, MOST)
        ids = np.array([image_id for event in events.values() for image_id in event], np.int64)
        # Left out first: what others have answered of images that wait for blind answers must not be told by a tile.
        ids = ids[~self.out.among(ids)]
        chances = self.predictions.aligned(self.predictions.probabilities, ids, [self.class_id])[:, 0]
        chance_of = dict(zip(ids.tolist(), chances.astype(float).tolist(), strict=True))
        found: dict[int, list[tuple[int, float]]] = {}
        for event in events.values():
            ranked = [(image_id, chance_of[image_id]) for image_id in event if image_id in chance_of]
            likely = sum(chance >= EVEN for _, chance in ranked)
            unlikely = sum(chance < EVEN for _, chance in ranked)  # nan is neither
            if len(ranked) > 1 and len(ranked) in (likely, unlikely):
                ranked.sort(key=lambda pair: -pair[1])
                for image_id, _ in ranked:
                    found[image_id] = [pair for pair in ranked if pair[0] != image_id]
        return found
