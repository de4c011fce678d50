"""People who err, in the simulated projects of `bench certificate`: who answers which image, and what they say."""

from dataclasses import dataclass

import numpy as np

from models.labels import ABSENT, PRESENT
from models.statistics.double_reading import AS_ABSENT, AS_LABELED, AS_PRESENT, WAYS, DoubleRead

OPEN = 2


@dataclass(frozen=True)
class People:
    """A team, every one of whom answers images of their own and, blind, some that others answer, too.

    many          how many they are
    finds         sensitivity of each person in each class, from .. to
    rejects       specificity of each person in each class, from .. to
    overlap       share of the images that two of them answer
    settled       share of the cells on which they differ that a reviewer, who is right, has settled
    careless      whether the first of them finds half of what is there
    overlooked    share of the present cells that are hard: people find a third of what they find otherwise
    """

    many: int
    finds: tuple[float, float]
    rejects: tuple[float, float]
    overlap: float
    settled: float = 1.0
    careless: bool = False
    overlooked: float = 0.0


@dataclass(frozen=True, eq=False)
class Said:
    """What a team says of N images and C classes.

    owner     (N,) int, whose image it is
    first     (N, C) bool, what the owner says; it becomes the label
    second    (N, C) bool, what somebody else says; also what is said in audits
    other     (N,) int, who that is
    twice     (N,) bool, whether an image is answered by both
    """

    owner: np.ndarray
    first: np.ndarray
    second: np.ndarray
    other: np.ndarray
    twice: np.ndarray


def say(rng: np.random.Generator, truth: np.ndarray, people: People) -> Said:
    """Everybody's answers to cells whose truth (N, C) is given."""
    images, classes = truth.shape
    finds = rng.uniform(*people.finds, (people.many, classes))
    rejects = rng.uniform(*people.rejects, (people.many, classes))
    if people.careless:
        finds[0] = 0.5
    # The first answers most images, the last one fewest.
    volume = np.arange(people.many, 0, -1.0)
    owner = rng.choice(people.many, images, p=volume / volume.sum())
    other = (owner + rng.integers(1, people.many, images)) % people.many
    ease = np.where(rng.random(truth.shape) < people.overlooked, 1 / 3, 1.0)

    def answers(who: np.ndarray) -> np.ndarray:
        return rng.random(truth.shape) < np.where(truth, finds[who] * ease, 1 - rejects[who])

    return Said(owner, answers(owner), answers(other), other, rng.random(images) < people.overlap)


def read_twice(
    rng: np.random.Generator, said: Said, truth: np.ndarray, states: np.ndarray, people: People
) -> tuple[DoubleRead, np.ndarray]:
    """Label the images that two people answered, in `states` (N, C), and settle some of what they differ on.

    returns    what can be compared, and the cells (N, C) bool on which they still differ
    """
    rows = np.flatnonzero(said.twice)
    first, second = said.first[rows], said.second[rows]
    differ = first != second
    settled = differ & (rng.random(differ.shape) < people.settled)
    label = np.where(settled, truth[rows], first)
    states[rows] = np.where(label, PRESENT, ABSENT)
    unsettled = np.zeros(states.shape, bool)
    unsettled[rows] = differ & ~settled
    classes = states.shape[1]
    counts = {kind: np.zeros((WAYS, 2, people.many, classes), np.int64) for kind in (True, False)}
    for way in (AS_LABELED, AS_PRESENT, AS_ABSENT):
        is_ = np.where(unsettled[rows] & (way != AS_LABELED), way == AS_PRESENT, label)
        for who, mine, theirs in ((said.owner, first, second), (said.other, second, first)):
            for kind in (True, False):
                asked = (is_ == kind) & (theirs == kind)
                np.add.at(counts[kind][way, 0], who[rows], asked)
                np.add.at(counts[kind][way, 1], who[rows], asked & (mine == kind))
    answers = np.concatenate([said.owner, said.other[rows]])
    volume = np.bincount(answers, minlength=people.many) / len(answers)
    found, rejected = np.zeros((2, classes, 3), np.int64)
    found[:, 2], rejected[:, 2] = label.sum(0), (~label).sum(0)
    return DoubleRead(volume, counts[True], counts[False], found, rejected), unsettled
