"""When a figure may be shown, and how: what nobody measured has a reason instead of a number.

An interval that covers more than half of all that is possible says nearly nothing, whatever its estimate ("100 %" of
two answers): then it is said how few answers there are. Percentages are rounded down: 199 of 200 are never 100 %.
"""

import math
from dataclasses import dataclass

WIDE = 0.5
NOT_MEASURED = "not measured"
TAKEN_AS_RIGHT = f"{NOT_MEASURED} (people's labels taken as right)"
NO_LABEL = f"{NOT_MEASURED} (no label yet)"


@dataclass(frozen=True)
class Interval:
    """A quantity with its 95 % interval.

    estimate    None where nobody can tell
    low, high   without evidence: what is certain, which is often everything that is possible
    reason      why it is no figure to be shown; "" where it is one
    """

    estimate: float | None
    low: float
    high: float
    reason: str = ""

    def as_json(self) -> dict:
        """estimate, low, high; without evidence all of them None, with the reason."""
        if self.reason:
            return {"estimate": None, "low": None, "high": None, "reason": self.reason}
        return {"estimate": self.estimate, "low": self.low, "high": self.high}


def recall_reason(one: Interval, labeled: int, unknown: int, audited: int) -> str:
    """Why recall is no figure: labeled and unknown cells of the class, and answers of audits that count."""
    if not unknown:
        return ""
    if not audited:
        return NOT_MEASURED
    return NO_LABEL if not labeled else _too_wide(one, 1, audited)


def missing_reason(one: Interval, recall: Interval, labeled: int, unknown: int, audited: int) -> str:
    """Why the number of missing positives is no figure: recall's reason, and without labels its own width."""
    if not unknown:
        return ""
    if not audited:
        return NOT_MEASURED
    return _too_wide(recall, 1, audited) if labeled else _too_wide(one, unknown, audited)


def precision_reason(one: Interval, people: int, accepted: int, audited: int, looked: int) -> str:
    """Why precision is no figure: labels of people, and of the model; answers of audits; second looks at people's."""
    if not people + accepted:
        return NO_LABEL
    if people and not looked:
        return TAKEN_AS_RIGHT
    return _too_wide(one, 1, looked if people else audited)


def percents(one: Interval) -> str:
    """A share with its interval, or why there is none."""
    if one.reason:
        return one.reason
    return "nothing to find" if one.estimate is None else f"{percent(one.estimate)} ({ends(one)})"


def counts(one: Interval) -> str:
    """A number of cells with its interval, or why there is none."""
    return one.reason or (f"{one.estimate or 0:,.0f} ({count_ends(one)})")


def ends(one: Interval) -> str:
    """From where to where a share is. Rounded outwards: nothing is to look surer than it is."""
    low, high = math.floor(1000 * one.low + 1e-6) / 10, math.ceil(1000 * one.high - 1e-6) / 10
    return f"{low:g} % to {high:g} %" if low < high else f"{low:g} %"


def count_ends(one: Interval) -> str:
    """From where to where a number of cells is."""
    low, high = math.floor(one.low + 1e-6), math.ceil(one.high - 1e-6)
    return f"{low:,} to {high:,}" if low < high else f"{low:,}"


def percent(share: float) -> str:
    """With one digit, never rounded up."""
    return f"{math.floor(1000 * share + 1e-6) / 10:.1f} %"


def lasting(seconds: float | None) -> str:
    """A time as people say it. None: nothing is known of it; 0: no missing ones are expected."""
    if seconds is None:
        return NOT_MEASURED
    if not seconds:
        return "none expected"
    if seconds < 120:
        return f"{math.ceil(seconds)} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def _too_wide(one: Interval, possible: float, answers: int) -> str:
    if one.estimate is not None and one.high - one.low <= WIDE * possible:
        return ""
    return f"too few answers ({answers:,})"
