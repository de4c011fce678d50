"""Texts for the figures of a quality report: the figure with its interval, or why it is hidden.

Intervals over half the possible range are hidden. Percentages round down: 199 of 200 is never 100%.
"""

import math
from dataclasses import dataclass
from typing import Any

from annotator.humanize import format_percent
from spmll.statistics.allowed_mistakes import ASSUMED_MISTAKE_SHARE, ASSUMED_RATES, READ_TWICE, REPEATED_ANSWERS
from spmll.statistics.bounds import Bounds

MAX_WIDTH_SHARE = 0.5
NOT_MEASURED = "not measured"
ASSUMED_RIGHT = f"{NOT_MEASURED} (people's labels assumed to be right)"
MAY_BE_ALARMS = f"{NOT_MEASURED} (wrong answers may explain the labels: audits ask rare ones again)"
NO_LABELS_YET = f"{NOT_MEASURED} (no labels yet)"
# what recall and the number of missing labels assume; always shown with them
IF_ANSWERS_ARE_RIGHT = "if people's answers are right"
# what certified recall allows for; always shown with it
ALLOWANCES = {
    ASSUMED_RATES: f"if 1 answer in {1 / ASSUMED_MISTAKE_SHARE:.0f} is wrong",
    REPEATED_ANSWERS: "if answers are wrong as often as repeated ones",
    READ_TWICE: "allowing for mistakes",
}


@dataclass(frozen=True)
class Interval:
    """A figure with its 95% interval."""

    estimate: float | None
    # low, high: ends of the interval. Without answers, the bounds that are certain
    low: float
    high: float
    # why the figure is hidden, or ""
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return estimate, low and high, all None with the reason if hidden."""
        if self.reason:
            return {"estimate": None, "low": None, "high": None, "reason": self.reason}
        return {"estimate": self.estimate, "low": self.low, "high": self.high}


def explain_hidden_recall(recall: Interval, labeled: int, unknown: int, audited: int) -> str:
    """Return why recall is not shown, or "", from the numbers of cells `labeled` present, `unknown` and `audited`."""
    if not unknown:
        return ""
    if not audited:
        return NOT_MEASURED
    return NO_LABELS_YET if not labeled else _explain_too_wide(recall, 1, audited)


def explain_hidden_allowance(recall: Interval, labeled: int) -> str:
    """Return why the recall that allows for wrong answers is not shown where the other one is, or ""."""
    if not labeled:
        return NO_LABELS_YET
    return MAY_BE_ALARMS if _explain_too_wide(recall, 1, labeled) else ""


def explain_hidden_missing(missing: Interval, recall: Interval, labeled: int, unknown: int, audited: int) -> str:
    """Return why the estimated number of missing positives is not shown, or "".

    `labeled`, `unknown` and `audited` count cells labeled present, unanswered and audited.
    """
    if not unknown:
        return ""
    if not audited:
        return NOT_MEASURED
    return _explain_too_wide(recall, 1, audited) if labeled else _explain_too_wide(missing, unknown, audited)


def explain_hidden_precision(precision: Interval, people: int, accepted: int, audited: int, relabeled: int) -> str:
    """Return why precision is not shown, or "".

    Args:
        people, accepted: Number of cells labeled present by annotators, and auto-accepted.
        audited, relabeled: Number of audit answers to unlabeled cells, and to cells labeled present.
    """
    if not people + accepted:
        return NO_LABELS_YET
    if people and not relabeled:
        return ASSUMED_RIGHT
    return _explain_too_wide(precision, 1, relabeled if people else audited)


def describe_share(share: Interval) -> str:
    """Format a share with its interval, or return why it is not shown."""
    if share.reason:
        return share.reason
    return (
        "nothing to find"
        if share.estimate is None
        else f"{format_percent(share.estimate, digits=1)} ({format_share_interval(share)})"
    )


def describe_count(count: Interval) -> str:
    """Format a number of cells with its interval, or return why it is not shown."""
    return count.reason or f"{count.estimate or 0:,.0f} ({format_count_interval(count)})"


def format_share_interval(share: Interval) -> str:
    """Format a share interval in percent, rounded outward."""
    low, high = math.floor(1000 * share.low + 1e-6) / 10, math.ceil(1000 * share.high - 1e-6) / 10
    return f"{low:g} % to {high:g} %" if low < high else f"{low:g} %"


def format_count_interval(count: Interval) -> str:
    """Format a count interval, rounded outward."""
    low, high = math.floor(count.low + 1e-6), math.ceil(count.high - 1e-6)
    return f"{low:,} to {high:,}" if low < high else f"{low:,}"


def format_search_time(seconds: float | None) -> str:
    """Format the time to find the missing positives. 0 means that none are expected to be missing."""
    if seconds is None:
        return NOT_MEASURED
    if not seconds:
        return "none expected"
    if seconds < 120:
        return f"{math.ceil(seconds)} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def make_interval(bounds: Bounds, place: int, digits: int) -> Interval:
    """Return entry `place` of `bounds` as an Interval, rounded outward to `digits`."""
    scale = 10**digits
    low, high = math.floor(bounds.low[place] * scale) / scale, math.ceil(bounds.high[place] * scale) / scale
    return Interval(round_or_none(bounds.estimate[place], digits), low, high)


def round_or_none(value: float, digits: int) -> float | None:
    return None if math.isnan(value) else round(float(value), digits)


def _explain_too_wide(interval: Interval, possible: float, answers: int) -> str:
    if interval.estimate is not None and interval.high - interval.low <= MAX_WIDTH_SHARE * possible:
        return ""
    return f"too few answers ({answers:,})"
