"""People who err, in the simulated projects of `bench certificate`: who answers which image, and what they say.

Each has a sensitivity and a specificity per class, which is what a certificate estimates. Errors of single key presses
are another model: annotator/benchmark/simulated_people.py.
"""

from dataclasses import dataclass

import numpy as np

from annotator.quality.double_reading_counts import DoubleReadingCounter
from spmll.labels import ABSENT, PRESENT
from spmll.statistics.allowed_mistakes import DoubleReadings

OPEN_STATE = 2


@dataclass(frozen=True)
class ErringTeam:
    """A team; each person answers images of their own and, blind, some that another person answers, too.

    Attributes:
        count: The number of people.
        sensitivity_range: The range of the sensitivity of each person in each class.
        specificity_range: The range of the specificity of each person in each class.
        overlap: The share of the images that two people answer.
        settled_share: The share of the cells with different answers that a reviewer, who is right, has settled.
        has_careless: Whether the first person finds half of what is present.
        overlooked_share: The share of the present cells that are hard: people find a third as many of them as of
            others.
    """

    count: int
    sensitivity_range: tuple[float, float]
    specificity_range: tuple[float, float]
    overlap: float
    settled_share: float = 1.0
    has_careless: bool = False
    overlooked_share: float = 0.0


@dataclass(frozen=True, eq=False)
class TeamAnswers:
    """The answers of a team about N images and C classes.

    Attributes:
        owner: (N,) int, the person to whom the image belongs.
        first_answers: (N, C) bool, the answers of the owner; they become the labels.
        second_answers: (N, C) bool, the answers of a second person; audits are answered with them, too.
        second_person: (N,) int, the second person.
        has_two_answers: (N,) bool, whether both people answer the image.
    """

    owner: np.ndarray
    first_answers: np.ndarray
    second_answers: np.ndarray
    second_person: np.ndarray
    has_two_answers: np.ndarray


def draw_answers(rng: np.random.Generator, truth: np.ndarray, people: ErringTeam) -> TeamAnswers:
    """Draw the answers of a team to cells whose truth (N, C) is given."""
    images, classes = truth.shape
    finds = rng.uniform(*people.sensitivity_range, (people.count, classes))
    rejects = rng.uniform(*people.specificity_range, (people.count, classes))
    if people.has_careless:
        finds[0] = 0.5
    # The first answers most images, the last one fewest.
    volume = np.arange(people.count, 0, -1.0)
    owner = rng.choice(people.count, images, p=volume / volume.sum())
    other = (owner + rng.integers(1, people.count, images)) % people.count
    ease = np.where(rng.random(truth.shape) < people.overlooked_share, 1 / 3, 1.0)

    def draw_reading(who: np.ndarray) -> np.ndarray:
        return rng.random(truth.shape) < np.where(truth, finds[who] * ease, 1 - rejects[who])

    return TeamAnswers(owner, draw_reading(owner), draw_reading(other), other, rng.random(images) < people.overlap)


def label_double_readings(
    rng: np.random.Generator, team: TeamAnswers, truth: np.ndarray, states: np.ndarray, people: ErringTeam
) -> tuple[DoubleReadings | None, np.ndarray]:
    """Label the images that two people answered, in `states` (N, C), and settle some of their different answers.

    Returns:
        The comparison of the two answers, None if there is none, and the cells (N, C) bool that are still different.
    """
    rows = np.flatnonzero(team.has_two_answers)
    first, second = team.first_answers[rows], team.second_answers[rows]
    differ = first != second
    settled = differ & (rng.random(differ.shape) < people.settled_share)
    label = np.where(settled, truth[rows], first)
    states[rows] = np.where(label, PRESENT, ABSENT)
    unsettled = np.zeros(states.shape, bool)
    unsettled[rows] = differ & ~settled
    counted, blocks = DoubleReadingCounter(people.count, states.shape[1]), []
    image, column = np.indices(label.shape).reshape(2, -1)
    for who, answer in ((team.owner, first), (team.second_person, second)):
        person, states_of = who[rows][image], [np.where(of, PRESENT, ABSENT).ravel() for of in (answer, label)]
        blocks.append(np.stack([image, column, person, *states_of, unsettled[rows].ravel()], 1))
    counted.add(np.concatenate(blocks), np.tile(column, 2))
    everybody = np.concatenate([team.owner, team.second_person[rows]])
    return counted.to_double_readings(np.bincount(everybody, minlength=people.count)), unsettled
