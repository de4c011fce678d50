"""What a person could do next, and what each of these would bring: grids, whole images, single clicks, audits.

An offer's worth is the number of labels it is expected to finish, positives in full and a ruled-out class a little,
for the seconds that this person takes for such an answer and for its presses. Because a person answers, what is
decided is also correct.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from annotator.queues import grid
from annotator.queues.grid import Out
from annotator.records import PRESENT
from annotator.snapshot.snapshot import Snapshot
from annotator.snapshot.time_model import Tempo
from annotator.store import auto_accepted, decisions
from annotator.store.database import Database

SIZES = (12, 24, 48, 96)  # tiles of a grid
PRESS = 4.0  # seconds that a press counts beyond its time: without a price small grids full of corrections win
TRIED = 32  # classes whose grids are looked at in full, those with the most expected finds first
LOOKED_AT = 256  # images at the front of the likeliest that are weighed as a whole
RULED_OUT = 0.02  # a class ruled out is worth so much of a class found
SURE, SURE_AMONG = 0.8, 5000  # probability from which a model is sure; cells of a class that are looked at
LIKELY = 0.5  # from this probability on a class starts as present
LEARNED = 0.25  # what a model learns from a cell that it is quite unsure of, in labels, while little is decided


@dataclass(frozen=True)
class Offer:
    """One thing to do.

    kind         grid, image, click, or doubt: a grid of answers to look at again
    class_id     of a grid; 0 for a whole image
    cells        (image id, probability or None) of a grid; of the others the one image
    found        expected new positives; decided: cells that it settles; changes: expected presses besides Enter
    learned      what the model learns, in labels
    seconds      this person's time
    drawn        not for its worth: "blind" at random to keep estimates honest, "lesson" to learn from, "rest" because
                 little else is left; else ""
    start        of answers to look at again, what they were
    """

    kind: str
    class_id: int
    cells: Sequence[tuple[int, float | None]]
    found: float
    decided: int
    changes: float
    learned: float
    seconds: float
    drawn: str = ""
    start: bool = False

    @property
    def worth(self) -> float:
        """Labels, of which those ruled out and those learned from count a little."""
        return self.found + RULED_OUT * max(0.0, self.decided - self.found) + self.learned

    @property
    def rate(self) -> float:
        """Labels a second, where every press counts for more than the time it takes."""
        presses = 1 if self.kind == "click" else 1 + self.changes
        return self.worth / (self.seconds + PRESS * presses)


def grids(snapshot: Snapshot, tempo: Tempo, out: Out, early: float) -> Iterator[Offer]:
    """The best grid of every class that may have one of the best, of whatever size pays most.

    early    0 .. 1, how much of the data set is still to be decided: what is learned is worth as much less
    """
    finds = grid.finds_of(snapshot, out, SIZES[0])
    for class_id in sorted(finds, key=lambda one: (-finds[one], one))[:TRIED]:
        column = snapshot.delta.column(class_id)
        if column is None:
            continue
        cells = list(islice(grid.ranked(snapshot, column, out.images(class_id)), SIZES[-1]))
        sized = [cells[:size] for size in SIZES if size == SIZES[0] or len(cells) > size // 2]
        made = [grid_offer(class_id, some, tempo, early) for some in sized if some]
        if made:
            yield max(made, key=_rate)


def grid_offer(class_id: int, cells: Sequence[tuple[int, float]], tempo: Tempo, early: float) -> Offer:
    """A grid of these cells."""
    chances = np.array([chance for _, chance in cells])
    found = float(chances.sum())
    changes = min(found, len(cells) - found)
    return Offer(
        "grid", class_id, cells, found, len(cells), changes, _learned(chances, early), tempo.grid(len(cells), changes)
    )


def images(
    db: Database,
    snapshot: Snapshot,
    tempo: Tempo,
    out: Collection[int],
    early: float,
    bare: Sequence[int],
    anything: "Anything",
) -> Iterator[Offer]:
    """The image that is most worth answering in every class, and the one most worth a single click.

    bare        images on which nobody has seen any class yet
    anything    how likely there is one
    """
    rows = snapshot.rankings.by_image[:LOOKED_AT]
    likeliest = snapshot.predictions.image_ids[rows[rows >= 0]].tolist()
    ids = [one for one in dict.fromkeys([*likeliest, *bare]) if one not in out]
    whole, clicks = [], []
    for image_id, chances, seen in weigh(db, snapshot, ids):
        least = 0.0 if seen else anything.among(chances)
        whole.append(image_offer(image_id, chances, tempo, early, least=least))
        if not seen:
            clicks.append(click_offer(image_id, chances, tempo, early, least=least))
    for some in (whole, clicks):
        if some:
            yield max(some, key=_rate)


class Anything:
    """How likely an image on which nothing is known to be there shows something in the classes that are still open.

    Of the images that were answered whole, some share showed anything. If this one does as well, then in one of the
    open classes, or else in one that was ruled out; classes count as often as people saw them (Bayes' rule).

    whole, there    images answered whole, and those of them on which something was
    present         class id -> how often people saw it
    """

    def __init__(self, whole: int, there: int, present: dict[int, int]):
        self.share = there / (whole + 1)  # at least one image is empty, until it is seen
        self.often = {class_id: count + 0.5 for class_id, count in present.items()}
        self.total = sum(self.often.values())

    def among(self, open_: Collection[int]) -> float:
        """The probability that one of these classes is there."""
        left = sum(self.often.get(class_id, 0.0) for class_id in open_) / max(self.total, 1e-9)
        return self.share * left / max(self.share * left + 1 - self.share, 1e-9)


def weigh(db: Database, snapshot: Snapshot, image_ids: Sequence[int]) -> Iterator[tuple[int, dict[int, float], bool]]:
    """Of these images the open cells, class id -> probability (0 without a model), and whether people saw any class
    there; images without an open cell are left out."""
    states: dict[int, dict[int, int]] = {}
    for label in decisions.labels(db, image_ids):
        states.setdefault(label.image_id, {})[label.class_id] = label.state
    filled = auto_accepted.accepted_class_ids(db, image_ids)
    class_ids = snapshot.predictions.class_ids.tolist()
    for image_id, row, known in zip(image_ids, *snapshot.predictions.rows(image_ids), strict=True):
        if not known:
            continue
        said = states.get(image_id, {})
        chances = np.nan_to_num(np.array(snapshot.predictions.probabilities[row], np.float64)).tolist()
        taken = {*said, *filled.get(image_id, {})}
        left = {class_id: chance for class_id, chance in zip(class_ids, chances, strict=True) if class_id not in taken}
        if left:
            yield image_id, left, PRESENT in said.values()


def sharpness(snapshot: Snapshot) -> float:
    """Which share of the positives that the model expects among the open cells lies in cells it is sure of."""
    scores = snapshot.rankings.scores[:, :SURE_AMONG].astype(np.float32)
    return float(scores[scores >= SURE].sum() / max(float(snapshot.rankings.expected.sum()), 1e-9))


def image_offer(
    image_id: int,
    chances: dict[int, float],
    tempo: Tempo,
    early: float = 0.0,
    *,
    least: float = 0.0,
) -> Offer:
    """Answering every open class of one image; chances: class id -> probability; least: how many are there at least."""
    each = np.array(list(chances.values()))
    set_beforehand = each >= LIKELY
    changes = float(np.where(set_beforehand, 1 - each, each).sum())
    changes = max(changes, least - float(each[set_beforehand].sum()))
    found, seconds = max(float(each.sum()), least), tempo.image(len(each), changes)
    return Offer("image", 0, [(image_id, None)], found, len(each), changes, _learned(each, early), seconds)


def click_offer(image_id: int, chances: dict[int, float], tempo: Tempo, early: float, *, least: float = 0.0) -> Offer:
    """Naming one class of an image on which none is known; least: the probability that there is one, at least."""
    each = np.array(list(chances.values()))
    found = max(float(1 - np.prod(1 - each)), least)
    return Offer("click", 0, [(image_id, None)], found, 1, found, _learned(each, early) / len(each), tempo.click)


def _learned(chances: np.ndarray, early: float) -> float:
    """What a model learns of answers to cells with these probabilities (n,), in labels: most where it is unsure.

    Lewis and Gale, "A Sequential Algorithm for Training Text Classifiers", SIGIR 1994: uncertainty sampling.
    """
    return LEARNED * early * float((chances * (1 - chances)).sum())


def _rate(offer: Offer) -> float:
    return offer.rate
