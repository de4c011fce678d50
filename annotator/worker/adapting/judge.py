"""Whether an adapted network is better than its parent for this project: by answers of images that are held out."""

from collections.abc import Callable

import numpy as np
import torch

from annotator.indexing import positions
from annotator.store.database import Database
from annotator.store.features.cache import FeatureCache
from annotator.worker.adapting.plan import Plan
from models.finetune.adapt import features_of
from models.finetune.answers import Answers, loss_for
from models.finetune.last_stages import LastStages
from models.finetune.views import Examples
from models.linear.training import Head, fit
from models.methods.base import Method
from models.statistics.paired import Comparison, compare


def judge(
    db: Database,
    plan: Plan,
    method: Method,
    last_stages: LastStages,
    fitted: Examples,
    judging: Examples,
    should_stop: Callable[[], bool],
) -> Comparison:
    """Compare linear heads on the features of the parent and of the adapted network.

    Both are fitted to the same answers of the images that were trained on, and judged on unbiased answers of those that
    were held out. fitted, judging: the inputs of these images. should_stop may raise.
    """
    cache = FeatureCache(db.paths.features(plan.parent))
    cache.refresh()
    rows, _ = positions(plan.image_ids, cache.image_ids, np.argsort(cache.image_ids, kind="stable"))
    before = cache.features[rows]
    after = [features_of(last_stages, examples, should_stop) for examples in (fitted, judging)]
    first = _scores(plan, method, before[plan.fitted], before[plan.judging])
    return compare(first, _scores(plan, method, *after), plan.held_out_labels)


def _scores(plan: Plan, method: Method, fitted: np.ndarray, judging: np.ndarray) -> np.ndarray:
    rows = plan.fitted
    head = Head(fitted.shape[1], len(plan.class_ids))
    answers = Answers(loss_for(method), torch.from_numpy(plan.unbiased[rows]))
    for _ in fit(head, fitted, plan.labels[rows], answers, mask=plan.mask[rows]):
        pass
    return head.probabilities(judging)
