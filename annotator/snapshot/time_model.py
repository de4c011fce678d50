"""Time model: how many seconds an answer of each kind takes this annotator.

Default times (with sources, below) are rescaled per kind of answer by this annotator's measured times; the defaults
weigh as much as one minute of work. Without measured times of this annotator those of all annotators are used. The
module lies in snapshot because Autopilot (queues) and the certificate (quality) both use it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from annotator.records import SOURCES
from annotator.store import answer_times
from annotator.store.answer_times import Answer
from annotator.store.database import Database

NEWEST = 3000  # decisions that are read
WEIGHT = 60.0  # seconds of measured work that the defaults weigh as much as


@dataclass(frozen=True)
class TimeModel:
    """Seconds of the parts of an answer.

    tile      to look at one image of a grid with one class in mind. Krishna et al., "Embracing Error to Enable Rapid
              Crowdsourcing", CHI 2016: 0.1 s where images rush past and mistakes are undone by asking several people,
              1.7 s where each is asked about by itself; a grid that one person scans lies between
    change    to press one tile or one class: Card, Moran and Newell's keystroke-level model, CACM 1980, 1.1 s to point
              and 0.2 s to press, less where the hand already lies
    submit    to end a grid or an image and see the next
    begin     to read what a grid asks about and turn to it: a change of task costs a second or two before the first
              answer. Rogers and Monsell, Journal of Experimental Psychology: General, 1995, and a glance at an example
    look      to take in one image
    check     to decide for one more class whether the image shows it: between 0.34 s (Lin et al., "Microsoft
              COCO", ECCV 2014: about 20,000 hours for 328,000 images, 8 people and 80 classes) and 1 s (Bearman et al.,
              "What's the Point", ECCV 2016: 20 classes of PASCAL VOC)
    click     to name one thing that an image shows: a look, a choice, and a key
    """

    tile: float = 0.35
    change: float = 1.0
    submit: float = 1.0
    begin: float = 2.0
    look: float = 1.0
    check: float = 0.7
    click: float = 2.5

    def grid(self, tiles: int, changes: float) -> float:
        """Seconds of a grid of so many tiles of which so many are changed."""
        return self.begin + self.submit + tiles * self.tile + changes * self.change

    def image(self, classes: int, changes: float) -> float:
        """Seconds of answering so many classes of one image, so many of which are changed."""
        return self.look + self.submit + classes * self.check + changes * self.change

    def scaled(self, factor: float) -> "TimeModel":
        """All times multiplied by this factor."""
        return TimeModel(*(factor * value for value in vars(self).values()))


DEFAULTS = TimeModel()


def time_model_of(db: Database, annotator: str) -> TimeModel:
    """The time model of this annotator, fitted to their newest answers; annotator "": to everybody's."""
    answers = answer_times.newest_answers(db, annotator, NEWEST) or answer_times.newest_answers(db, "", NEWEST)
    return fitted(answers)


def fitted(answers: Iterable[Answer]) -> TimeModel:
    """The defaults, rescaled per kind of answer by measured seconds over expected seconds of these answers."""
    measured = {"grid": WEIGHT, "image": WEIGHT, "click": WEIGHT}
    expected = dict(measured)
    for answer in answers:
        changes = min(answer.present, answer.cells - answer.present)
        kind = SOURCES[answer.source].timed if answer.source in SOURCES else ""
        if kind == "click":
            usual = DEFAULTS.click
        elif not kind or not answer.together:  # a single suggestion or likely mistake on the Review page
            continue
        else:
            usual = (DEFAULTS.grid if kind == "grid" else DEFAULTS.image)(answer.cells, changes)
        measured[kind] += answer.seconds
        expected[kind] += usual
    grid, image, click = (DEFAULTS.scaled(measured[kind] / expected[kind]) for kind in ("grid", "image", "click"))
    # Grids and images share `submit` and `change`: those of the grid are kept, images differ in `look` and `check`.
    return replace(grid, look=image.look, check=image.check, click=click.click)
