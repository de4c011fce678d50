"""People who err, in the simulated projects of `bench certificate`: who answers which image, and what they say."""

from dataclasses import dataclass

import numpy as np

from annotator.quality.double_reading import Counted
from models.labels import ABSENT, PRESENT
from models.statistics.double_reading import DoubleRead

OPEN = 2


@dataclass(frozen=True)
class People:
    """A team; each person answers images of their own and, blind, some that another person answers, too.

    Attributes:
        many: The number of people.
        finds: The range of the sensitivity of each person in each class.
        rejects: The range of the specificity of each person in each class.
        overlap: The share of the images that two people answer.
        settled: The share of the cells with different answers that a reviewer, who is right, has settled.
        careless: Whether the first person finds half of what is present.
        overlooked: The share of the present cells that are hard: people find a third as many of them as of others.
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
    """The answers of a team about N images and C classes.

    Attributes:
        owner: (N,) int, the person to whom the image belongs.
        first: (N, C) bool, the answers of the owner; they become the labels.
        second: (N, C) bool, the answers of a second person; audits are answered with them, too.
        other: (N,) int, the second person.
        twice: (N,) bool, whether both people answer the image.
    """

    owner: np.ndarray
    first: np.ndarray
    second: np.ndarray
    other: np.ndarray
    twice: np.ndarray


def say(rng: np.random.Generator, truth: np.ndarray, people: People) -> Said:
    """Draw the answers of a team to cells whose truth (N, C) is given."""
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
) -> tuple[DoubleRead | None, np.ndarray]:
    """Label the images that two people answered, in `states` (N, C), and settle some of their different answers.

    Returns:
        The comparison of the two answers, None if there is none, and the cells (N, C) bool that are still different.
    """
    rows = np.flatnonzero(said.twice)
    first, second = said.first[rows], said.second[rows]
    differ = first != second
    settled = differ & (rng.random(differ.shape) < people.settled)
    label = np.where(settled, truth[rows], first)
    states[rows] = np.where(label, PRESENT, ABSENT)
    unsettled = np.zeros(states.shape, bool)
    unsettled[rows] = differ & ~settled
    counted, blocks = Counted(people.many, states.shape[1]), []
    image, column = np.indices(label.shape).reshape(2, -1)
    for who, answer in ((said.owner, first), (said.other, second)):
        person, states_of = who[rows][image], [np.where(of, PRESENT, ABSENT).ravel() for of in (answer, label)]
        blocks.append(np.stack([image, column, person, *states_of, unsettled[rows].ravel()], 1))
    counted.add(np.concatenate(blocks), np.tile(column, 2))
    everybody = np.concatenate([said.owner, said.other[rows]])
    return counted.double_read(np.bincount(everybody, minlength=people.many)), unsettled
