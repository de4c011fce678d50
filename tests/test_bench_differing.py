"""What `bench differing` teaches of answers that are known here."""

import numpy as np
import pytest

from annotator.benchmark.disagreement_teaching import (
    TEAM_SIZES,
    build_taught_labels,
    compute_presence_probabilities,
    draw_answers,
    measure,
)
from annotator.errors import AnnotatorError

ANSWERS = np.array([[[1, 1, 0]], [[1, 0, 0]], [[0, 0, 0]]], bool)  # three people, one image, three classes
TRUTH = np.array([[1, 0, 1]], bool)


@pytest.mark.parametrize(
    ("way", "given", "labels"),
    [
        ("agreed", (1, 1, 1), [0, 0, -1]),
        ("majority", (1, 1, 1), [1, -1, -1]),
        ("majority", (1, 1, 0), [1, 0, -1]),  # a draw
        ("settled", (1, 1, 1), [1, -1, -1]),  # what all overlooked is not settled
        ("first", (0, 0, 1), [-1, -1, -1]),
        ("agreed", (0, 1, 0), [1, -1, -1]),
        ("probable", (0, 1, 0), [1, -1, -1]),  # one person's answers are taken as they are
    ],
)
def test_each_way_teaches_what_it_says(way, given, labels):
    who = np.array(given, bool)[:, None]
    (taught,) = build_taught_labels(way, np.random.default_rng(0), ANSWERS, who, TRUTH)
    assert taught.tolist() == [labels]


def test_of_two_against_one_the_two_are_believed_and_one_careless_person_alone_less_than_a_careful_one():
    rng = np.random.default_rng(0)
    truth = rng.random((300, 3)) < 0.3
    answers, given = draw_answers(rng, truth, 3)
    chance, several = compute_presence_probabilities(answers, given), given.all(0)
    two_careful = several[:, None] & (answers.sum(0) == 2) & ~answers[0]
    assert chance[two_careful].min() > 0.9
    alone = (given.sum(0) == 1)[:, None] & np.ones_like(truth)
    absent = [chance[alone & (given[person][:, None]) & ~answers[person]].mean() for person in range(3)]
    assert absent[0] > 1.5 * max(absent[1:])


@pytest.mark.slow
@pytest.mark.training
def test_every_team_and_way_has_a_figure_and_a_way_there_is_not_is_refused():
    found = measure(seeds=1, ways=("settled",))["figures"]
    assert all(0.3 < found[f"{people} people, {way}"] < 1 for people in TEAM_SIZES for way in ("agreed", "settled"))
    with pytest.raises(AnnotatorError, match="'settle'"):
        measure(ways=("settle",))
