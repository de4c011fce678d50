"""Numbers in words: shares in percent, rounded so that 100 % means all and 0 % none, counts with their noun, times."""

import math
import re

from annotator.errors import AnnotatorError

_UNIT_SECONDS = {"d": 86400, "h": 3600, "min": 60, "m": 60, "s": 1}
_AMOUNT_PATTERN = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|min|m|s|)")


def format_percent(part: float, total: float = 1, digits: int = 0) -> str:
    """Return a share of work as words: "99 %" for 199 of 200, "<1 %" for 1 of 1,000, "0 %" of nothing.

    Args:
        part: The amount that is done.
        total: The whole amount, in the same unit.
        digits: The digits after the point; the share is never rounded up.

    Returns:
        "100 %" only when all is done, "0 %" only when nothing is.
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
    """Return a number with its noun: "1 image", "1,234 images".

    Args:
        count: The number.
        noun: Its noun in the singular.
        plural: The plural; "": the noun with an s.

    Returns:
        The number with commas between thousands, and the noun.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def format_duration(seconds: float) -> str:
    """Return a time in words: "40 seconds", "7 minutes", "3 hours", "12 days"."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return format_count(round(seconds / length), unit)
    return format_count(max(1, round(seconds)), "second")


def format_exact_duration(seconds: float) -> str:
    """Return a time exactly, in units: "60 s", "1 h 30 min", "-1 h", "0.5 s"."""
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
    """Return the seconds of a time with units.

    Args:
        text: Such as "60s", "60", "1h30m", "+1 h", "-90 min" or "2d".

    Returns:
        The seconds; below 0 for a time that begins with "-".

    Raises:
        AnnotatorError: The text is no time.
    """
    plain = text.strip().lower()
    amounts = plain.lstrip("+-").strip()
    if len(plain) - len(plain.lstrip("+-")) > 1 or not re.fullmatch(rf"({_AMOUNT_PATTERN.pattern}\s*)+", amounts):
        raise AnnotatorError(f"{text!r} is no time. Write it like 60s, 5min, +1h or -1h30m.")
    seconds = sum(float(amount) * _UNIT_SECONDS[unit or "s"] for amount, unit in _AMOUNT_PATTERN.findall(amounts))
    return -seconds if plain.startswith("-") else seconds
