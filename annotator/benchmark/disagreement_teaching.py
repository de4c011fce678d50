"""Ways to train on answers of people who err: mean AP on the images that nobody answered.

Some images are answered in every class by all of a team, as many by one of them only. The first of the team is
careless. What the model is taught of these answers:

    first       the first answer to each cell is taken for right
    agreed      what people differ on is left out
    majority    what people differ on is decided by most of them; a draw is left out
    probable    what a project does (quality/disagreement_resolution.py): what three people or more differ on is decided
                by how often each of them errs (spmll/statistics/error_rates.py), where that is sure enough; the rest
                is left out
    sure        every answer is decided so, those that one person alone gave as well, from a lower probability on
    weighted    the likelier answer to each cell, with the probability that it is right as its weight
    drawn       both answers to each cell, each with its probability as its weight
    settled     what people differ on is settled by somebody who is right

Methods take a mask of cells, and no weights: in `weighted` and `drawn` the scores are the mean of MODEL_DRAWS models,
and what is 70 % sure is taught to 70 % of them.
"""

import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from annotator.benchmark.datasets import DataSet
from annotator.benchmark.harness.child_processes import print_progress
from annotator.benchmark.harness.scratch import scratch_folder
from annotator.benchmark.methods import data
from annotator.benchmark.methods.compared_images import ComparedImages
from annotator.benchmark.methods.comparison_options import Options
from annotator.errors import AnnotatorError, did_you_mean
from annotator.quality.disagreement_resolution import MIN_PEOPLE, MIN_SURE_PROBABILITY
from spmll.labels import ABSENT, PRESENT, UNSEEN
from spmll.methods import make_method
from spmll.statistics.error_rates import Pattern, estimate_error_rates, estimate_probabilities
from spmll.statistics.metrics import mean_average_precision
from spmll.trainers import make_trainer
from spmll.trainers.base import TrainingLabels

TEACHING_WAYS = ("first", "agreed", "majority", "probable", "sure", "weighted", "drawn", "settled")
TEAM_SIZES = (2, 3)
ANSWERED_SHARE = 0.3  # share of the images
# share missed of what is there; false alarms of what is not
CAREFUL_ERROR_RATES, CARELESS_ERROR_RATES = ((0.15, 0.01), (0.45, 0.04))
# probability from which `sure` teaches a label; few answers of one person alone reach more
MIN_TAUGHT_PROBABILITY = 0.8
MODEL_DRAWS = 4


def measure(
    images: Path | None = None, truth: Path | None = None, *, seeds: int = 6, ways: Sequence[str] = TEACHING_WAYS
) -> dict[str, Any]:
    """Train `auto` on each way of using answers, with teams of two and of three people.

    Args:
        images: A folder of images; None: the sample data.
        truth: Its labels; None: those of the sample data.
        seeds: The number of seeds; figures are means over them.
        ways: Names in TEACHING_WAYS; `agreed`, with which the others are compared, always takes part.

    Returns:
        {"bench", "figures": {"<team> people, <way>": mean AP over the seeds, in [0, 1]; "... over agreed": the mean
        difference to `agreed`, with "low" and "high", the smallest and the largest of a seed}}.

    Raises:
        AnnotatorError: Images and truth do not fit, or a way does not exist.
    """
    if unknown := [way for way in ways if way not in TEACHING_WAYS]:
        raise AnnotatorError(f"Answers cannot be used by {unknown[0]!r}. {did_you_mean(unknown[0], TEACHING_WAYS, 99)}")
    ways = [way for way in TEACHING_WAYS if way in (*ways, "agreed")]
    dataset = data.read_dataset(images, truth, None, None, split=False)
    figures: dict[str, float] = {"images": len(dataset.train), "classes": len(dataset.classes), "seeds": seeds}
    with scratch_folder() as scratch:
        compared = ComparedImages(dataset, Options(("auto",), work=scratch).check_and_resolve())
        for people in TEAM_SIZES:
            found = [_measure_seed(dataset, compared, people, seed, ways) for seed in range(seeds)]
            for way in ways:
                figures[f"{people} people, {way}"] = statistics.fmean(of[way] for of in found)
                over = [of[way] - of["agreed"] for of in found]
                if way != "agreed":
                    figures[f"{people} people, {way} over agreed"] = statistics.fmean(over)
                    figures[f"{people} people, {way} over agreed, low"] = min(over)
                    figures[f"{people} people, {way} over agreed, high"] = max(over)
    return {"bench": "differing", "figures": figures, "ratios": {}}


