"""Curves of recall and precision against a person's effort, and their comparison."""

from collections.abc import Sequence

import numpy as np

from annotator.benchmark.effort.session import Session, Spent
from annotator.records import PRESENT
from annotator.snapshot.time_model import TIME_PARTS, TimeModel
from annotator.store.labels.audits import OPEN
from spmll.statistics.metrics import find_best_threshold

GOAL_RECALL, GOAL_PRECISION = 0.95, 0.99
COST_KINDS = ("actions", "seconds")
# From so many actions, or seconds, on no policy should be far behind another; a hundred single clicks take 250 s.
SHORTFALL_STARTS = {"actions": 100.0, "seconds": 300.0}


def measure_point(session: Session) -> dict:
    """Return a session's effort so far, and its labels' recall, precision and F1, as a point of a curve.

    `decided` scores answered and implied labels. `filled` also counts unanswered cells as present above the
    probability threshold with the best expected F1.
    """
    labels, chances = session.load_labels(), session.load_chances()
    decided = labels == PRESENT
    filled = decided
    if chances is not None:
        threshold = find_best_threshold(int(decided.sum()), chances[labels == OPEN])
        filled = np.where(labels == OPEN, np.nan_to_num(chances) >= threshold, decided)
    spent = session.spent
    return {
        "actions": spent.actions,
        "seconds": round(spent.compute_seconds(session.time_model), 1),
        "parts": {part: round(count, 1) for part, count in spent.parts.items()},
        "decided_share": round(float((labels != OPEN).mean()), 4),
        "decided": compute_scores(decided, session.truth),
        "filled": compute_scores(filled, session.truth),
        "copied": session.copied,
        "miscopied": session.miscopied,
    }


def compute_scores(labels: np.ndarray, truth: np.ndarray) -> dict:
    """Return micro recall, precision and F1 of labels (N, C) bool, and macro F1 over the classes that occur."""
    hits, given, positives = (labels & truth).sum(0), labels.sum(0), truth.sum(0)
    occurs = positives > 0
    each = 2 * hits[occurs] / np.maximum(given[occurs] + positives[occurs], 1)
    recall = _divide_counts(hits.sum(), positives.sum())
    precision = _divide_counts(hits.sum(), given.sum())
    return {
        "recall": round(recall, 5),
        "precision": round(precision, 5),
        "micro_f1": round(2 * float(hits.sum()) / max(1, int(given.sum() + positives.sum())), 5),
        "macro_recall": round(float((hits[occurs] / positives[occurs]).mean()), 5) if occurs.any() else 0.0,
        "macro_f1": round(float(each.mean()), 5) if occurs.any() else 0.0,
    }


def find_goal_point(
    curve: Sequence[dict], recall: float = GOAL_RECALL, precision: float = GOAL_PRECISION
) -> dict | None:
    """Return the first point of a curve at which labels reach this recall and precision, or None.

    It is interpolated from the previous point unless its precision was too low.
    """
    for place, point_ in enumerate(curve):
        good = [kind for kind in ("decided", "filled") if _reaches_goal(point_[kind], recall, precision)]
        if good:
            before = curve[max(place - 1, 0)]
            share = min(_compute_share_until(recall, precision, before[kind], point_[kind]) for kind in good)
            return {
                "actions": round(_interpolate_between(before["actions"], point_["actions"], share)),
                "seconds": round(_interpolate_between(before["seconds"], point_["seconds"], share), 1),
                "parts": {
                    part: _interpolate_between(before["parts"][part], count, share)
                    for part, count in point_["parts"].items()
                },
            }
    return None


def _reaches_goal(scores: dict, recall: float, precision: float) -> bool:
    return scores["recall"] >= recall and scores["precision"] >= precision


def _compute_share_until(recall: float, precision: float, before: dict, after: dict) -> float:
    if before["precision"] < precision or after["recall"] <= before["recall"]:
        return 1.0
    return min(1.0, max(0.0, (recall - before["recall"]) / (after["recall"] - before["recall"])))


def _interpolate_between(before: float, after: float, share: float) -> float:
    return before + share * (after - before)


def compute_seconds(point_: dict, time_model: TimeModel) -> float:
    return Spent(parts=point_["parts"]).compute_seconds(time_model)


def replace_seconds(curve: Sequence[dict], time_model: TimeModel) -> list[dict]:
    return [point_ | {"seconds": round(compute_seconds(point_, time_model), 1)} for point_ in curve]


def interpolate_parts(curve: Sequence[dict], seconds_: float) -> dict[str, float]:
    """Return how often each part of the time model (click, tile, ...) occurred within these seconds, interpolated."""
    places = [point_["seconds"] for point_ in curve]
    return {
        part: float(np.interp(seconds_, places, [point_["parts"][part] for point_ in curve]))
        for part in curve[0]["parts"]
    }


def find_largest_shortfall(
    curve: Sequence[dict], other: Sequence[dict], cost: str = "actions"
) -> tuple[float, float | None]:
    """Return the largest lag of `curve` behind `other` in micro F1 at equal cost, after SHORTFALL_STARTS.

    `cost` is "actions" or "seconds". Returns (lag as a share of the other's F1, cost there), or (0, None).
    """
    last = min(curve[-1][cost], other[-1][cost]) if curve and other else 0
    places = {point_[cost] for point_ in (*curve, *other)} | {SHORTFALL_STARTS[cost]}
    worst, where = 0.0, None
    for place in sorted(place for place in places if SHORTFALL_STARTS[cost] <= place <= last):
        ours, theirs = _interpolate_f1(curve, place, cost), _interpolate_f1(other, place, cost)
        if theirs > 0 and 1 - ours / theirs > worst:
            worst, where = 1 - ours / theirs, float(place)
    return round(worst, 4), where


def _interpolate_f1(curve: Sequence[dict], place: float, cost: str) -> float:
    places, micro_f1 = zip(*((point_[cost], point_["filled"]["micro_f1"]) for point_ in curve), strict=True)
    return float(np.interp(place, places, micro_f1))


def make_time_models() -> dict[str, TimeModel]:
    """Return the default time model, and variants with each part halved or doubled, by name."""
    usual = TimeModel()
    varied = {"usual": usual}
    for part in TIME_PARTS:
        for name, factor in (("half", 0.5), ("double", 2.0)):
            varied[f"{part}_{name}"] = TimeModel(**{**vars(usual), part: factor * getattr(usual, part)})
    return varied


def _divide_counts(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else 1.0
