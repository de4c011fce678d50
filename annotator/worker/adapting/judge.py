"""Judging whether an adapted network is better than its parent for this project, by answers of held-out images."""

import numpy as np

from annotator.indexing import positions
from annotator.store.database.database import Database
from annotator.store.events import membership
from annotator.store.features.cache import open_features
from annotator.worker.adapting.plan import Plan
from models.finetune.probe import head_scores
from models.statistics.paired import Comparison, compare


def judge(db: Database, plan: Plan, fitted: np.ndarray, judging: np.ndarray) -> Comparison:
    """Compare linear heads on the features of the parent and of the adapted network.

    Both are fitted to the same answers of the images that were trained on, and judged on unbiased answers of those that
    were held out.

    Args:
        db: The project's database.
        plan: The images and labels of the training.
        fitted: (n, D) features by the adapted network of the images that were trained on.
        judging: (m, D) features by the adapted network of the images that were held out.

    Raises:
        ValueError: No class can be judged.
    """
    cache = open_features(db, plan.parent)
    rows, _ = positions(plan.image_ids, cache.image_ids, np.argsort(cache.image_ids, kind="stable"))
    before = cache.features[rows]
    told = plan.labels[plan.fitted], plan.mask[plan.fitted], plan.unbiased[plan.fitted]
    first = head_scores(before[plan.fitted], *told, before[plan.judging])
    groups = membership.numbered(membership.kept_together(db, plan.image_ids[plan.judging]))
    return compare(first, head_scores(fitted, *told, judging), plan.held_out_labels, groups=groups)