def _measure_seed(
    dataset: DataSet, images: ComparedImages, people: int, seed: int, ways: Sequence[str]
) -> dict[str, float]:
    print_progress(f"{people} people, seed {seed}")
    rng, truth = np.random.default_rng([people, seed]), dataset.train.truth
    order = rng.permutation(len(truth))
    rows, others = np.split(order, [max(2, round(ANSWERED_SHARE * len(truth)))])
    rows = np.sort(rows)
    answers, given = draw_answers(rng, truth[rows], people)
    results: dict[str, float] = {}
    for way in ways:
        drawing = np.random.default_rng([people, seed, TEACHING_WAYS.index(way)])  # the same whichever ways take part
        taught = build_taught_labels(way, drawing, answers, given, truth[rows])
        # only what people said is unbiased in a project
        is_answer = ~find_differing_cells(answers, given) | (way != "probable")
        scores = [_train_scores(images, rows, labels, is_answer, seed)[others] for labels in taught]
        results[way] = mean_average_precision(np.mean(scores, 0), truth[others])
    return results


def draw_answers(rng: np.random.Generator, truth: np.ndarray, people: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the answers of a team of P people (the first of them careless) on images whose truth is (n, C) bool.

    Returns:
        (P, n, C) bool, the answers, and (P, n) bool, whether a person answers an image: its owner always does, and half
        of the images are answered by all.
    """
    missed, raised = np.array([CARELESS_ERROR_RATES] + [CAREFUL_ERROR_RATES] * (people - 1)).T[:, :, None, None]
    answers = rng.random((people, *truth.shape)) < np.where(truth, 1 - missed, raised)
    owner, by_all = rng.integers(0, people, len(truth)), rng.random(len(truth)) < 0.5
    return answers, (np.arange(people)[:, None] == owner) | by_all


def build_taught_labels(
    way: str, rng: np.random.Generator, answers: np.ndarray, answer_mask: np.ndarray, truth: np.ndarray
) -> list[np.ndarray]:
    """Return each model's labels (n, C) by one of TEACHING_WAYS: PRESENT, ABSENT, or UNSEEN for a left-out cell."""
    said = answers & answer_mask[:, :, None]
    yes, of = said.sum(0), answer_mask.sum(0)[:, None]
    differ = find_differing_cells(answers, answer_mask)
    # Who comes first is chance: a cell that somebody answered has the answer of one of them.
    first_of = np.argmax(answer_mask * rng.random(answer_mask.shape), 0)
    first = answers[first_of, np.arange(len(first_of))]
    labels = np.where(first, PRESENT, ABSENT).astype(np.int8)
    if way == "first":
        return [labels]
    if way == "settled":
        return [np.where(differ, np.where(truth, PRESENT, ABSENT), labels).astype(np.int8)]
    if way == "agreed":
        return [np.where(differ, UNSEEN, labels).astype(np.int8)]
    if way == "majority":
        most = np.where(2 * yes > of, PRESENT, np.where(2 * yes < of, ABSENT, UNSEEN))
        return [np.where(differ, most, labels).astype(np.int8)]
    if way == "probable":
        present = compute_disputed_probabilities(answers, answer_mask)
        sure = np.where(
            present >= MIN_SURE_PROBABILITY, PRESENT, np.where(present <= 1 - MIN_SURE_PROBABILITY, ABSENT, UNSEEN)
        )
        return [np.where(differ, np.where(of < MIN_PEOPLE, UNSEEN, sure), labels).astype(np.int8)]
    present = compute_presence_probabilities(answers, answer_mask)
    if way == "drawn":
        drawn = rng.random((MODEL_DRAWS, *present.shape)) < present
        return list(np.where(drawn, PRESENT, ABSENT).astype(np.int8))
    likely, right = np.where(present >= 0.5, PRESENT, ABSENT), np.maximum(present, 1 - present)
    if way == "weighted":
        kept = rng.random((MODEL_DRAWS, *present.shape)) < right
        return list(np.where(kept, likely, UNSEEN).astype(np.int8))
    return [np.where(right < MIN_TAUGHT_PROBABILITY, UNSEEN, likely).astype(np.int8)]


def find_differing_cells(answers: np.ndarray, answer_mask: np.ndarray) -> np.ndarray:
    """Return (n, C) bool, the cells to which people gave different answers."""
    yes = (answers & answer_mask[:, :, None]).sum(0)
    return (yes > 0) & (yes < answer_mask.sum(0)[:, None])


def compute_disputed_probabilities(answers: np.ndarray, answer_mask: np.ndarray) -> np.ndarray:
    """Return (n, C) probabilities of presence as a project's training computes them; 0.5 where one person answered."""
    pattern_of, patterns = _collect_patterns(answers, answer_mask)
    known = estimate_probabilities(patterns, len(answers), answers.shape[2])
    return np.array([[known.get(pattern, 0.5) for pattern in of] for of in pattern_of])


def _collect_patterns(answers: np.ndarray, answer_mask: np.ndarray) -> tuple[list[list[Pattern]], Counter[Pattern]]:
    """Return the pattern (class, answers by person) of each cell, and a count of patterns with two people or more."""
    _, images, classes = answers.shape
    pattern_of: list[list[Pattern]] = [
        [
            (c, tuple((p, bool(answers[p, i, c])) for p in np.flatnonzero(answer_mask[:, i]).tolist()))
            for c in range(classes)
        ]
        for i in range(images)
    ]
    return pattern_of, Counter(pattern for of in pattern_of for pattern in of if len(pattern[1]) > 1)


def compute_presence_probabilities(answers: np.ndarray, answer_mask: np.ndarray) -> np.ndarray:
    """Return (n, C) probabilities of presence, from each cell's answers and the error rates of those who gave them."""
    people, _, classes = answers.shape
    pattern_of, patterns = _collect_patterns(answers, answer_mask)
    rates = estimate_error_rates(patterns, people, classes)
    cells, there = np.zeros(classes), np.ones(classes)  # a cell of the prior, half of which is there
    for (class_, said), many in patterns.items():
        cells[class_] += many
        there[class_] += many * rates.probability[class_, said]
    share = there / (cells + 2)
    alone = {}
    for person in range(people):
        for class_ in range(classes):
            finds, rejects = rates.sensitivity[person, class_, 0], rates.specificity[person, class_, 0]
            for said in (True, False):
                if_present = share[class_] * (finds if said else 1 - finds)
                if_absent = (1 - share[class_]) * (1 - rejects if said else rejects)
                alone[class_, ((person, said),)] = if_present / (if_present + if_absent)
    known = alone | rates.probability
    return np.array([[known[pattern] for pattern in of] for of in pattern_of])


def _train_scores(
    images: ComparedImages, rows: np.ndarray, labels: np.ndarray, unbiased: np.ndarray, seed: int
) -> np.ndarray:
    """Train `auto` on these labels and return its (N, C) probabilities; UNSEEN cells are masked, as in a project."""
    used = labels != UNSEEN
    kept = used.any(1)
    taught = TrainingLabels(rows[kept], labels[kept], None if used[kept].all() else used[kept], (used & unbiased)[kept])
    trainer = make_trainer(make_method("auto"), images, taught, seed=seed)
    for _ in trainer.epochs():
        pass
    return np.nan_to_num(trainer.build_outcome().probabilities)
