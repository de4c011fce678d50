"""Evaluation of an adapted backbone against its parent on held-out labels."""

import numpy as np

from annotator.indexing import find_positions
from annotator.store.database.database import Database
from annotator.store.events import membership
from annotator.store.features.feature_cache import open_features
from annotator.worker.adapting.adaptation_plan import AdaptationPlan
from spmll.finetune.linear_probe import score_with_probe
from spmll.statistics.paired_bootstrap import Comparison, compare_scorings


def judge_network(
    db: Database, plan: AdaptationPlan, fitted_features: np.ndarray, held_out_features: np.ndarray
) -> Comparison:
    """Compare linear heads on the embeddings of the parent and of the adapted backbone.

    Args:
        fitted_features: (n, D), adapted embeddings of training images.
        held_out_features: (m, D), adapted embeddings of held-out images.

    Raises:
        ValueError: No class can be judged.
    """
    cache = open_features(db, plan.parent)
    rows, _ = find_positions(plan.image_ids, cache.image_ids, np.argsort(cache.image_ids, kind="stable"))
    before = cache.features[rows]
    answers = plan.labels[plan.fitted_rows], plan.mask[plan.fitted_rows], plan.unbiased[plan.fitted_rows]
    first = score_with_probe(before[plan.fitted_rows], *answers, before[plan.held_out_rows])
    groups = membership.number_events(membership.load_split_groups(db, plan.image_ids[plan.held_out_rows]))
    return compare_scorings(
        first, score_with_probe(fitted_features, *answers, held_out_features), plan.held_out_labels, groups=groups
    )
