"""Formatting of percentages, counts, durations and times."""

import math
import re
from datetime import UTC, datetime

from annotator.errors import AnnotatorError

_UNIT_SECONDS = {"d": 86400, "h": 3600, "min": 60, "m": 60, "s": 1}
_AMOUNT_PATTERN = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|min|m|s|)")


def format_percent(part: float, total: float = 1, digits: int = 0) -> str:
    """Format a share in percent, rounded down: "99 %" for 199 of 200.

    Args:
        part: Completed amount.
        total: Whole amount.
        digits: Decimal places.

    Returns:
        The text. "100 %" only if complete, "0 %" only for none.
    """
    if part <= 0 or total <= 0:
        return "0 %"
    if part >= total:
        return "100 %"
    # The little that is added makes up for how a float writes 0.29.
    steps = math.floor(100 * 10**digits * part / total + 1e-9)
    if not steps:
        return f"<{10**-digits:g} %"
    return f"{min(steps, 100 * 10**digits - 1) / 10**digits:.{digits}f} %"


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Format a count: "1 image", "1,234 images".

    Args:
        count: The number.
        noun: Singular.
        plural: "" adds s.

    Returns:
        The text.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def format_duration(seconds: float) -> str:
    """Format seconds approximately: "40 seconds", "3 hours", "12 days"."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return format_count(round(seconds / length), unit)
    return format_count(max(1, round(seconds)), "second")


def format_duration_range(low: float, high: float) -> str:
    """Format a range of seconds approximately: "40 to 55 seconds", "3 to 5 hours", "2 minutes"."""
    (few, unit), (many, long_unit) = (format_duration(seconds).split(" ") for seconds in (low, high))
    if unit.rstrip("s") != long_unit.rstrip("s"):
        return f"{few} {unit} to {many} {long_unit}"
    return f"{many} {long_unit}" if few == many else f"{few} to {many} {long_unit}"


def format_local_minute(at: float | None) -> str:
    """Format unix seconds in this machine's time zone with its offset: "2026-11-28 21:32+01:00", "" for None."""
    return "" if at is None else datetime.fromtimestamp(at, UTC).astimezone().isoformat(" ", "minutes")


def format_exact_duration(seconds: float) -> str:
    """Format seconds exactly: "60 s", "1 h 30 min", "-1 h"."""
    sign, rest = "-" if seconds < 0 else "", abs(seconds)
    if rest <= 60:
        return f"{sign}{rest:g} s"
    parts: list[str] = []
    for unit in ("d", "h", "min", "s"):
        amount = rest if unit == "s" else rest // _UNIT_SECONDS[unit]
        rest -= amount * _UNIT_SECONDS[unit]
        if amount:
            parts.append(f"{amount:g} {unit}")
    return sign + " ".join(parts)


def parse_duration(text: str) -> float:
    """Parse a duration.

    Args:
        text: Such as "60s", "1h30m" or "-90 min".

    Returns:
        Seconds, perhaps negative.

    Raises:
        AnnotatorError: Not a duration.
    """
    plain = text.strip().lower()
    amounts = plain.lstrip("+-").strip()
    if len(plain) - len(plain.lstrip("+-")) > 1 or not re.fullmatch(rf"({_AMOUNT_PATTERN.pattern}\s*)+", amounts):
        raise AnnotatorError(f"{text!r} is no time. Write it like 60s, 5min, +1h or -1h30m.")
    seconds = sum(float(amount) * _UNIT_SECONDS[unit or "s"] for amount, unit in _AMOUNT_PATTERN.findall(amounts))
    return -seconds if plain.startswith("-") else seconds
