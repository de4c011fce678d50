"""Figures with their evidence: when a figure may be shown, and in which words; otherwise a reason is shown.

An interval that covers more than half of the possible range says nearly nothing, whatever its estimate ("100 %" of two
answers): the number of answers is stated instead. Percentages are rounded down: 199 of 200 are never 100 %.
"""

import math
from dataclasses import dataclass
from typing import Any

from annotator.humanize import format_percent
from spmll.statistics.bounds import Bounds

MAX_WIDTH_SHARE = 0.5
NOT_MEASURED = "not measured"
ASSUMED_RIGHT = f"{NOT_MEASURED} (people's labels assumed to be right)"
NOT_COMPARED = f"{NOT_MEASURED} (nobody else has answered the same images)"
NO_LABELS_YET = f"{NOT_MEASURED} (no labels yet)"
# what recall and the number of missing labels assume; always shown with them
IF_ANSWERS_ARE_RIGHT = "if people's answers are right"


@dataclass(frozen=True)
class Interval:
    """A quantity with its 95 % interval.

    Attributes:
        estimate: None where it cannot be estimated.
        low, high: Without evidence: the bounds that are certain, often the whole possible range.
        reason: Why it is not shown as a figure; "" where it is.
    """

    estimate: float | None
    low: float
    high: float
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return estimate, low and high; where there is a reason, all of them None, with the reason."""
        if self.reason:
            return {"estimate": None, "low": None, "high": None, "reason": self.reason}
        return {"estimate": self.estimate, "low": self.low, "high": self.high}


def explain_hidden_recall(recall: Interval, labeled: int, unknown: int, audited: int) -> str:
    """Return why recall is not shown; "" where it is.

    Args:
        recall: The interval of the recall.
        labeled: Labeled cells of the class.
        unknown: Unknown cells of the class.
        audited: Audit answers that count.
    """
    if not unknown:
        return ""
    if not audited:
        return NOT_MEASURED
    return NO_LABELS_YET if not labeled else _explain_too_wide(recall, 1, audited)


def explain_hidden_allowance(recall: Interval, labeled: int, compared: int) -> str:
    """Return why recall that allows for mistakes is not shown; "" where it is.

    Args:
        recall: The interval of the recall.
        labeled: Labeled cells of the class.
        compared: Answers that could be compared with those of others.
    """
    if not labeled:
        return NO_LABELS_YET
    return _explain_too_wide(recall, 1, compared) if compared else NOT_COMPARED


def explain_hidden_missing(missing: Interval, recall: Interval, labeled: int, unknown: int, audited: int) -> str:
    """Return why the number of missing positives is not shown; "" where it is.

    With labels the width of recall's interval decides, without labels the width of its own.
    """
    if not unknown:
        return ""
    if not audited:
        return NOT_MEASURED
    return _explain_too_wide(recall, 1, audited) if labeled else _explain_too_wide(missing, unknown, audited)


def explain_hidden_precision(precision: Interval, people: int, accepted: int, audited: int, relabeled: int) -> str:
    """Return why precision is not shown; "" where it is.

    Args:
        precision: The interval of the precision.
        people: Cells labeled by people.
        accepted: Auto-accepted cells.
        audited: Audit answers that count.
        relabeled: Relabels of "present".
    """
    if not people + accepted:
        return NO_LABELS_YET
    if people and not relabeled:
        return ASSUMED_RIGHT
    return _explain_too_wide(precision, 1, relabeled if people else audited)


def describe_share(share: Interval) -> str:
    """Return a share with its interval in words, or why it is not shown."""
    if share.reason:
        return share.reason
    return (
        "nothing to find"
        if share.estimate is None
        else f"{format_percent(share.estimate, digits=1)} ({format_share_interval(share)})"
    )


def describe_count(count: Interval) -> str:
    """Return a number of cells with its interval in words, or why it is not shown."""
    return count.reason or f"{count.estimate or 0:,.0f} ({format_count_interval(count)})"


def format_share_interval(share: Interval) -> str:
    """Return the interval of a share in percent, rounded outwards: it never looks narrower than it is."""
    low, high = math.floor(1000 * share.low + 1e-6) / 10, math.ceil(1000 * share.high - 1e-6) / 10
    return f"{low:g} % to {high:g} %" if low < high else f"{low:g} %"


def format_count_interval(count: Interval) -> str:
    """Return the interval of a number of cells, rounded outwards."""
    low, high = math.floor(count.low + 1e-6), math.ceil(count.high - 1e-6)
    return f"{low:,} to {high:,}" if low < high else f"{low:,}"


def format_search_time(seconds: float | None) -> str:
    """Return a time in words. None: not measured; 0: no missing positives are expected."""
    if seconds is None:
        return NOT_MEASURED
    if not seconds:
        return "none expected"
    if seconds < 120:
        return f"{math.ceil(seconds)} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def make_interval(bounds: Bounds, place: int, digits: int) -> Interval:
    """Return one interval of many, rounded outwards: rounding never narrows it."""
    scale = 10**digits
    low, high = math.floor(bounds.low[place] * scale) / scale, math.ceil(bounds.high[place] * scale) / scale
    return Interval(round_or_none(bounds.estimate[place], digits), low, high)


def round_or_none(value: float, digits: int) -> float | None:
    """Return a rounded number; None for nan."""
    return None if math.isnan(value) else round(float(value), digits)


def _explain_too_wide(interval: Interval, possible: float, answers: int) -> str:
    """Return why an interval is too wide to show; "" where it is narrow enough for the range from 0 to `possible`."""
    if interval.estimate is not None and interval.high - interval.low <= MAX_WIDTH_SHARE * possible:
        return ""
    return f"too few answers ({answers:,})"
