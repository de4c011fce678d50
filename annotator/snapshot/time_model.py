"""How long an answer of each kind takes this person: start values with their sources, corrected by their own times.

A person's own times say how much faster or slower than the start values they are, with each kind of answer; the start
values count for the first minute. Where nothing is known of somebody, everybody's times are used.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from annotator.records import SOURCES
from annotator.store import answer_times
from annotator.store.answer_times import Answer
from annotator.store.database import Database

NEWEST = 3000  # decisions that are looked at
BELIEF = 60.0  # seconds of work that the start values are worth


@dataclass(frozen=True)
class Tempo:
    """Seconds of the parts of an answer.

    tile      to look at one image of a grid with one class in mind. Krishna et al., "Embracing Error to Enable Rapid
              Crowdsourcing", CHI 2016: 0.1 s where images rush past and mistakes are undone by asking several people,
              1.7 s where each is asked about by itself; a grid that one person scans lies between
    change    to press one tile or one class: Card, Moran and Newell's keystroke-level model, CACM 1980, 1.1 s to point
              and 0.2 s to press, less where the hand is there already
    submit    to end a grid or an image and see the next
    begin     to read what a grid asks about and turn to it: a change of task costs a second or two before the first
              answer. Rogers and Monsell, Journal of Experimental Psychology: General, 1995, and a glance at an example
    look      to take in one image
    check     to ask oneself for one more class whether the image shows it: between 0.34 s (Lin et al., "Microsoft
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

    def scaled(self, factor: float) -> "Tempo":
        """Everything so many times as slow."""
        return Tempo(*(factor * value for value in vars(self).values()))


START = Tempo()


def tempo_of(db: Database, annotator: str) -> Tempo:
    """How long answers take this person, from what they have answered."""
    found = answer_times.newest_answers(db, annotator, NEWEST) or answer_times.newest_answers(db, "", NEWEST)
    return learned(found)


def learned(answers: Iterable[Answer]) -> Tempo:
    """The start values, each kind of answer as much faster or slower as these were."""
    taken, expected = {"grid": BELIEF, "image": BELIEF, "click": BELIEF}, {}
    expected |= taken
    for one in answers:
        changes = min(one.present, one.cells - one.present)
        kind = SOURCES[one.source].timed if one.source in SOURCES else ""
        if kind == "click":
            usual = START.click
        elif not kind or not one.together:  # one suggestion, or one doubted answer, on the Review page
            continue
        else:
            usual = (START.grid if kind == "grid" else START.image)(one.cells, changes)
        taken[kind] += one.seconds
        expected[kind] += usual
    grid, image, click = (START.scaled(taken[kind] / expected[kind]) for kind in ("grid", "image", "click"))
    # `submit` and `change` belong to both grids and images: the grid's are kept, the image's differ by what is its own.
    return replace(grid, look=image.look, check=image.check, click=click.click)
