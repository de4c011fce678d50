"""A check of the summed probabilities of rare classes against their true counts, after some answers."""

from collections.abc import Sequence

import numpy as np

from annotator.benchmark.methods.compared_images import ComparedImages
from annotator.benchmark.methods.finished_results import Work
from annotator.benchmark.methods.task import Task
from spmll.ensemble.stacking import AnsweredImages, fit_stacked
from spmll.labels import ABSENT, PRESENT, UNSEEN
from spmll.methods.auto import Auto
from spmll.statistics.metrics import count_honest_totals

CLICKED_SHARE = 0.2  # of the images that have a click
# images that are answered in every class; of each class, the likeliest images that are answered
WHOLE_IMAGES_ANSWERED, GRID_IMAGES_PER_CLASS = (20, 24)


def measure_rare_totals(images: ComparedImages, tasks: Sequence[Task], work: Work) -> tuple[int, int]:
    """Count rare classes over all tasks (seeds), and those whose summed probability is within factor 2 of their true
    count.
    """
    total = np.zeros(2, int)
    for seed, task in enumerate(tasks):
        what = {"method": "auto", "seed": seed, "share": CLICKED_SHARE}
        done = work.load_result("rare", what)
        if done is None:
            done = {"totals": _measure_totals(images, task, seed)}
            work.store_result("rare", what, done)
        total += done["totals"]
    return int(total[0]), int(total[1])


def _measure_totals(images: ComparedImages, task: Task, seed: int) -> list[int]:
    pool = task.train
    features, codes = images.features[pool], images.region_codes(lambda *_: None)[pool]
    truth = np.where(task.truth[pool], PRESENT, ABSENT).astype(np.int8)
    labels, unbiased = task.labels.copy(), np.zeros(task.labels.shape, bool)

    def fit_probabilities() -> np.ndarray:
        rows = np.flatnonzero((labels != UNSEEN).any(1))
        model = fit_stacked(
            Auto(), AnsweredImages(features, codes, rows, labels[rows], unbiased=unbiased[rows]), seed=seed
        )
        for _ in model.epochs():
            pass
        assert model.probabilities is not None
        return model.probabilities

    likely = np.nan_to_num(fit_probabilities(), nan=-1.0)
    asked = np.zeros(labels.shape, bool)
    asked[np.random.default_rng(seed).permutation(len(pool))[:WHOLE_IMAGES_ANSWERED]] = True
    for column in range(labels.shape[1]):
        still = np.flatnonzero((labels[:, column] == UNSEEN) & ~asked[:, column])
        asked[still[np.argsort(-likely[still, column], kind="stable")[:GRID_IMAGES_PER_CLASS]], column] = True
    asked &= labels == UNSEEN
    labels[asked], unbiased[asked] = truth[asked], True
    return list(count_honest_totals(fit_probabilities(), labels, truth == PRESENT))
